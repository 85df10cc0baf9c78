from datetime import datetime
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.subscriptions import Every, Subscription
from medamad.mail.spans import due_span, rescheduled


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def subscription(**changes: Any) -> Subscription:
    defaults: dict[str, Any] = {
        "every": Every.WEEK,
        "day": 1,
        "hour": 8,
        "timezone": "Europe/Berlin",
        "confirmed": at("2026-01-01T00:00Z"),
    }
    return Subscription(
        id="i",
        secret="s",
        address="a@b",
        websites=(1,),
        language="en",
        created=at("2026-01-01T00:00Z"),
        **defaults | changes,
    )


@pytest.mark.parametrize(
    ("changes", "now", "first"),
    [
        ({}, "2026-11-23T06:59:59Z", "2026-11-09"),
        ({}, "2026-11-23T07:00:00Z", "2026-11-16"),
        ({}, "2026-11-30T06:59:59Z", "2026-11-16"),
        ({"timezone": "UTC"}, "2026-11-23T07:59:59Z", "2026-11-09"),
        ({"timezone": "UTC"}, "2026-11-23T08:00:00Z", "2026-11-16"),
        ({"day": 7, "hour": 23}, "2026-11-29T21:59:59Z", "2026-11-09"),
        ({"day": 7, "hour": 23}, "2026-11-29T22:00:00Z", "2026-11-16"),
        ({"every": Every.MONTH}, "2026-12-01T07:00:00Z", "2026-11-01"),
        ({"every": Every.MONTH}, "2026-12-01T06:59:59Z", "2026-10-01"),
        ({"every": Every.MONTH, "day": 28}, "2026-12-28T06:59:59Z", "2026-10-01"),
        ({"every": Every.MONTH, "day": 28}, "2026-12-28T07:00:00Z", "2026-11-01"),
        # 02:00 is left out on March 29th, and comes twice on October 25th.
        ({"day": 7, "hour": 2}, "2026-03-29T00:59:59Z", "2026-03-09"),
        ({"day": 7, "hour": 2}, "2026-03-29T01:00:00Z", "2026-03-16"),
        ({"day": 7, "hour": 2}, "2026-10-24T23:59:59Z", "2026-10-05"),
        ({"day": 7, "hour": 2}, "2026-10-25T00:00:00Z", "2026-10-12"),
    ],
)
def test_the_last_report_that_is_due(changes: dict[str, Any], now: str, first: str) -> None:
    span = due_span(subscription(**changes), at(now))
    assert span is not None
    assert span.first.isoformat() == first


def test_what_was_due_before_the_confirmation_is_not_mailed() -> None:
    made = subscription(confirmed=at("2026-11-23T07:00:00Z"))
    assert due_span(made, at("2026-11-23T07:00:01Z")) is None
    assert due_span(made, at("2026-11-30T07:00:00Z")) is not None
    assert due_span(evolve(made, confirmed=None), at("2027-01-01T00:00:00Z")) is None


def test_a_clock_that_is_set_back_neither_loses_nor_repeats_a_report() -> None:
    made = subscription().with_done("2026-11-09").with_done("2026-11-16")
    assert due_span(made, at("2026-11-23T08:00:00Z")) is None
    assert due_span(made, at("2026-11-16T08:00:00Z")) is None
    ahead = made.with_done("2027-01-04")
    after = due_span(ahead, at("2026-11-30T08:00:00Z"))
    assert after is not None
    assert after.first.isoformat() == "2026-11-23"
    # Of what is older than what was mailed, nothing is.
    assert due_span(subscription(day=5).with_done("2026-11-16"), at("2026-11-26T08:00Z")) is None


def test_of_several_that_were_missed_only_the_last_is_due() -> None:
    made = subscription().with_done("2026-10-05")
    span = due_span(made, at("2026-11-30T08:00:00Z"))
    assert span is not None
    assert span.first.isoformat() == "2026-11-23"


def test_a_change_of_the_schedule_holds_for_what_is_due_later() -> None:
    now = at("2026-11-23T08:00:00Z")
    made = subscription().with_done("2026-11-16")
    # What would have been due on the first of November is not mailed now.
    monthly = rescheduled(made, evolve(made, every=Every.MONTH), now)
    assert due_span(monthly, now) is None
    span = due_span(monthly, at("2026-12-01T08:00:00Z"))
    assert (span and span.name) == "2026-11"
    # Nor is what a change back makes due again, by the same day as a month begins with.
    june = subscription().with_done("2026-05-25").with_done("2026-06-01")
    monthly = rescheduled(june, evolve(june, every=Every.MONTH), at("2026-06-10T00:00:00Z"))
    span = due_span(monthly, at("2026-07-01T08:00:00Z"))
    assert (span and span.name) == "2026-06"
    weekly = rescheduled(monthly, evolve(monthly, every=Every.WEEK), at("2026-06-10T00:00:01Z"))
    assert due_span(weekly, at("2026-06-10T00:00:02Z")) is None
    later = rescheduled(made, evolve(made, hour=20, day=2), now)
    assert due_span(later, now) is None
    # The week before that is done already.
    assert due_span(later, at("2026-12-01T18:59:59Z")) is None
    assert due_span(later, at("2026-12-01T19:00:00Z")) is not None


def test_what_was_due_and_could_not_be_mailed_is_mailed_after_a_change() -> None:
    now = at("2026-11-23T08:00:00Z")
    made = subscription().with_done("2026-11-09")
    changed = rescheduled(made, evolve(made, hour=1), now)
    span = due_span(changed, now)
    assert (span and span.name) == "2026-11-16"
    assert rescheduled(made, evolve(made, language="fr"), now).changed == 0
    # Another period is not caught up on.
    monthly = rescheduled(made, evolve(made, every=Every.MONTH), now)
    assert due_span(monthly, now) is None


def test_what_was_still_to_come_is_mailed_at_once_if_it_would_be_due_already() -> None:
    wednesday = at("2026-11-25T12:00:00Z")
    confirmed = at("2026-11-25T11:00:00Z")
    for made in (
        subscription(day=5).with_done("2026-11-09"),
        subscription(day=5, confirmed=confirmed),
    ):
        changed = rescheduled(made, evolve(made, day=2), wednesday)
        span = due_span(changed, wednesday)
        assert (span and span.name) == "2026-11-16"
        done = changed.with_done("2026-11-16")
        assert due_span(done, at("2026-12-01T06:59:59Z")) is None
        # A change to a day of this week does not repeat it.
        later = rescheduled(done, evolve(done, day=6), wednesday)
        assert due_span(later, at("2026-12-05T06:59:59Z")) is None
    # What was due before the confirmation is no longer to come.
    made = subscription(confirmed=confirmed)
    changed = rescheduled(made, evolve(made, day=2), wednesday)
    assert due_span(changed, at("2026-12-01T06:59:59Z")) is None
    # Unless it is due after the change.
    changed = rescheduled(made, evolve(made, day=3, hour=20), wednesday)
    span = due_span(changed, at("2026-11-25T19:00:00Z"))
    assert (span and span.name) == "2026-11-16"


def test_a_change_before_the_confirmation_is_none_of_what_is_mailed() -> None:
    made = subscription(confirmed=None)
    changed = rescheduled(made, evolve(made, day=2), at("2026-11-25T12:00:00Z"))
    assert changed.changed == 0


CHANGES = st.lists(
    st.tuples(
        st.integers(1, 30 * 24),
        st.integers(1, 7),
        st.integers(0, 23),
        st.sampled_from(["UTC", "Asia/Tokyo", "America/Havana", "Pacific/Apia"]),
    ),
    max_size=8,
)


@given(CHANGES, st.sampled_from(Every), st.integers(0, 24 * 365))
def test_no_change_of_day_hour_or_zone_repeats_or_skips_a_report(
    changes: list[tuple[int, int, int, str]], every: Every, start: int
) -> None:
    """Compare what is mailed, looking each hour, with the weeks or months one after the other."""
    first_s = at("2026-01-01T00:30Z") + start * 3_600
    made = subscription(every=every, confirmed=first_s)
    now_s, mailed = first_s, []
    for hours, day, hour, zone in [*changes, (24 * 100, 1, 8, "UTC")]:
        for _ in range(hours):
            now_s += 3_600
            while span := due_span(made, now_s):
                mailed.append(span)
                made = made.with_done(span.name)
        changed = evolve(made, day=day, hour=hour, timezone=zone)
        made = rescheduled(made, changed, now_s)
    firsts = [span.first for span in mailed]
    assert len(mailed) >= 2
    assert firsts == [firsts[0], *(span.following.first for span in mailed[:-1])]


def test_only_the_last_ones_that_are_done_are_remembered() -> None:
    made = subscription()
    for week in range(100):
        made = made.with_done(str(week))
    assert made.done == tuple(str(week) for week in range(47, 100))
