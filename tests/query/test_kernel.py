"""The compiled loops against plain Python."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from support.query.oracle import quantile

from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import (
    FIRST_OF_VISIT,
    CodeTable,
    GoalsInVisits,
    Groups,
    OwnEvents,
    PartViews,
    RowMask,
    ViewsInVisits,
    VisitsToSum,
    same_number,
)
from medamad.query.embedded.quantiles import windows_around
from medamad.query.sums import Quartiles
from medamad.storage.segments.format import BOUNCED, PAGE_VISITOR, TIMED, VISITOR

DTYPES = (np.uint8, np.uint16, np.uint32, np.uint64)
FLAGS = [flags for flags in range(16) if not flags & BOUNCED or flags & TIMED]
NO_ROWS = np.zeros(0, np.uint32)
EDGES = [0, 1, 63, 64, 65, 4095, 4096, 4097, 9000]


@given(
    st.integers(0, 1 << 32), st.sampled_from(EDGES), st.lists(st.sampled_from(DTYPES), max_size=3)
)
def test_rows_match_by_the_codes_of_columns(
    seed: int, size: int, dtypes: list[type[np.unsignedinteger]]
) -> None:
    rng = np.random.default_rng(seed)
    columns, tables = [], []
    for dtype in [np.uint8, *dtypes]:
        codes = int(rng.choice([1, 3, 200, 70_000]))
        tables.append(CodeTable(rng.random(codes) < rng.choice([0, 0.02, 0.5, 1])))
        greatest = min(codes + 3, np.iinfo(dtype).max)
        columns.append(rng.integers(0, greatest, size, dtype, endpoint=True))

    def matches(row: int) -> bool:
        codes = [int(column[row]) for column in columns]
        return all(
            code < len(table.mask) and table.mask[code]
            for code, table in zip(codes, tables, strict=True)
        )

    expected = [row for row in range(size) if matches(row)]
    found = LOOPS.match(columns, tables)
    assert found.rows.tolist() == expected
    assert LOOPS.rows(found).tolist() == expected


@st.composite
def views_of_parts(draw: st.DrawFn) -> tuple[list[PartViews], int]:
    """Draw parts with columns of any width, among them numbers beyond the size."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    has_durations = draw(st.booleans())
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.sampled_from(EDGES))
        begin = draw(st.integers(0, size))

        def column(greatest: int, size: int = size) -> np.ndarray:
            dtype = draw(st.sampled_from(DTYPES))
            return rng.integers(0, min(greatest, np.iinfo(dtype).max), size, dtype, endpoint=True)

        rows = np.flatnonzero(rng.random(size) < draw(st.sampled_from([0, 0.02, 0.5, 1])))
        parts.append(
            PartViews(
                begin,
                draw(st.integers(begin, size)),
                RowMask.of_rows(size, rows) if draw(st.booleans()) else None,
                column(draw(st.sampled_from([0, 6, 300]))),
                np.array(FLAGS, np.uint8)[rng.integers(0, len(FLAGS), size)],
                column(86_400_000) if has_durations else None,
            )
        )
    return parts, draw(st.sampled_from([1, 5, 400]))


def naive_rows(views: PartViews) -> list[int]:
    rows = range(views.begin, views.end)
    return [row for row in rows if views.mask is None or views.mask.of(np.array([row])).all()]


def naive_sums(parts: list[PartViews], size: int) -> list[list[int]]:
    counts: list[Counter[int]] = [Counter() for _ in range(6)]
    for views in parts:
        for row in naive_rows(views):
            number, flags = int(views.numbers[row]), int(views.flags[row])
            counts[0][number] += 1
            for place, wanted in enumerate(
                (VISITOR, PAGE_VISITOR, VISITOR | TIMED, VISITOR | BOUNCED), 1
            ):
                counts[place][number] += flags & int(wanted) == wanted
            counts[5][number] += 0 if views.duration_ms is None else int(views.duration_ms[row])
    return [[row[number] for number in range(size)] for row in counts]


@given(views_of_parts())
def test_views_are_added_up(drawn: tuple[list[PartViews], int]) -> None:
    parts, size = drawn
    assert LOOPS.tally([parts], size).tolist() == naive_sums(parts, size)


DURATIONS = [0, 0, 1, 255, 256, 257, 5000, 5000, 86_400_000, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


def naive_quartiles(parts: list[PartViews], groups: Groups) -> list[tuple[int, list[int]]]:
    durations: list[list[int]] = [[] for _ in range(groups.count + 1)]
    for views in parts:
        assert views.duration_ms is not None
        for row in naive_rows(views):
            group = groups.of[min(int(views.numbers[row]), len(groups.of) - 1)]
            if views.duration_ms[row]:
                durations[group].append(int(views.duration_ms[row]))
    return [
        (len(each), [quantile(each, Fraction(q, 4)) for q in (1, 2, 3)])
        for each in durations[: groups.count]
    ]


def quartiles_of(found: Quartiles) -> list[tuple[int, list[int]]]:
    columns = [found.quartile(number).tolist() for number in (1, 2, 3)]
    return [
        (count, list(of_group))
        for count, *of_group in zip(found.counts.tolist(), *columns, strict=True)
    ]


@given(views_of_parts(), st.integers(0, 1 << 32), st.sampled_from([1, 5, 400]))
def test_quartiles_of_groups(
    drawn: tuple[list[PartViews], int], seed: int, group_count: int
) -> None:
    parts, size = drawn
    rng = np.random.default_rng(seed)
    for place, views in enumerate(parts):
        usual = rng.lognormal(9, 2, len(views.flags)).astype(np.uint32)
        is_rare = rng.random(len(usual)) < 0.3
        duration_ms = np.where(is_rare, rng.choice(DURATIONS, len(usual)), usual)
        parts[place] = evolve(views, duration_ms=duration_ms.astype(np.uint32))
    groups = Groups(rng.integers(0, group_count + 1, size + 1).astype(np.uint32), group_count)
    expected = naive_quartiles(parts, groups)
    assert quartiles_of(LOOPS.quartiles(lambda: [parts], groups)) == expected
    gathered = [LOOPS.gather(parts)]
    assert quartiles_of(LOOPS.quartiles(gathered.copy, groups)) == expected
    some, others = [parts[:1]], [parts[1:]]
    of_all = LOOPS.quartiles(lambda: [parts], groups)
    of_some = LOOPS.quartiles(lambda: some, groups)
    windows_of_all = windows_around(of_all)
    for windows in (windows_of_all, windows_around(of_some)):
        is_found = set()
        near = [LOOPS.find_near(each, groups, windows) for each in (some, others)]
        found = LOOPS.near_quartiles(near[0], near[1])
        is_found.add(found is not None)
        if found is not None:
            assert quartiles_of(found) == expected
            order = rng.permutation(group_count)
            taken = LOOPS.near_quartiles(*(each.take(order) for each in near))
            assert taken is not None
            assert quartiles_of(taken) == [expected[group] for group in order]
        assert len(is_found) == 1
        if windows is windows_of_all:
            assert is_found == {True}


def test_quartiles_of_very_many_groups() -> None:
    size = (1 << 17) + 2
    numbers = np.arange(size, dtype=np.uint32)
    views = PartViews(0, size, None, numbers, duration_ms=numbers + 1)
    # One of them is of no group.
    groups = Groups(numbers[::-1].copy(), size - 1)
    found = LOOPS.quartiles(lambda: [[views], [views]], groups)
    assert found.counts.tolist() == [2] * (size - 1)
    assert found.quartile(2).tolist() == list(range(size, 1, -1))


def test_quartiles_that_are_in_no_window_are_not_found() -> None:
    def durations(*values_ms: int) -> list[list[PartViews]]:
        numbers = np.zeros(len(values_ms), np.uint8)
        return [[PartViews(0, len(numbers), None, numbers, duration_ms=np.array(values_ms))]]

    groups = Groups(np.array([0, 1], np.uint32), 1)
    hundred = durations(*range(10_000, 10_100))
    windows = windows_around(LOOPS.quartiles(lambda: hundred, groups))
    some = LOOPS.find_near(hundred, groups, windows)
    assert 0 < len(some.duration_ms) <= 3 * 100
    for added, is_found in [((1,), True), ((1,) * 40, False), ((90_000,) * 40, False)]:
        others = LOOPS.find_near(durations(*added), groups, windows)
        assert (LOOPS.near_quartiles(some, others) is not None) == is_found


@given(st.integers(0, 1 << 32), st.sampled_from(EDGES), st.tuples(*[st.sampled_from(DTYPES)] * 2))
def test_views_are_marked_by_their_events(
    seed: int, size: int, dtypes: tuple[type[np.unsignedinteger], type[np.unsignedinteger]]
) -> None:
    rng = np.random.default_rng(seed)
    properties = rng.integers(0, 9, size).astype(dtypes[0])
    rows = rng.integers(0, 50, size).astype(dtypes[1])
    table = CodeTable(rng.random(7) < 0.4)
    marked = {
        int(row)
        for row, code in zip(rows, properties, strict=True)
        if code < len(table.mask) and table.mask[code]
    }
    mask = RowMask.of_none(50)
    LOOPS.mark_views(properties, rows, table, mask)
    assert set(mask.rows.tolist()) == marked


@given(st.integers(0, 1 << 32), st.sampled_from(EDGES), st.tuples(*[st.sampled_from(DTYPES)] * 2))
def test_events_are_counted_by_their_properties_and_views(
    seed: int, size: int, dtypes: tuple[type[np.unsignedinteger], type[np.unsignedinteger]]
) -> None:
    rng = np.random.default_rng(seed)
    properties = rng.integers(0, 9, size).astype(dtypes[0])
    event = np.cumsum(rng.random(size) < 0.6)
    rows = rng.integers(0, 55, size + 1).astype(dtypes[1])[event]
    begins = np.flatnonzero(np.diff(event, prepend=-1))
    matching = rng.random(50) < 0.4
    table = CodeTable(rng.random(8) < 0.6)
    found = [
        (number, min(code, 6))
        for number, code, row in zip(
            event.tolist(), properties.tolist(), rows.tolist(), strict=True
        )
        if row < 50 and matching[row] and code < 8 and table.mask[code]
    ]
    expected = Counter(code for _, code in found)
    events = OwnEvents(
        properties,
        rows,
        RowMask.of_none(size).with_rows(begins),
        RowMask.of_none(50).with_rows(np.flatnonzero(matching)),
    )
    for times in range(3):
        counts, total = LOOPS.count_events([events] * times, table, 6)
        assert total == times * len({number for number, _ in found})
        assert counts.tolist() == [times * expected[code] for code in range(7)]


def test_a_part_can_have_few_of_many_properties() -> None:
    properties, rows = np.array([3, 255], np.uint8), np.array([0, 1], np.uint8)
    every = RowMask.of_none(2).with_rows(np.arange(2))
    events = OwnEvents(properties, rows, every, every)
    counts, total = LOOPS.count_events([events], CodeTable(np.ones(440, np.bool_)), 440)
    assert np.flatnonzero(counts).tolist() == [3, 255]
    assert total == 2


def test_halves_of_much_work_are_put_together() -> None:
    rng = np.random.default_rng(1)
    parts = [
        PartViews(
            0,
            size,
            RowMask.of_rows(size, np.flatnonzero(rng.random(size) < 0.4)),
            rng.integers(0, 300, size, np.uint16),
            np.array(FLAGS, np.uint8)[rng.integers(0, len(FLAGS), size)],
            rng.lognormal(9, 2, size).astype(np.uint32),
        )
        for size in [65_536] * 9 + [1, 7]
    ]
    table = CodeTable(np.array([True, False, True]))
    groups = Groups(np.arange(301, dtype=np.uint32), 300)
    # These are too small to be divided.
    each_part = [[part] for part in parts]
    expected = quartiles_of(LOOPS.quartiles(lambda: each_part, groups))
    assert quartiles_of(LOOPS.quartiles(lambda: [parts], groups)) == expected
    windows = windows_around(LOOPS.quartiles(lambda: [parts], groups))
    near = LOOPS.find_near([parts], groups, windows)
    found = LOOPS.near_quartiles(near, LOOPS.find_near([], groups, windows))
    assert found is not None
    assert quartiles_of(found) == expected
    events = [
        OwnEvents(
            rng.integers(0, 9, size, np.uint8),
            np.arange(size, dtype=np.uint32),
            RowMask.of_none(size).with_rows(np.arange(size)),
            RowMask.of_none(size).with_rows(np.flatnonzero(rng.random(size) < 0.5)),
        )
        for size in map(len, parts)
    ]
    counts, total = LOOPS.count_events(events, table, 9)
    assert counts[0] + counts[2] == total
    counts_of_parts = [LOOPS.count_events([each], table, 9)[0] for each in events]
    assert counts.tolist() == sum(counts_of_parts).tolist()
    sums = LOOPS.tally(each_part, 300).tolist()
    assert LOOPS.tally([parts], 300).tolist() == sums
    assert LOOPS.tally([LOOPS.gather(parts)], 300).tolist() == sums


def test_one_number_stands_for_all_views() -> None:
    flags = np.array([VISITOR, VISITOR, PAGE_VISITOR], np.uint8)
    mask = RowMask.of_rows(3, np.array([0, 2]))
    views = PartViews(0, 3, mask, same_number(2), flags, np.array([5, 6, 7], np.uint16))
    sums = [[0, 0, 2], [0, 0, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 12]]
    assert LOOPS.tally([[views]], 3).tolist() == sums
    assert LOOPS.tally([LOOPS.gather([views])], 3).tolist() == sums


@given(
    st.integers(0, 1 << 32),
    st.sampled_from(EDGES),
    st.sampled_from(DTYPES),
    st.sampled_from([1, 5, 300]),
    st.sampled_from([0.001, 0.3, 1]),
)
def test_visits_begin_where_their_first_views_are(
    seed: int, size: int, dtype: type[np.unsignedinteger], greatest: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    offsets = rng.integers(0, min(greatest, np.iinfo(dtype).max), size, dtype, endpoint=True)
    rows = rng.permutation(np.flatnonzero(rng.random(size) < share))
    begin, end = sorted(rng.integers(0, size, 2, endpoint=True).tolist())

    def first_row(row: int) -> int:
        first = row + 1 - int(offsets[row]) if row < size else -1
        return first if 0 <= first <= row else -1

    beyond = np.concatenate([rows, [size]])
    expected = [first_row(row) for row in beyond.tolist()]
    assert LOOPS.first_rows(offsets, beyond).tolist() == expected
    first_views = np.flatnonzero(offsets == 1).tolist()
    mask = RowMask.of_rows(size, rows)
    for matching in (mask, None):
        views = PartViews(begin, end, matching)
        begun = sorted({first_row(row) for row in naive_rows(views)} & {*first_views})
        chosen = LOOPS.begins_with(offsets, views)
        assert chosen.rows.tolist() == begun
        index, begins = LOOPS.visits_at(offsets, chosen)
        assert begins.tolist() == begun
        assert index.tolist() == [first_views.index(row) for row in begun]


@given(st.integers(0, 1 << 32), st.sampled_from(EDGES), st.sampled_from([1, 5, 300]))
def test_visits_and_their_views_are_added_up_by_code(seed: int, size: int, greatest: int) -> None:
    rng = np.random.default_rng(seed)
    dtype, of_codes, of_spans, of_added = rng.choice(np.array(DTYPES), 4)
    offsets = rng.integers(0, min(greatest, np.iinfo(dtype).max), size, dtype, endpoint=True)
    codes = rng.integers(0, 7, size, of_codes)
    begins = np.flatnonzero(offsets == 1)
    is_chosen = rng.random(len(begins)) < 0.6
    chosen = RowMask.of_rows(size, begins[is_chosen])
    spans = np.minimum(rng.integers(0, 3, len(begins)), size - 1 - begins).astype(of_spans)
    added = [rng.integers(0, 200, len(begins), of_added), rng.random(len(begins)) < 0.5]
    repeats = np.flatnonzero(rng.random(size) < 0.2).astype(np.uint16)
    firsts, lasts = np.zeros((5, 3), np.int64), np.zeros((5, 1), np.int64)
    for place in np.flatnonzero(is_chosen).tolist():
        row = int(begins[place])
        if codes[row] < 5:
            firsts[codes[row]] += [1, int(added[0][place]), int(added[1][place])]
        if codes[row + int(spans[place])] < 5:
            lasts[codes[row + int(spans[place])]] += 1
    seen = [0] * 5
    for row, offset in enumerate(offsets.tolist()):
        is_theirs = 0 < offset <= row + 1 and row + 1 - offset in begins[is_chosen]
        if is_theirs and row not in repeats and codes[row] < 5:
            seen[codes[row]] += 1
    first = VisitsToSum(offsets, chosen, codes, added=added)
    last = VisitsToSum(offsets, chosen, codes, spans)
    together = VisitsToSum(offsets, chosen, same_number(3))
    assert (LOOPS.sum_visits([first, first], 2, 5) == 2 * firsts).all()
    assert (LOOPS.sum_visits([last, last], 0, 5) == 2 * lasts).all()
    mask = LOOPS.mask_visits(offsets, chosen).without_rows(repeats)
    views = VisitsToSum(offsets, mask, codes)
    assert LOOPS.sum_visits([views, views], 0, 5).tolist() == [[2 * each] for each in seen]
    assert LOOPS.sum_visits([together], 0, 4).tolist() == [[0]] * 3 + [[is_chosen.sum()]]


@given(
    st.integers(0, 1 << 32),
    st.sampled_from(EDGES),
    st.sampled_from([1, 5, 300]),
    st.sampled_from([2, 1000]),
    st.booleans(),
)
def test_goals_are_counted_in_any_order_or_one_after_the_other(
    seed: int, size: int, greatest: int, latest: int, in_order: bool
) -> None:
    rng = np.random.default_rng(seed)
    dtype = rng.choice(np.array(DTYPES))
    offsets = rng.integers(0, min(greatest, np.iinfo(dtype).max), size, dtype, endpoint=True)
    begins = np.flatnonzero(offsets == 1)
    chosen = RowMask.of_rows(size, begins[rng.random(len(begins)) < 0.7])
    # A view may reach a goal more than once.
    rows = [rng.integers(0, size, size // 2).astype(np.uint32) if size else NO_ROWS] * 2
    rows.append(np.flatnonzero(rng.random(size) < 0.3).astype(np.uint32))
    moments = [rng.integers(0, latest, len(each)) for each in rows]
    conversions, visits = [0] * 3, [0] * 3
    earliest: dict[int, int] = dict.fromkeys(chosen.rows.tolist(), 0)
    for goal, (of_goal, times) in enumerate(zip(rows, moments, strict=True)):
        reached: dict[int, list[int]] = {}
        for row, moment in zip(of_goal.tolist(), times.tolist(), strict=True):
            begin = row + 1 - int(offsets[row])
            if offsets[row] and begin >= 0 and chosen.of(np.array([begin])).all():
                conversions[goal] += 1
                reached.setdefault(begin, []).append(moment)
        if in_order:
            later = {
                begin: [moment for moment in found if moment >= earliest[begin]]
                for begin, found in reached.items()
                if begin in earliest
            }
            earliest = {begin: min(found) for begin, found in later.items() if found}
            visits[goal] += len(earliest)
        else:
            visits[goal] += len(reached)
    part = GoalsInVisits(offsets, chosen, rows, moments if in_order else None)
    found = LOOPS.count_goals([part, part], 3)
    assert [each.tolist() for each in found] == [
        [2 * count for count in counts] for counts in (conversions, visits)
    ]


@given(st.integers(0, 1 << 32), st.sampled_from(EDGES), st.sampled_from([*DTYPES, np.int64]))
def test_rows_are_added_up_by_code(seed: int, size: int, dtype: type[np.integer]) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 100, size, dtype)
    columns = [rng.random(size) < 0.5, rng.integers(0, 1 << 40, size, np.int64)]
    expected = np.zeros((30, 3), np.int64)
    for row, code in enumerate(codes.tolist()):
        if code < 30:
            expected[code] += [1, int(columns[0][row]), int(columns[1][row])]
    rows = VisitsToSum(None, None, codes, added=columns)
    assert LOOPS.sum_visits([rows], 2, 30).tolist() == expected.tolist()


def test_columns_may_be_at_any_address() -> None:
    codes = np.frombuffer(b"\0" + np.arange(5000, dtype="<u4").tobytes(), "<u4", 5000, 1)
    table = CodeTable(np.arange(5000) % 7 == 3)
    rows = LOOPS.match([codes], [table])
    assert rows.rows.tolist() == list(range(3, 5000, 7))


def test_flags_that_no_view_can_have_stay_in_bounds() -> None:
    flags = np.arange(256, dtype=np.uint8)
    views = PartViews(0, 256, None, np.zeros(256, np.uint8), flags)
    assert LOOPS.tally([[views]], 1)[0, 0] <= 256


def test_a_column_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="must follow each other"):
        LOOPS.match([np.zeros(6, np.uint8)[::2]], [FIRST_OF_VISIT])


@given(st.integers(0, 1 << 32), st.sampled_from(EDGES), st.sampled_from([1, 5, 300]), st.booleans())
def test_the_views_of_some_visits_are_marked_and_those_beside_others_counted(
    seed: int, size: int, greatest: int, has_left_out: bool
) -> None:
    rng = np.random.default_rng(seed)
    dtype, of_codes = rng.choice(np.array(DTYPES), 2)
    offsets = rng.integers(0, min(greatest, np.iinfo(dtype).max), size, dtype, endpoint=True)
    codes = rng.integers(0, 7, size, of_codes)
    begins = np.flatnonzero(offsets == 1)
    left_out = begins[rng.random(len(begins)) < 0.3 * has_left_out]
    mask = RowMask.of_rows(size, np.flatnonzero(rng.random(size) < 0.3))
    views = PartViews(size // 9, size, mask)
    visits: dict[int, list[int]] = {row: [] for row in set(begins.tolist()) - {*left_out.tolist()}}
    for row, offset in enumerate(offsets.tolist()):
        if offset and row + 1 - offset in visits:
            visits[row + 1 - offset].append(row)
    expected = {step: [0] * 6 for step in (1, -1)}
    asked = set(naive_rows(views))
    for rows in visits.values():
        for step, counts in expected.items():
            ordered = rows[::step]
            for row, after in zip(ordered, [*ordered[1:], None], strict=True):
                if row in asked:
                    counts[5 if after is None else min(int(codes[after]), 5)] += 1
    last_rows = {row + 1 - offset: row for row, offset in enumerate(offsets.tolist())}
    spans = np.array([last_rows[row] - row for row in begins.tolist()], dtype)
    others = RowMask.of_rows(size, np.setdiff1d(begins, left_out))
    part = ViewsInVisits(views, offsets, spans, codes, others)
    of_left_out = sorted(
        row
        for row, offset in enumerate(offsets.tolist())
        if 0 < offset <= row + 1 and row + 1 - offset in left_out
    )
    mask = LOOPS.mask_visits(offsets, RowMask.of_rows(size, left_out))
    assert mask.rows.tolist() == of_left_out
    for step in (1, -1):
        found = LOOPS.count_beside([part, part], step, 5)
        assert found.tolist() == [2 * count for count in expected[step]]
