"""Importing again after hits were added, deleted or rolled up counts nothing twice."""

from collections.abc import Callable
from pathlib import Path

import pytest_twisted
from support.storage.contents import agrees, rows, settled
from support.storage.hits import DAY_MS, NOW_MS, event, unload, views
from support.transfer.filled_store import fill
from support.transfer.round_trips import answers, exported, files_of, take_in

from medamad.query.period import Period
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store
from medamad.transfer.export import ExportRequest
from medamad.transfer.import_context import ImportTarget, ReadContext
from medamad.transfer.import_survey import ImportFile, number_rows, survey_rows
from medamad.transfer.rows import ViewRow

OpenStore = Callable[..., Store]
KEEP = Retention(others=Keep(3, "sums"))


def make_new(file: Path) -> None:
    """Replace a file by a different one with the same content."""
    with file.open("ab") as opened:
        opened.write(b"\n")


@pytest_twisted.ensureDeferred
async def test_hits_in_rollups_are_left_out(open_store: OpenStore, tmp_path: Path) -> None:
    """Whether they were counted there or imported."""
    origin = open_store(name="origin", retention=KEEP)
    website = await origin.add_website("example.com", 1)
    await origin.append([*views(1, 30), event("b3")])
    await origin.append([*views(31, 40, NOW_MS + 9 * DAY_MS)])
    files = files_of(origin, website, tmp_path / "out", "csv")
    there = open_store(name="there", retention=KEEP)
    twin = await there.add_website("example.org", 1)
    await take_in(there, twin, files)
    for store, site in ((origin, website), (there, twin)):
        before = answers(store, site)
        await settled(store, NOW_MS + 9 * DAY_MS)
        assert len(store.read(site, rows)[0]) == 10
        summed = answers(store, site)
        assert summed != before
        make_new(files[0])
        taken = await take_in(store, site, files)
        assert (taken.ended.views, taken.ended.events) == (0, 0)
        assert (taken.gathering.left_out, taken.gathering.covered) == (41, 31)
        assert answers(store, site) == summed
        # What had not come yet of a day that was added up does come.
        late = tmp_path / f"late-{site.hostname}.csv"
        late.write_text(
            "store,view,time,path\n"
            f"{store.imports.origins(website).store},900,2026-09-21T14:13:20Z,/late\n"
        )
        taken = await take_in(store, site, [late])
        assert (taken.ended.views, taken.gathering.covered) == (1, 0)
        make_new(files[0])
        taken = await take_in(store, site, files, overlapping=True)
        assert (taken.ended.views, taken.ended.events) == (30, 1)
        await store.close()


@pytest_twisted.ensureDeferred
async def test_views_may_be_imported_after_their_events_and_again(
    open_store: OpenStore, tmp_path: Path
) -> None:
    origin = open_store(name="origin")
    website = await fill(origin)
    views_file, events_file = files_of(origin, website, tmp_path / "out", "csv")
    there = open_store(name="there")
    await there.add_website("before.example", 1)
    twin = await there.add_website("example.org", 1)
    await take_in(there, twin, [events_file])
    await there.append(views(500, 502))
    taken = await take_in(there, twin, [views_file])
    assert there.read(twin, rows) == origin.read(website, rows)
    await there.imports.undo(twin, taken.ended.number)
    await take_in(there, twin, [views_file])
    assert there.read(twin, rows) == origin.read(website, rows)
    # Of an export that has grown, the numbers that are new follow those that are known.
    await origin.append([*views(300, 320, NOW_MS + 2 * DAY_MS), event("b301", NOW_MS + 2 * DAY_MS)])
    for file in reversed(files_of(origin, website, tmp_path / "more", "csv")):
        await take_in(there, twin, [file])
    there.read(twin, agrees)
    assert there.read(twin, rows) == origin.read(website, rows)
    assert answers(there, twin) == answers(origin, website)
    await origin.close()
    await there.close()


@pytest_twisted.ensureDeferred
async def test_exports_in_one_import_may_overlap(open_store: OpenStore, tmp_path: Path) -> None:
    """Also if a time on page was not known yet in the first of them."""
    origin = open_store(name="origin")
    website = await origin.add_website("example.com", 1)
    await origin.append([*views(1, 30), event("b3"), event("b4")])
    files = []
    for number, period in enumerate((Period(), Period(NOW_MS, NOW_MS + DAY_MS))):
        for what in ("views", "events"):
            file = tmp_path / f"{what}-{number}.csv"
            file.write_bytes(exported(origin, website, ExportRequest(what=what, period=period)))
            files.append(file)
        await origin.append([unload(7, 900)])
    there = open_store(name="there")
    twin = await there.add_website("example.org", 1)
    for order in (sorted(files), files[::-1]):
        taken = await take_in(there, twin, order)
        assert (taken.ended.views, taken.ended.events) == (30, 2)
        assert (taken.gathering.left_out, taken.survey.rejected_rows) == (32, 0)
        assert there.read(twin, rows) == origin.read(website, rows)
        there.read(twin, agrees)
        await there.imports.undo(twin, taken.ended.number)
    await origin.close()
    await there.close()


LOG = (
    '192.0.2.{} - - [01/Feb/2026:10:00:{:02} +0000] "GET /{} HTTP/1.1" 200 9 "-" '
    '"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"\n'
)


@pytest_twisted.ensureDeferred
async def test_a_log_may_break_off_within_a_second(open_store: OpenStore, tmp_path: Path) -> None:
    """Of its last second, as many views count as existing as were imported."""
    lines = [LOG.format(n, n // 10, n) for n in range(1, 60)]
    store = open_store()
    website = await store.add_website("example.com", 1)
    came = 0
    for part in (24, 27, 27, 30, 31, 59):
        log = tmp_path / f"access.log.{came}.{part}"
        log.write_text("".join(lines[:part]) + " \n" * came)
        taken = await take_in(store, website, [log])
        assert (taken.gathering.covered, taken.ended.views) == (came, part - came)
        came = part
    found, _ = store.read(website, rows)
    assert sorted(row["path"] for row in found) == sorted(f"/{n}" for n in range(1, 60))
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_log_may_continue_on_a_day_that_became_a_rollup(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """The times of an import are kept even if only rollups are left of it."""
    lines = [LOG.format(n, n, n).replace("10:00", f"{n:02}:00") for n in range(24)]
    store = open_store(retention=KEEP)
    website = await store.add_website("example.com", 1)
    for begin, end, counted in ((8, 15, 0), (15, 24, 0), (0, 16, 8), (0, 24, 24)):
        log = tmp_path / f"access.log.{begin}.{end}"
        log.write_text("".join(lines[begin:end]))
        taken = await take_in(store, website, [log])
        came = end - begin - counted
        assert (taken.gathering.covered, taken.ended.views) == (counted, came)
        await settled(store, NOW_MS)
        assert store.read(website, rows)[0] == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_pieces_of_a_log_may_be_imported_in_any_order(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """Each view of the second in which it was split is imported once."""
    seen = [(1, "a", "-"), (2, "b", "-"), (3, "c", "https://ref.example/"), (4, "b", "-")]
    lines = [
        LOG.format(n, 0, path).replace('"-"', f'"{referrer}"', 1) for n, path, referrer in seen
    ]
    older, newer = tmp_path / "access.log.1", tmp_path / "access.log"
    store = open_store()
    website = await store.add_website("example.com", 1)
    for before, after, files, came in (
        (lines[:2], (), [older], (2, 0)),
        (lines[:2], lines[2:3], [newer, older], (1, 2)),
        ((), lines[::-1], [newer], (1, 3)),
    ):
        older.write_text("".join(before))
        newer.write_text("".join(after))
        taken = await take_in(store, website, files)
        assert (taken.ended.views, taken.gathering.covered) == came
    found, _ = store.read(website, rows)
    assert sorted((row["path"], row["referrer"]) for row in found) == [
        ("/a", ""),
        ("/b", ""),
        ("/b", ""),
        ("/c", "ref.example"),
    ]
    await store.close()


def test_a_log_may_grow_while_it_is_imported(tmp_path: Path) -> None:
    """It is read up to its size at the start of the import."""
    lines = [LOG.format(n, n, n) for n in range(1, 20)]
    older, newer = tmp_path / "older", tmp_path / "newer"
    older.write_text("".join(lines[:5]))
    newer.write_text("".join(lines[5:10]))
    files = [ImportFile.of(path, None, ImportTarget("example.com")) for path in (newer, older)]
    *_, found = survey_rows(files)
    with newer.open("a") as file:
        file.write("".join(lines[10:]))
    again = [
        row for _, row in number_rows(files, ReadContext(found.index)) if isinstance(row, ViewRow)
    ]
    assert [row.path for row in again] == [f"/{n}" for n in (*range(6, 11), *range(1, 6))]
    assert all(row.first_today for row in again)
