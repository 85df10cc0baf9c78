// What the login, the list of websites, adding one and its setup say.

export const websites = {
  "login.title": "Log in",
  "login.name": "Name",
  "login.password": "Password",
  "login.show": "Show the password",
  "login.hide": "Hide the password",
  "login.enter": "Log in",
  "login.wrong": "Name or password is wrong.",
  "login.too-many": "Too many failed attempts from your network.",
  "login.wait.one": "Try again in {n} second.",
  "login.wait.other": "Try again in {n} seconds.",
  "login.no-cookie": "Your browser refused the login cookie",
  "login.no-cookie-why":
    "Name and password are right. But this page came over plain HTTP, and the cookie is for secure connections alone. Either of these helps:",
  "login.no-cookie-https":
    "Open this page over https: put the server behind a proxy that has a certificate, and go to {address}.",
  "login.no-cookie-local":
    "On the server itself, open {address} there, or the port that it listens on.",
  "login.no-cookie-browser":
    "Take another browser: Chrome, Edge and Firefox accept the cookie at this address, Safari does not.",
  "login.no-cookie-allow":
    "Name and password are right. Allow cookies for this page, then log in again.",
  "login.first": "First time here?",
  "login.first-file":
    "The first name and password are in the file {file} in the server’s data directory, unless they were set when it was installed.",
  "login.first-terminal":
    "A server that was started in a terminal has printed them there. {command} sets a new password.",
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
  "websites.empty-text": "Name it, put one line into its pages, and see its first visit arrive.",
  "hostname.label": "Hostname",
  "hostname.hint":
    "As in the address of its pages, such as example.com. It counts www.example.com too.",
  "hostname.taken": "Of the address, the hostname counts: {hostname}",
  "hostname.refused":
    "This cannot be a hostname: letters, digits, hyphens and dots make one, such as example.com.",
  "hostname.known": "{hostname} is registered already.",
  "add.title": "Add a website",
  "add.submit": "Add it",
  "setup.title": "Set up {hostname}",
  "setup.to-statistics": "Show its statistics",
  "setup.tag": "Put this line into every page",
  "setup.tag-where":
    "Between <head> and </head>, best in the template that all pages share. It is the same line for all your websites.",
  "setup.tag-copy": "The script’s tag",
  "setup.more": "It can also count clicks, downloads and more: choose its {features}.",
  "setup.features": "features",
  "setup.not-reachable":
    "Visitors cannot reach {origin}, it means their own machine. Open this page at the server’s public address and copy the line there.",
  "setup.not-secure":
    "Pages that come over https load no script over http. Put the server behind a proxy that has a certificate, open this page over https, and copy the line there.",
  "setup.pixel": "Count visitors without JavaScript too",
  "setup.pixel-text":
    "An image beside the script counts those whose browser runs none. It knows neither their country nor the time they stay.",
  "setup.pixel-copy": "The image’s tag",
  "setup.visit": "Open the website",
  "setup.visit-text": "Visit it yourself: {link}. Your visit shows up below within seconds.",
  "setup.visit-yourself": "Visit a page of it yourself. Your visit shows up below within seconds.",
  "setup.wait": "See the first visit arrive",
  "setup.waiting": "Waiting for the first visit",
  "setup.came": "The first visit has come. Everything works.",
  "setup.counted.one": "{n} view has been counted. Everything works.",
  "setup.counted.other": "{n} views have been counted. Everything works.",
  "setup.reasons": "Why nothing shows up yet",
  "setup.hits.one": "{n} hit, {ago}",
  "setup.hits.other": "{n} hits, the last {ago}",
  "setup.unknown": "Hits come for {hostname}, which is not registered.",
  "setup.register": "Register it too",
  "setup.rename": "Rename {hostname} to this",
  "setup.of-any": "For any of your websites:",
  "setup.check": "What to look at when nothing comes",
  "setup.check-source":
    "Is the line in the page’s source, as the browser gets it? Caches may hold the page of before.",
  "setup.check-hostname":
    "Is the page served at {hostname}, with or without www? Every other hostname is a website of its own.",
  "setup.check-blocker":
    "Does a content blocker stop the script? Switch it off for the test. A name of your own gets past most of them: set {script} and {event} in the configuration.",
  "setup.check-policy":
    "Does the website send a Content-Security-Policy? It has to allow {origin} under {script} and {connect}.",
  "setup.check-excluded":
    "Have you excluded this browser? Open a page of the website with {fragment} at the end of its address to change that.",
  "reason.bot":
    "Crawlers, monitors and headless browsers are not counted. {setting} in the configuration says which of them are told apart.",
  "reason.spam": "The page that linked here is on the list of referrer spam.",
  "reason.origin": "Sent by a page of another website.",
  "reason.blocked": "The sender’s network is blocked in the configuration.",
  "reason.gpc":
    "The browser objects by Global Privacy Control, and the configuration respects that.",
  "reason.rate": "A network sent more hits in a minute than the configuration allows.",
  "reason.capacity":
    "The server could not store them: its disk or its store is nearly full, or it was too busy.",
  "reason.malformed":
    "What arrived was no hit of the tracker. An old or altered script may send such.",
  "reason.unknown-website": "No website is registered for the page’s hostname.",
  "reason.other": "Not counted, by the reason “{reason}”.",
};
