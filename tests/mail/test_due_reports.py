from datetime import datetime
from typing import Any

import pytest
from attrs import evolve

from medamad.domain.subscriptions import Every, Subscription
from medamad.mail.spans import due_span


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


def test_only_the_last_ones_that_are_done_are_remembered() -> None:
    made = subscription()
    for day in range(10, 31):
        made = made.with_done(f"2026-11-{day}")
    assert made.done == tuple(f"2026-11-{day}" for day in range(19, 31))
