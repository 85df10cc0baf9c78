from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from medamad.transfer.import_context import VisitorIndex

HOUR_MS = 3_600_000
VIEWS = st.lists(
    st.tuples(
        st.integers(0, 72).map(lambda hour: hour * HOUR_MS),
        st.sampled_from("abc"),
        st.sampled_from(("/", "/x")),
    ),
    max_size=40,
)


@given(views=VIEWS, zone=st.sampled_from((UTC, ZoneInfo("Asia/Kathmandu"))))
def test_first_views_are_decided_by_time(zone: tzinfo, views: list[tuple[int, str, str]]) -> None:
    index = VisitorIndex(zone)
    for number, view in enumerate(views, 1):
        index.record(number * 2, *view)
    index.finish()
    by_time = sorted(enumerate(views, 1), key=lambda pair: pair[1][0])
    seen, expected = set(), {}
    for number, (time_ms, visitor, path) in by_time:
        day = datetime.fromtimestamp(time_ms / 1000, zone).date()
        expected[number] = (day, visitor) not in seen, (day, visitor, path) not in seen
        seen |= {(day, visitor), (day, visitor, path)}
    assert {number: index.first_flags(number * 2) for number in expected} == expected


@given(views=VIEWS, hour=st.integers(0, 72))
def test_the_last_view_of_a_page_is_found(views: list[tuple[int, str, str]], hour: int) -> None:
    index = VisitorIndex(UTC)
    index.last_view_before(0, "a", "/")
    for number, view in enumerate(views, 1):
        index.record(number, *view)
    index.finish()
    before = [
        (time_ms, number)
        for number, (time_ms, visitor, path) in enumerate(views, 1)
        if (visitor, path) == ("a", "/")
        and time_ms <= hour * HOUR_MS
        and hour // 24 - time_ms // (24 * HOUR_MS) <= 1
    ]
    wanted = index.number_by_time(max(before, default=(0, 0))[1])
    assert index.last_view_before(hour * HOUR_MS, "a", "/") == wanted


@given(
    views=st.lists(
        st.tuples(
            st.integers(0, 200).map(lambda minute: minute * 60_000),
            st.sampled_from("ab"),
            st.sampled_from((None, None, "v", "w")),
        ),
        max_size=40,
    )
)
def test_visits_end_after_half_an_hour_unless_they_have_a_name(
    views: list[tuple[int, str, str | None]],
) -> None:
    index = VisitorIndex(UTC)
    for number, (time_ms, visitor, visit) in enumerate(views, 1):
        index.record(number, time_ms, visitor, "/", visit)
    index.finish()
    by_time = sorted(enumerate(views, 1), key=lambda pair: pair[1][0])
    placed = [index.number_by_time(number) for number, _ in by_time]
    assert placed == list(range(1, len(views) + 1))
    latest: dict[tuple[str, str | None], tuple[int, int]] = {}
    for place, (number, (time_ms, visitor, visit)) in enumerate(by_time, 1):
        last_ms, first_view = latest.get((visitor, visit), (0, 0))
        if not first_view or (visit is None and time_ms - last_ms > HOUR_MS // 2):
            first_view = place
        latest[visitor, visit] = time_ms, first_view
        assert index.visit_of(number) == first_view


def test_a_view_that_was_not_recorded_is_not_first() -> None:
    index = VisitorIndex(UTC)
    index.finish()
    assert index.first_flags(7) == (False, False)
