// What the login, the list of websites, adding one and its setup say.

export const websites = {
  "login.title": "Log in",
  "login.name": "Name",
  "login.password": "Password",
  "login.show": "Show the password",
  "login.hide": "Hide the password",
  "login.enter": "Log in",
  "login.wrong": "The name or password is wrong.",
  "login.too-many": "Too many failed attempts from your network.",
  "login.wait.one": "Try again in {n} second.",
  "login.wait.other": "Try again in {n} seconds.",
  "login.no-cookie": "Your browser refused the login cookie",
  "login.no-cookie-why":
    "The name and password are correct, but this page was loaded over plain HTTP and the cookie requires a secure connection. Any of these helps:",
  "login.no-cookie-https":
    "Open this page over HTTPS: put the server behind a proxy with a certificate and go to {address}.",
  "login.no-cookie-local": "On the server itself, open {address}, or the port that it listens on.",
  "login.no-cookie-browser":
    "Use another browser: Chrome, Edge and Firefox accept the cookie at this address, Safari does not.",
  "login.no-cookie-allow":
    "The name and password are correct. Allow cookies for this page, then log in again.",
  "login.first": "First time here?",
  "login.first-file":
    "The initial name and password are in the file {file} in the server’s data directory, unless they were set during installation.",
  "login.first-terminal":
    "A server started in a terminal prints them there. {command} sets a new password.",
  "websites.title": "Websites",
  "websites.add": "Add a website",
  "websites.search": "Search websites",
  "websites.order": "Order",
  "websites.by-visitors": "Most visitors first",
  "websites.by-name": "By name",
  "websites.visitors.one": "visitor in 24 hours",
  "websites.visitors.other": "visitors in 24 hours",
  "websites.curve": "Visitors by hour, {most} at most, {now} in this hour",
  "websites.none-found": "No website has “{text}” in its name.",
  "websites.found.one": "{n} website",
  "websites.found.other": "{n} websites",
  "websites.empty": "Add your first website",
  "websites.empty-text":
    "Enter its hostname, add one line to its pages, and watch its first view arrive.",
  "hostname.label": "Hostname",
  "hostname.hint":
    "As in the address of its pages, for example example.com. This includes www.example.com.",
  "hostname.taken": "Only the hostname is used: {hostname}",
  "hostname.refused":
    "This is not a hostname. It consists of letters, digits, hyphens and dots, such as example.com.",
  "hostname.known": "{hostname} is already registered.",
  "add.title": "Add a website",
  "add.submit": "Add",
  "setup.title": "Set up {hostname}",
  "setup.to-statistics": "Show statistics",
  "setup.tag": "Add this line to every page",
  "setup.tag-where":
    "Between <head> and </head>, ideally in the template that all pages share. The line is the same for all your websites.",
  "setup.tag-copy": "The script’s tag",
  "setup.more": "The script can also count clicks, downloads and more: choose its {features}.",
  "setup.features": "features",
  "setup.not-reachable":
    "Visitors cannot reach {origin}: it refers to their own machine. Open this page at the server’s public address and copy the line from there.",
  "setup.not-secure":
    "Pages loaded over HTTPS cannot load a script over HTTP. Put the server behind a proxy with a certificate, open this page over HTTPS, and copy the line from there.",
  "setup.pixel": "Also count visitors without JavaScript",
  "setup.pixel-text":
    "An image next to the script counts visitors whose browser does not run it. Their country and time on page remain unknown.",
  "setup.pixel-copy": "The image’s tag",
  "setup.visit": "Open the website",
  "setup.visit-text": "Visit it yourself: {link}. Your view appears below within seconds.",
  "setup.visit-yourself":
    "Visit one of its pages yourself. Your view appears below within seconds.",
  "setup.wait": "Wait for the first view",
  "setup.waiting": "Waiting for the first view",
  "setup.came": "The first view has arrived. Everything works.",
  "setup.counted.one": "{n} view has been counted. Everything works.",
  "setup.counted.other": "{n} views have been counted. Everything works.",
  "setup.reasons": "Why nothing has arrived yet",
  "setup.hits.one": "{n} hit, {ago}",
  "setup.hits.other": "{n} hits, most recently {ago}",
  "setup.unknown": "Hits arrive for {hostname}, which is not registered.",
  "setup.register": "Register it as well",
  "setup.rename": "Rename {hostname} to this",
  "setup.of-any": "For any of your websites:",
  "setup.check": "What to check if nothing arrives",
  "setup.check-source":
    "Is the line in the page’s source as the browser receives it? A cache may still hold the old page.",
  "setup.check-hostname":
    "Is the page served at {hostname}, with or without www? Every other hostname is a separate website.",
  "setup.check-blocker":
    "Does a content blocker block the script? Switch it off for the test. A custom name avoids most of them: set {script} and {event} in the configuration.",
  "setup.check-policy":
    "Does the website send a Content-Security-Policy? It must allow {origin} under {script} and {connect}.",
  "setup.check-excluded":
    "Have you excluded this browser? Open a page of the website with {fragment} at the end of its address to change that.",
  "reason.bot":
    "Crawlers, monitors and headless browsers are not counted. {setting} in the configuration says which of them are recognised.",
  "reason.spam": "The referrer is on the list of referrer spam.",
  "reason.origin": "Sent by a page of another website.",
  "reason.blocked": "The sender’s network is blocked in the configuration.",
  "reason.gpc": "The browser sends Global Privacy Control, which the configuration respects.",
  "reason.rate": "A network sent more hits in a minute than the configuration allows.",
  "reason.capacity":
    "The server could not store them: its disk or its store is nearly full, or it was too busy.",
  "reason.malformed":
    "The request was not a valid hit. An outdated or modified script may send such requests.",
  "reason.unknown-website": "No website is registered for the page’s hostname.",
  "reason.other": "Not counted, for the reason “{reason}”.",
};
