from datetime import datetime
from typing import Any

import pytest
from attrs import evolve

from medamad.domain.subscriptions import Every, Subscription
from medamad.mail.spans import due_span, rescheduled


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def subscription(**changes: Any) -> Subscription:
    given: dict[str, Any] = {
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
        **given | changes,
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


def test_only_the_last_ones_that_are_done_are_remembered() -> None:
    made = subscription()
    for day in range(10, 31):
        made = made.with_done(f"2026-11-{day}")
    assert made.done == tuple(f"2026-11-{day}" for day in range(19, 31))
