"""Exports over HTTP are streamed as fast as they are received."""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import pytest_twisted
from attrs import evolve
from support.storage.bulk_loads import load, made
from support.web.client import Answer, Browser, Connection, encoded, parse
from support.web.daemon_in_memory import Server, build_server
from support.web.slow_clients import leave, slow
from twisted.internet.defer import Deferred, succeed

from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website
from medamad.query.reader import Reader
from medamad.query.request import Cancelled, Query
from medamad.storage.compaction.planner import Sizes
from medamad.transfer import export
from medamad.transfer.export import STEP_ROWS, EncodedPiece, ExportRequest
from medamad.web.responses import WRITTEN_BYTES
from medamad.web.routes.exports import MAX_EXPORTS, MAX_EXPORTS_PER_NETWORK

PATH = "/api/website/example.com/export"
FIGURES_OF_VISITS = (
    *("visits", "visits_percentage"),
    *("views_per_visit", "visit_bounce_percentage", "visit_duration"),
)


async def filled(server: Server, views: int = 2_000) -> Website:
    website = await server.store.add_website("example.com", 1)
    await load(server.store, website, made(1, views, views // 10))
    return website


async def asked(
    server: Server, target: str = PATH, method: str = "GET", over: Connection | None = None
) -> Connection:
    owner = await server.owner()
    connection = over or Connection(server.site)
    connection.push(encoded(method, target, {"Cookie": f"_me_sess={owner.cookie}"}))
    return connection


def taken_apart(data: bytes) -> tuple[Answer, bytes]:
    """Return a complete chunked response, the only one, and its body."""
    found = parse(data, "GET")
    assert found is not None
    answer, rest = found
    assert (answer.status, rest) == (200, b"")
    assert answer.header("Transfer-Encoding") == "chunked"
    return answer, answer.body


@pytest.mark.parametrize("what", ["views", "events", "statistics"])
@pytest_twisted.ensureDeferred
async def test_a_file_is_sent(server: Server, what: str) -> None:
    website = await filled(server)
    connection = await asked(server, f"{PATH}?what={what}")
    answer, body = taken_apart(connection.wire.value())
    for name, value in (
        ("Content-Type", "text/csv; charset=utf-8; header=present"),
        ("Content-Disposition", f'attachment; filename="example.com-{what}.csv"'),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Api-Commit", "c0ffee1"),
    ):
        assert answer.header(name) == value
    rows = list(csv.DictReader(io.StringIO(body.decode(), newline="")))
    if what == "views":
        assert len(rows) == 2_000
    if what == "statistics":
        (summary,) = [row for row in rows if row["report"] == "summary"]
        assert summary["pageviews"] == "2000"
    assert server.site.backend.exports == {}
    # The connection stays open.
    connection.wire.clear()
    assert (await connection.talk(encoded("GET", "/event/ping", {}))).status == 200
    assert server.store.read(website, lambda snapshot: len(list(snapshot.parts))) > 0


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_statistics_have_visits_unless_these_are_switched_off(
    server: Server, owner: Browser
) -> None:
    home = load_of("/", 1, "https://www.google.com/")
    for body in (
        home,
        load_of("/cart", 2, "https://example.com/"),
        {"e": "custom", "b": home["b"], "g": "example.com", "d": {"plan": "pro"}},
    ):
        assert (await owner.ask("POST", "/event/hit", body)).status == 204

    async def figures() -> dict[tuple[str, str], list[str]]:
        _, body = taken_apart((await asked(server, f"{PATH}?what=statistics")).wire.value())
        return {
            (row["report"], row["name"]): [row[name] for name in FIGURES_OF_VISITS]
            for row in csv.DictReader(io.StringIO(body.decode(), newline=""))
        }

    found = await figures()
    for report in ("summary", "days"):
        assert found[report, ""] == ["1", "", "2.0", "0.0", "0"]
    assert found["pages", "/"] == found["pages", "/cart"] == ["1", "1.0", "", "0.0", ""]
    assert found["referrers", "Google"] == ["1", "1.0", "", "0.0", ""]
    for report in ("properties", "property_values"):
        assert found[report, "plan"] == ["1", "", "", "", ""]
    assert found["entries", "/"] == ["1", "1.0", "2.0", "0.0", "0"]
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    without = await figures()
    assert without.pop(("entries", "/")) == found["entries", "/"]
    assert without.pop(("exits", "/cart")) == found["exits", "/cart"]
    assert set(map(tuple, without.values())) == {("",) * len(FIGURES_OF_VISITS)}


def load_of(path: str, number: int, referrer: str) -> dict[str, object]:
    """Return the hit of a view, the visitor's `number`th of the day."""
    seen = {"b": f"view {number}", "u": f"https://example.com{path}", "r": referrer, "n": number}
    return {"e": "load", "p": number == 1, "q": True, "t": "Europe/London", "w": 1_500, **seen}


@pytest_twisted.ensureDeferred
async def test_every_format_is_sent(server: Server) -> None:
    await filled(server, 50)
    _, lines = taken_apart((await asked(server, f"{PATH}?format=ndjson")).wire.value())
    assert len(lines.splitlines()) == 50
    _, file = taken_apart((await asked(server, f"{PATH}?format=parquet")).wire.value())
    assert pyarrow.parquet.read_table(io.BytesIO(file)).num_rows == 50


@pytest_twisted.ensureDeferred
async def test_an_export_is_produced_only_as_fast_as_it_is_read(tmp_path: Path) -> None:
    server = await build_server(tmp_path, sizes=Sizes(chunk_views=1_000))
    await filled(server, 8_000)
    before = len(taken_apart((await asked(server)).wire.value())[1])
    wire = (await asked(server, over=slow(server))).wire
    steps = 0
    while not wire.value().endswith(b"\r\n0\r\n\r\n"):
        size = len(wire.value())
        assert size < (steps + 1) * (WRITTEN_BYTES + 2_000)
        # A client that reads now and then gets the rest.
        server.reactor.advance(10)
        server.site.sweep()
        assert not wire.aborted
        assert len(wire.value()) == size
        wire.producer.resumeProducing()
        steps += 1
    assert steps > 10
    assert len(taken_apart(wire.value())[1]) == before
    await server.store.close()


@pytest_twisted.ensureDeferred
async def test_a_report_of_many_rows_is_produced_in_one_turn(tmp_path: Path) -> None:
    """Under load, each further turn is a long wait."""
    server = await build_server(tmp_path)
    await filled(server, 2 * STEP_ROWS + 100)
    turns = slowly(server, 0)
    _, body = taken_apart((await asked(server, f"{PATH}?what=statistics")).wire.value())
    rows = list(csv.DictReader(io.StringIO(body.decode(), newline="")))
    assert sum(row["report"] == "pages" for row in rows) == 2 * STEP_ROWS + 100
    # 22 reports, the parts before and after them, and the end.
    assert turns[0] <= 25
    await server.store.close()


def slowly(server: Server, seconds: float) -> list[int]:
    """Make producing each piece of an export take time; return the counters."""
    backend, made_pieces = server.site.backend, [0]
    ask = backend.run_query

    async def ask_slowly(question: Callable[[], object]) -> object:
        found = await ask(question)
        server.reactor.advance(seconds)
        server.site.sweep()
        made_pieces[0] += 1
        return found

    backend.run_query = lambda question, **_: Deferred.fromCoroutine(ask_slowly(question))
    return made_pieces


@pytest_twisted.ensureDeferred
async def test_a_client_that_reads_at_once_is_never_too_slow(tmp_path: Path) -> None:
    server = await build_server(tmp_path, sizes=Sizes(chunk_views=500))
    await filled(server, 8_000)
    made_pieces = slowly(server, 50)
    connection = await asked(server)
    assert made_pieces[0] * 50 > 2 * server.site.settings.answer_seconds
    assert len(taken_apart(connection.wire.value())[1].splitlines()) == 8_001
    assert not connection.wire.aborted
    await server.store.close()


@pytest_twisted.ensureDeferred
async def test_an_export_has_a_deadline(tmp_path: Path) -> None:
    server = await build_server(tmp_path, sizes=Sizes(chunk_views=500))
    await filled(server, 8_000)
    server.set(stream_seconds=300)
    slowly(server, 50)
    connection = await asked(server)
    server.reactor.advance(11)
    server.site.sweep()
    assert connection.wire.aborted
    connection.close()
    assert server.site.backend.exports == {}
    await server.store.close()


@pytest_twisted.ensureDeferred
async def test_an_unfinished_export_is_freed_in_a_thread(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(server, 3_000)
    ended_in: list[bool] = []
    in_thread = [False]
    encoded = ExportRequest.encoded

    def recorded(*given: Any) -> Iterator[EncodedPiece]:
        try:
            yield from encoded(*given)
        finally:
            ended_in.append(in_thread[0])

    def ask(question: Callable[[], object], **_: object) -> Deferred[object]:
        in_thread[0] = True
        try:
            return succeed(question())
        finally:
            in_thread[0] = False

    monkeypatch.setattr(ExportRequest, "encoded", recorded)
    server.site.backend.run_query = ask
    connection = await asked(server, over=slow(server))
    assert not ended_in
    connection.close()
    assert ended_in == [True]


@pytest_twisted.ensureDeferred
async def test_a_report_is_cancelled_if_the_client_disconnects(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(server)
    steps: list[Callable[[], object]] = []

    def ask(step: Callable[[], object], **_: object) -> Deferred[object]:
        steps.append(step)
        return Deferred()

    def report(reader: Reader, query: Query) -> None:
        selected = reader.select(query)
        assert selected.series(None).tally.views.any()
        connection.close()
        selected.series(None)

    reports = {**export.ROW_REPORTS, "pages": report}
    monkeypatch.setattr(export, "ROW_REPORTS", reports)
    server.site.backend.run_query = ask
    connection = await asked(server, f"{PATH}?what=statistics")
    # Before it come the beginning of the file and two other reports.
    for _ in range(3):
        steps[0]()
    with pytest.raises(Cancelled):
        steps[0]()


@pytest.mark.parametrize("goes", [True, False])
@pytest_twisted.ensureDeferred
async def test_a_client_that_stops_reading_is_dropped(server: Server, goes: bool) -> None:
    await filled(server, 3_000)
    connections = [
        await asked(
            server, over=slow(server, f"198.51.{number // MAX_EXPORTS_PER_NETWORK}.{number}")
        )
        for number in range(MAX_EXPORTS)
    ]
    assert server.site.backend.exports.total() == MAX_EXPORTS
    refused = await (await asked(server)).answer()
    assert (refused.status, refused.error) == (503, "too many exports at once")
    assert refused.header("Retry-After") == "10"
    refused = await (await asked(server, over=Connection(server.site, "198.51.0.99"))).answer()
    assert (refused.status, refused.error) == (429, "too many exports at once from there")
    leave(server, connections, goes=goes)
    assert server.site.backend.exports == {}
    assert server.store.partitions.leases.all_ended(1 << 60, 1)


@pytest_twisted.ensureDeferred
async def test_a_failed_export_is_cut_off(server: Server) -> None:
    website = await filled(server, 10_000)
    connection = await asked(server, over=slow(server))
    wire = connection.wire
    await server.store.delete_website(website)
    for _ in range(40):
        if wire.aborted:
            break
        wire.producer.resumeProducing()
    assert wire.aborted
    assert not wire.value().endswith(b"\r\n0\r\n\r\n")
    assert server.site.backend.exports == {}
    connection.close()


@pytest_twisted.ensureDeferred
async def test_an_export_is_cut_off_if_the_hits_become_unavailable(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response that ends normally would look like the whole file."""
    await filled(server, 10)

    def encoded(*_: Any) -> Iterator[EncodedPiece]:
        yield EncodedPiece(b"time,path\n", 0, 0)
        raise Unavailable("the cluster does not answer at the moment", retry_after=10)

    monkeypatch.setattr(ExportRequest, "encoded", encoded)
    connection = await asked(server)
    assert connection.wire.aborted
    assert not connection.wire.value().endswith(b"\r\n0\r\n\r\n")
    assert server.site.backend.exports == {}
    connection.close()


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        (f"{PATH}?what=all", 400, "what: expected one of views, events, statistics"),
        (f"{PATH}?format=xlsx", 400, "format: expected one of csv, ndjson, parquet"),
        (f"{PATH}?start=now", 400, "start: expected an RFC 3339"),
        (f"{PATH}?path=/", 400, "path: only statistics can be filtered"),
        ("/api/website/other.example/export", 404, "no website other.example is registered"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_invalid_requests_are_rejected(
    server: Server, target: str, status: int, message: str
) -> None:
    await filled(server, 10)
    answer = await (await asked(server, target)).answer()
    assert answer.status == status
    assert message in answer.error
    assert server.site.backend.exports == {}


@pytest_twisted.ensureDeferred
async def test_it_needs_the_permission_to_read(server: Server) -> None:
    await filled(server, 10)
    answer = await Connection(server.site).talk(encoded("GET", PATH, {}))
    assert (answer.status, server.site.backend.exports) == (401, {})


@pytest_twisted.ensureDeferred
async def test_head_is_supported(server: Server) -> None:
    await filled(server, 10)
    connection = await asked(server, method="HEAD")
    data = connection.wire.value()
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert data.endswith(b"\r\n\r\n")
    assert b"Content-Disposition: attachment" in data
    assert server.site.backend.exports == {}
