"""Browsers' requests for page views, as the bytes that a proxy passes on."""

import json
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Self

from attrs import frozen

from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, hits
from medamad.domain.hits import View

HOSTNAME = "gardenpost.example"

_ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "America/Chicago",
    "Europe/London",
    "Europe/Paris",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "America/Sao_Paulo",
    "Australia/Sydney",
    "America/Los_Angeles",
]
_LANGUAGES = (
    "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
    "en-US,en;q=0.9",
    "en-GB,en;q=0.5",
    "fr-FR,fr;q=0.8,en-US;q=0.5,en;q=0.3",
    "ja",
    "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7",
)


def _agents() -> tuple[str, ...]:
    """Return User-Agents of desktop and mobile browsers in current versions."""
    webkit = "AppleWebKit/537.36 (KHTML, like Gecko)"
    desktops = (
        "Windows NT 10.0; Win64; x64",
        "X11; Linux x86_64",
        "Macintosh; Intel Mac OS X 10_15_7",
    )
    agents = [
        f"Mozilla/5.0 ({system}) {webkit} Chrome/{version}.0.0.0 Safari/537.36{edge}"
        for system in desktops
        for version in range(124, 132)
        for edge in ("", f" Edg/{version}.0.0.0")
    ]
    agents += [
        f"Mozilla/5.0 (Linux; Android 10; K) {webkit} Chrome/{version}.0.0.0 Mobile Safari/537.36"
        for version in range(120, 132)
    ]
    agents += [
        f"Mozilla/5.0 ({system}; rv:{version}.0) Gecko/20100101 Firefox/{version}.0"
        for system in desktops[:2]
        for version in range(128, 134)
    ]
    agents += [
        f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_{minor} like Mac OS X) AppleWebKit/605.1.15 "
        f"(KHTML, like Gecko) Version/18.{minor} Mobile/15E148 Safari/604.1"
        for minor in range(4)
    ]
    return tuple(agents)


AGENTS = _agents()


@frozen
class Browser:
    """What a visitor's requests have in common."""

    address: str
    zone: str
    agent: str
    language: str

    @classmethod
    def of(cls, view: View) -> Self:
        """Return the browser of a view's visitor."""
        visitor = Random(view.identity)
        return cls(
            address=".".join(map(str, (45, *visitor.randbytes(3)))),
            zone=visitor.choice(_ZONES),
            agent=visitor.choice(AGENTS),
            language=visitor.choice(_LANGUAGES),
        )


def requests(count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield `count` page loads, each a complete HTTP request with its own beacon.

    A visitor has one address, browser and language, and comes from page to page.
    """
    return map(request, views(count, seed))


def views(count: int, seed: int = 1) -> Iterator[View]:
    """Yield `count` views of one day."""
    plan = TrafficPlan(until_ms=1_790_000_000_000, days=1, views=count, seed=seed)
    for hit in hits(plan, {HOSTNAME: 1}, [site for site in SITES if site.hostname == HOSTNAME]):
        if isinstance(hit, View):
            yield hit


def request(view: View) -> bytes:
    """Return a page load as the tracker sends it."""
    browser = Browser.of(view)
    body = {
        "e": "load",
        "b": view.beacon,
        "u": f"https://{view.host}{view.path}{query_string(view)}",
        "r": referrer_url(view),
        "t": browser.zone,
        "w": view.width_px,
        "p": view.first_today,
        "q": view.first_of_page,
        "n": view.number_today,
    }
    if view.properties:
        body["d"] = dict(view.properties)
    return post("/api/event/hit", view, browser, json.dumps(body, separators=(",", ":")))


def requests_with_unloads(count: int, open_at_once: int = 200) -> Iterator[bytes]:
    """Yield page loads, and for each an unload after some further ones: `count` requests in all."""
    loaded: deque[View] = deque()
    for view in views(count // 2):
        yield request(view)
        loaded.append(view)
        if len(loaded) > open_at_once:
            yield unload(loaded.popleft())
    yield from map(unload, loaded)


def unload(view: View) -> bytes:
    """Return the end of a page's view as the tracker sends it."""
    text = json.dumps({"e": "unload", "b": view.beacon, "m": 12_345}, separators=(",", ":"))
    return post("/api/event/hit", view, Browser.of(view), text)


def referrer_url(view: View) -> str:
    """Return where the visitor came from."""
    if view.from_page is not None:
        return f"https://{view.host}{view.from_page}"
    return f"https://www.{view.referrer}" if view.referrer else ""


def query_string(view: View) -> str:
    """Return the campaign of the view's address, with its question mark."""
    if not view.utm_source:
        return ""
    return f"?utm_source={view.utm_source}&utm_medium={view.utm_medium}"


def post(target: str, view: View, browser: Browser, text: str) -> bytes:
    """Return a request as a browser sends it from the page of a view, and a proxy passes it on."""
    return (
        f"POST {target} HTTP/1.1\r\n"
        "Host: stats.example.com\r\n"
        "Connection: keep-alive\r\n"
        f"Content-Length: {len(text)}\r\n"
        'sec-ch-ua-platform: "Linux"\r\n'
        f"User-Agent: {browser.agent}\r\n"
        'sec-ch-ua: "Google Chrome";v="131", "Chromium";v="131", "Not_A Brand";v="24"\r\n'
        "Content-Type: text/plain;charset=UTF-8\r\n"
        "sec-ch-ua-mobile: ?0\r\n"
        "Accept: */*\r\n"
        f"Origin: https://{view.host}\r\n"
        "Sec-Fetch-Site: cross-site\r\n"
        "Sec-Fetch-Mode: cors\r\n"
        "Sec-Fetch-Dest: empty\r\n"
        f"Referer: https://{view.host}/\r\n"
        "Accept-Encoding: gzip, deflate, br, zstd\r\n"
        f"Accept-Language: {browser.language}\r\n"
        f"X-Forwarded-For: {browser.address}\r\n"
        f"\r\n{text}"
    ).encode()
