"""The files of one import may overlap: a hit in several of them counts once."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count, zip_longest
from pathlib import Path

import duckdb
import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st
from support.storage.contents import agrees, rows
from support.transfer.foreign_files import HOST, PROGRAMS, medama_file, read, seen
from support.transfer.round_trips import answers, take_in

from medamad.storage.store import Store
from medamad.transfer.import_context import HitIndex, Verdict
from medamad.transfer.import_survey import ImportFile, survey_rows
from medamad.transfer.rows import EventRow, ViewRow

OpenStore = Callable[..., Store]
LOG = (
    '192.0.2.{} - - [01/Feb/2026:10:00:{:02} +0000] "GET /{} HTTP/1.1" 200 9 "-" '
    '"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"\n'
)


def decided(
    files: Iterable[Iterable[ViewRow]], *, is_numbered: bool = False
) -> tuple[HitIndex, list[tuple[ViewRow, int]]]:
    """Return the finished index of some files, and each row with what becomes of it."""
    index = HitIndex()
    rows = [(file, row) for file, of_file in enumerate(files) for row in of_file]
    for place, (file, row) in enumerate(rows, 1):
        index.record(place, file, row, is_numbered=is_numbered)
    index.finish()
    return index, [(row, index.verdict(place)) for place, (_, row) in enumerate(rows, 1)]


@given(files=st.lists(st.lists(st.integers(0, 3), max_size=8), max_size=5))
def test_as_many_hits_count_as_the_file_with_most_has(files: list[list[int]]) -> None:
    numbers = count(1)
    index, found = decided(
        [ViewRow(time_ms=time_ms, path="/", number=next(numbers)) for time_ms in times]
        for times in files
    )
    wanted = []
    most: Counter[int] = Counter()
    for times in files:
        of_file: Counter[int] = Counter()
        for time_ms in times:
            of_file[time_ms] += 1
            wanted.append(of_file[time_ms] <= most[time_ms])
        most |= of_file
    assert [verdict == Verdict.REPEATED for _, verdict in found] == wanted
    assert (len(index.repeated), index.left_out, index.conflicts) == (sum(wanted), 0, 0)
    times_ms = {row.number: row.time_ms for row, _ in found}
    for (row, _), again in zip(found, wanted, strict=True):
        counting = index.original_of(row.number)
        assert (counting < row.number) == again
        assert not wanted[counting - 1]
        assert times_ms[counting] == row.time_ms


@given(
    files=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=8), max_size=4
    )
)
def test_the_longest_times_on_page_count(files: list[list[tuple[int, int]]]) -> None:
    """In any order of the files: the time on page becomes known after the view."""

    def longest(time_ms: int) -> list[int]:
        each = (
            sorted((ms for time, ms in file if time == time_ms), reverse=True) for file in files
        )
        return [max(durations) for durations in zip_longest(*each, fillvalue=0)]

    numbers = count(1)
    index, found = decided(
        [
            ViewRow(time_ms=time_ms, path="/", duration_ms=ms, number=next(numbers))
            for time_ms, ms in file
        ]
        for file in files
    )
    counting = [row for row, verdict in found if verdict == Verdict.COUNTS]
    for time_ms in range(3):
        durations_ms = [row.duration_ms for row in counting if row.time_ms == time_ms]
        assert sorted(durations_ms, reverse=True) == longest(time_ms)
    assert {index.original_of(row.number) for row, _ in found} == {row.number for row in counting}


@given(
    files=st.lists(
        st.lists(
            st.tuples(st.integers(1, 4), st.sampled_from("aab"), st.integers(0, 3)), max_size=8
        ),
        max_size=4,
    )
)
def test_a_number_counts_once(files: list[list[tuple[int, str, int]]]) -> None:
    """With the longest time of the rows that have the values of the first."""
    index, found = decided(
        (
            [ViewRow(time_ms=1, path=path, duration_ms=ms, number=n) for n, path, ms in file]
            for file in files
        ),
        is_numbered=True,
    )
    first = {row.number: row.path for row, _ in reversed(found)}
    alike = [row for row, _ in found if row.path == first[row.number]]
    assert {row.number: row.duration_ms for row, verdict in found if verdict == Verdict.COUNTS} == {
        n: max(row.duration_ms for row in alike if row.number == n) for n in first
    }
    assert all((verdict == Verdict.CONFLICTS) == (row not in alike) for row, verdict in found)
    assert index.conflicts == len(found) - len(alike)
    assert (len(index.repeated), index.left_out) == (0, len(alike) - len(first))


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("program", PROGRAMS)
async def test_growing_exports_may_be_imported_together(
    open_store: OpenStore, tmp_path: Path, program: str
) -> None:
    """In either order; events in one file belong to views in the other."""
    things = seen(120)
    parts = (things[:50], things)
    older, newer = (
        PROGRAMS[program](part, tmp_path / f"{place}-{program}") for place, part in enumerate(parts)
    )
    store = open_store()
    website = await store.add_website(HOST, 1)
    alone = await take_in(store, website, [newer])
    wanted = answers(store, website)
    for files in ((older, newer), (newer, older)):
        await store.imports.undo(website, alone.ended.number)
        alone = await take_in(store, website, files)
        assert alone.survey.skipped["repeated"] == 50
        assert answers(store, website) == wanted
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_event_finds_its_view_in_the_file_that_counts(
    open_store: OpenStore, tmp_path: Path
) -> None:
    things = seen(40)
    last = next(place for place, each in enumerate(things) if each.event is not None)
    older = medama_file(things[:last], tmp_path / "older.db")
    newer = medama_file(things[: last + 1], tmp_path / "newer.db")
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_in(store, website, [older, newer])
    found, events = store.read(website, rows)
    assert (len(found), len(events)) == (last, 1)
    store.read(website, agrees)
    await store.close()


def test_a_later_copy_of_medama_s_database_may_have_a_longer_time(tmp_path: Path) -> None:
    newer = medama_file(seen(40), tmp_path / "newer.db")
    older = tmp_path / "older.db"
    older.write_bytes(newer.read_bytes())
    with duckdb.connect(str(older)) as database:
        database.execute("UPDATE views SET duration_ms = 0")
    alone = read(newer)
    assert all(row.duration_ms for row in alone if isinstance(row, ViewRow))
    for files in ((older, newer), (newer, older)):
        found = read(*files)
        assert len(found) == len(alone)
        numbers = {row.number for row in found if isinstance(row, ViewRow)}
        assert {row.view for row in found if isinstance(row, EventRow)} <= numbers
        durations = [
            sorted(row.duration_ms for row in rows if isinstance(row, ViewRow))
            for rows in (found, alone)
        ]
        assert durations[0] == durations[1]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("first_today", ("false", "true")),
        ("first_of_page", ("false", "true")),
        ("width_class", ("phone", "wide")),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_time_on_page_stays_with_its_view(
    tmp_path: Path, column: str, values: tuple[str, str], order: int
) -> None:
    """In any order of the files: a time is never attributed to a different view."""
    older, newer = tmp_path / "older.csv", tmp_path / "newer.csv"
    two = values[::order]
    for file, last_ms in ((older, 0), (newer, 9_000)):
        lines = [f"2026-01-01T10:00:00Z,/a,{n},{last_ms * (n == two[1])}" for n in two]
        file.write_text("\n".join((f"time,path,{column},duration_ms", *lines, "")))

    def imported(*files: Path) -> list[tuple[int, int]]:
        rows = (row for row in read(*files) if isinstance(row, ViewRow))
        return sorted((getattr(row, column), row.duration_ms) for row in rows)

    assert imported(older, newer) == imported(newer, older) == imported(newer)


def test_a_log_given_twice_counts_once(tmp_path: Path) -> None:
    """Compressed or not. Lines that a log repeats count as often as it has them."""
    lines = [LOG.format(n % 3, 0, n % 2) for n in range(20)]
    log, packed, older = tmp_path / "log", tmp_path / "log.gz", tmp_path / "older"
    log.write_text("".join(lines))
    packed.write_bytes(gzip.compress(log.read_bytes()))
    older.write_text("".join(lines[:7]))
    alone = [(row.time_ms, row.path, row.first_today) for row in read(log)]
    for files in ((log, log), (log, packed), (older, log), (log, older, packed)):
        found = [(row.time_ms, row.path, row.first_today) for row in read(*files)]
        assert sorted(found) == sorted(alone)


def test_adjacent_logs_and_logs_of_several_servers_are_complete(tmp_path: Path) -> None:
    """Also within one second and on one page: only equal lines are duplicates."""
    lines = [LOG.format(n, n // 15, n % 2) for n in range(60)]
    for parts in ((lines[:20], lines[20:]), (lines[1::2], lines[::2])):
        files = []
        for place, part in enumerate(parts):
            files.append(tmp_path / f"{place}.log")
            files[-1].write_text("".join(part))
        assert len(read(*files)) == 60
        *_, found = survey_rows([ImportFile.of(file, None) for file in files])
        assert not found.skipped


def test_files_of_different_sources_may_overlap(tmp_path: Path) -> None:
    """Rows are identified by their numbers or, without any, by their content."""

    def written(name: str, head: str, *lines: str) -> Path:
        path = tmp_path / name
        path.write_text("\n".join((head, *lines, "")))
        return path

    lines = [f"2026-01-0{day}T10:00:00Z,/a" for day in (1, 1, 2, 3)]
    first = written("first.csv", "time,path", *lines[:3])
    second = written("second.csv", "time,path", *lines[1:])
    assert len(read(first, second)) == 4
    events = [f"2026-01-0{day}T10:00:00Z,buy,1" for day in (1, 1, 2)]
    first = written("first.csv", "time,name,value", *events)
    second = written("second.csv", "time,name,value", events[0], events[2])
    assert len(read(first, second)) == 3
    number_rows = [f"{line},{number}" for number, line in enumerate(lines * 2, 1)]
    first = written("first.csv", "time,path,view", *number_rows[:4])
    second = written("second.csv", "time,path,view", *number_rows[4:])
    assert len(read(first, second)) == 8


@pytest.mark.parametrize("order", [1, -1])
def test_a_number_that_a_row_without_one_got_is_rejected(tmp_path: Path, order: int) -> None:
    """Within one file as well: two views of the same number could not be told apart."""
    rows = ["2026-01-01T10:00:00Z,/a,0", "2026-01-02T10:00:00Z,/b,1", "2026-01-03T10:00:00Z,/c,9"]
    file, first, second = (tmp_path / name for name in ("all.csv", "first.csv", "second.csv"))
    for path, some in ((file, rows), (first, rows[:1]), (second, rows[1:])):
        path.write_text("\n".join(("time,path,view", *some[::order], "")))
    for files in ((file,), (first, second)[::order]):
        *_, found = survey_rows([ImportFile.of(each, None) for each in files])
        ((_, rejected),) = found.rejected
        assert rejected.field == "view"
        assert rejected.reason == "1 occurs more than once, with different values"
        paths = {row.path for row in read(*files) if isinstance(row, ViewRow)}
        assert paths == {"/a", "/c"}
