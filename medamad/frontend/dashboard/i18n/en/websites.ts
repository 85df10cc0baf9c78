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
};
