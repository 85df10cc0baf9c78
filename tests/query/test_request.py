import pytest
from support.query.hits import event, view
from support.query.snapshots import SOURCES, Cuts, query_from, snapshot_of

from medamad.query import filters
from medamad.query.embedded.selection import select
from medamad.query.filters import parse_filters
from medamad.query.request import NO_GAPS, Cancellation, Cancelled, Gap, Gaps, Query


@pytest.mark.parametrize(
    ("limit", "offset", "rows"),
    [(None, 0, slice(0, 5000)), (None, 7, slice(7, 5007)), (10, 20, slice(20, 30))],
)
def test_limit_and_offset_select_a_page_of_rows(
    limit: int | None, offset: int, rows: slice
) -> None:
    assert Query(limit=limit, offset=offset).row_slice == rows


@pytest.mark.parametrize(
    ("key", "by_path", "by_property"),
    [
        ("path", True, False),
        ("path[not_in]", True, False),
        ("prop_name", False, True),
        ("prop_value[neq]", False, True),
        ("referrer", False, False),
    ],
)
def test_whether_a_query_filters_by_path_or_property(
    key: str, by_path: bool, by_property: bool
) -> None:
    query = Query(filters=parse_filters([(key, "x")]))
    assert (query.has_path_filter, query.has_property_filter) == (by_path, by_property)


def test_a_cancelled_query_ends_at_its_next_check() -> None:
    cancellation = Cancellation()
    cancellation.check()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        cancellation.check()


@pytest.mark.parametrize("grouped", [0, 3])
def test_a_cancelled_scan_ends_at_the_next_part(grouped: int) -> None:
    views = [view(number, "p") for number in range(1, 5)]
    cancellation = Cancellation()
    snapshot = snapshot_of(views, [], Cuts((1, 2, 3), grouped=grouped))
    scanned = select(snapshot, Query(), SOURCES, cancellation).all_candidates()
    next(scanned)
    cancellation.cancel()
    with pytest.raises(Cancelled):
        next(scanned)


class CountedChecks(Cancellation):
    """Counts the checks, and cancels after some of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.times = 0

    def check(self) -> None:
        self.times += 1
        if self.times > self.most:
            raise Cancelled


@pytest.mark.parametrize("field", ["path", "prop_value"])
def test_cancelling_ends_the_matching_of_many_texts(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "_TEXTS_AT_ONCE", 1_000)
    views = [view(number, "p", path=f"/{number}") for number in range(2_500)]
    for number, one in enumerate(views, 1):
        one["id"] = number
    events = [event(0, number, a=f"/{number - 1}") for number in range(1, 2_501)]
    snapshot = snapshot_of(views, events)
    query = query_from([(f"{field}[contains]", "1"), (f"{field}[not_contains]", "x")])
    # Once for each thousand of the texts, and for each of the two filters on them.
    for most in (0, 1, 8):
        checks = CountedChecks(most)
        with pytest.raises(Cancelled):
            select(snapshot, query, SOURCES, checks)
        assert checks.times == most + 1
    selection = select(snapshot, query, SOURCES, CountedChecks(100))
    selected = [len(some.rows) for some in selection.all_candidates()]
    assert sum(selected) == sum("1" in str(number) for number in range(2_500))


def test_the_days_of_a_gap_are_sorted() -> None:
    gaps = Gaps({(Gap.INTERVAL, 3), (Gap.INTERVAL, 1), (Gap.BOUNCES, 2)})
    assert gaps.days(Gap.INTERVAL) == [1, 3]
    assert gaps.days(Gap.DURATIONS) == []


def test_an_excluded_day_has_no_other_gaps() -> None:
    gaps = Gaps({(Gap.FIGURES, 1), (Gap.INTERVAL, 1), (Gap.INTERVAL, 2)})
    assert gaps.days(Gap.FIGURES) == [1]
    assert gaps.days(Gap.INTERVAL) == [2]


def test_gaps_of_several_results_are_joined() -> None:
    joined = NO_GAPS | Gaps({(Gap.DURATIONS, 1)}) | Gaps({(Gap.FIGURES, 1)})
    assert bool(joined)
    assert not NO_GAPS
    assert joined.days(Gap.DURATIONS) == []
