import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve
from support.query.hits import event
from support.query.oracle import Entry
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, MadeDay, query_from, snapshot_of

from medamad.domain.accounts import LANGUAGES
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.goals import Goal
from medamad.domain.subscriptions import Every
from medamad.mail.figures import Counted, WebsiteFigures, website_figures
from medamad.mail.report import Report, as_html, as_text
from medamad.mail.spans import Span
from medamad.mail.words import Words, printable

MONDAY = date(2026, 11, 16)
WEEK = Span(Every.WEEK, MONDAY)
NOW_MS = WEEK.end_s * 1000
GOALS = (
    Goal(id="guide", name="Guide <read>", path="/guide"),
    Goal(id="order", name="Order", event="order", revenue="total", currency="EUR"),
)
USUAL = {("google.com", "/guide"): 60, ("t.co", "/"): 40, ("", "/"): 50}
FEWER = {**USUAL, ("google.com", "/guide"): 10}


def visits(day: date, per_referrer_and_page: dict[tuple[str, str], int]) -> Iterator[Entry]:
    """Return visits of one view, over the seven days from one on."""
    for (referrer, path), count in per_referrer_and_page.items():
        for number in range(count):
            moment = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(
                days=number % 7, seconds=number
            )
            yield {
                "time_ms": int(moment.timestamp() * 1000),
                "p": True,
                "q": True,
                "duration_ms": 20_000,
                "path": path,
                "referrer": referrer,
                "browser": "Firefox",
                "os": "Linux",
                "device": "Mobile" if number % 2 else "Desktop",
                "country": "DE" if number % 3 else "",
            }


def numbered(entries: Sequence[Entry]) -> list[Entry]:
    ordered = sorted(entries, key=lambda entry: entry["time_ms"])
    return [{**entry, "id": number, "visit": number} for number, entry in enumerate(ordered, 1)]


@cache
def fewer_from_google(weeks: int = 8) -> tuple[list[Entry], list[Entry]]:
    """Return views and events of some weeks as usual, and one with fewer visits from Google."""
    entries = list(visits(MONDAY, FEWER))
    for number in range(1, weeks + 1):
        usual = {what: count + number % 3 for what, count in USUAL.items()}
        entries += visits(MONDAY - timedelta(days=7 * number), usual)
    views = numbered(entries)
    orders = [event(0, views[-1]["id"], order="a", total="12.50")]
    orders[0]["time_ms"] = views[-1]["time_ms"] + 1
    return views, orders


DEFAULTS: dict[str, Any] = {
    "goals": (),
    "annotations": Annotations(),
    "counted": Counted(),
    "now_ms": NOW_MS,
}


def figures(
    views: list[Entry], events: Sequence[Entry] = (), span: Span = WEEK, **options: Any
) -> WebsiteFigures:
    days, rules = options.pop("days", ()), options.pop("rules", ())
    snapshot = snapshot_of(views, list(events), days=days)
    return website_figures(
        reader_of(snapshot, SOURCES, rules),
        "example.com",
        span,
        **DEFAULTS | options,
    )


def report(website: WebsiteFigures, language: str = "en", **changes: Any) -> Report:
    given: dict[str, Any] = {"span": WEEK, "websites": [website], "url": "https://s.example"}
    return Report(words=Words.of(language), **given | changes)


AS_TEXT = """\
Weekly report for example.com: Nov 16 – 22, 2026

example.com
===========

  Visitors                                  100  before: 153 (−35%)
  Visits                                    100  before: 153 (−35%)
  Views                                     100  before: 153 (−35%)
  Views per visit                             1  before: 1
  Bounce rate                               99%  before: 100%
  Time per visit                            20s  before: 20s

What changed
  Visits: 53 fewer than in the week before (100 instead of 153).
  Google (referrer): 51 fewer (10 instead of 61).

Visits by day
  Mon, Nov 16  16  ████████████████████████
  Tue, Nov 17  15  ██████████████████████
  Wed, Nov 18  15  ██████████████████████
  Thu, Nov 19  14  █████████████████████
  Fri, Nov 20  14  █████████████████████
  Sat, Nov 21  13  ████████████████████
  Sun, Nov 22  13  ████████████████████

Pages (Visits, most first)
  /                                         90
  /guide                                    10

Referrers (Visits, most first)
  Direct / none                             50
  Twitter                                   40
  Google                                    10

Countries (Visits, most first)
  Germany                                   65
  Unknown                                   35

Goals (Conversions)
  Guide <read>                                  10  before: 61 (−84%)
  Order                                          1  before: 0
  Order (Revenue)                           €12.50  before: €0.00

Open in the dashboard:
https://s.example/dashboard/websites/example.com?from=2026-11-16&to=2026-11-22&zone=UTC

Days begin at midnight in this time zone: UTC.
"""


def test_a_week_as_text() -> None:
    views, events = fewer_from_google()
    text = as_text(report(figures(views, events, goals=GOALS)))
    assert text.replace("\u2009", " ") == AS_TEXT


def plain(html: str) -> str:
    """Return what a page shows, as text."""
    body = html.partition("<body")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("weeks", [0, 1, 8])
def test_the_page_says_what_the_text_says_in_every_language(language: str, weeks: int) -> None:
    views, events = fewer_from_google(weeks)
    shown = report(figures(views, events, goals=GOALS), language, notes=["A note."])
    text, page = as_text(shown), as_html(shown)
    assert "{" not in text
    assert shown.subject.count("example.com") == 1
    said = plain(page)
    website = shown.websites[0]
    for sentence in (*shown.sentences(website), *shown.closing(), "A note."):
        assert sentence in text
        assert sentence in said
    for name in shown.words.texts.lists:
        for called, count in shown.list_rows(website, name):
            assert f"{called} {count}" in said
    assert f'lang="{language}"' in page
    assert "Guide &lt;read&gt;" in page
    assert not re.search(r"<(script|img|link|iframe)|url\(|src=", page)


def annotated(*noted: tuple[str, str, str | None]) -> Annotations:
    """Return annotations with a time, a text and a link each."""
    return Annotations(
        tuple(
            Annotation(id=str(number), time=time, text=text, link=link)
            for number, (time, text, link) in enumerate(noted)
        )
    )


def test_annotations_of_the_days_are_shown_with_their_links() -> None:
    views, _ = fewer_from_google()
    notes = annotated(
        ("2026-11-15", "The Sunday before", None),
        ("2026-11-15T23:30:00Z", "Deploy <1.4>", "https://a.example/?v=1&n=4"),
        ("2026-11-18", "\u202eNew prices", None),
        ("2026-11-22T23:00:00Z", "The Monday after", None),
    )
    berlin = Span(Every.WEEK, MONDAY, ZoneInfo("Europe/Berlin"))
    found = figures(views, span=berlin, annotations=notes)
    shown = report(found, span=berlin)
    lines = as_text(shown).replace("\u202f", " ").splitlines()
    begin = lines.index("Annotations")
    assert lines[begin : begin + 4] == [
        "Annotations",
        "  11/16/26, 12:30 AM  Deploy <1.4>  https://a.example/?v=1&n=4",
        "  Wed, Nov 18   New prices",
        "",
    ]
    page = as_html(shown)
    assert 'href="https://a.example/?v=1&amp;n=4"' in page
    assert "Deploy &lt;1.4&gt;" in page
    assert "Sunday before" not in page
    assert "Monday after" not in page


def test_of_many_annotations_the_latest_are_shown() -> None:
    views, _ = fewer_from_google()
    notes = annotated(
        *((f"2026-11-16T{n // 60:02}:{n % 60:02}:00Z", f"No. {n}.", None) for n in range(1_000))
    )
    shown = report(figures(views, annotations=notes))
    for text in (as_text(shown), as_html(shown)):
        assert [int(n) for n in re.findall(r"No\. (\d+)\.", text)] == list(range(980, 1_000))
        assert "Earlier ones, which the dashboard shows: 980." in text


def test_nothing_is_claimed_that_chance_explains_or_may_explain() -> None:
    views, _ = fewer_from_google(weeks=2)
    few = report(figures(views))
    assert few.sentences(few.websites[0]) == [
        "Visits: 53 fewer than in the week before (100 instead of 153).",
        "Whether chance explains this cannot be said.",
    ]
    as_usual = numbered(
        [
            *visits(MONDAY, USUAL),
            *(
                each
                for week in range(1, 9)
                for each in visits(MONDAY - timedelta(days=7 * week), {**USUAL, ("", "/"): 52})
            ),
        ]
    )
    usual = report(figures(as_usual))
    assert usual.sentences(usual.websites[0]) == [
        "Visits: about as before (150 instead of 152); chance explains the difference."
    ]
    same = report(figures(numbered([*visits(MONDAY, USUAL), *visits(WEEK.previous.first, USUAL)])))
    assert same.sentences(same.websites[0]) == ["Visits: 150, as many as before."]


def test_a_month_is_compared_with_the_month_before() -> None:
    march = Span(Every.MONTH, date(2026, 3, 1))
    entries = [
        *visits(date(2026, 2, 1), {("", "/"): 21}),
        *visits(date(2026, 3, 25), {("", "/"): 28}),
        *visits(date(2026, 1, 30), {("", "/"): 7}),
    ]
    found = figures(numbered(entries), span=march)
    assert {(each.now, each.before) for each in found.figures[:3]} == {(28, 26)}
    assert len(found.by_day) == 31
    shown = report(found, "de", span=march)
    assert shown.subject == "Monatsbericht für example.com: März 2026"
    assert "=2026-03-01&to=2026-03-31&zone" in as_text(shown)


def test_a_day_that_the_calendar_leaves_out_is_in_no_chart() -> None:
    week = Span(Every.WEEK, date(2011, 12, 26), ZoneInfo("Pacific/Apia"))
    found = figures(numbered(list(visits(date(2011, 12, 26), {("", "/"): 6}))), span=week)
    assert [day.day for day, _ in found.by_day] == [26, 27, 28, 29, 31, 1]
    assert sum(count for _, count in found.by_day) == 6
    assert "Thu, Dec 29" in as_html(report(found, span=week))


@pytest.mark.parametrize(
    ("counted", "measures"),
    [
        (Counted(visits=False), ["visitors", "pageviews"]),
        (
            Counted(visitors=False),
            [
                "visits",
                "pageviews",
                "views_per_visit",
                "visit_bounce_percentage",
                "visit_duration",
            ],
        ),
        (Counted(visits=False, visitors=False), ["pageviews"]),
    ],
)
def test_only_what_is_counted_is_reported(counted: Counted, measures: list[str]) -> None:
    views, _ = fewer_from_google()
    found = figures(views, counted=counted)
    assert [figure.measure for figure in found.figures] == measures
    assert found.measure == (measures[0] if "visits" not in measures else "visits")
    assert (found.changes is None) is (measures == ["pageviews"])
    assert found.lists["pages"] == [("/", 90), ("/guide", 10)]


def test_views_of_unknown_visits_are_counted_by_views() -> None:
    imported = [{**view, "visit": 0, "p": False} for view in fewer_from_google()[0]]
    found = figures(imported)
    assert (found.measure, found.changes) == ("pageviews", None)
    assert found.lists["pages"] == [("/", 90), ("/guide", 10)]
    assert "Views by day" in as_text(report(found))


def change(now: int, before: int, **members: Any) -> dict[str, Any]:
    return {"before": before, "now": now, "difference": now - before} | members


def of(dimension: str, name: str, now: int, before: int, *, by_chance: bool) -> dict[str, Any]:
    part = change(now, before, name=name, by_chance=by_chance)
    return {"dimension": dimension, "parts": [part]}


def pair(now: int, before: int, *parts: tuple[str, str]) -> dict[str, Any]:
    named = [{"dimension": dimension, "name": name} for dimension, name in parts]
    return change(now, before, parts=named)


GOOGLE, GUIDE, NO_CAMPAIGN = ("source", "Google"), ("entry_page", "/guide"), ("campaign", "")


@pytest.mark.parametrize(
    ("dimensions", "pairs", "sentences"),
    [
        (
            [of(*GOOGLE, 9, 99, by_chance=False), of(*GUIDE, 12, 80, by_chance=False)],
            [pair(5, 70, GOOGLE, GUIDE)],
            ["Google (referrer), /guide (entry page): 65 fewer (5 instead of 70)."],
        ),
        (
            [of(*GOOGLE, 9, 99, by_chance=False), of(*NO_CAMPAIGN, 50, 150, by_chance=False)],
            [pair(9, 99, NO_CAMPAIGN, GOOGLE)],
            ["Google (referrer): 90 fewer (9 instead of 99)."],
        ),
        (
            [of(*GOOGLE, 99, 9, by_chance=False), of(*GUIDE, 80, 12, by_chance=False)],
            [],
            ["Google (referrer): 90 more (99 instead of 9)."],
        ),
        (
            [of(*GOOGLE, 9, 99, by_chance=True), of("device", "", 1, 9, by_chance=True)],
            [],
            [],
        ),
        ([of("country", "Germany", 50, 150, by_chance=False)], [], []),
    ],
)
def test_the_largest_parts_are_named_and_no_visit_twice(
    dimensions: list[Any], pairs: list[Any], sentences: list[str]
) -> None:
    found = change(50, 150, by_chance=False, dimensions=dimensions, pairs=pairs)
    first, *rest = Words.of("en").sentences("visits", Every.WEEK, found)
    assert first == "Visits: 100 fewer than in the week before (50 instead of 150)."
    assert rest == sentences


def test_nothing_counted_is_said_in_one_sentence() -> None:
    empty = report(figures([]))
    assert "Nothing was counted in this period, nor in the one before." in as_text(empty)
    assert "Nothing was counted in this period" in as_html(empty)
    assert "Visits by day" not in as_text(empty)


def test_days_that_are_missing_are_mentioned() -> None:
    views, _ = fewer_from_google()
    number = (MONDAY - date(1970, 1, 1)).days
    bounds = (number * 86_400_000, (number + 1) * 86_400_000 - 1)
    day = MadeDay(number, bounds, [view for view in views if view["time_ms"] <= bounds[1]][-3:], [])
    rest = [view for view in views if view not in day.views]
    # In another zone, the day of a rollup is not one of the period's days.
    week = evolve(WEEK, zone=ZoneInfo("Asia/Kathmandu"))
    found = figures(rest, span=week, days=[day])
    assert found.is_incomplete
    assert "Some days are missing" in as_text(report(found, span=week))
    assert not figures(views, span=week).is_incomplete


def test_days_to_which_exclusions_do_not_apply_are_mentioned() -> None:
    views, _ = fewer_from_google()
    number = (MONDAY - date(1970, 1, 1)).days
    bounds = (number * 86_400_000, (number + 1) * 86_400_000 - 1)
    day = MadeDay(number, bounds, [view for view in views if view["time_ms"] <= bounds[1]][-3:], [])
    rest = [view for view in views if view not in day.views]
    rule = query_from([("path", "/flood")])
    found = figures(rest, days=[day], rules=[rule])
    assert "Some exclusions do not apply to some of these days" in as_text(report(found))
    assert not figures(rest, days=[day]).lacks_exclusions


def test_without_an_address_the_report_says_what_to_set() -> None:
    views, _ = fewer_from_google()
    shown = report(figures(views), url="")
    for written in (as_text(shown), plain(as_html(shown))):
        assert "set public_url in the section [server] of its configuration" in written
        assert "Open in the dashboard" not in written
    assert "href" not in as_html(shown)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/a\r\nBcc: x", "/a  Bcc: x"),
        ("\u202egnp.exe", " gnp.exe"),
        ("/" + "a" * 79, "/" + "a" * 79),
        ("/" + "a" * 80, "/" + "a" * 78 + "…"),
    ],
)
def test_names_that_visitors_sent_cannot_upset_the_mail(name: str, shown: str) -> None:
    assert printable(name) == shown
    views = numbered(list(visits(MONDAY, {("", name): 3})))
    assert [row for row, _ in report(figures(views)).list_rows(figures(views), "pages")] == [shown]
