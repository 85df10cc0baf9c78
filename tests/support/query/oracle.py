"""The results as the contract words them, computed naively over lists of dicts.

A view is a dict: `id` (anything), `time_ms`, `p`, `q`, `duration_ms` (0 where not timed), `visit`
(the id of the first view of its visit; 0 or left out where that is unknown), `since` (when its
visitor was here last; "" or left out where that is unknown), and its texts as stored: `path`,
`referrer`, `utm_source` … `utm_content`, `browser`, `os`, `device`, `country` (ISO code), `locale`
(tag); a text left out is "". `hosting` is whether it came from a hosting network; False if left
out. Views are in the order of their ids.
An event is a dict: `time_ms`, `view` (the id of a view, or None), `properties` (pairs of name and
value), `number` (in one sequence with the ids of views; its place if left out). A query is the name
of an endpoint and the decoded pairs of a valid query.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta, tzinfo
from fractions import Fraction
from itertools import chain
from typing import Any, Final
from zoneinfo import ZoneInfo

from support.query.naive_filters import (
    ENTRIES,
    EPOCH,
    EXITS,
    TEXTS,
    Pairs,
    ParsedQuery,
    calendar,
    holds,
)

from medamad.domain.goals import Definitions, Goal
from medamad.lookup.countries import country_name
from medamad.lookup.languages import language_name, locale_name

Entry = dict[str, Any]
NO_GOALS: Final = Definitions()
LONG_AGO: Final = (-(1 << 62), 0)
"""A time and a number before those of all hits."""


def without_goals(query: ParsedQuery) -> ParsedQuery:
    """Return a query without its filters on goals."""
    return ParsedQuery([pair for pair in query.query if "goal" not in pair[0]])


class Oracle:
    """All hits of one website. `source_of` returns the source name of a stored referrer."""

    def __init__(
        self,
        views: Iterable[Entry],
        events: Iterable[Entry],
        *,
        source_of: Callable[[str], str] = lambda referrer: referrer.partition("/")[0],
        now_ms: int,
        goals: Definitions = NO_GOALS,
        returning_zone: tzinfo | None = None,
        gone: Collection[int] = (),
    ) -> None:
        """`gone` has the ids of views that have been deleted, of which events may be left."""
        self.views = [{**dict.fromkeys(TEXTS, ""), **view} for view in views]
        ids = {view["id"] for view in self.views}
        for view in self.views:
            # A visit whose first view has been deleted is unknown.
            view["visit"] = view.get("visit") if view.get("visit") in ids else 0
        self.of_visits: dict[int, list[Entry]] = {}
        for view in self.views:
            self.of_visits.setdefault(view["visit"], []).append(view)
        self.events = list(events)
        self.source_of = source_of
        self.now_ms = now_ms
        self.goals = goals
        self.returning_zone = returning_zone
        self.gone = gone

    def without(self, rules: Iterable[Pairs]) -> "Oracle":
        """Return the same as if what matches any of some queries, and is in its period, were not.

        Visits are left out whole, views without a visit and events without a view one by one.
        """
        out: set[int] = set()
        events: list[Entry] = []
        ids = {view["id"] for view in self.views}
        for query in map(ParsedQuery, rules):
            passing = [view for view in self.views if self._passes(view, query)]
            for views in self._visits(passing, query.has).values():
                out |= {view["id"] for view in views}
            alone = (view for view in passing if not view["visit"])
            out |= {view["id"] for view in alone if query.has(view["time_ms"])}
            events += [
                event
                for event in self.events
                if event["view"] not in {*ids, *self.gone}
                and query.has(event["time_ms"])
                and self._passes_without_view(event, query)
                and (
                    not query.names_property
                    or any(query.matches(*each) for each in pairs_of(event))
                )
            ]
        return Oracle(
            [view for view in self.views if view["id"] not in out],
            [each for each in self.events if each["view"] not in out and each not in events],
            source_of=self.source_of,
            now_ms=self.now_ms,
            goals=self.goals,
            returning_zone=self.returning_zone,
            gone=self.gone,
        )

    def answer(self, endpoint: str, parameters: Pairs) -> Any:
        """Return what GET /website/{hostname}/{endpoint} returns."""
        query = ParsedQuery(parameters)
        if endpoint == "summary":
            return self._summary(query)
        if endpoint == "properties":
            return self._properties(query)
        selected = [v for v in self.views if query.has(v["time_ms"]) and self._passes(v, query)]
        if endpoint.startswith("funnels/"):
            return self._funnel(endpoint.partition("/")[2], selected, query)
        if endpoint == "goals":
            return self._goals(query)[query.offset :][: query.limit]
        if endpoint in ("entries", "exits"):
            rows = self._ends_of_visits(endpoint, selected, query)
        elif endpoint in ("next", "previous"):
            rows = self._beside(endpoint, selected, query)
        elif endpoint == "pages":
            rows = self._pages(selected, query)
        elif endpoint == "time":
            rows = self._times(selected, query)
        else:
            rows = self._dimension(endpoint, selected, query)
        return rows[query.offset :][: query.limit]

    # What passes

    def _names(self, view: Entry | None, field: str) -> list[str]:
        if view is None:
            return [""]
        if field == "referrer":
            return [self.source_of(view["referrer"]), view["referrer"]]
        if field == "language":
            return [language_name(view["locale"]), locale_name(view["locale"])]
        if field == "country":
            return [country_name(view["country"])]
        return [view[field]]

    def _passes_itself(self, view: Entry | None, query: ParsedQuery) -> bool:
        duration_ms = (view or {}).get("duration_ms", 0)
        if query.names_duration and not (duration_ms and query.is_within("duration", duration_ms)):
            return False
        if any((view or {}).get("hosting", False) != wanted for wanted in query.hosting):
            return False
        return all(
            holds(operator, self._names(view, field), values)
            for field, operator, values in query.filters
            if not field.startswith("prop_") and field not in {**ENTRIES, **EXITS}
        ) and (not (query.names_visit or query.goals) or self._visit_passes(view, query))

    def _visit_passes(self, view: Entry | None, query: ParsedQuery) -> bool:
        number = (view or {}).get("visit")
        if not number:
            return False
        views = self.of_visits[number]
        if any(_visitor(views[0]) != wanted for wanted in query.visitors):
            return False
        if any(self._bounced(views) != wanted for wanted in query.bounces):
            return False
        if not query.is_within("visit_views", len(views)):
            return False
        if not query.is_within("visit_duration", sum(times(views))):
            return False
        return all(self._reaches(views, self.goals.goal(goal)) for goal in query.goals) and all(
            holds(
                operator,
                self._names(views[-1 if field in EXITS else 0], {**ENTRIES, **EXITS}[field]),
                values,
            )
            for field, operator, values in query.filters
            if field in {**ENTRIES, **EXITS}
        )

    def _passes(self, view: Entry, query: ParsedQuery) -> bool:
        return self._passes_itself(view, query) and (
            not query.names_property
            or any(
                query.matches(*pair)
                for event in self.events
                if event["view"] == view["id"]
                for pair in pairs_of(event)
            )
        )

    def _passes_without_view(self, event: Entry, query: ParsedQuery) -> bool:
        if event["view"] in self.gone:
            return not query.filters_views
        return self._passes_itself(None, query)

    # Goals

    def _reaching(self, views: list[Entry], goal: Goal) -> Iterable[tuple[int, int]]:
        """Return the time and number of the views and events with which a visit reaches a goal."""
        for view in views:
            if goal.path is not None and is_path(view["path"], goal.path):
                yield view["time_ms"], view["id"]
        known = [view["id"] for view in views]
        for number, event in enumerate(self.events, 1):
            if event["view"] in known and is_event(event, goal):
                yield event["time_ms"], event.get("number", number)

    def _reaches(self, views: list[Entry], goal: Goal) -> bool:
        return any(True for _ in self._reaching(views, goal))

    def _funnel(self, number: str, selected: list[Entry], query: ParsedQuery) -> Entry:
        funnel = self.goals.funnel(number)
        left = [(views, LONG_AGO) for views in self._visits(selected, query.has).values()]
        steps: list[Entry] = []
        for goal in map(self.goals.goal, funnel.goals):
            reached = [
                (views, min((n for n in self._reaching(views, goal) if n >= since), default=None))
                for views, since in left
            ]
            left = [(views, number) for views, number in reached if number is not None]
            share = ratio(len(left), steps[0]["visits"] if steps else len(left))
            steps.append(
                {
                    "goal": goal.id,
                    "name": goal.name,
                    "visits": len(left),
                    "visits_percentage": share,
                }
            )
        return {"id": funnel.id, "name": funnel.name, "steps": steps}

    def _conversions(
        self, goal: Goal, query: ParsedQuery
    ) -> Iterable[tuple[int, list[tuple[str, str]]]]:
        """Return the time of each conversion, and the properties that may have its revenue.

        Under filters on views, those of the visits that have a view which passes.
        """

        def passes_view(view: Entry) -> bool:
            return self._passes(view, query)

        filters_views = bool(query.names_duration or query.hosting) or any(
            field not in {**ENTRIES, **EXITS} for field, *_ in query.filters
        )
        if filters_views:
            selected = {view["visit"] for view in self.views if self._passes(view, query)} - {0}

            def passes_view(view: Entry) -> bool:
                return view["visit"] in selected

        if goal.path is not None:
            for view in self.views:
                if is_path(view["path"], goal.path) and passes_view(view):
                    events = [event for event in self.events if event["view"] == view["id"]]
                    yield view["time_ms"], [pair for event in events for pair in pairs_of(event)]
            return
        by_id = {view["id"]: view for view in self.views}
        for event in filter(lambda event: is_event(event, goal), self.events):
            view = by_id.get(event["view"])
            if view is not None:
                passes = passes_view(view)
            else:
                passes = not filters_views and self._passes_without_view(event, query)
            if passes:
                yield event["time_ms"], pairs_of(event)

    def _goals(self, query: ParsedQuery) -> list[Entry]:
        others = without_goals(query)
        passing, passing_others = (
            [view for view in self.views if self._passes(view, each)] for each in (query, others)
        )
        found = {goal.id: list(self._conversions(goal, query)) for goal in self.goals.goals}

        def figures(has: Callable[[int], bool], in_series: Callable[[int], bool]) -> list[Entry]:
            visits, other_visits = (
                self._visits([view for view in views if in_series(view["time_ms"])], has)
                for views in (passing, passing_others)
            )
            rows = []
            for goal in self.goals.goals:
                properties = [pairs for time_ms, pairs in found[goal.id] if has(time_ms)]
                reached = [views for views in visits.values() if self._reaches(views, goal)]
                row: Entry = {
                    "conversions": len(properties),
                    "visits": len(reached),
                    "visits_percentage": ratio(len(reached), len(other_visits)),
                }
                if goal.revenue is not None:
                    texts = [
                        text
                        for name, text in chain.from_iterable(properties)
                        if name == goal.revenue
                    ]
                    row["revenue"] = {**revenue(texts), "currency": goal.currency}
                rows.append(row)
            return rows

        rows = [
            {"id": goal.id, "name": goal.name, **row}
            for goal, row in zip(self.goals.goals, figures(query.has, query.has), strict=True)
        ]
        if query.one("interval"):
            for row in rows:
                row["interval"] = []
            for date, has, in_series, _ in self._buckets(query):
                for row, of_bucket in zip(rows, figures(has, in_series), strict=True):
                    row["interval"].append({"date": date, **of_bucket})
        return sorted(rows, key=lambda row: (-row["conversions"], row["name"]))

    # The statistics

    def _summary(self, query: ParsedQuery) -> Entry:
        matching = [view for view in self.views if self._passes(view, query)]

        def figures(
            has: Callable[[int], bool],
            bounds: tuple[int | None, int],
            in_series: Callable[[int], bool] | None = None,
            intervals: Iterable[str] = ("week", "month"),
        ) -> Entry:
            selected = [view for view in matching if has(view["time_ms"])]
            of_visits = {}
            if query.flag("visits"):
                in_period = in_series or has
                selecting = [view for view in matching if in_period(view["time_ms"])]
                of_visits = self._figures_of_visits(self._visits(selecting, has))
            return {
                "visitors": visitors(selected, "q" if query.names_page else "p"),
                "pageviews": len(selected),
                "bounce_percentage": bounces(selected),
                "duration": quantile(times(selected), Fraction(1, 2)),
                **of_visits,
                **self._figures_of_visitors(selected, query, bounds, intervals),
            }

        start_ms = None if query.start is None else query.start_ms
        end_ms = self.now_ms if query.end is None else query.end_us // 1000
        found: Entry = {"current": figures(query.has, (start_ms, end_ms))}
        if query.flag("previous"):
            length = query.end_us // 1000 - query.start_ms + 1
            before, after = query.start_ms - length, query.start_ms - 1
            found["previous"] = figures(lambda time_ms: before <= time_ms <= after, (before, after))
        if query.one("interval"):
            found["interval"] = [
                {"date": date, **figures(has, bounds, in_series, [query.one("interval")])}
                for date, has, in_series, bounds in self._buckets(query)
            ]
        return found

    def _figures_of_visitors(
        self,
        selected: list[Entry],
        query: ParsedQuery,
        bounds: tuple[int | None, int],
        intervals: Iterable[str],
    ) -> Entry:
        """Return the figures of new and returning visitors, those that are defined."""
        filtered = {field for field, *_ in query.filters}
        if self.returning_zone is None or query.goals or query.names_property:
            return {}
        if filtered & {"path", "entry_page", "exit_page"} or query.names_behaviour:
            return {}
        known = Counter(view.get("since", "") for view in selected if view["p"])
        if known[""] * 100 > known.total():
            return {}
        first = known["new"] + known["month"]
        found = {"new_visitors": known["new"]}
        found["returning_visitors"] = known.total() - known[""] - known["new"]
        if "week" in intervals and self._is_one("week", *bounds):
            found["week_visitors"] = first + known["week"]
        if "month" in intervals and self._is_one("month", *bounds):
            found["month_visitors"] = first + known["midweek"]
        return found

    def _is_one(self, interval: str, low_ms: int | None, high_ms: int) -> bool:
        """Whether a span is one week or month, or of the present one all until today."""
        if low_ms is None:
            return False

        def local(time_ms: int) -> datetime:
            return (EPOCH + timedelta(milliseconds=time_ms)).astimezone(self.returning_zone)

        def label(time_ms: int) -> tuple[int, int]:
            moment = local(time_ms)
            week = moment.isocalendar()[:2]
            return week if interval == "week" else (moment.year, moment.month)

        return label(low_ms - 1) != label(low_ms) == label(high_ms) and (
            label(high_ms + 1) != label(high_ms)
            or local(high_ms + 1).date() >= local(self.now_ms).date()
        )

    def _buckets(
        self, query: ParsedQuery
    ) -> Iterable[tuple[str, Callable[[int], bool], Callable[[int], bool], tuple[int, int]]]:
        """Return of each bucket its date, whether a time is in it, and in any, and its bounds."""
        first = min((view["time_ms"] for view in self.views), default=None)
        start_ms = first if query.start is None else query.start_ms
        end_ms = self.now_ms if query.end is None else query.end_us // 1000
        if start_ms is None or start_ms > end_ms:
            return
        zone = ZoneInfo(query.one("timezone")) if query.one("timezone") else query.zone
        edges = calendar(query.one("interval"), start_ms // 1000, end_ms // 1000, zone)
        for number, (begin_s, date) in enumerate(edges):
            low = max(begin_s * 1000, start_ms)
            high = min(
                edges[number + 1][0] * 1000 - 1 if number + 1 < len(edges) else end_ms, end_ms
            )
            yield (
                date,
                lambda time_ms, low=low, high=high: low <= time_ms <= high,
                lambda time_ms: start_ms <= time_ms <= end_ms,
                (low, high),
            )

    # Visits

    def _visits(self, selected: list[Entry], has: Callable[[int], bool]) -> dict[int, list[Entry]]:
        """Return all views of the visits that have a selected view and began in a period."""
        wanted = {view["visit"] for view in selected if view.get("visit")}
        begun = {
            view["id"]
            for view in self.views
            if view["id"] in wanted and view["visit"] == view["id"] and has(view["time_ms"])
        }
        return {number: self.of_visits[number] for number in sorted(begun)}

    def _bounced(self, views: list[Entry]) -> bool:
        (first, *others) = views
        return not others and not any(
            event["view"] == first["id"]
            and (not event.get("of_load") or event["time_ms"] > first["time_ms"])
            for event in self.events
            if pairs_of(event)
        )

    def _figures_of_visits(self, visits: dict[int, list[Entry]]) -> Entry:
        count = len(visits)
        seen = [view for views in visits.values() for view in views]
        total_ms = sum(times(seen))
        means = self._means_of_visits(list(visits.values()), total_ms)
        return {"visits": count, "visit_pageviews": len(seen), **means}

    def _means_of_visits(self, visits: list[list[Entry]], total_ms: int) -> Entry:
        count = len(visits)
        return {
            "views_per_visit": round(sum(map(len, visits)) / count, 2) if count else 0,
            "visit_bounce_percentage": ratio(sum(map(self._bounced, visits)), count),
            "visit_duration": int(Fraction(total_ms, count) + Fraction(1, 2)) if count else 0,
        }

    def _of_rows(
        self, selected: list[Entry], query: ParsedQuery, value_of: Callable[[Entry], str]
    ) -> tuple[dict[str, list[list[Entry]]], int]:
        """Return the visits by row, and how many there are in all."""
        visits = list(self._visits(selected, query.has).values())
        rows: dict[str, list[list[Entry]]] = {}
        for views in visits:
            for value in {value_of(view) for view in views}:
                rows.setdefault(value, []).append(views)
        return rows, len(visits)

    def _ends_of_visits(
        self, endpoint: str, selected: list[Entry], query: ParsedQuery
    ) -> list[Entry]:
        seen_by, count = self._of_rows(selected, query, lambda view: view["path"])
        place = 0 if endpoint == "entries" else -1
        ends: dict[str, list[list[Entry]]] = {}
        for views in self._visits(selected, query.has).values():
            ends.setdefault(views[place]["path"], []).append(views)
        rows = []
        for path, visits in sorted(ends.items(), key=lambda entry: (-len(entry[1]), entry[0])):
            row = {
                "path": path,
                "visits": len(visits),
                "visits_percentage": ratio(len(visits), count),
            }
            if query.flag("summary"):
                pass
            elif endpoint == "exits":
                row["exit_percentage"] = ratio(len(visits), len(seen_by[path]))
            else:
                total_ms = sum(times([view for views in visits for view in views]))
                row |= self._means_of_visits(visits, total_ms)
            rows.append(row)
        return rows

    def _beside(self, endpoint: str, selected: list[Entry], query: ParsedQuery) -> list[Entry]:
        of = [view for view in selected if view["path"] == query.one("of") and view["visit"]]
        found: dict[str, int] = {}
        for view in of:
            visit = [other for other in self.views if other.get("visit") == view["visit"]]
            place = visit.index(view) + (1 if endpoint == "next" else -1)
            path = visit[place]["path"] if 0 <= place < len(visit) else ""
            found[path] = found.get(path, 0) + 1
        return [
            {"path": path, "views": views, "views_percentage": ratio(views, len(of))}
            for path, views in sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
        ]

    def _columns_of_visits(
        self,
        value: str,
        rows: dict[str, list[list[Entry]]],
        count: int,
        query: ParsedQuery,
        rows_of: Callable[[list[Entry]], set[str]],
    ) -> Entry:
        """Return the columns of a row; `rows_of` returns the rows that a visit is in."""
        visits = rows.get(value, [])
        columns = {"visits": len(visits), "visits_percentage": ratio(len(visits), count)}
        if not query.flag("summary"):
            columns["visit_bounce_percentage"] = ratio(sum(map(self._bounced, visits)), len(visits))
        columns = columns if query.flag("visits") else {}
        if goal := query.one("conversions"):
            reached = [views for views in visits if self._reaches(views, self.goals.goal(goal))]
            columns["conversions"] = len(reached)
            others = without_goals(query)
            passing = [v for v in self.views if query.has(v["time_ms"]) and self._passes(v, others)]
            of_all = self._visits(passing, query.has).values()
            total = sum(value in rows_of(views) for views in of_all)
            columns["conversion_percentage"] = ratio(len(reached), total)
        return columns

    def _pages(self, selected: list[Entry], query: ParsedQuery) -> list[Entry]:
        groups = grouped(selected, lambda view: view["path"])
        of_visits, visits = self._of_rows(selected, query, lambda view: view["path"])
        if shows_visits(query):
            groups = {name: [] for name in of_visits} | groups
        ordered = sorted(groups.items(), key=place_of("q", query, of_visits))
        rows = []
        for path, views in ordered:
            row = {
                "path": path,
                "visitors": visitors(views, "q"),
                "visitors_percentage": ratio(visitors(views, "q"), visitors(selected, "q")),
            }
            if query.flag("views"):
                row["pageviews"] = len(views)
            if not query.flag("summary"):
                row["pageviews"] = len(views)
                row["pageviews_percentage"] = ratio(len(views), len(selected))
                row["bounce_percentage"] = bounces(views)
                row["duration"] = sum(times(views))
            rows.append(row | self._columns_of_visits(path, of_visits, visits, query, pages_of))
        return rows

    def _times(self, selected: list[Entry], query: ParsedQuery) -> list[Entry]:
        of_visits, visits = self._of_rows(selected, query, lambda view: view["path"])
        rows = []
        for path, views in grouped(selected, lambda view: view["path"]).items():
            if times(views):
                row = {
                    "path": path,
                    "duration": quantile(times(views), Fraction(1, 2)),
                    "duration_percentage": ratio(sum(times(views)), sum(times(selected))),
                }
                if query.flag("total"):
                    row["total_duration"] = sum(times(views))
                if not query.flag("summary"):
                    row["visitors"] = visitors(views, "q")
                    row["duration_upper_quartile"] = quantile(times(views), Fraction(3, 4))
                    row["duration_lower_quartile"] = quantile(times(views), Fraction(1, 4))
                columns = self._columns_of_visits(path, of_visits, visits, query, pages_of)
                rows.append(row | columns)
        first = "duration_percentage" if query.flag("summary") else "visitors"
        if query.flag("total"):
            first = "total_duration"
        return sorted(rows, key=lambda row: (-row[first], -row["duration"], row["path"]))

    def _dimension(self, endpoint: str, selected: list[Entry], query: ParsedQuery) -> list[Entry]:
        name, value_of = {
            "referrers": (
                "referrer",
                (lambda view: self.source_of(view["referrer"]))
                if query.flag("grouped", default=True)
                else (lambda view: view["referrer"]),
            ),
            "sources": ("source", lambda view: view["utm_source"]),
            "mediums": ("medium", lambda view: view["utm_medium"]),
            "campaigns": ("campaign", lambda view: view["utm_campaign"]),
            "terms": ("term", lambda view: view["utm_term"]),
            "contents": ("content", lambda view: view["utm_content"]),
            "browsers": ("browser", lambda view: view["browser"]),
            "os": ("os", lambda view: view["os"]),
            "devices": ("device", lambda view: view["device"]),
            "countries": ("country", lambda view: country_name(view["country"])),
            "languages": (
                "language",
                lambda view: (locale_name if query.flag("locale") else language_name)(
                    view["locale"]
                ),
            ),
            "hosting": ("hosting", lambda view: str(view.get("hosting", False)).lower()),
        }[endpoint]
        kind = "q" if query.names_page else "p"
        groups = grouped(selected, value_of)

        def rows_of(views: list[Entry], among: ParsedQuery) -> set[str]:
            """Return the rows of a visit: by its first view, or by all that are selected."""
            if endpoint != "hosting":
                return {value_of(views[0])}
            return {
                value_of(view)
                for view in views
                if query.has(view["time_ms"]) and self._passes(view, among)
            }

        begun = list(self._visits(selected, query.has).values())
        of_visits: dict[str, list[list[Entry]]] = {}
        for views in begun:
            for value in rows_of(views, query):
                of_visits.setdefault(value, []).append(views)
        if shows_visits(query):
            groups = {name: [] for name in of_visits} | groups
        ordered = sorted(groups.items(), key=place_of(kind, query, of_visits))
        rows = []
        for value, views in ordered:
            row = {
                name: value,
                "visitors": visitors(views, kind),
                "visitors_percentage": ratio(visitors(views, kind), visitors(selected, kind)),
            }
            if query.flag("views"):
                row["pageviews"] = len(views)
            if not query.flag("summary"):
                row["bounce_percentage"] = bounces(views)
                row["duration"] = sum(times(views))
            columns = self._columns_of_visits(
                value,
                of_visits,
                len(begun),
                query,
                lambda views: rows_of(views, without_goals(query)),
            )
            rows.append(row | columns)
        return rows

    # What changed

    def changes(self, parameters: Pairs) -> Entry:
        """Return what GET /website/{hostname}/changes returns, apart from chance and pairs."""
        query = ParsedQuery(parameters)
        metric, goal = query.one("metric") or "visits", query.one("conversions")
        currency = {}
        if metric in {"conversions", "revenue"}:
            if metric == "revenue":
                currency = {"currency": self.goals.goal(goal).currency}
            query, goal = ParsedQuery([*parameters, ("goal", goal)]), None
        before, now = (self._counted(query, has, metric) for has in self._compared(query))
        names = {
            "source": lambda view: self.source_of(view["referrer"]),
            "entry_page": lambda view: view["path"],
            "country": lambda view: country_name(view["country"]),
            "device": lambda view: view["device"],
            "campaign": lambda view: view["utm_campaign"],
        }
        if goal is not None:
            names["goal"] = lambda view: self._goal_part(view, goal)
        limit = int(query.one("limit") or 5)
        return {
            "metric": metric,
            **currency,
            **_difference(before, now, lambda _: True),
            "dimensions": [
                {"dimension": dimension, **_parts(before, now, name_of, limit)}
                for dimension, name_of in names.items()
            ],
        }

    def pair(self, parameters: Pairs, parts: Iterable[tuple[str, str]]) -> Entry:
        """Return the figures of the visits whose first view has all of some parts."""
        query = ParsedQuery(parameters)
        metric = query.one("metric") or "visits"
        if metric in {"conversions", "revenue"}:
            query = ParsedQuery([*parameters, ("goal", query.one("conversions"))])
        before, now = (self._counted(query, has, metric) for has in self._compared(query))
        fields = {"entry_page": "path", "device": "device", "campaign": "utm_campaign"}

        def has_parts(view: Entry) -> bool:
            return all(
                (
                    self.source_of(view["referrer"])
                    if dimension == "source"
                    else country_name(view["country"])
                    if dimension == "country"
                    else view[fields[dimension]]
                )
                == name
                for dimension, name in parts
            )

        return _difference(before, now, has_parts)

    def _goal_part(self, view: Entry, goal: str) -> str:
        visit = [each for each in self.views if view["visit"] and each["visit"] == view["visit"]]
        return "reached" if self._reaches(visit, self.goals.goal(goal)) else "not reached"

    def _compared(self, query: ParsedQuery) -> tuple[Callable[[int], bool], Callable[[int], bool]]:
        """Return whether a time is in the period compared with, and in the period."""
        if query.one("compare_start"):
            bounds = [(name, query.one(f"compare_{name}")) for name in ("start", "end")]
            return ParsedQuery(bounds).has, query.has
        end_ms = query.end_us // 1000
        low_ms = query.start_ms - (end_ms - query.start_ms + 1)
        passed_ms = min(end_ms, self.now_ms) - query.start_ms + 1
        return lambda time_ms: low_ms <= time_ms < low_ms + passed_ms, query.has

    def _counted(
        self, query: ParsedQuery, has: Callable[[int], bool], metric: str
    ) -> list[tuple[Entry, Any]]:
        """Return the views by whose texts a metric is split, and what each counts."""
        selected = [
            view for view in self.views if has(view["time_ms"]) and self._passes(view, query)
        ]
        if metric == "visitors":
            kind = "q" if query.names_page else "p"
            return [(view, 1) for view in selected if view[kind]]
        visits = self._visits(selected, has).values()
        if metric == "revenue":
            goal = self.goals.goal(query.one("conversions"))
            return [(v[0], amount) for v in visits for amount in self._amounts(v, goal)]
        return [(views[0], len(views) if metric == "pageviews" else 1) for views in visits]

    def _amounts(self, visit: list[Entry], goal: Goal) -> list[Fraction]:
        """Return the amounts in a visit's conversions."""
        converting = [v["id"] for v in visit if goal.path is None or is_path(v["path"], goal.path)]
        return [
            Fraction(text)
            for event in self.events
            if event["view"] in converting and (goal.path is not None or is_event(event, goal))
            for name, text in pairs_of(event)
            if name == goal.revenue and text[-1:].isdigit()
        ]

    def _properties(self, query: ParsedQuery) -> list[Entry]:
        by_id = {view["id"]: view for view in self.views}
        by_value = any(field == "prop_name" for field, *_ in query.filters)
        carrying: dict[tuple[str, ...], int] = {}
        total = 0
        selected = [v for v in self.views if query.has(v["time_ms"]) and self._passes(v, query)]
        visits = {
            view["id"]: number
            for number, views in self._visits(selected, query.has).items()
            for view in views
        }
        seen_in: dict[tuple[str, ...], set[int]] = {}
        for event in self.events:
            view = by_id.get(event["view"])
            labels = {
                (name, value) if by_value else (name,)
                for name, value in pairs_of(event)
                if query.matches(name, value)
            }
            if event["view"] in visits:
                for label in labels:
                    seen_in.setdefault(label, set()).add(visits[event["view"]])
            passes = (
                self._passes_without_view(event, query)
                if view is None
                else self._passes_itself(view, query)
            )
            if query.has(event["time_ms"]) and passes:
                total += bool(labels)
                for label in labels:
                    carrying[label] = carrying.get(label, 0) + 1
        ordered = sorted(carrying.items(), key=lambda entry: (-entry[1], entry[0]))
        return [
            {
                **dict(zip(("name", "value"), label, strict=False)),
                "events": events,
                "events_percentage": ratio(events, total),
                **({"visits": len(seen_in.get(label, ()))} if query.flag("visits") else {}),
            }
            for label, events in ordered
        ][query.offset :][: query.limit]


def _difference(
    before: list[tuple[Entry, Any]],
    now: list[tuple[Entry, Any]],
    has: Callable[[Entry], bool],
) -> Entry:
    sums = [sum(count for view, count in counted if has(view)) for counted in (before, now)]
    return {"before": sums[0], "now": sums[1], "difference": sums[1] - sums[0]}


def _parts(
    before: list[tuple[Entry, Any]],
    now: list[tuple[Entry, Any]],
    name_of: Callable[[Entry], str],
    limit: int,
) -> Entry:
    names = {name_of(view) for view, _ in before + now}
    parts = [
        {"name": name, **_difference(before, now, lambda view, name=name: name_of(view) == name)}
        for name in names
    ]
    parts.sort(
        key=lambda part: (-abs(part["difference"]), -part["before"] - part["now"], part["name"])
    )
    shown = {part["name"] for part in parts[:limit]}
    return {
        "parts": parts[:limit],
        "others": {
            "parts": len(parts) - len(shown),
            **_difference(before, now, lambda view: name_of(view) not in shown),
        },
    }


def pairs_of(event: Entry) -> list[tuple[str, str]]:
    properties = event["properties"]
    return list(properties.items() if isinstance(properties, dict) else properties)


def _visitor(view: Entry) -> str:
    since = view.get("since", "")
    return "returning" if since not in ("", "new") else since


def is_path(path: str, pattern: str) -> bool:
    pieces = (re.escape(piece.replace("%2A", "*")) for piece in pattern.split("*"))
    return re.fullmatch(".*".join(pieces), path, re.DOTALL) is not None


def is_event(event: Entry, goal: Goal) -> bool:
    return any(
        name == goal.event and goal.value in (None, value) for name, value in pairs_of(event)
    )


def revenue(texts: list[str]) -> Entry:
    """Return the figures of the texts that are amounts: here those of PROPERTY_VALUES."""
    amounts = sorted(Fraction(text) for text in texts if text[-1:].isdigit())
    if not amounts:
        return {"sum": 0, "mean": 0, "median": 0}
    middle = (amounts[(len(amounts) - 1) // 2] + amounts[len(amounts) // 2]) / 2
    decimals = max([2, *(len(text.partition(".")[2]) for text in texts if text[-1:].isdigit())])
    return {
        "sum": sum(amounts),
        "mean": round(sum(amounts) / len(amounts), decimals),
        "median": middle,
    }


def grouped(views: list[Entry], value_of: Callable[[Entry], str]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for view in views:
        groups.setdefault(value_of(view), []).append(view)
    return groups


def pages_of(views: list[Entry]) -> set[str]:
    """Return the rows of pages that a visit is in."""
    return {view["path"] for view in views}


def shows_visits(query: ParsedQuery) -> bool:
    """Return whether rows have visits, and so may be there for these alone."""
    return bool(query.flag("visits") or query.one("conversions") or query.one("order") == "visits")


def place_of(
    kind: str, query: ParsedQuery, visits: dict[str, list[list[Entry]]]
) -> Callable[[tuple[str, list[Entry]]], Any]:
    """Return the sort key of a name and its views. `visits` has the visits of each name."""
    if query.one("order") == "visits":
        return lambda group: (-len(visits.get(group[0], [])), -len(group[1]), group[0])
    if query.one("order") == "pageviews":
        return lambda group: (-len(group[1]), group[0])
    return lambda group: (-visitors(group[1], kind), -len(group[1]), group[0])


def visitors(views: list[Entry], kind: str) -> int:
    return len([view for view in views if view[kind]])


def times(views: list[Entry]) -> list[int]:
    return [view["duration_ms"] for view in views if view["duration_ms"]]


def bounces(views: list[Entry]) -> float:
    timed = times([view for view in views if view["p"]])
    return ratio(len([time for time in timed if time <= 5000]), len(timed))


def ratio(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0


def quantile(values: list[int], share: Fraction) -> int:
    if not values:
        return 0
    ascending = sorted(values)
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return round(ascending[low] + (ascending[high] - ascending[low]) * (place - low))
