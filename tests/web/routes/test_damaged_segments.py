"""A flipped bit in a segment: responses leave the segment out, agree, and say so."""

import csv
import io

import pytest
import pytest_twisted
from support.storage.bulk_loads import load, made
from support.web.client import Browser, Connection, encoded
from support.web.daemon_in_memory import Server

from medamad.domain.dimensions import Dimension
from medamad.storage.segments.format import Column

VIEWS = 500
PATH = "/api/website/example.com"


async def damage_column(server: Server, column: int) -> None:
    """Store two segments, and flip a bit in a column of the first."""
    website = await server.store.add_website("example.com", 1)
    for begin in (1, VIEWS + 1):
        await load(server.store, website, made(begin, VIEWS, 50))
    (first, *_) = server.store.partitions.get_or_create(website.number).leaves()
    environment = server.store.environment
    key = first.key + bytes((column,))
    with environment.lmdb.begin(write=True) as txn:
        value = txn.get(key, db=environment.databases.segments)
        value = value[:-1] + bytes((value[-1] ^ 1,))
        txn.put(key, value, db=environment.databases.segments)


async def reports(owner: Browser) -> dict[str, tuple[object, str | None]]:
    found = {}
    for name in ("summary", "pages", "time", "browsers"):
        response = await owner.ask("GET", f"{PATH}/{name}")
        assert response.status == 200
        found[name] = (response.json, response.header("X-Medamad-Partial"))
    return found


@pytest.mark.parametrize("column", [Dimension.PATH, Column.DURATION])
@pytest_twisted.ensureDeferred
async def test_reports_agree_and_name_the_days(server: Server, owner: Browser, column: int) -> None:
    await damage_column(server, column)
    await reports(owner)
    found = await reports(owner)
    (partial,) = {header for _, header in found.values()}
    assert partial is not None
    assert partial.startswith('damaged="20')
    pages = sum(row["pageviews"] for row in found["pages"][0])  # type: ignore[attr-defined]
    assert found["summary"][0]["current"]["pageviews"] == pages  # type: ignore[index]
    assert pages < 2 * VIEWS
    outside = await owner.ask("GET", f"{PATH}/summary?end=1990-01-01T00:00:00Z")
    assert outside.header("X-Medamad-Partial") is None


@pytest.mark.parametrize("what", ["views", "events", "statistics"])
@pytest_twisted.ensureDeferred
async def test_an_export_says_what_it_leaves_out(server: Server, owner: Browser, what: str) -> None:
    await damage_column(server, Column.SEQUENCE if what == "events" else Dimension.PATH)
    target = f"{PATH}/export?what={what}"
    if what != "statistics":
        # The rows are made while they are sent: the first export is cut off.
        connection = Connection(server.site)
        connection.push(encoded("GET", target, {"Cookie": f"_me_sess={owner.cookie}"}))
        assert connection.wire.aborted
    response = await owner.ask("GET", target)
    assert response.status == 200
    assert (response.header("X-Medamad-Partial") or "").startswith('damaged="20')
    rows = list(csv.DictReader(io.StringIO(response.body.decode(), newline="")))
    if what == "views":
        assert 0 < len(rows) < 2 * VIEWS
    if what == "statistics":
        total = sum(int(row["pageviews"]) for row in rows if row["report"] == "pages")
        (summary,) = [row for row in rows if row["report"] == "summary"]
        assert int(summary["pageviews"]) == total < 2 * VIEWS
