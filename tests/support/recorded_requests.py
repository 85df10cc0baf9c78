"""The requests whose answers are recorded: plain data, in the order in which they are sent.

In paths, headers and bodies, `<name>` stands for what an answer before has given (`takes`), and
`<day-4>` and `<http today>` for dates: the one four days ago, and today's as HTTP writes it.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from attrs import frozen

USERNAME: Final = "ada"
PASSWORD: Final = "a long enough password"
NEW_PASSWORD: Final = "another long password"

Session: TypeAlias = Literal["none", "cookie", "token", "share"]
Headers: TypeAlias = Mapping[str, str]
Steps: TypeAlias = "tuple[Ask | Import, ...]"

SESSIONS: Final[Mapping[Session, Headers]] = MappingProxyType(
    {
        "none": {},
        "cookie": {"Cookie": "_me_sess=<session>"},
        "token": {"Authorization": "Bearer <token>"},
        "share": {"X-Medamad-Share": "<key>"},
    }
)


@frozen
class Ask:
    """A request. A body that is neither text nor bytes is sent as JSON, with that type."""

    name: str
    method: str
    path: str
    body: object = None
    headers: Headers = MappingProxyType({})
    session: Session = "none"
    takes: Headers = MappingProxyType({})
    """What is taken out of the answer: the first group of a pattern."""
    version: str = "HTTP/1.1"
    is_built: bool = False
    """Whether the body is of a file that may change: then only its presence is recorded."""
    until: int = 0
    """The status until which the request is sent again and again; the last answer is recorded."""
    raw: str = ""
    """The whole of what is sent, in the place of all else."""
    answers: int = 1


@frozen
class Import:
    """Files that `medamad import` takes into a website."""

    website: str
    files: Mapping[str, str]


@frozen
class Recorded:
    """A daemon with its configuration, and what it is asked."""

    configuration: str
    steps: Steps
    files: Mapping[str, str] = MappingProxyType({})
    """Files beside the configuration."""

    @property
    def asked(self) -> tuple[Ask, ...]:
        return tuple(step for step in self.steps if isinstance(step, Ask))


FIREFOX: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
)
GOOGLEBOT: Final = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BROWSER: Final = MappingProxyType({"User-Agent": FIREFOX, "Accept-Language": "de-AT,de;q=0.9"})
JSON: Final = MappingProxyType({"Content-Type": "application/json"})
LOGIN: Final = MappingProxyType({"username": USERNAME, "password": PASSWORD})
SESSION: Final = MappingProxyType(
    {"session": r"_me_sess=([\w-]+)", "device": r"_me_device=([\w.-]+)"}
)
ETAG: Final = MappingProxyType({"etag": r'ETag: "([0-9a-f]+)"'})

VIEWS: Final = """\
store,view,time,path,referrer,utm_source,utm_medium,utm_campaign,utm_term,utm_content,browser,\
browser_version,os,os_version,device,country,locale,host,first_today,first_of_page,number_today,\
width_px,duration_ms
00000000000000aa,1,2025-02-27T08:00:00.000Z,/,google.com,,,,,,Firefox,140.0,Linux,,Desktop,AT,\
de-AT,past.example,true,true,1,1280,12000
00000000000000aa,2,2025-02-27T08:01:00.000Z,/pricing,,,,,,,Firefox,140.0,Linux,,Desktop,AT,\
de-AT,past.example,false,true,2,1280,30000
00000000000000aa,3,2025-03-03T23:30:00.125Z,/,news.ycombinator.com/item,,,,,,Chrome,126.0,\
Windows,10,Desktop,US,en-US,past.example,true,true,1,1920,4000
00000000000000aa,4,2025-03-04T00:30:00.000Z,/news,,letter,email,spring,shoes,top,Safari,17.5,\
iOS,17.5,Mobile,JP,ja,past.example,true,true,1,390,61000
00000000000000aa,5,2025-03-04T00:31:00.000Z,/news/one,,letter,email,spring,shoes,top,Safari,17.5,\
iOS,17.5,Mobile,JP,ja,past.example,false,true,2,390,5000
00000000000000aa,6,2025-03-29T22:30:00.000Z,/,github.com/ada/project,,,,,,Edge,125.0,Windows,11,\
Desktop,GB,en-GB,past.example,true,true,1,1440,900
00000000000000aa,7,2025-03-30T00:30:00.000Z,/docs,,,,,,,Firefox,140.0,Android,14,Mobile,DE,de-DE,\
past.example,true,true,1,412,
00000000000000aa,8,2025-03-30T01:30:00.000Z,/docs/install,google.com,ads,cpc,summer,hats,side,\
Chrome,126.0,Android,14,Tablet,FR,fr-CA,www.past.example,true,true,1,800,45000
00000000000000aa,9,2025-03-30T01:31:00.000Z,/docs/operating,,ads,cpc,summer,hats,side,Chrome,\
126.0,Android,14,Tablet,FR,fr-CA,www.past.example,false,true,2,800,15000
00000000000000aa,10,2025-03-31T22:30:00.000Z,/caf\u00e9,duckduckgo.com,,,,,,,,,,,,,past.example,\
true,true,1,,
00000000000000aa,11,2025-04-01T12:00:00.000Z,/contact,bing.com,,,,,,Opera,110.0,macOS,14.5,\
Desktop,ES,es-ES,past.example,true,true,1,1280,7000
00000000000000aa,12,2025-04-01T12:10:00.000Z,/imprint,,,,,,,Opera,110.0,macOS,14.5,Desktop,ES,\
es-ES,past.example,false,true,2,1280,2500
00000000000000aa,13,2025-04-01T12:20:00.000Z,"/a,b",,,,,,,Opera,110.0,macOS,14.5,Desktop,ES,es-ES,\
past.example,false,true,3,1280,100
00000000000000aa,14,2025-04-01T12:30:00.000Z,/=sum,,,,,,,Opera,110.0,macOS,14.5,Desktop,ES,es-ES,\
past.example,false,true,4,1280,200
"""
EVENTS: Final = """\
store,event,view,time,name,value
00000000000000aa,21,1,2025-02-27T08:00:00.000Z,plan,free
00000000000000aa,21,1,2025-02-27T08:00:00.000Z,member,false
00000000000000aa,22,4,2025-03-04T00:30:30.000Z,plan,pro
00000000000000aa,23,8,2025-03-30T01:30:05.000Z,plan,free
00000000000000aa,24,,2025-04-01T13:00:00.000Z,signup,true
"""
DAYS: Final = MappingProxyType(
    {
        "imported_visitors.csv": "date,visitors,pageviews,bounces,visits,visit_duration\n"
        "2024-01-10,5,9,2,6,60\n2024-01-11,3,4,1,3,30\n",
        "imported_pages.csv": "date,page,visitors,pageviews\n"
        "2024-01-10,/,5,6\n2024-01-10,/docs,2,3\n2024-01-11,/,3,4\n",
        "imported_browsers.csv": "date,browser,visitors,pageviews,visits,bounces\n"
        "2024-01-10,Chrome,4,7,5,2\n2024-01-10,Firefox,1,2,1,0\n2024-01-11,Chrome,3,4,3,1\n",
    }
)

PAST: Final = "/api/website/past.example"
ALL: Final = "start=2025-02-01T00:00:00Z&end=2025-04-30T23:59:59Z"
JANUARY: Final = "start=2024-01-09T00:00:00Z&end=2024-01-12T23:59:59Z"
TURN: Final = "start=2025-03-28T00:00:00Z&end=2025-04-02T23:59:59Z"
"""Of the month; and in it that to summer time."""
MARCH: Final = "start=2025-03-01T00:00:00Z&end=2025-03-31T23:59:59Z"
ROWS: Final = (
    *("pages", "time", "referrers", "sources", "mediums", "campaigns", "terms", "contents"),
    *("browsers", "os", "devices", "countries", "languages", "hosting"),
)


def _load(beacon: str, path: str, **members: object) -> Mapping[str, object]:
    first = {"p": True, "q": True}
    return {"e": "load", "b": beacon, "u": f"https://example.com{path}", **first, **members}


def _stated(beacon: str, path: str, **members: object) -> Mapping[str, object]:
    return {"e": "load", "b": beacon, "u": f"https://example.com{path}", **members}


def _read(name: str, path: str, session: Session = "cookie", **headers: str) -> Ask:
    return Ask(
        name,
        "GET",
        path,
        session=session,
        headers={k.replace("_", "-"): headers[k] for k in headers},
    )


def _hit(name: str, body: object, path: str = "/api/event/hit", **headers: str) -> Ask:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Ask(name, "POST", path, body, headers={**BROWSER, **named})


def _begin() -> Iterator[Ask]:
    yield Ask("login", "POST", "/api/auth/login", LOGIN, takes=SESSION)


def _logins() -> Iterator[Ask]:
    login = "/api/auth/login"
    yield Ask("login with a wrong password", "POST", login, {**LOGIN, "password": "wrong"})
    yield Ask("login with an unknown name", "POST", login, {**LOGIN, "username": "eve"})
    yield Ask("login without a body", "POST", login)
    yield Ask("login without a password", "POST", login, {"username": USERNAME})
    yield Ask("login with a number for a name", "POST", login, {**LOGIN, "username": 5})
    yield Ask("login with a body that is no JSON", "POST", login, "{", JSON)
    yield Ask("login by a form", "POST", login, "a=b", {"Content-Type": "text/plain"})
    yield Ask("login with a body of no type", "POST", login, "{}")
    yield Ask("login by GET", "GET", login)
    yield from _begin()
    yield Ask(
        "login at the root, from a known browser",
        "POST",
        "/auth/login",
        LOGIN,
        headers={"Cookie": "_me_device=<device>"},
        takes={"second session": r"_me_sess=([\w-]+)", "second device": r"_me_device=([\w.-]+)"},
    )
    second = {"Cookie": "_me_sess=<second session>"}
    yield Ask("logout", "POST", "/api/auth/logout", headers=second)
    yield Ask("logout again", "POST", "/auth/logout", headers=second)
    yield Ask("logout without a login", "POST", "/api/auth/logout")


def _user() -> Iterator[Ask]:
    user = "/api/user"
    yield _read("account", user)
    yield _read("account at the root", "/user")
    yield _read("account without a login", user, "none")
    yield _read("account with a false cookie", user, "none", Cookie="_me_sess=x")
    yield Ask("account, its head", "HEAD", user, session="cookie")
    change = {"settings": {"language": "de", "script_type": ["click-events", "page-events"]}}
    yield Ask("change settings", "PATCH", user, change, session="cookie")
    default = {"settings": {"language": "en", "script_type": ["default"]}}
    yield Ask("change settings at the root", "PATCH", "/user", default, session="cookie")
    yield Ask("change nothing", "PATCH", user, {}, session="cookie")
    for name, body in (
        ("an unknown language", {"settings": {"language": "xx"}}),
        ("an unknown script", {"settings": {"script_type": ["x"]}}),
        ("a short name", {"username": "a"}),
        ("a short password", {"password": "a"}),
        ("settings that are none", {"settings": 5}),
    ):
        yield Ask(f"change the account to {name}", "PATCH", user, body, session="cookie")
    yield Ask("change without a login", "PATCH", user, default)
    yield Ask("post to the account", "POST", user, {}, session="cookie")
    yield _read("usage", "/api/user/usage")
    yield _read("usage without a login", "/user/usage", "none")


def _websites() -> Iterator[Ask]:
    websites = "/api/websites"
    yield _read("no websites", websites)
    for hostname in ("example.com", "past.example", "days.example"):
        name = f"register {hostname}"
        yield Ask(name, "POST", websites, {"hostname": hostname}, session="cookie")
    yield Ask("register again", "POST", websites, {"hostname": "Example.com."}, session="cookie")
    international = {"hostname": "B\u00fccher.example"}
    yield Ask("register at the root", "POST", "/websites", international, session="cookie")
    yield Ask("register no hostname", "POST", websites, {"hostname": "a b"}, session="cookie")
    yield Ask("register an address", "POST", websites, {"hostname": "10.0.0.1"}, session="cookie")
    yield Ask("register nothing", "POST", websites, {}, session="cookie")
    yield Ask("register without a login", "POST", websites, {"hostname": "a.example"})
    yield _read("websites", websites)
    yield _read("websites at the root, with figures", "/websites?summary=true")
    yield _read("websites with a bad parameter", f"{websites}?summary=x")
    yield _read("websites without a login", websites, "none")
    yield Ask("put websites", "PUT", websites, {}, session="cookie")
    one = f"{websites}/xn--bcher-kva.example"
    yield _read("a website", one)
    yield _read("a website by its international name", f"{websites}/b%C3%BCcher.example")
    yield _read("an unknown website", f"{websites}/unknown.example")
    yield _read("a website of a bad name", f"{websites}/a%20b")
    yield _read("a website of a badly encoded name", f"{websites}/%FF")
    taken, free = {"hostname": "example.com"}, {"hostname": "renamed.example"}
    yield Ask("rename to a taken name", "PATCH", one, taken, session="cookie")
    yield Ask("rename", "PATCH", one, free, session="cookie")
    yield Ask("rename what is unknown", "PATCH", f"{websites}/x.example", free, session="cookie")
    renamed = "/websites/renamed.example"
    yield Ask("rename to nothing", "PATCH", renamed, {"hostname": ""}, session="cookie")
    yield Ask("remove without a login", "DELETE", renamed)
    yield Ask("remove", "DELETE", renamed, session="cookie")
    yield Ask("remove again", "DELETE", f"/api{renamed}", session="cookie")


def _hits() -> Iterator[Ask]:
    yield _hit("load", _load("b1", "/a?utm_source=letter", t="Europe/Vienna", d={"plan": "free"}))
    yield _hit("load at the root", _load("b2", "/b", r="https://www.google.com/"), "/event/hit")
    yield _hit("load through the router", _load("b3", "/c"), "/api/event/%68it")
    yield _hit("load of a phone", _load("b4", "/a", p=False, n=3, w=390), User_Agent=IPHONE)
    yield _hit("load with a doubled slash", _load("b5", "/d"), "//event/hit")
    yield _hit("load from its own page", _load("b6", "/"), Origin="https://example.com")
    text = '{"e":"load","b":"b7","u":"https://www.example.com/","p":false,"q":true}'
    yield _hit("load as plain text", text, Content_Type="text/plain;charset=UTF-8")
    yield _hit("load twice", _load("b1", "/a?utm_source=letter"))
    yield _hit("unload", {"e": "unload", "b": "b1", "m": 18_250})
    yield _hit("unload through the router", {"e": "unload", "b": "b2", "m": 7}, "/event/%68it")
    yield _hit("unload of an unknown view", {"e": "unload", "b": "unknown", "m": 5})
    yield _hit("custom", {"e": "custom", "b": "b1", "g": "example.com", "d": {"signup": True}})
    yield _hit("custom of no view", {"e": "custom", "g": "example.com", "d": {"items": 3}})
    for name, body in (
        ("no body", ""),
        ("a body that is no JSON", "{"),
        ("a list", "[]"),
        ("no kind", {"b": "b"}),
        ("an unknown kind", {"e": "x"}),
        ("a load without p", _stated("b", "/")),
        ("a load of no address", {**_load("b", "/"), "u": "x"}),
        ("an empty beacon", _load("", "/")),
        ("a property that is a list", _load("b", "/", d={"a": []})),
        ("an unload of no time", {"e": "unload", "b": "b", "m": 0}),
        ("a custom event of nothing", {"e": "custom", "g": "example.com", "d": {}}),
        ("a load of an unknown website", {**_load("b", "/"), "u": "https://unknown.example/"}),
        ("a custom event of an unknown website", {"e": "custom", "g": "x.example", "d": {"a": 1}}),
        ("a time without a token", _load("b", "/", time="<day-4>T10:00:00Z")),
    ):
        yield _hit(f"hit with {name}", body)
    yield _hit("hit with no body, through the router", "", "/event/%68it")
    yield _hit("hit of a crawler", _load("b", "/"), User_Agent=GOOGLEBOT)
    yield _hit(
        "hit of a crawler, through the router",
        _load("b", "/"),
        "/event/%68it",
        User_Agent=GOOGLEBOT,
    )
    yield _hit("hit with spam", _load("b", "/", r="https://buttons-for-website.com/"))
    yield _hit("hit of another page", _load("b", "/"), Origin="https://elsewhere.example")
    leave = {"e": "unload", "b": "b1", "m": 5}
    yield _hit("unload of another page", leave, Origin="https://elsewhere.example")
    yield _hit("hit of who objects", _load("b8", "/gpc"), Sec_GPC="1")
    yield _hit("hit that is too large", _load("b", "/", d={"a": "x" * 17_000}))
    yield Ask("hit by GET", "GET", "/api/event/hit")
    yield Ask("hit by PUT", "PUT", "/event/hit", {})


def _pings() -> Iterator[Ask]:
    ping = "/api/event/ping"
    yield _read("ping", ping, "none")
    yield _read("ping at the root, of a page", "/event/ping?u=example.com/a", "none")
    for seconds in ("00", "07"):
        since = f"<http today> 00:00:{seconds} GMT"
        yield _read(f"ping after {seconds}", ping, "none", If_Modified_Since=since)
        counted = f"{ping}?n=example.com/a"
        yield _read(f"counted ping after {seconds}", counted, "none", If_Modified_Since=since)
    long_ago = "Mon, 02 Jun 2025 00:00:03 GMT"
    yield _read("ping after another day", ping, "none", If_Modified_Since=long_ago)
    asctime = "Mon Jun  2 00:00:03 2025"
    yield _read("ping after a day of asctime", ping, "none", If_Modified_Since=asctime)
    yield _read("ping after no date", ping, "none", If_Modified_Since="yesterday")
    routed = "/event/%70ing"
    yield _read("ping after no date, through the router", routed, "none", If_Modified_Since="x")
    yield _read("ping through the router", f"{routed}?u=a", "none")
    yield _read("ping with a bad query", f"{ping}?u=%FF", "none")
    yield Ask("ping, its head", "HEAD", ping)
    yield Ask("ping by POST", "POST", ping, {})


def _pixels() -> Iterator[Ask]:
    pixel = "/api/event/pixel.gif"
    named = f"{pixel}?u=https%3A%2F%2Fexample.com%2Fpixel"
    own = {**BROWSER, "Referer": "https://example.com/"}
    yield Ask("pixel", "GET", named, headers=own)
    yield Ask(
        "pixel at the root, by its page",
        "GET",
        "/event/pixel.gif?r=https://github.com/",
        headers={**BROWSER, "Referer": "https://example.com/pixel"},
    )
    again = {**own, "If-Modified-Since": "<http today> 00:00:00 GMT"}
    yield Ask("pixel again", "GET", named, headers=again)
    elsewhere = {**BROWSER, "Referer": "https://elsewhere.example/"}
    yield Ask("pixel of another page", "GET", named, headers=elsewhere)
    yield Ask("pixel for a crawler", "GET", named, headers={"User-Agent": GOOGLEBOT})
    yield Ask("pixel of no page", "GET", pixel, headers=BROWSER)
    yield Ask("pixel of an unknown website", "GET", f"{pixel}?u=https://unknown.example/")
    yield Ask("pixel after no date", "GET", named, headers={"If-Modified-Since": "x"})
    yield Ask("pixel, its head", "HEAD", named, headers=BROWSER)
    yield Ask("pixel by POST", "POST", pixel, {})


def _files() -> Iterator[Ask]:
    coded = {"Accept-Encoding": "gzip, br"}
    zipped = {"Accept-Encoding": "gzip"}
    for name, path in (
        ("script", "/script.js"),
        ("default script", "/scripts/default.js"),
        ("named script", "/scripts/outbound-links.click-events.js"),
        ("opt-out", "/api/event/opt-out.js"),
        ("description", "/openapi.yaml"),
        ("description under the prefix", "/api/openapi.yaml"),
        ("dashboard", "/dashboard/"),
        ("place in the dashboard", "/dashboard/example.com/settings"),
        ("icon", "/dashboard/icon.svg"),
    ):
        takes = dict(ETAG)
        if name == "dashboard":
            takes |= {
                "style": r"/dashboard/assets/([\w-]+\.css)",
                "code": r"/dashboard/assets/([\w-]+\.js)",
            }
        yield Ask(name, "GET", path, takes=takes, is_built=True)
        known = {"If-None-Match": '"<etag>"'}
        yield Ask(f"{name}, known", "GET", path, headers=known, is_built=True)
        yield Ask(f"{name}, coded", "GET", path, headers=coded, is_built=True)
        yield Ask(f"{name}, zipped", "GET", path, headers=zipped, is_built=True)
        yield Ask(f"{name}, its head", "HEAD", path, is_built=True)
    for name, path in (
        ("script under the prefix", "/api/script.js"),
        ("unknown script", "/scripts/x.js"),
        ("script of no suffix", "/scripts/default"),
        ("unknown asset", "/dashboard/assets/x.js"),
        ("dashboard under the prefix", "/api/dashboard/"),
        ("page of an unknown share link", "/share/x"),
    ):
        yield Ask(name, "GET", path, is_built="share" in name)
    yield Ask("style", "GET", "/dashboard/assets/<style>", is_built=True)
    yield Ask("code", "GET", "/dashboard/assets/<code>", is_built=True)
    yield Ask("root", "GET", "/")
    yield Ask("dashboard without a slash", "GET", "/dashboard")
    yield Ask("post to the script", "POST", "/script.js", {})
    yield Ask("post to the dashboard", "POST", "/dashboard/", {})


def _tokens() -> Iterator[Ask]:
    tokens = "/api/user/tokens"
    text = r'"token":"([\w-]+)"'
    number = r'"id":"([0-9a-f]{16})"'
    yield _read("no tokens", tokens)
    for name, body, path in (
        ("token", {"name": "all", "scope": "full"}, tokens),
        ("reader", {"name": "report", "scope": "read", "websites": ["past.example"]}, tokens),
        (
            "sender",
            {"name": "server", "scope": "send", "dateExpires": 4_102_444_800},
            "/user/tokens",
        ),
    ):
        takes = {name: text, f"{name} id": number}
        yield Ask(f"make the {name}", "POST", path, body, session="cookie", takes=takes)
    for name, body in (
        ("an unknown scope", {"name": "a", "scope": "x"}),
        ("no name", {"scope": "read"}),
        ("an empty name", {"name": "", "scope": "read"}),
        ("no website", {"name": "a", "scope": "read", "websites": []}),
        ("an unknown website", {"name": "a", "scope": "read", "websites": ["x.example"]}),
        ("a past end", {"name": "a", "scope": "read", "dateExpires": 5}),
        ("half a second", {"name": "a", "scope": "read", "dateExpires": 4_102_444_800.5}),
    ):
        yield Ask(f"make a token of {name}", "POST", tokens, body, session="cookie")
    yield _read("websites by a token", "/api/websites", "token")
    yield _read("usage by a token", "/api/user/usage", "token")
    added = {"hostname": "token.example"}
    yield Ask("register by a token", "POST", "/websites", added, session="token")
    renamed = {"hostname": "token2.example"}
    yield Ask("rename by a token", "PATCH", "/websites/token.example", renamed, session="token")
    yield Ask("remove by a token", "DELETE", "/api/websites/token2.example", session="token")
    yield _read("account by a token", "/api/user", "token")
    yield _read("tokens by a token", tokens, "token")
    reader = {"Authorization": "Bearer <reader>"}
    for name, method, path in (
        ("pages", "GET", f"{PAST}/pages"),
        ("pages of another website", "GET", "/api/website/example.com/pages"),
        ("pages of an unknown website", "GET", "/api/website/unknown.example/pages"),
        ("websites", "GET", "/websites"),
        ("usage", "GET", "/user/usage"),
        ("ignored hits", "GET", f"{PAST}/ignored"),
    ):
        yield Ask(f"{name} by the reader", method, path, headers=reader)
    yield Ask("register by the reader", "POST", "/api/websites", added, headers=reader)
    other = {"hostname": "b.example"}
    yield Ask("rename by the reader", "PATCH", "/api/websites/past.example", other, headers=reader)
    hit = _stated("r", "/", visitor="v")
    yield Ask("hit by the reader", "POST", "/api/event/hit", hit, headers=reader)
    yield from _server()
    yield Ask("websites by the sender", "GET", "/api/websites", headers=_by("<sender>"))
    yield Ask("websites by a false token", "GET", "/api/websites", headers=_by("medamad_x"))
    yield Ask("websites by another's token", "GET", "/api/websites", headers=_by("x"))
    yield Ask("hit by a false token", "POST", "/api/event/hit", hit, headers=_by("medamad_x"))
    yield _read("tokens", tokens)
    revoked = f"{tokens}/<reader id>"
    yield Ask("revoke a token", "DELETE", revoked, session="cookie")
    yield Ask("revoke it again", "DELETE", "/user/tokens/<reader id>", session="cookie")
    yield Ask("websites by a revoked token", "GET", "/api/websites", headers=reader)
    yield Ask("read a token", "GET", revoked, session="cookie")
    yield _read("tokens at the root", "/user/tokens")
    yield _read("tokens without a login", tokens, "none")


def _reports() -> Iterator[Ask]:
    reports = "/api/user/reports"
    details = {"address": "ada@example.com", "websites": ["past.example"]}
    yield _read("no reports", reports)
    yield _read("reports at the root", "/user/reports")
    yield _read("reports by a token", reports, "token")
    yield _read("reports without a login", reports, "none")
    for name, body in (
        ("to nobody", details | {"address": "ada"}),
        ("of an unknown website", details | {"websites": ["x.example"]}),
        ("on an eighth day", details | {"day": 8}),
        ("without a mail server", details),
    ):
        yield Ask(f"add a report {name}", "POST", reports, body, session="cookie")
    change = {"hour": 9}
    yield Ask("change no report", "PATCH", f"{reports}/0123456789ab", change, session="cookie")
    yield Ask("end no report", "DELETE", f"{reports}/0123456789ab", session="cookie")
    test = {"address": "ada@example.com"}
    yield Ask("test without a mail server", "POST", "/api/user/test-mail", test, session="cookie")
    for what in ("confirm", "unsubscribe"):
        for method in ("GET", "POST"):
            yield Ask(f"{what} nothing by {method}", method, f"/mail/x/{what}")


def _by(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def _server() -> Iterator[Ask]:
    hit = "/api/event/hit"
    sender = _by("<sender>")
    for number, path, members in (
        (1, "/", {"visitor": "v1", "time": "<day-4>T10:00:00Z", "country": "at"}),
        (2, "/stated", {"visitor": "v1", "time": "<day-4>T10:05:00Z", "country": "AT"}),
        (3, "/", {"visitor": "v2", "time": "<day-4>T12:00:00+02:00", "language": "fr-CA"}),
        (4, "/?utm_source=x", {"p": True, "q": True, "time": "<day-3>T23:59:59.999Z"}),
        (5, "/now", {"visitor": "v3", "userAgent": IPHONE, "d": {"plan": "pro"}}),
    ):
        body = _stated(f"s{number}", path, userAgent=FIREFOX) | members
        yield Ask(f"hit {number} of a server", "POST", hit, body, headers=sender)
    sold = {"e": "custom", "g": "example.com", "d": {"sold": 1}, "time": "<day-4>T10:06:00Z"}
    yield Ask("event of a server", "POST", "/event/hit", sold, headers=sender)
    left = {"e": "unload", "b": "s1", "m": 4_000}
    yield Ask("unload of a server", "POST", hit, left, headers=sender)
    for name, members in (
        ("a time long past", {"visitor": "v", "time": "<day-9>T10:00:00Z"}),
        ("a time that is none", {"visitor": "v", "time": "yesterday"}),
        ("an address", {"visitor": "10.0.0.1"}),
        ("no country", {"visitor": "v", "country": "DEU"}),
        ("no visitor", {}),
    ):
        body = _stated("s", "/", **members)
        yield Ask(f"hit of a server with {name}", "POST", hit, body, headers=sender)
    unknown = {"e": "load", "b": "s", "u": "https://unknown.example/", "visitor": "v"}
    yield Ask("hit of a server, unknown website", "POST", hit, unknown, headers=sender)
    crawler = _stated("s", "/", visitor="v", userAgent=GOOGLEBOT)
    yield Ask("hit of a server for a crawler", "POST", hit, crawler, headers=sender)


def _statistics() -> Iterator[Ask]:
    for what in ROWS:
        yield _read(what, f"{PAST}/{what}?{ALL}")
        yield _read(f"{what} with summary", f"/website/past.example/{what}?{ALL}&summary=true")
        yield _read(f"{what} of now", f"/api/website/example.com/{what}?summary=true")
    yield _read("properties", f"{PAST}/properties?{ALL}")
    yield _read("values of a property", f"/website/past.example/properties?prop_name=plan&{ALL}")
    values = "prop_name[eq]=plan&prop_value[neq]=free"
    yield _read("some values of a property", f"{PAST}/properties?{values}")
    yield _read("properties of now", "/website/example.com/properties")
    yield _read("referrers, not grouped", f"{PAST}/referrers?grouped=false")
    yield _read("languages by locale", f"{PAST}/languages?locale=true&summary=true")
    zipped = {"Accept_Encoding": "gzip"}
    yield _read("pages, zipped", f"{PAST}/pages?{ALL}", **zipped)
    yield _read("few pages, zipped", f"{PAST}/pages?limit=1", **zipped)
    for name, query in (
        ("eq", "path[eq]=/"),
        ("a bare field", "path=/"),
        ("neq", "path[neq]=/&browser[neq]=Opera"),
        ("contains", "path[contains]=DOCS"),
        ("not_contains", "path[not_contains]=/d"),
        ("starts_with", "path[starts_with]=/news"),
        ("not_starts_with", "path%5Bnot_starts_with%5D=/news"),
        ("ends_with", "referrer[ends_with]=project"),
        ("not_ends_with", "browser[not_ends_with]=x"),
        ("in", "country[in]=Austria,Japan&country[in]=Spain"),
        ("not_in", "os[not_in]=Windows,Linux"),
        ("many fields", "device=Mobile&language=Japanese&utm_medium=email&utm_term=shoes"),
        ("campaigns", "utm_source=ads&utm_campaign[contains]=summ&utm_content=side"),
        ("a property", "prop_name=plan&prop_value=free"),
        ("an international path", "path=/caf%C3%A9"),
        ("limit", "limit=2"),
        ("limit and offset", "limit=3&offset=2"),
        ("an offset beyond", "offset=100"),
        ("an unknown parameter", "x=y"),
        ("a doubled parameter", "limit=1&limit=2"),
        ("nothing that matches", "path=/nowhere"),
        ("a start alone", "start=2025-04-01T00:00:00Z"),
        ("an end alone", "end=2025-02-28T00:00:00.5Z"),
        (
            "an offset of the zone",
            "start=2025-03-30T02:00:00+02:00&end=2025-03-30T04:00:00%2B02:00",
        ),
    ):
        yield _read(f"pages by {name}", f"{PAST}/pages?{query}")
    for name in ("entries", "exits"):
        yield _read(f"{name} of past views", f"{PAST}/{name}")
    for name in ("next", "previous"):
        yield _read(f"the {name} pages of a page", f"{PAST}/{name}?of=/")
    yield _read("the next pages of none", f"{PAST}/next")
    month = "start=2025-03-01T00:00:00Z&end=2025-03-31T23:59:59Z"
    compared = "compare_start=2025-02-01T00:00:00Z&compare_end=2025-02-28T23:59:59Z"
    for name, query in (
        ("what changed", month),
        ("what changed since another period", f"{month}&{compared}&limit=2"),
        ("what changed of visitors", f"{month}&{compared}&metric=visitors&device=Desktop"),
        ("what changed without periods", ""),
        ("what changed of means", f"{month}&metric=visit_duration"),
    ):
        yield _read(name, f"{PAST}/changes?{query}")
    yield _read("devices by a path", f"{PAST}/devices?path[starts_with]=/docs&summary=true")
    yield from _summaries()
    yield from _refused_questions()
    yield _read("websites with figures, later", "/api/websites?summary=true")
    yield _read("live", "/api/website/example.com/live")
    yield _read("live at the root", "/website/past.example/live")
    yield _read("live with lists", "/api/website/example.com/live?lists=true")
    yield _read("live with lists, without hits", f"{PAST}/live?lists=1")
    yield _read("ignored", "/api/website/example.com/ignored")
    # When what robots read enters the store depends on the time.
    yield _read("robots", "/api/website/example.com/robots?name=NoSuchBot")
    yield _read("blind spot without a followed log", "/api/website/example.com/blind-spot")
    yield _read("robots by an unknown column", f"{PAST}/robots?by=country")
    yield _read("ignored at the root", "/website/past.example/ignored")
    yield _read("days of sums", "/api/website/days.example/pages")
    yield _read("days of sums by two fields", "/api/website/days.example/pages?browser=Chrome")
    cut = "start=2024-01-10T12:00:00Z&end=2024-01-11T23:59:59Z"
    yield _read("days of sums that are cut", f"/api/website/days.example/summary?{cut}")


def _summaries() -> Iterator[Ask]:
    summary = f"{PAST}/summary"
    yield _read("summary", f"{summary}?{ALL}")
    yield _read("summary at the root", "/website/past.example/summary")
    yield _read("summary of now", "/api/website/example.com/summary")
    yield _read("summary and before", f"{summary}?{MARCH}&previous=true")
    yield _read("summary by day", f"{summary}?{MARCH}&interval=day&timezone=Europe/Berlin")
    yield _read("summary by week", f"{summary}?{MARCH}&interval=week&timezone=America/New_York")
    yield _read("summary by month", f"{summary}?{ALL}&interval=month&previous=true")
    hours = "start=2025-03-30T00:00:00%2B01:00&end=2025-03-30T05:59:59%2B02:00&interval=hour"
    yield _read("summary by hour", f"{summary}?{hours}&timezone=Europe/Berlin")
    yield _read("summary by hour of an offset", f"{summary}?{hours}")
    minutes = "start=2025-04-01T12:00:00Z&end=2025-04-01T12:12:00Z&interval=minute"
    yield _read("summary by minute", f"{summary}?{minutes}&path[neq]=/contact")
    stated = "start=<day-4>T00:00:00Z&end=<day-3>T23:59:59Z&interval=day"
    yield _read("summary of stated times", f"/api/website/example.com/summary?{stated}")
    yield Ask("summary, its head", "HEAD", summary, session="cookie")


def _refused_questions() -> Iterator[Ask]:
    for name, query in (
        ("limit", "limit=0"),
        ("limit that is none", "limit=x"),
        ("offset", "offset=-1"),
        ("summary", "summary=yes"),
        ("start", "start=2025-01-01"),
        ("start after its end", "start=2025-02-01T00:00:00Z&end=2025-01-01T00:00:00Z"),
        ("operator", "path[like]=x"),
        ("encoding", "path=%FF"),
    ):
        yield _read(f"pages with a bad {name}", f"{PAST}/pages?{query}")
    for name, query in (
        ("interval", "interval=year"),
        ("timezone", "timezone=Mars/Olympus"),
        ("previous", "previous=true"),
    ):
        yield _read(f"summary with a bad {name}", f"/website/past.example/summary?{query}")
    yield _read("live with a bad lists", f"{PAST}/live?lists=x")
    yield _read("referrers with a bad grouped", f"{PAST}/referrers?grouped=x")
    yield _read("languages with a bad locale", f"{PAST}/languages?locale=x")
    yield _read("summary of an unknown website", "/api/website/unknown.example/summary")
    yield _read("summary of a bad name", "/website/a_b/summary")
    yield _read("summary without a login", f"{PAST}/summary", "none")
    yield _read("live without a login", f"{PAST}/live", "none")
    yield _read("an unknown question", f"{PAST}/unknown")
    yield Ask("post a question", "POST", f"{PAST}/pages", {}, session="cookie")


def _exports() -> Iterator[Ask]:
    for what in ("views", "events", "statistics"):
        for form in ("csv", "ndjson"):
            # Unbounded statistics would have a row for each day up to today.
            period = f"&{TURN}" if what == "statistics" else ""
            query = f"what={what}&format={form}{period}"
            yield _read(f"export {what} as {form}", f"{PAST}/export?{query}")
    stated = "start=<day-4>T00:00:00Z&end=<day-3>T23:59:59Z"
    store = {"store": r"\n([0-9a-f]{16}),"}
    export = "/website/example.com/export"
    yield Ask("export stated", "GET", f"{export}?{stated}", session="cookie", takes=store)
    parquet = f"{PAST}/export?format=parquet"
    yield Ask("export as parquet", "GET", parquet, session="cookie", is_built=True)
    yield _read("export a period", f"{PAST}/export?{MARCH}", "token")
    some = f"what=statistics&{TURN}&path[starts_with]=/docs"
    yield _read("export some statistics", f"{PAST}/export?{some}")
    yield _read("export days of sums", "/api/website/days.example/export")
    days = f"/api/website/days.example/export?what=statistics&browser=Chrome&{JANUARY}"
    yield _read("export statistics of days of sums", days)
    yield Ask("export, its head", "HEAD", f"{PAST}/export", session="cookie")
    yield Ask(
        "export to HTTP/1.0", "GET", f"{PAST}/export?{MARCH}", session="cookie", version="HTTP/1.0"
    )
    for name, query in (
        ("what", "what=x"),
        ("format", "format=x"),
        ("filter", "path=/"),
        ("start", "start=x"),
    ):
        yield _read(f"export with a bad {name}", f"{PAST}/export?{query}")
    yield _read("export an unknown website", "/api/website/unknown.example/export")
    yield _read("export without a login", f"{PAST}/export", "none")


def _shares() -> Iterator[Ask]:
    shares = "/api/websites/past.example/shares"
    number = r'"id":"([\w-]{24})"'
    yield _read("no share links", shares)
    body: Mapping[str, object] = {"name": "club", "embed": ["https://club.example"]}
    takes = {"share": number}
    yield Ask("make a share link", "POST", shares, body, session="cookie", takes=takes)
    body = {"name": "board", "password": PASSWORD}
    takes = {"locked": number}
    root = shares.removeprefix("/api")
    yield Ask("make a locked share link", "POST", root, body, session="cookie", takes=takes)
    for name, body in (
        ("no name", {}),
        ("a short password", {"name": "a", "password": "a"}),
        ("an origin that is none", {"name": "a", "embed": ["x"]}),
    ):
        yield Ask(f"make a share link of {name}", "POST", shares, body, session="cookie")
    unknown = "/api/websites/unknown.example/shares"
    yield Ask("share what is unknown", "POST", unknown, {"name": "a"}, session="cookie")
    yield Ask("share by a token", "POST", shares, {"name": "a"}, session="token")
    yield _read("share links", shares)
    yield _read("share links at the root", root)
    yield _read("share links of an unknown website", unknown)
    yield _read("share links without a login", shares, "none")
    yield _read("what is shared", "/api/shared/<share>", "none")
    yield _read("what is shared, locked", "/shared/<locked>", "none")
    yield _read("what is shared by no link", "/api/shared/x", "none")
    opening = "/api/shared/<locked>"
    yield Ask("open with a wrong password", "POST", opening, {"password": "wrong"})
    yield Ask("open without a password", "POST", opening, {})
    yield Ask("open no link", "POST", "/shared/x", {"password": PASSWORD})
    yield Ask("open what is not locked", "POST", "/shared/<share>", {"password": ""})
    key = {"key": r'"key":"([\w.-]+)"'}
    yield Ask("open", "POST", opening, {"password": PASSWORD}, takes=key)
    yield _read("what is shared, opened", opening, "share")
    yield _read("summary by a share link", f"{PAST}/summary?{MARCH}", "share")
    plain = {"X_Medamad_Share": "<share>"}
    yield _read("pages by a share link", "/website/past.example/pages?limit=1", "none", **plain)
    yield _read("live by a share link", f"{PAST}/live", "share")
    yield _read("live with lists by a share link", f"{PAST}/live?lists=true", "share")
    yield _read(
        "live of another website by a share link",
        "/api/website/example.com/live?lists=true",
        "share",
    )
    locked = {"X_Medamad_Share": "<locked>"}
    yield _read("pages by a locked link", f"{PAST}/pages", "none", **locked)
    false = {"X_Medamad_Share": "x"}
    yield _read("pages by a false link", f"{PAST}/pages", "none", **false)
    yield _read("another website by a share link", "/api/website/example.com/pages", "share")
    yield _read("ignored hits by a share link", f"{PAST}/ignored", "share")
    yield _read("export by a share link", f"{PAST}/export", "share")
    yield _read("websites by a share link", "/api/websites", "share")
    yield Ask("page of a share link", "GET", "/share/<share>", is_built=True)
    yield Ask("page of a locked link", "GET", "/share/<locked>", is_built=True)
    yield Ask("revoke a share link", "DELETE", f"{shares}/<locked>", session="cookie")
    yield Ask("revoke a share link again", "DELETE", f"{root}/<locked>", session="cookie")
    yield Ask("revoke without a login", "DELETE", f"{shares}/<share>")
    yield _read("summary by a revoked link", f"{PAST}/summary", "share")
    yield Ask("page of a revoked link", "GET", "/share/<locked>", is_built=True)


def _figures_of_goals(shown: Mapping[str, str]) -> Iterator[Ask]:
    figures = "/api/website/past.example/goals"
    yield _read("figures of goals", figures)
    yield _read("figures of goals by month", f"{figures}?interval=month&timezone=Europe/Berlin")
    yield _read("figures of goals by a share link", f"{figures}?goal=<page>", "none", **shown)
    yield _read("figures of goals under a filter on an unknown one", f"{figures}?goal=unknown0")
    funnel = "/api/website/past.example/funnels/<funnel>"
    yield _read("steps of a funnel", funnel)
    yield _read("steps of a funnel by a share link", f"{funnel}?browser=x", "none", **shown)
    yield _read("steps of an unknown funnel", "/api/website/past.example/funnels/unknown0")
    for name, definition in (
        ("a goal", '{"path":"/blog/*"}'),
        ("a goal that is none", '{"path":"blog"}'),
        ("what is no JSON", "path"),
    ):
        preview = f"{figures}/preview?definition={quote(definition)}"
        yield _read(f"preview of {name}", preview)
    steps = '{"goals":["<page>","<order>"]}'
    preview = f"/api/website/past.example/funnels/preview?definition={quote(steps, safe='<>')}"
    yield _read("preview of a funnel", preview)
    yield _read("preview of a funnel by a share link", preview, "none", **shown)
    pages = "/api/website/past.example/pages"
    yield _read("pages with conversions", f"{pages}?summary=true&conversions=<page>")
    yield _read("pages with conversions of an unknown goal", f"{pages}?conversions=unknown0")


def _exclusions() -> Iterator[Ask]:
    exclusions = "/api/websites/past.example/exclusions"
    change = partial(Ask, session="cookie")
    yield _read("no exclusions", exclusions)
    chrome = {"name": "Chrome", "filters": "browser[eq]=Chrome&path[starts_with]=/blog"}
    number = {"exclusion": r'"id":"([\w-]{8})"'}
    yield change("leave out what matches filters", "POST", exclusions, chrome, takes=number)
    yield change("leave out a taken name", "POST", exclusions, chrome)
    for name, body in (
        ("no name", {"filters": "path=/"}),
        ("nothing", {"name": "a"}),
        ("an unknown filter", {"name": "a", "filters": "pth=/"}),
        ("an unknown operator", {"name": "a", "filters": "path[like]=/"}),
        ("a malformed period", {"name": "a", "start": "x"}),
    ):
        yield change(f"leave out {name}", "POST", exclusions, body)
    yield _read("exclusions", f"{exclusions}?timezone=Europe/Berlin")
    yield _read("exported exclusions", "/api/websites/past.example/settings/export/exclusions")
    yield _read("what is not left out", "/api/website/past.example/summary?visits=true")
    suggested = "/api/websites/past.example/suggestions"
    yield _read("suggestions of exclusions", f"{suggested}?{MARCH}")
    yield _read("suggestions of a long period", f"{suggested}?start=2020-01-01T00:00:00Z")
    yield _read("suggestions by a share link", suggested, "none", X_Medamad_Share="<share>")
    yield _read("exclusions by a share link", exclusions, "none", X_Medamad_Share="<share>")
    yield _read("exclusions without a login", exclusions, "none")
    yield _read("exclusions of an unknown website", "/api/websites/unknown.example/exclusions")
    yield change("remove an exclusion", "DELETE", f"{exclusions}/<exclusion>")
    yield change("remove an exclusion again", "DELETE", f"{exclusions}/<exclusion>")


def _goals() -> Iterator[Ask]:
    goals = "/api/websites/past.example/goals"
    funnels = "/api/websites/past.example/funnels"
    number = r'"id":"([\w-]{8})"'
    change = partial(Ask, session="cookie")
    yield _read("no goals", goals)
    yield _read("no funnels", funnels)
    page = {"name": "Read", "path": "/blog/*"}
    yield change("define a goal of a page", "POST", goals, page, takes={"page": number})
    order = {"name": "Order", "event": "order", "revenue": "total", "currency": "EUR"}
    root = goals.removeprefix("/api")
    yield change("define a goal of an event", "POST", root, order, takes={"order": number})
    for name, body in (
        ("no name", {}),
        ("neither path nor event", {"name": "a"}),
        ("a path without a slash", {"name": "a", "path": "a"}),
        ("a currency that is none", order | {"currency": "Euro"}),
        ("a taken name", order),
    ):
        yield change(f"define a goal of {name}", "POST", goals, body)
    unknown = "/api/websites/unknown.example/goals"
    yield change("define a goal of an unknown website", "POST", unknown, page)
    steps = {"name": "Checkout", "goals": ["<page>", "<order>"]}
    yield change("define a funnel", "POST", funnels, steps, takes={"funnel": number})
    yield change("define a funnel again", "POST", funnels, steps)
    yield change("define a funnel of a goal", "POST", funnels, {"name": "a", "goals": ["<page>"]})
    yield change("define a goal by a token", "POST", goals, page, session="token")
    yield change("define a goal without a login", "POST", goals, page, session="none")
    yield _read("goals", goals)
    yield _read("goals at the root", root)
    yield _read("funnels", funnels)
    yield _read("goals of an unknown website", unknown)
    yield _read("goals without a login", goals, "none")
    shown = {"X_Medamad_Share": "<share>"}
    yield _read("goals by a share link", goals, "none", **shown)
    yield _read("funnels by a share link", funnels, "none", **shown)
    yield from _figures_of_goals(shown)
    yield change("rename a goal of a funnel", "PATCH", f"{goals}/<page>", {"name": "Reads"})
    yield change("change a goal of a funnel", "PATCH", f"{goals}/<page>", {"path": "/"})
    yield change("remove a goal of a funnel", "DELETE", f"{goals}/<page>")
    yield change("rename a funnel", "PATCH", f"{funnels}/<funnel>", {"name": "Orders"})
    yield change("remove a funnel", "DELETE", f"{funnels}/<funnel>")
    yield change("remove a funnel again", "DELETE", f"{funnels}/<funnel>")
    yield change("change a goal", "PATCH", f"{goals}/<order>", {"value": "paid", "revenue": None})
    without = {"value": "paid", "revenue": None, "currency": None}
    yield change("change a goal by null", "PATCH", f"{goals}/<order>", without)
    yield change("remove a goal", "DELETE", f"{goals}/<order>")
    yield change("change a removed goal", "PATCH", f"{goals}/<order>", {"name": "a"})


def _alerts() -> Iterator[Ask]:
    change = partial(Ask, session="cookie")
    takes = {"alert": r'"id":"([\w-]{8})"'}
    # Not as JSON, since its secret is another one in each run; and nothing of it is reached.
    receiver = {"url": "http://127.0.0.1/T0P", "format": "ntfy"}
    for what, alerts, kind in (
        ("of a website", "/api/websites/past.example/alerts", {"kind": "drop", "threshold": 50}),
        ("of the service", "/api/user/alerts", {"kind": "backup"}),
    ):
        root = alerts.removeprefix("/api")
        yield _read(f"no alerts {what}", alerts)
        yield change(f"define an alert {what}", "POST", root, kind | receiver, takes=takes)
        yield change(f"define an alert {what} without a URL", "POST", alerts, kind)
        yield change(
            f"define an alert {what} that is none", "POST", alerts, {"kind": "x", "url": ""}
        )
        yield change(f"define an alert {what} by a token", "POST", alerts, kind, session="token")
        yield _read(f"alerts {what}", alerts)
        yield _read(f"alerts {what} at the root", root)
        yield _read(f"alerts {what} by a token, as a list", alerts, "token")
        yield _read(f"alerts {what} without a login", alerts, "none")
        yield _read(f"alerts {what} by a share link", alerts, "none", X_Medamad_Share="<share>")
        yield change(f"try an alert {what}", "POST", f"{alerts}/<alert>/test")
        yield change(f"change an alert {what} badly", "PATCH", f"{alerts}/<alert>", {"url": ""})
        yield change(f"remove an alert {what}", "DELETE", f"{alerts}/<alert>")
        yield change(f"remove an alert {what} again", "DELETE", f"{alerts}/<alert>")
        yield change(f"change a removed alert {what}", "PATCH", f"{alerts}/<alert>", kind)
        yield change(f"try a removed alert {what}", "POST", f"{alerts}/<alert>/test")


def _annotations() -> Iterator[Ask]:
    annotations = "/api/websites/past.example/annotations"
    change = partial(Ask, session="cookie")
    number = r'"id":"([\w-]{8})"'
    launch = {"text": "Launch", "time": "2026-03-01"}
    deploy = {"text": "Deploy", "time": "2026-03-02T10:00:00+01:00", "link": "https://a.example/1"}
    yield _read("no annotations", annotations)
    yield change("annotate a day", "POST", annotations, launch, takes={"annotation": number})
    yield change("annotate a time", "POST", annotations, deploy, takes={"deploy": number})
    for name, body in (
        ("no text", {}),
        ("a time that is none", launch | {"time": "today"}),
        ("a link that is none", launch | {"link": "javascript:alert(1)"}),
    ):
        yield change(f"annotate with {name}", "POST", annotations, body)
    unknown = "/api/websites/unknown.example/annotations"
    yield change("annotate an unknown website", "POST", unknown, launch)
    yield Ask(
        *("annotate by a token", "POST", annotations, launch),
        session="token",
        takes={"second": number},
    )
    yield change("annotate without a login", "POST", annotations, launch, session="none")
    yield _read("annotations at the root", annotations.removeprefix("/api"))
    settings = "/api/websites/past.example/settings"
    funnel = {"id": "f", "name": "F", "goals": ["g", "h"]}
    yield _read("settings by a share link", f"{settings}/export", "share")
    yield change("import an unknown goal", "POST", f"{settings}/import", {"funnels": [funnel]})
    yield _read("annotations of a period", f"{annotations}?start=2026-03-02T00:00:00Z")
    yield _read("annotations in a zone", f"{annotations}?end=2026-03-01T03:00:00Z&timezone=Mars")
    shown = {"X_Medamad_Share": "<share>"}
    yield _read("annotations by a share link", annotations, "none", **shown)
    one = f"{annotations}/<annotation>"
    since = "/api/website/past.example/compare"
    yield _read("compare since no annotation", f"{since}?annotation=nothing")
    yield _read("compare since two moments", f"{since}?annotation=a&since=2026-03-01")
    yield _read("compare since long ago", f"{since}?since=2026-03-01")
    yield _read("compare what is no metric", f"{since}?metric=orders")
    yield _read("compare with what is no share", f"{since}?worse_than=much")
    yield change("change an annotation", "PATCH", one, {"text": "Start", "link": None})
    yield change("remove an annotation", "DELETE", one)
    yield change("remove an annotation again", "DELETE", one)


def _settings() -> Iterator[Ask]:
    settings = "/api/websites/past.example/settings"
    change = partial(Ask, session="cookie")
    yield _read("settings of a website", settings)
    yield change("change a website's settings", "PATCH", settings, {"excluded_paths": ["/admin/*"]})
    yield change(
        "change a website's settings to wrong ones", "PATCH", settings, {"excluded_paths": ["a"]}
    )
    imported = {"settings": {"excluded_paths": ["/admin/*"], "kept_parameters": ["t"]}}
    yield change("import a website's settings", "POST", f"{settings}/import", imported)
    back = {"excluded_paths": [], "kept_parameters": []}
    yield change("change a website's settings back", "PATCH", settings, back)
    yield change(
        "change a website's settings without a login", "PATCH", settings, {}, session="none"
    )
    yield _read("settings at the root", settings.removeprefix("/api"))
    yield _read("settings of an unknown website", "/api/websites/unknown.example/settings")
    preview = f"{settings}/preview"
    yield _read(
        "preview of settings", f"{preview}?settings=%7B%22redacted_paths%22:%5B%22/*%22%5D%7D"
    )
    yield _read("preview of no settings", preview)


def _operating() -> Iterator[Ask]:
    yield _read("health", "/health", "none")
    yield _read("life", "/health/live", "none")
    yield _read("metrics", "/metrics", "none")
    yield _read("metrics as OpenMetrics", "/metrics", "none", Accept="application/openmetrics-text")
    yield _read("health by another name", "/health", "none", Host="stats.example.com")
    yield _read("health through a proxy", "/health", "none", X_Forwarded_For="127.0.0.1")
    yield _read("health under the prefix", "/api/health", "none")
    yield _read("metrics under the prefix", "/api/metrics", "none")
    yield Ask("health, its head", "HEAD", "/health")
    yield Ask("post to health", "POST", "/health", {})


def _foreign() -> Iterator[Ask]:
    add = {"hostname": "foreign.example"}
    for name, headers in (
        ("a page of another origin", {"Origin": "https://elsewhere.example"}),
        ("another site", {"Sec-Fetch-Site": "cross-site"}),
        ("a page beside ours", {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"}),
        ("no origin", {"Origin": "null"}),
    ):
        yield Ask(f"register from {name}", "POST", "/api/websites", add, headers, "cookie")
    elsewhere = {"Origin": "https://elsewhere.example"}
    yield Ask("login from another origin", "POST", "/api/auth/login", LOGIN, elsewhere)
    yield Ask("log out from another origin", "POST", "/auth/logout", None, elsewhere, "cookie")
    yield Ask("register by a token from there", "POST", "/api/websites", add, elsewhere, "token")
    yield Ask(
        "remove from our own page",
        "DELETE",
        "/api/websites/foreign.example",
        headers={"Origin": "http://localhost"},
        session="cookie",
    )
    yield Ask(
        "remove again from our own page",
        "DELETE",
        "/api/websites/foreign.example",
        headers={"Sec-Fetch-Site": "same-origin", "Origin": "https://elsewhere.example"},
        session="cookie",
    )
    yield from _preflights("https://elsewhere.example")


def _preflights(origin: str) -> Iterator[Ask]:
    for path in (
        *("/api/event/hit", "/event/ping", "/api/event/pixel.gif", "/api/websites", "/user"),
        *("/api/auth/login", f"{PAST}/summary", "/script.js", "/api/openapi.yaml", "/api/nothing"),
    ):
        yield Ask(
            f"preflight of {path}",
            "OPTIONS",
            path,
            headers={
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type",
            },
        )


def _protocol() -> Iterator[Ask]:
    large = "x" * 16_385
    yield Ask("a body too large", "POST", "/api/websites", large, JSON, "cookie")
    yield Ask("a body too large, without a login", "POST", "/api/websites", large, JSON)
    yield Ask("a body too large, where none is taken", "POST", "/nothing", large, JSON)
    yield Ask("a body of another type", "POST", "/api/websites", "{}", session="cookie")
    yield Ask("nothing", "GET", "/api/nothing")
    yield Ask("nothing at the root", "GET", "/nothing/at/all")
    yield Ask("the prefix alone", "GET", "/api")
    yield Ask("the prefix and a slash", "GET", "/api/")
    yield Ask("a slash too many", "GET", "/api/websites/", session="cookie")
    yield Ask("two slashes", "GET", "/api//websites", session="cookie")
    yield Ask("a path badly encoded", "GET", "/api/%FF")
    yield Ask("a method in small letters", "get", "/api/user", session="cookie")
    yield Ask("an unknown method", "BREW", "/api/user", session="cookie")
    yield Ask("options of all", "OPTIONS", "*")
    yield Ask("options of a path", "OPTIONS", "/api/user/tokens")
    yield Ask("an absolute address", "GET", "http://localhost/api/event/ping")
    yield Ask("ping to HTTP/1.0", "GET", "/api/event/ping", version="HTTP/1.0")
    yield Ask("account to HTTP/1.0", "GET", "/user", version="HTTP/1.0", session="cookie")
    close = {"Connection": "close"}
    yield Ask("ping, the last", "GET", "/api/event/ping", headers=close)
    yield Ask("hit, the last", "POST", "/api/event/hit", _load("b9", "/"), headers=close)
    yield Ask("account, the last", "GET", "/api/user", headers=close, session="cookie")
    yield Ask("nothing, the last", "GET", "/api/nothing", headers=close)
    head = "GET /api/event/ping HTTP/1.1\r\n"
    host = "Host: localhost\r\n"
    to_hit = f"POST /api/event/hit HTTP/1.1\r\n{host}"
    chunked = "Transfer-Encoding: chunked\r\n"
    hit = '{"e":"unload","b":"b9","m":9}'
    expect = f"Expect: 100-continue\r\nContent-Length: {len(hit)}\r\n"
    for name, raw, answers in (
        ("two pings at once", f"{head}{host}\r\n{head}{host}\r\n", 2),
        ("a hit in chunks", f"{to_hit}{chunked}\r\n{len(hit):x}\r\n{hit}\r\n0\r\n\r\n", 1),
        ("a hit in bad chunks", f"{to_hit}{chunked}\r\nx\r\n", 1),
        ("a hit in chunks too large", f"{to_hit}{chunked}\r\n4001\r\n", 1),
        ("a hit that says how long", f"{to_hit}{chunked}Content-Length: 3\r\n\r\n", 1),
        ("no request", "hello\r\n\r\n", 1),
        ("no version", "GET /\r\n\r\n", 1),
        ("another version", f"GET / HTTP/2.0\r\n{host}\r\n", 1),
        ("no host", f"{head}\r\n", 1),
        ("two hosts", f"{head}{host}{host}\r\n", 1),
        ("a host that is none", f"{head}Host: a b\r\n\r\n", 1),
        ("a header of two lines", f"{head}{host}A: b\r\n c\r\n\r\n", 1),
        ("a header without a colon", f"{head}{host}A\r\n\r\n", 1),
        ("a bad length", f"{to_hit}Content-Length: x\r\n\r\n", 1),
        ("a head too large", f"{head}{host}A: {'x' * 17_000}\r\n\r\n", 1),
        ("too many headers", head + host + "A: b\r\n" * 200 + "\r\n", 1),
        ("a body that is waited for", f"{to_hit}{expect}\r\n{hit}", 2),
    ):
        yield Ask(name, "", "", raw=raw, answers=answers)


def _leave() -> Iterator[Ask]:
    change = {"username": "grace", "password": NEW_PASSWORD}
    other = {"third session": r"_me_sess=([\w-]+)", "third device": r"_me_device=([\w.-]+)"}
    yield Ask("a further login", "POST", "/api/auth/login", LOGIN, takes=other)
    yield Ask("change name and password", "PATCH", "/api/user", change, session="cookie")
    further = {"Cookie": "_me_sess=<third session>"}
    yield Ask("account by the further login", "GET", "/api/user", headers=further)
    yield Ask("login by the old password", "POST", "/api/auth/login", LOGIN)
    yield Ask("remove the account without a login", "DELETE", "/api/user")
    yield Ask("remove the account", "DELETE", "/api/user", session="cookie")
    yield _read("account that is removed", "/api/user")
    yield Ask("login as the new account", "POST", "/api/auth/login", LOGIN, takes=SESSION)
    yield _read("websites of the new account", "/api/websites")
    yield _read("tokens of the new account", "/user/tokens")
    yield Ask("leave", "POST", "/api/auth/logout", session="cookie")


def _cors() -> Iterator[Ask]:
    app = {"Origin": "https://app.example.com", "Sec-Fetch-Site": "same-site"}
    other = {"Origin": "https://other.example.com", "Sec-Fetch-Site": "same-site"}
    add = {"hostname": "example.com"}
    for origin, headers in (("the app", app), ("another page", other)):
        yield Ask(f"login from {origin}", "POST", "/api/auth/login", LOGIN, headers, takes=SESSION)
        yield Ask(f"register from {origin}", "POST", "/websites", add, headers, "cookie")
        for name, path in (
            ("account", "/user"),
            ("pages", "/api/website/example.com/pages"),
            ("export", "/api/website/example.com/export?what=events"),
            ("ping", "/api/event/ping"),
            ("script", "/script.js"),
            ("shared", "/api/shared/x"),
            ("nothing", "/api/nothing"),
        ):
            is_built = name == "script"
            full = f"{name} from {origin}"
            yield Ask(full, "GET", path, None, headers, "cookie", is_built=is_built)
        yield Ask(f"account without a login, from {origin}", "GET", "/user", headers=headers)
        yield Ask(f"put the account from {origin}", "PUT", "/api/user", {}, headers, "cookie")
        yield Ask(f"large body from {origin}", "PATCH", "/api/user", "x" * 2_049, headers)
        for ask in _preflights(headers["Origin"]):
            yield Ask(f"{ask.name} from {origin}", ask.method, ask.path, headers=ask.headers)


def _named() -> Iterator[Ask]:
    for name in ("stats.example.com", "stats.example.com:8080", "evil.example", "127.0.0.1"):
        host = {"Host": name}
        yield Ask(f"account at {name}", "GET", "/api/user", None, host, "cookie")
        yield Ask(f"account at {name}, without a login", "GET", "/user", None, host)
        yield Ask(f"ping at {name}", "GET", "/event/ping", None, host)
        yield Ask(f"dashboard at {name}", "GET", "/dashboard/", None, host, is_built=True)
        yield Ask(f"script at {name}", "GET", "/script.js", None, host, is_built=True)
        yield Ask(f"health at {name}", "GET", "/health", None, host)
    forwarded = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "evil.example"}
    yield Ask("account at a forwarded name", "GET", "/user", None, forwarded, "cookie")
    inside = {"X-Forwarded-For": "192.0.2.1"}
    yield Ask("health for who may see it", "GET", "/health", headers=inside)
    yield Ask("metrics for who may see them", "GET", "/metrics", headers=inside)


def _renamed() -> Iterator[Ask]:
    yield Ask("script by its second name", "GET", "/stats.js", is_built=True)
    yield Ask("script by its second name, under the prefix", "GET", "/api/stats.js")
    yield Ask("ping by its second name", "GET", "/pulse/ping")
    yield Ask("ping by its second name, through the router", "GET", "/api/pulse/%70ing")
    yield _hit("hit by its second name", _load("p1", "/"), "/api/pulse/hit")
    yield _hit("hit by its first name", _load("p2", "/"))
    yield _hit("bad hit by its second name", "{", "/pulse/hit")
    second = "/pulse/pixel.gif?u=https://example.com/"
    yield Ask(
        "pixel by its second name", "GET", second, headers={"Referer": "https://example.com/"}
    )
    yield Ask(
        "preflight by the second name",
        "OPTIONS",
        "/api/pulse/hit",
        headers={"Origin": "https://example.com", "Access-Control-Request-Method": "POST"},
    )
    yield _hit("hit of who may object", _load("p", "/"), Sec_GPC="1")
    yield _hit("hit of a library", _load("p", "/"), User_Agent="curl/8.0")
    yield _hit("hit of a blocked network", _load("p", "/"), X_Forwarded_For="198.51.100.7")
    for number in (1, 2):
        name = f"hit {number} of a limited network"
        yield _hit(name, _load(f"q{number}", "/"), X_Forwarded_For="203.0.113.5")
    yield Ask(
        "hit of a network that sends too many",
        "POST",
        "/api/event/hit",
        _load("q3", "/"),
        {**BROWSER, "X-Forwarded-For": "203.0.113.5"},
        until=429,
    )
    yield Ask(
        "pixel of a network that sends too many",
        "GET",
        "/api/event/pixel.gif?u=https://example.com/",
        None,
        {**BROWSER, "X-Forwarded-For": "203.0.113.5"},
        until=429,
    )
    yield _read("ignored, by reason", "/api/website/example.com/ignored")


def _guessed() -> Iterator[Ask]:
    def guess(name: str, method: str, path: str, body: object, **headers: str) -> Ask:
        here = {"X-Forwarded-For": "203.0.113.77", **headers}
        return Ask(name, method, path, body, headers=here, until=429)

    shares = "/api/websites/example.com/shares"
    takes = {"locked": r'"id":"([\w-]{24})"'}
    locked = {"name": "board", "password": PASSWORD}
    yield Ask("make a link to guess at", "POST", shares, locked, session="cookie", takes=takes)
    wrong = {**LOGIN, "password": "wrong"}
    yield guess("guess the password", "POST", "/api/auth/login", wrong)
    yield guess("guess a share link's password", "POST", "/shared/<locked>", {"password": "x"})
    yield guess("guess a token", "GET", "/api/websites", None, Authorization="Bearer medamad_x")
    body = {"hostname": "x.example"}
    token = "Bearer medamad_x"
    yield guess("guess a token to register", "POST", "/websites", body, Authorization=token)
    yield _read("account, while others guess", "/api/user")


def _demo() -> Iterator[Ask]:
    yield from _begin()
    for method, path, body in (
        ("GET", "/api/user", None),
        ("PATCH", "/api/user", {"settings": {"language": "de"}}),
        ("DELETE", "/user", None),
        ("GET", "/api/websites", None),
        ("POST", "/api/websites", {"hostname": "example.com"}),
        ("PATCH", "/api/websites/example.com", {"hostname": "a.example"}),
        ("DELETE", "/websites/example.com", None),
        ("GET", "/api/user/tokens", None),
        ("POST", "/api/user/tokens", {"name": "a", "scope": "read"}),
        ("DELETE", "/api/user/tokens/0123456789abcdef", None),
        ("POST", "/api/websites/example.com/shares", {"name": "a"}),
        ("DELETE", "/api/websites/example.com/shares/x", None),
        ("POST", "/api/websites/example.com/goals", {"name": "a", "path": "/"}),
        ("DELETE", "/api/websites/example.com/goals/x", None),
        ("POST", "/api/websites/example.com/annotations", {"text": "a"}),
        ("GET", "/api/user/usage", None),
        ("POST", "/api/auth/logout", None),
    ):
        yield Ask(f"{method} {path} in demo mode", method, path, body, session="cookie")
    yield Ask("change without a login, in demo mode", "POST", "/api/websites", {})


def _all(*parts: Iterator[Ask]) -> tuple[Ask, ...]:
    return tuple(ask for part in parts for ask in part)


RECORDED: Final[Mapping[str, Recorded]] = MappingProxyType(
    {
        "as it is": Recorded(
            "",
            (
                *_all(_logins(), _user(), _websites()),
                Import("past.example", {"views.csv": VIEWS, "events.csv": EVENTS}),
                Import("days.example", DAYS),
                *_all(_hits(), _pings(), _pixels(), _files(), _tokens(), _statistics()),
                *_all(
                    *(
                        _exports(),
                        _shares(),
                        _exclusions(),
                        _goals(),
                        _annotations(),
                        _settings(),
                        _alerts(),
                        _reports(),
                    ),
                    *(_operating(), _foreign(), _protocol(), _leave()),
                ),
            ),
        ),
        "configured": Recorded(
            """
            [server]
            hostnames = ["stats.example.com"]
            cors_origins = ["https://app.example.com"]
            trusted_proxies = ["127.0.0.1"]
            metrics_from = ["192.0.2.1"]
            script_name = "stats.js"
            event_name = "pulse"
            [events]
            timezone = "Asia/Kolkata"
            bots = "strict"
            respect_gpc = true
            blocked = "blocked.txt"
            [limits]
            hits_per_minute = 2
            max_body_bytes = 2048
            """,
            _all(_begin(), _cors(), _named(), _renamed(), _guessed()),
            {"blocked.txt": "198.51.100.0/24\n"},
        ),
        "demo": Recorded("[server]\ndemo = true\n", _all(_demo())),
    }
)
