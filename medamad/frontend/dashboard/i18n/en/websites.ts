// Texts of the login, the list of websites, and adding and setting one up.

export const websites = {
  "login.title": "Log in",
  "login.name": "Username",
  "login.password": "Password",
  "login.show": "Show password",
  "login.hide": "Hide password",
  "login.enter": "Log in",
  "login.wrong": "Incorrect username or password.",
  "login.too-many": "Too many failed attempts from your network.",
  "login.wait.one": "Try again in {n} second.",
  "login.wait.other": "Try again in {n} seconds.",
  "login.no-cookie": "Your browser rejected the login cookie",
  "login.no-cookie-why":
    "Your username and password are correct, but this page was loaded over plain HTTP and the cookie needs a secure connection. Any of these will help:",
  "login.no-cookie-https":
    "Open this page over HTTPS: put the server behind a proxy with a certificate, then go to {address}.",
  "login.no-cookie-local": "On the server itself, open {address}, or whichever port it listens on.",
  "login.no-cookie-browser":
    "Use another browser: at this address, Chrome, Edge and Firefox accept the cookie, but Safari doesn’t.",
  "login.no-cookie-allow":
    "Your username and password are correct. Allow cookies for this page, then log in again.",
  "login.first": "First time here?",
  "login.first-file":
    "The first username and password are in the file {file} in the server’s data directory, unless you set them during installation.",
  "login.first-terminal":
    "If you started the server in a terminal, it printed them there. {command} sets a new password.",
  "websites.title": "Websites",
  "websites.add": "Add website",
  "websites.search": "Search websites",
  "websites.order": "Sort",
  "websites.by-visitors": "Most visitors first",
  "websites.by-visits": "Most visits first",
  "websites.by-name": "By name",
  "websites.visitors.one": "visitor in the last 24 hours",
  "websites.visitors.other": "visitors in the last 24 hours",
  "websites.visits.one": "visit in the last 24 hours",
  "websites.visits.other": "visits in the last 24 hours",
  "websites.curve": "Visitors per day in the last 30 days: at most {most}, {now} so far today",
  "websites.curve-visits": "Visits per day in the last 30 days: at most {most}, {now} so far today",
  "websites.none-found": "No results for “{text}”.",
  "websites.found.one": "{n} website",
  "websites.found.other": "{n} websites",
  "websites.empty": "Add your first website",
  "websites.empty-text":
    "Enter its hostname, add one line to its pages, and watch the first visit come in.",
  "hostname.label": "Hostname",
  "hostname.hint":
    "As in the address of your pages, for example example.com. This includes www.example.com.",
  "hostname.taken": "We’ll use the hostname: {hostname}",
  "hostname.refused":
    "This isn’t a valid hostname. Use letters, digits, hyphens and dots, as in example.com.",
  "hostname.known": "{hostname} has already been added.",
  "add.title": "Add website",
  "add.submit": "Add",
  "setup.title": "Set up {hostname}",
  "setup.to-statistics": "View statistics",
  "setup.tag": "Add this line to every page",
  "setup.tag-where":
    "Put it between <head> and </head>, ideally in the template that all pages share. The line is the same for all your websites.",
  "setup.tag-copy": "Script tag",
  "setup.more": "The script can also count clicks, downloads and more. Choose its {features}.",
  "setup.features": "features",
  "setup.not-reachable":
    "Visitors can’t reach {origin}: on their computers, it means their own. Open this page at the server’s public address and copy the line there.",
  "setup.not-secure":
    "HTTPS pages can’t load a script over HTTP. Put the server behind a proxy with a certificate, open this page over HTTPS and copy the line there.",
  "setup.pixel": "Also count visits without JavaScript",
  "setup.pixel-text":
    "An image next to the script counts visits from browsers that don’t run JavaScript. Their country and time on page remain unknown.",
  "setup.pixel-copy": "Image tag",
  "setup.visit": "Visit your website",
  "setup.visit-text": "Open {link} yourself. Your visit will show up below within seconds.",
  "setup.visit-yourself":
    "Open one of its pages yourself. Your visit will show up below within seconds.",
  "setup.wait": "Wait for the first visit",
  "setup.waiting": "Waiting for the first visit",
  "setup.came": "First visit received. You’re set up.",
  "setup.counted.one": "{n} view received. You’re set up.",
  "setup.counted.other": "{n} views received. You’re set up.",
  "setup.reasons": "Why nothing has been counted yet",
  "setup.hits.one": "{n} hit, {ago}",
  "setup.hits.other": "{n} hits, the latest {ago}",
  "setup.unknown": "Hits are arriving for {hostname}, which hasn’t been added.",
  "setup.register": "Add it too",
  "setup.rename": "Rename {hostname} to this",
  "setup.of-any": "Across all your websites:",
  "setup.check": "What to check if nothing arrives",
  "setup.check-source":
    "Is the line in the page source that the browser receives? A cache may still hold the old page.",
  "setup.check-hostname":
    "Is the page at {hostname}, with or without www? Any other hostname is a separate website.",
  "setup.check-blocker":
    "Is a content blocker stopping the script? Turn it off for this test. Names of your own get past most of them: set {script} and {event} in the configuration.",
  "setup.check-policy":
    "Does your website send a Content-Security-Policy? It must allow {origin} for {script} and {connect}.",
  "setup.check-excluded":
    "Have you excluded this browser? To count it again, open a page of the website with {fragment} at the end of its address.",
  "reason.bot":
    "Crawlers, monitoring services and headless browsers aren’t counted. {setting} in the configuration decides which of them are detected.",
  "reason.hosting":
    "The sender’s network belongs to a hosting provider, and such networks don’t count.",
  "reason.country": "The website’s settings exclude this country.",
  "reason.path": "The website’s settings exclude this page.",
  "reason.spam": "The referrer is on the referrer spam list.",
  "reason.origin": "Sent from a page of another website.",
  "reason.blocked": "The sender’s network is blocked in the configuration.",
  "reason.gpc": "The browser sends Global Privacy Control, and the configuration honours it.",
  "reason.rate": "One network sent more hits per minute than the configuration allows.",
  "reason.capacity":
    "The server couldn’t store them: its disk or database is nearly full, or it was too busy.",
  "reason.malformed":
    "The request wasn’t a valid hit. It may come from an outdated or modified script.",
  "reason.unknown-website": "The page’s hostname isn’t one of your websites.",
  "reason.other": "Not counted. Reason: “{reason}”.",
};
