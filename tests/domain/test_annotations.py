"""Annotations: what is stored of them, in which order, and which are in a period."""

from zoneinfo import ZoneInfo

import pytest
from attrs import evolve

from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.errors import BadRequest, NotFound

NOTE = Annotation(id="a", time="2026-01-31", text="Launch")
BERLIN = ZoneInfo("Europe/Berlin")
NINE_MS = 1_769_850_000_000
"""2026-01-31T09:00:00Z."""


def stored(note: Annotation) -> Annotation:
    return Annotations().with_annotation(note).all[0]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-01-31", "2026-01-31"),
        ("0001-01-01", "0001-01-01"),
        ("2026-01-31T09:00:00Z", "2026-01-31T09:00:00Z"),
        ("2026-01-31t10:00:00.999+01:00", "2026-01-31T09:00:00Z"),
        ("0999-01-31T09:00:00Z", "0999-01-31T09:00:00Z"),
    ],
)
def test_times_are_days_or_seconds_in_utc(given: str, kept: str) -> None:
    assert stored(evolve(NOTE, time=given)).time == kept


@pytest.mark.parametrize(
    "time",
    [
        *("", "now", "2026-02-30", "2026-1-31", "20260131", "2026-W05-6", "2026-01-31T09:00:00"),
        *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-01:00", "2026-01-31\n"),
    ],
)
def test_other_times_are_refused(time: str) -> None:
    with pytest.raises(BadRequest, match=r"^time: expected a day such as 2026-01-31, or an RFC"):
        stored(evolve(NOTE, time=time))


def test_texts_are_stripped() -> None:
    note = evolve(NOTE, text=" Launch ", link=" HTTPS://example.com/a?b#c ")
    assert stored(note) == evolve(NOTE, link="HTTPS://example.com/a?b#c")
    assert stored(evolve(NOTE, link=" ")) == NOTE
    assert stored(evolve(NOTE, text="x" * 200)).text == "x" * 200


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "text: expected 1 to 200 characters, got 0"),
        (" ", "text: expected 1 to 200 characters, got 0"),
        ("x" * 201, "text: expected 1 to 200 characters, got 201"),
        ("a\nb", "text: expected text of one line, without control characters"),
        ("a\0b", "text: expected text of one line, without control characters"),
    ],
)
def test_other_texts_are_refused(text: str, reason: str) -> None:
    with pytest.raises(BadRequest, match=rf"^{reason}$"):
        stored(evolve(NOTE, text=text))


@pytest.mark.parametrize(
    "link",
    [
        *("example.com", "/news", "javascript:alert(1)", "ftp://example.com", "https://"),
        *("https:///path", "https://a b", "https://a\nb", "https://a/" + "x" * 2_039),
    ],
)
def test_only_addresses_of_pages_are_links(link: str) -> None:
    with pytest.raises(BadRequest, match=r"^link: expected an address that begins with https://"):
        stored(evolve(NOTE, link=link))


def test_they_are_in_order_of_time_and_then_of_creation() -> None:
    notes = Annotations()
    for id_, time in (
        ("c", "2026-01-31T09:00:00Z"),
        ("d", "2026-01-31T10:00:00+01:00"),
        ("b", "2026-01-31"),
        ("a", "2026-01-30T23:00:00Z"),
    ):
        notes = notes.with_annotation(evolve(NOTE, id=id_, time=time))
    assert [each.id for each in notes.all] == ["a", "b", "c", "d"]
    later = notes.with_changed("a", lambda each: evolve(each, time="2026-02-01", text="Later"))
    assert [each.id for each in later.all] == ["b", "c", "d", "a"]
    assert later.annotation("a").text == "Later"
    assert [each.id for each in later.without("c").all] == ["b", "d", "a"]


def test_what_is_missing_is_not_found() -> None:
    for change in (
        lambda: Annotations().annotation("x"),
        lambda: Annotations().without("x"),
        lambda: Annotations().with_changed("x", lambda each: each),
    ):
        with pytest.raises(NotFound, match=r"^there is no annotation x$"):
            change()


def test_those_of_another_are_added_once() -> None:
    notes = Annotations().with_annotation(NOTE)
    again = evolve(NOTE, id="b", text=" Launch")
    linked = evolve(NOTE, id="c", link="https://example.com")
    assert notes.with_those_of([again, linked, evolve(linked, id="d")]).all == (NOTE, linked)


def test_a_thousand_is_the_limit() -> None:
    notes = Annotations(tuple(evolve(NOTE, id=str(number)) for number in range(999)))
    full = notes.with_annotation(evolve(NOTE, id="last"))
    with pytest.raises(BadRequest, match=r"^annotations: a website can have 1,000, remove one"):
        full.with_annotation(evolve(NOTE, id="more"))
    assert full.with_changed("last", lambda each: evolve(each, text="Changed")).all[-1].text == (
        "Changed"
    )
    assert len(full.without("5").with_annotation(evolve(NOTE, id="more")).all) == 1_000


@pytest.mark.parametrize(
    ("time", "start_ms", "end_ms", "is_in"),
    [
        ("2026-01-31T09:00:00Z", None, None, True),
        ("2026-01-31T09:00:00Z", NINE_MS, NINE_MS, True),
        ("2026-01-31T09:00:00Z", NINE_MS + 999, None, True),
        ("2026-01-31T09:00:00Z", NINE_MS + 1_000, None, False),
        ("2026-01-31T09:00:00Z", None, NINE_MS - 1, False),
        # In Berlin, the day is from 23 o'clock UTC the day before to 22:59:59.
        ("2026-01-31", NINE_MS, NINE_MS, True),
        ("2026-01-31", None, NINE_MS - 10 * 3_600_000, True),
        ("2026-01-31", None, NINE_MS - 10 * 3_600_000 - 1, False),
        ("2026-01-31", NINE_MS + 14 * 3_600_000 - 1, None, True),
        ("2026-01-31", NINE_MS + 14 * 3_600_000, None, False),
        ("0001-01-01", None, NINE_MS, True),
        ("9999-12-31", NINE_MS, None, True),
    ],
)
def test_a_period_has_what_is_at_least_partly_in_it(
    time: str, start_ms: int | None, end_ms: int | None, is_in: bool
) -> None:
    assert evolve(NOTE, time=time).is_between(start_ms, end_ms, BERLIN) == is_in
