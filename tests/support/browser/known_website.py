"""A website whose every hit is known, so that what the dashboard shows is known too."""

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import count
from typing import Any, Final
from urllib.parse import quote

import pytest
from attrs import field, frozen
from support.daemon import Client

HOSTNAME: Final = "known.example"
HOSTILE: Final = "/<img src=x onerror=alert(1)>"
LONG: Final = "/" + "long-" * 400
RIGHT_TO_LEFT: Final = "/\u202egnp.exe"

_CHROME: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
_FIREFOX: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"


@frozen
class Visit:
    """One view by a visitor of its own."""

    path: str
    referrer: str = ""
    zone: str = "Europe/Berlin"
    language: str = "de-CH"
    agent: str = _CHROME
    milliseconds: int = 20_000
    properties: Mapping[str, str] = field(factory=dict)


VISITS: Final = (
    *(Visit("/", properties={"plan": "pro"}) for _ in range(3)),
    Visit("/", milliseconds=3_000, properties={"plan": "=1+1;=2"}),
    Visit("/about", "https://www.google.com/search", "America/New_York", "en-US"),
    Visit("/about", "https://www.google.co.uk/", "Asia/Singapore", "en-GB"),
    Visit("/about?utm_source=news", "https://blog.example/post/1", agent=_FIREFOX),
    Visit("/a,b", "https://blog.example/post/2", agent=_FIREFOX, milliseconds=60_000),
    Visit(quote(HOSTILE)),
    Visit(quote(RIGHT_TO_LEFT)),
    Visit(LONG),
    Visit("/=1+1", "https://blog.example/post/2"),
)

_beacons = count()


def send(client: Client, hostname: str, visit: Visit) -> None:
    """Send a view's load, and its unload after its duration."""
    beacon = f"known-{datetime.now(UTC).timestamp()}-{next(_beacons)}"
    load: dict[str, Any] = {
        "e": "load",
        "b": beacon,
        "u": f"https://{hostname}{visit.path}",
        "p": True,
        "q": True,
        "t": visit.zone,
    }
    if visit.referrer:
        load["r"] = visit.referrer
    if visit.properties:
        load["d"] = dict(visit.properties)
    headers = {"User-Agent": visit.agent, "Accept-Language": visit.language}
    unload = {"e": "unload", "b": beacon, "m": visit.milliseconds}
    for event in (load, unload):
        answer = client.request("POST", "/api/event/hit", event, headers)
        assert answer.status == HTTPStatus.NO_CONTENT, answer


@pytest.fixture(scope="session")
def known(owner: Client) -> Client:
    """The owner of the website of which all is known."""
    owner.add_website(HOSTNAME)
    for visit in VISITS:
        send(owner, HOSTNAME, visit)
    return owner
