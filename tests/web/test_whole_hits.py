"""Hits that arrive whole are taken as those that arrive in parts are."""

from collections.abc import Sequence
from ipaddress import ip_network

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Connection, answers, encoded
from support.web.daemon_in_memory import Server

from medamad.domain.hits import Hit, View
from medamad.ingest.networks import Networks
from medamad.storage.wal.log import Outcome
from medamad.web.server.parser import MAX_HEAD_BYTES

pytestmark = pytest.mark.usefixtures("website")

BODY = b'{"e":"load","b":"b1","u":"https://example.com/a","p":true,"q":true}'
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept-Language": "de-AT,de;q=0.8",
    "Origin": "https://example.com",
    "Sec-GPC": "1",
    "Referer": "https://example.com/a?x=1",
    "X-Forwarded-For": "198.51.100.7",
}
HIT = encoded("POST", "/event/hit", BROWSER, BODY)


@pytest.fixture
def stored(server: Server) -> list[Hit]:
    """The hits that are stored from now on."""
    hits: list[Hit] = []

    async def append(batch: Sequence[Hit]) -> list[Outcome]:
        hits.extend(batch)
        return [Outcome.STORED] * len(batch)

    server.append = append
    return hits


async def respond(server: Server, request: bytes, *parts: int) -> bytes:
    """Return what is sent in response to a request that arrives in parts, with another after it."""
    connection = Connection(server.site, "127.0.0.1")
    for begin, end in zip((0, *parts), (*parts, len(request)), strict=True):
        connection.push(request[begin:end])
    answer = await connection.answer()
    rest = b""
    if answer.header("Connection") is None:
        connection.push(HIT)
        rest = repr(await connection.answer()).encode()
    return repr(answer).encode() + rest


def changed(name: str, value: str) -> bytes:
    return encoded("POST", "/event/hit", BROWSER | {name: value}, BODY)


@pytest.mark.parametrize(
    "request_",
    [
        HIT,
        encoded("POST", "/api/event/hit", {}, BODY),
        encoded("POST", "//event/hit", BROWSER, BODY),
        encoded("POST", "/event/hit?x=1", BROWSER, BODY),
        encoded("POST", "/event/missing", BROWSER, BODY),
        encoded("PUT", "/event/hit", BROWSER, BODY),
        encoded("POST", "/event/hit", BROWSER, b""),
        encoded("POST", "/event/hit", BROWSER, b'{"e":"load"}'),
        encoded("POST", "/event/hit", BROWSER, BODY.replace(b"example.com", b"other.example")),
        encoded("POST", "/event/hit", BROWSER, BODY[:-1] + b',"time":1750000000000}'),
        encoded("POST", "/event/hit", BROWSER, b'{"e":"unload","b":"b9","m":5}'),
        changed("User-Agent", "Googlebot/2.1"),
        changed("Origin", "https://other.example"),
        changed("Authorization", "Bearer nonsense"),
        changed("Connection", "close"),
        changed("Connection", "keep-alive"),
        changed("Cookie", "a=b"),
        changed("Expect", "100-continue"),
        changed("TE", "trailers"),
        changed("Content-Length", str(len(BODY) - 1)),
        changed("Content-Length", "0"),
        changed("Content-Length", f"0{len(BODY)}"),
        changed("Content-Length", f"+{len(BODY)}"),
        changed("content-length", str(len(BODY))),
        changed("Transfer-Encoding", "chunked"),
        changed("Host", "a b"),
        changed("X-Forwarded-For", "192.0.2.9"),
        changed("X-Forwarded-For", "192.0.2.9, 198.51.100.8"),
        changed("X-Forwarded-For", "198.51.100.8, 127.0.0.1"),
        changed("X-Forwarded-For", "nonsense"),
        changed("X-Forwarded-For", "198.51.100.8\0"),
        changed("x-forwarded-for", "192.0.2.9"),
        changed("Referer", "https://example.com/\r"),
        changed("Referer", "https://example.com/\n folded"),
        HIT.replace(b"Content-Length", b"content-length"),
        HIT.replace(b"Content-Length", b"content-length").replace(b"Referer", b"referer"),
        HIT.replace(b"Content-Length", b"CONTENT-LENGTH"),
        HIT.replace(b"Host:", b"Host :"),
        HIT.replace(b"Host: ", b"Host: one\r\nHost: "),
        HIT.replace(b"HTTP/1.1", b"HTTP/1.0"),
        HIT.replace(b"HTTP/1.1", b"HTTP/1.2"),
        HIT.replace(b"Referer: ", b"Referer:"),
        HIT.replace(b"Referer: ", b"Referer: a\r\nReferer: "),
        HIT.replace(b"User-Agent: ", b"User-Agent: other\r\nUser-Agent: "),
        HIT.replace(b"X-Forwarded-For: ", b"X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-For: "),
        HIT.replace(b"\r\nUser-Agent", b"\r\n" + b"Accept: x\r\n" * 100 + b"User-Agent"),
        b"\r\n" + HIT,
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_hit_is_taken_as_one_that_arrives_in_parts(
    server: Server, stored: list[Hit], request_: bytes
) -> None:
    server.set(trusted_proxies=Networks([ip_network("127.0.0.1")]))
    server.pipeline.rules = evolve(server.pipeline.rules, logs_uncounted=True)
    in_parts = await respond(server, request_, 3)
    hits = stored.copy()
    stored.clear()
    # The first of these is taken while nothing is known of such heads, the second while it is.
    for _ in range(2):
        assert await respond(server, request_) == in_parts
        assert stored == hits
        stored.clear()
    head = request_.index(b"\r\n\r\n") + 4
    for parts in ([len(request_) - 1], [head], [head, head + 1], [head - 1, head]):
        stored.clear()
        assert in_parts == await respond(server, request_, *parts)
        assert stored == hits


@pytest_twisted.ensureDeferred
async def test_a_hit_without_a_body_is_read_to_the_end_of_its_head(server: Server) -> None:
    connection = Connection(server.site)
    request = encoded("POST", "/event/hit", {"Content-Length": "0", "Accept": "a/b"})
    connection.push(request[:-6])
    assert answers(connection) == 0
    connection.push(request[-6:])
    assert (await connection.answer()).error == "body: expected JSON"
    assert answers(connection) == 0


@pytest_twisted.ensureDeferred
async def test_what_is_remembered_of_a_head_follows_the_settings(
    server: Server, stored: list[Hit]
) -> None:
    async def status(target: str) -> int:
        connection = Connection(server.site)
        request = encoded("POST", target, BROWSER, BODY)
        return (await connection.talk(request, "POST")).status

    server.set(event_name="collect", base_path="/stats")
    for target in ("/collect/hit", "/stats/event/hit", "/event/hit", "/stats/collect/hit"):
        assert await status(target) == 204
    server.set(event_name="event", base_path="")
    assert [await status(target) for target in ("/collect/hit", "/stats/event/hit")] == [404] * 2
    server.set(trusted_proxies=Networks([ip_network("203.0.113.9")]))
    assert await status("/event/hit") == 204
    server.set(proxy_header="Forwarded")
    assert await status("/event/hit") == 204
    seen = [hit.network for hit in stored if isinstance(hit, View)]
    assert seen == [b"\xcb\x00\x71"] * 4 + [b"\xc6\x33\x64", b"\xcb\x00\x71"]


@pytest_twisted.ensureDeferred
async def test_a_hit_without_what_the_head_says_of_its_sender_is_of_somebody_else(
    server: Server, stored: list[Hit]
) -> None:
    for headers in (BROWSER, BROWSER | {"Accept-Language": "fr"}, {}):
        await Connection(server.site).talk(encoded("POST", "/event/hit", headers, BODY))
    first, other, unknown = stored
    assert isinstance(first, View)
    assert isinstance(other, View)
    assert isinstance(unknown, View)
    assert (first.locale, other.locale, unknown.locale) == ("de-AT", "fr", "")
    assert evolve(other, locale="de-AT", identity=first.identity) == first
    assert len({first.identity, other.identity, unknown.identity}) == 3


def test_the_body_of_a_hit_is_no_hit_itself(server: Server, stored: list[Hit]) -> None:
    connection = Connection(server.site)
    connection.push(encoded("POST", "/event/hit", {}, HIT).removesuffix(HIT))
    # The transport's buffer was full, and no longer is.
    connection.channel.pauseProducing()
    connection.channel.resumeProducing()
    server.reactor.advance(0)
    connection.push(HIT)
    server.reactor.advance(0)
    assert answers(connection) == 1
    assert stored == []


@pytest_twisted.ensureDeferred
async def test_a_request_follows_a_head_whose_hit_is_ignored(server: Server) -> None:
    connection = Connection(server.site)
    request = changed("User-Agent", "Googlebot/2.1")
    for _ in range(3):
        connection.push(request.removesuffix(BODY))
        connection.push(BODY)
        assert (await connection.answer()).status == 204
    assert not server.reactor.getDelayedCalls()


def test_a_long_hit_is_no_hit_that_arrives_whole(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(encoded("POST", "/event/hit", {"User-Agent": "x" * MAX_HEAD_BYTES}, BODY))
    assert connection.wire.value().startswith(b"HTTP/1.1 400 ")


@pytest_twisted.ensureDeferred
async def test_the_response_to_a_hit_says_that_the_connection_closes(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(HIT)
    server.site.close_after_responses()
    answer = await connection.answer()
    assert (answer.status, answer.header("Connection")) == (204, "close")
    assert connection.wire.disconnecting
