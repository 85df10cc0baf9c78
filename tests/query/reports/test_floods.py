"""Floods among the visits of people, as rules that would leave them out."""

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import pytest
from attrs import field, frozen
from support.query.list_reader import ListReader
from support.query.naive_filters import ParsedQuery
from support.query.oracle import Entry, Oracle
from support.query.readers import reader_of
from support.query.snapshots import Cuts, snapshot_of

from medamad.lookup.referrers import Sources
from medamad.query.floods import floods
from medamad.query.period import Period
from medamad.query.request import Query

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
BEGIN_MS: Final = 1_780_272_000_000  # 2026-06-01T00:00:00Z
DAYS: Final = 30
NOW_MS: Final = BEGIN_MS + DAYS * DAY_MS
BUSY: Final = (2, 1, 1, 1, 1, 2, 3, 5, 8, 9, 9, 9, 8, 9, 9, 9, 8, 8, 7, 7, 7, 6, 4, 3)
"""How busy people are in each hour of a day."""
BROWSERS: Final = {("Chrome", "Windows"): 40, ("Safari", "iOS"): 30, ("Firefox", "Linux"): 10,
                   ("Edge", "Windows"): 12, ("Chrome", "Android"): 25}  # fmt: skip
COUNTRIES: Final = {"DE": 60, "AT": 20, "US": 12, "FR": 6, "SG": 2}
PAGES: Final = {"/": 40, "/a": 20, "/b": 20, "/c": 15, "/wp-login": 1}


@frozen
class Traffic:
    """Visits of people and of a flood, by random numbers."""

    rng: random.Random = field(factory=lambda: random.Random(5))  # noqa: S311
    visits: list[list[Entry]] = field(factory=list)

    def draw(self, weights: dict[Any, int]) -> Any:
        return self.rng.choices([*weights], [*weights.values()])[0]

    def visit(self, time_ms: int, views: int, **given: Any) -> None:
        browser, system = self.draw(BROWSERS)
        row = {
            "browser": browser,
            "os": system,
            "device": "Mobile" if system in ("iOS", "Android") else "Desktop",
            "country": self.draw(COUNTRIES),
            "locale": "en",
            "hosting": self.rng.random() < 0.03,
            "flood": False,
            **given,
        }
        path = row.pop("path", None) or self.draw(PAGES)
        self.visits.append(
            [
                {**row, "path": path if number == 0 else self.draw(PAGES),
                 "time_ms": time_ms + number * 20_000, "p": number == 0, "q": True,
                 "duration_ms": 0}
                for number in range(views)
            ]
        )  # fmt: skip

    def people(self, count: int) -> None:
        for _ in range(count):
            hour = self.rng.choices(range(24), BUSY)[0]
            time_ms = BEGIN_MS + self.rng.randrange(DAYS) * DAY_MS + hour * HOUR_MS
            self.visit(time_ms + self.rng.randrange(HOUR_MS), self.rng.choice((1, 1, 2, 3, 5)))

    def flood(self, views: int, addresses: int, hours: Sequence[float], **given: Any) -> None:
        """Add a flood between two hours of the period; each address comes several times."""
        for number in range(addresses):
            of_address = views // addresses + (number < views % addresses)
            while of_address > 0:
                of_visit = min(of_address, self.rng.randint(1, 15))
                time_ms = BEGIN_MS + round(self.rng.uniform(*hours) * HOUR_MS)
                drawn = {name: self.draw(each) if isinstance(each, dict) else each
                         for name, each in given.items()}  # fmt: skip
                self.visit(time_ms, of_visit, flood=True, **drawn)
                of_address -= of_visit

    def views(self) -> list[Entry]:
        """Return the views in order of their times, with ids and the numbers of their visits."""
        views = []
        for visit in self.visits:
            for view in visit:
                view["of"] = visit[0]
                views.append(view)
        views.sort(key=lambda view: view["time_ms"])
        for number, view in enumerate(views, 1):
            view["id"] = number
        for view in views:
            view["visit"] = view.pop("of")["id"]
        return views


def found_in(views: list[Entry]) -> list[dict[str, Any]]:
    reader = reader_of(snapshot_of(views, [], Cuts((len(views) // 2,), (True, True))))
    return floods(reader, Query(Period(BEGIN_MS, NOW_MS - 1)), now_ms=NOW_MS).content


def left_out(views: list[Entry], rule: dict[str, Any]) -> tuple[float, float]:
    """Return the share of the views of a flood, and of people's visits, that a rule leaves out."""
    pairs = [(f"{each.field}[{each.operator}]", ",".join(each.values)) for each in rule["filters"]]
    query = ParsedQuery([*pairs, ("start", rule["start"]), ("end", rule["end"])])
    oracle = Oracle([], [], now_ms=NOW_MS)
    begun = {
        view["visit"]
        for view in views
        if view["id"] == view["visit"] and query.has(view["time_ms"])
    }
    # A visit is of one browser here, so its first view says whether it matches.
    without_page = ParsedQuery([pair for pair in pairs if not pair[0].startswith("entry_page")])
    pages = [pair for pair in pairs if pair[0].startswith("entry_page")]
    wanted = {page for _, value in pages for page in value.split(",")}
    matching = {
        view["visit"]
        for view in views
        if view["visit"] in begun
        and view["id"] == view["visit"]
        and oracle._passes_itself(view, without_page)
        and (not pages or view["path"] in wanted)
    }
    of_flood = [view for view in views if view["flood"]]
    people = [view for view in views if not view["flood"] and view["id"] == view["visit"]]
    assert sum(view["visit"] in matching for view in views) == rule["views"]
    return (
        sum(view["visit"] in matching for view in of_flood) / len(of_flood),
        sum(view["visit"] in matching for view in people) / len(people),
    )


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        # One true-looking browser of a data centre, in a country with few people.
        (
            {"browser": "Chrome", "os": "Windows", "device": "Desktop", "country": "SG",
             "hosting": True},
            {"country", "hosting"},
        ),
        # Browsers like people's, from homes in two countries.
        ({"country": {"SG": 7, "BR": 3}, "hosting": False}, {"country"}),
        # From everywhere, but of one browser and to one page.
        (
            {"browser": "Firefox", "os": "Linux", "device": "Desktop", "path": "/wp-login"},
            {"os", "browser", "entry_page"},
        ),
        # Everything like people's, but from data centres.
        ({"hosting": True}, {"hosting"}),
    ],
)  # fmt: skip
def test_a_flood_is_suggested_as_one_rule_that_spares_people(
    given: dict[str, Any], columns: set[str]
) -> None:
    traffic = Traffic()
    traffic.people(20_000)
    traffic.flood(100_000, 3_000, (12.6 * 24, 12.6 * 24 + 5.3), **given)
    views = traffic.views()
    (rule,) = found_in(views)
    assert {each.field for each in rule["filters"]} <= columns
    of_flood, of_people = left_out(views, rule)
    assert of_flood >= 0.95
    assert of_people <= 0.01
    caught = of_people * 20_000
    assert abs(rule["usual_visits"] - caught) <= 30 + caught / 2
    assert datetime.fromisoformat(rule["start"]) < datetime.fromisoformat(rule["end"])


def test_people_alone_are_no_flood() -> None:
    traffic = Traffic()
    traffic.people(20_000)
    assert found_in(traffic.views()) == []


def test_a_page_that_many_people_share_is_no_flood() -> None:
    traffic = Traffic()
    traffic.people(10_000)
    traffic.flood(4_000, 4_000, (300, 306), path="/news")
    assert found_in(traffic.views()) == []


def test_floods_that_come_again_are_found_one_by_one() -> None:
    traffic = Traffic()
    traffic.people(10_000)
    for day in (8, 17, 26):
        traffic.flood(3_000 + 100 * day, 500, (day * 24 + 3, day * 24 + 5), country="SG")
    rules = found_in(traffic.views())
    assert [rule["start"][8:13] for rule in rules] == ["27T03", "18T03", "09T03"]
    assert all(
        [(each.field, each.values) for each in rule["filters"]] == [("country", ("Singapore",))]
        for rule in rules
    )


def test_too_few_days_say_nothing() -> None:
    traffic = Traffic()
    traffic.flood(5_000, 500, (4.5 * 24, 4.6 * 24), country="SG")
    views = traffic.views()
    reader = reader_of(snapshot_of(views, []))
    assert floods(reader, Query(), now_ms=BEGIN_MS + 5 * DAY_MS).content == []
    assert floods(reader_of(snapshot_of([], [])), Query(), now_ms=NOW_MS).content == []


def test_another_engine_finds_the_same() -> None:
    traffic = Traffic()
    traffic.people(150)
    traffic.flood(120, 100, (200, 201), country="SG")
    views = traffic.views()
    query = Query(Period(BEGIN_MS, NOW_MS - 1))
    (rule,) = floods(reader_of(snapshot_of(views, [])), query, now_ms=NOW_MS).content
    assert [rule] == floods(ListReader(views, [], Sources({})), query, now_ms=NOW_MS).content
    assert [each.values for each in rule["filters"]] == [("Singapore",)]
