"""The engine over ClickHouse: what `medamad.query.reader` asks for, in SQL."""

from collections.abc import Container, Sequence
from functools import partial
from typing import Any, Final, Literal, Self

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.buckets import Buckets
from medamad.query.clickhouse.left_out import MOST_VISITS
from medamad.query.clickhouse.selection import Selection
from medamad.query.clickhouse.sql import (
    ALL,
    NONE,
    Condition,
    Days,
    Places,
    any_of,
    begun_in,
    during,
    every,
    on_any_of,
    places_in,
)
from medamad.query.clickhouse.website_rows import (
    Found,
    WebsiteRows,
    as_texts,
    column_of,
    labels_of,
)
from medamad.query.filters import VIEW_CONDITIONS
from medamad.query.period import ALWAYS, Period
from medamad.query.reader import OPEN_MS, Reader, Selected
from medamad.query.request import (
    NO_GAPS,
    Gap,
    Gaps,
    Query,
)
from medamad.query.sums import (
    BOUNCES,
    SINCE_PLACES,
    VISITS,
    AmountCounts,
    Conversions,
    GroupedVisits,
    PropertyCounts,
    ReachedGoals,
    Series,
    Tally,
    VisitGrouping,
    VisitSums,
    WhichView,
)
from medamad.storage.segments.format import BOUNCE_MS

_TALLY: Final = (
    "count()",
    "sum(first_today)",
    "sum(first_of_page)",
    "countIf(first_today AND duration_ms > 0)",
    f"countIf(first_today AND duration_ms BETWEEN 1 AND {BOUNCE_MS})",
    "sum(duration_ms)",
)
"""The rows of a `Tally`."""
_TALLIED: Final = ", ".join(f"{sql} AS t{row}" for row, sql in enumerate(_TALLY))
_ALL_QUARTILES: Final = "quantilesExactInclusiveIf(0.25, 0.5, 0.75)(duration_ms, duration_ms > 0)"
_QUARTILES: Final = ", ".join(f"{_ALL_QUARTILES}[{number}] AS q{number}" for number in (1, 2, 3))
_MEDIAN: Final = "quantileExactInclusiveIf(0.5)(duration_ms, duration_ms > 0) AS median"
_VISIT_SUMS: Final = (
    "count() AS s_visits, sum(views) AS s_views, countIf(views = 1 AND NOT engaged) AS s_bounces,"
    " sum(visible_ms) AS s_ms"
)
_SUM_NAMES: Final = ("s_visits", "s_views", "s_bounces", "s_ms")


@frozen(eq=False)
class ClickHouseReader(WebsiteRows, Reader):
    """Reads a website of a cluster."""

    def time_bounds(self) -> tuple[int, int]:
        return self.select(Query()).time_bounds()

    def last_counted_ms(self, period: Period) -> int | None:
        found = self.run(
            "SELECT max(time_ms) AS last, count() AS views FROM "
            + self.of_website("views", *during(period), "batch = 0", final=False)
        )
        return int(found["last"][0]) if int(found["views"][0]) else None

    def open_pages(self, now_ms: int) -> int:
        period = Period(now_ms - OPEN_MS, now_ms)
        found = self.run(
            "SELECT count() AS views FROM "
            + self.of_website("views", *during(period), "duration_ms = 0")
        )
        return int(found["views"][0])

    def select(self, query: Query) -> "ClickHouseSelected":
        return ClickHouseSelected(self, query, query.period)

    def select_left_out(self, rule: Query) -> "list[tuple[ClickHouseSelected, tuple[int, int]]]":
        selected = evolve(self, rules=(rule,), is_left_out=True).select(Query())
        return [(selected, selected.time_bounds())]

    def left_out_by(self, rules: Sequence[Query], table: str, days: Days) -> str:
        either = self._visits_left_out_by(rules, table, days)
        selecting = [ClickHouseSelected(self, rule, ALWAYS, (days,)) for rule in rules]
        without_visit = any_of(each.leaves_out_view for each in selecting)
        if table != "visits" and without_visit != NONE:
            without_visit = every((any_of(("visit = 0", self._lacks_first_view())), without_visit))
            if table == "events":
                views = self.of_website("views", days, without_visit, final=False, are_all=True)
                without_visit = f"view > 0 AND view IN (SELECT view FROM {views})"
            either.append(f"({without_visit})")
        if table == "events":
            without_view = any_of(each.leaves_out_events for each in selecting)
            either.append(f"(view = 0 AND {without_view})")
        return any_of(either)

    def _visits_left_out_by(self, rules: Sequence[Query], table: str, days: Days) -> list[str]:
        """Return conditions, one of which holds for a row if rules leave its visit out."""
        settled = {day: n for day, n in self.settled_days.items() if days.first <= day <= days.last}
        if self.visits_left_out is None or self.is_left_out or not settled:
            return self._find_visits_left_out(rules, (days,))
        key = (tuple(rules), self.hidden, self.sources)
        find = partial(self._visits_left_out_on, rules)
        visits = self.visits_left_out.on(self.website, key, settled, find)
        if visits is None:
            return self._find_visits_left_out(rules, (days,))
        known = [self.sets.any_number("visit", visits)]
        if table == "visits":
            return known
        others = (days, f"NOT {on_any_of([*settled], ALWAYS)}")
        more = [rule for rule in rules if not _is_within(settled, days, begun_in(rule.period))]
        return known + self._find_visits_left_out(more, others)

    def _visits_left_out_on(
        self, rules: Sequence[Query], days: Sequence[int]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return the visits that rules leave out which began on some days, and the day of each."""
        on_these = on_any_of(days, ALWAYS)
        left_out = any_of(self._find_visits_left_out(rules, (on_these,)))
        rows = self.of_website(
            "views", on_these, "view = visit", left_out, final=False, are_all=True
        )
        found = self.run(
            f"SELECT DISTINCT visit_day AS day, visit FROM {rows} LIMIT {MOST_VISITS + 1}"
        )
        return np.asarray(found.get("visit", ()), np.uint64), column_of(found, "day")

    def _find_visits_left_out(self, rules: Sequence[Query], days: Sequence[Condition]) -> list[str]:
        """Return conditions, one of which holds for a row if rules leave its visit out.

        They look for these visits, which began on some days.
        """
        of_first_view, of_any_view = [], []
        for rule in rules:
            within = (*days, begun_in(rule.period))
            selected = ClickHouseSelected(self, rule, ALWAYS, within)
            if during(rule.period) or not rule.filters_on(VIEW_CONDITIONS):
                of_first_view.append(selected.begins_left_out)
            else:
                of_any_view.append(selected.leaves_out_visit)
        either = []
        for is_wanted, conditions in (
            (("view = visit",), of_first_view),
            (("visit > 0", f"NOT {self._lacks_first_view()}"), of_any_view),
        ):
            if conditions:
                wanted = any_of(conditions)
                rows = self.of_website(
                    "views", *days, *is_wanted, wanted, final=False, are_all=True
                )
                either.append(f"visit IN (SELECT visit FROM {rows})")
        return either

    def _lacks_first_view(self) -> str:
        """Return the condition that there is no first view of a row's visit."""
        # Only visits of the first days may lack it, since it was past its retention.
        first = Days(0, self.first_day + 1)
        known = self.of_website("views", first, "view = visit", final=False, are_all=True)
        return f"({every((first, f'visit NOT IN (SELECT visit FROM {known})'))})"

    def count_properties(self, query: Query, *, by_value: bool) -> PropertyCounts:
        selected = self.select(query)
        label = "name, value" if by_value else "name"
        matching = selected.property_condition or ALL
        here = [*selected.here, matching, selected.events_of_views(without_view=True)]
        counted = self.run(
            f"SELECT {as_texts(label)}, uniqExact(event) AS events"
            f" FROM {self.of_website('events', *here, final=False)} GROUP BY {label}"
        )
        total = self.run(
            "SELECT uniqExact(event) AS events"
            f" FROM {self.of_website('events', *here, final=False)}"
        )
        events = dict(zip(labels_of(counted), counted.get("events", ()), strict=True))
        visits: dict[str, int] = {}
        gaps = selected.left_out
        if query.with_visits:
            seen = self.run(
                f"SELECT {as_texts(label)}, uniqExact(visit) AS visits FROM "
                + self.of_website("events", *selected.chosen(), matching, final=False)
                + f" GROUP BY {label}"
            )
            visits = dict(zip(labels_of(seen), seen.get("visits", ()), strict=True))
            gaps |= selected.visit_gaps
        labels = sorted({*events, *visits})
        return PropertyCounts(
            labels,
            np.array([events.get(label, 0) for label in labels], np.int64),
            np.array([visits.get(label, 0) for label in labels], np.int64)
            if query.with_visits
            else None,
            int(total["events"][0]),
            gaps,
        )


@frozen(eq=False)
class ClickHouseSelected(Selection, Selected):
    """The views that match a query and are in a period."""

    def time_bounds(self) -> tuple[int, int]:
        here = [*self.here, *self._own_conditions()]
        found = self.reader.run(
            "SELECT min(time_ms) AS least, max(time_ms) AS most, count() AS views"
            f" FROM {self.reader.of_website('views', *here, final=False)}"
        )
        (views,) = found["views"].tolist()
        return (int(found["least"][0]), int(found["most"][0])) if views else (1, 0)

    def during(self, period: Period, gap: Gap = Gap.FIGURES) -> Self:  # noqa: ARG002 - no rollups
        return evolve(self, period=period)

    def with_single_durations(self) -> tuple[Self, Gaps]:
        return self, NO_GAPS

    # Views

    def tally(self, dimension: Dimension, *, with_durations: bool = True) -> Tally:  # noqa: ARG002
        column = dimension.attribute
        found = self.reader.run(
            f"SELECT CAST({column} AS String) AS text, {_TALLIED} FROM {self._views()}"
            f" GROUP BY {column}"
        )
        codes = self.reader.texts.codes(dimension, found.get("text", ()))
        return _tally(found, codes, len(self.reader.texts(dimension)))

    def series(self, buckets: Buckets | None) -> Series:
        places = places_in(buckets)
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, {_TALLIED}, {_MEDIAN} FROM {self._views()}"
            " GROUP BY bucket"
        )
        medians_ms = np.zeros(places.size, np.int64)
        numbers = _places(found, places)
        if len(numbers):
            medians_ms[numbers] = _rounded(found["median"])
        return Series(_tally(found, numbers, places.size), medians_ms)

    def quartiles(self, paths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        wanted = np.zeros(len(self.reader.texts(Dimension.PATH)), np.bool_)
        wanted[paths] = True
        condition = self.reader.sets.matching("path", Dimension.PATH, wanted)
        found = self.reader.run(
            f"SELECT CAST(path AS String) AS text, {_QUARTILES} FROM {self._views(condition)}"
            " GROUP BY path"
        )
        codes = self.reader.texts.codes(Dimension.PATH, found.get("text", ()))
        quartiles = np.zeros((3, len(wanted)), np.int64)
        inside = codes < len(wanted)
        for row, of_codes in enumerate(quartiles if len(codes) else (), 1):
            of_codes[codes[inside]] = _rounded(found[f"q{row}"])[inside]
        return quartiles[:, paths]

    def visitors_by_since(self, buckets: Buckets) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        places = places_in(buckets)
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, CAST(since AS String) AS text,"
            f" sum(first_today) AS visitors FROM {self._views()} GROUP BY bucket, since"
        )
        sums = np.zeros((places.size, 1 + len(SINCE_PLACES)), np.int64)
        numbers = np.clip(_places(found, places), 0, max(places.size - 1, 0))
        rows = [SINCE_PLACES.get(text, 0) for text in found.get("text", ())]
        np.add.at(sums, (numbers, np.array(rows, np.intp)), column_of(found, "visitors"))
        return sums, np.ones(places.size, np.bool_)

    # Visits

    def visits_by_bucket(self, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
        places, visits = places_in(buckets), self._grouped("time_ms")
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, {_VISIT_SUMS} FROM {visits} GROUP BY bucket"
        )
        sums = _visit_sums(found, _places(found, places))
        return sums.dense(places.size), self.visit_gaps

    def group_visits(
        self,
        groupings: Sequence[VisitGrouping],
        *,
        include_rollups: bool = True,  # noqa: ARG002 - there are none
    ) -> GroupedVisits:
        found = list(map(self._group, groupings))
        return GroupedVisits(found, int(found[0].visits.sum()), self.visit_gaps)

    def _group(self, grouping: VisitGrouping) -> VisitSums:
        column, sums = grouping.dimension.attribute, "count() AS s_visits"
        among, reached = self._among(grouping), ALL
        if grouping.reached is not None:
            reached = self.reaches(grouping.reached, [begun_in(self.period)])
        begun = among if among == ALL else f"visit IN {self._numbers(among)}"
        if grouping.which is WhichView.ANY:
            column, sums = "page", "sum(visits) AS s_visits"
            rows = self._seen(reached, begun)
        elif grouping.which is WhichView.LAST:
            column = "exit_path"
            rows = self._grouped(column, reached, begun)
        elif grouping.up_to == VISITS:
            rows = self._begins(column, among, reached)
        elif grouping.up_to == BOUNCES:
            sums += ", countIf(has_bounced) AS s_bounces"
            rows = self._begins(column, among, reached, with_bounces=True)
        else:
            sums = _VISIT_SUMS
            rows = self._grouped(column, reached, begun)
        found = self.reader.run(
            f"SELECT CAST({column} AS String) AS text, {sums} FROM {rows} GROUP BY {column}"
        )
        texts = found.get("text", ())
        return _visit_sums(found, self.reader.texts.codes(grouping.dimension, texts))

    def amounts_by_first_view(
        self, goal: Goal, groupings: Sequence[VisitGrouping]
    ) -> tuple[list[AmountCounts], Gaps]:
        reader = self.reader
        days = [begun_in(self.period)]
        table, condition = self._reaching(goal)
        key = "view" if table == "views" else "event"
        reaching = self._all_rows(table, *days, "visit > 0", condition)
        amounts = reader.of_website(
            "events",
            *self.chosen(),
            self._has_revenue(goal),
            f"{key} IN (SELECT {key} FROM {reaching})",
        )
        found = []
        for grouping in groupings:
            column = grouping.dimension.attribute
            begins = self._begins(f"visit, {column}", self._among(grouping))
            rows = reader.run(
                f"SELECT CAST({column} AS String) AS text, {as_texts('name, value')},"
                f" count() AS times FROM (SELECT visit, name, value FROM {amounts}) AS amounts"
                f" INNER JOIN {begins} AS begins USING (visit) GROUP BY {column}, name, value"
            )
            found.append(
                AmountCounts(
                    reader.texts.codes(grouping.dimension, rows.get("text", ())),
                    reader.property_codes(rows),
                    column_of(rows, "times"),
                )
            )
        return found, self.visit_gaps

    def pages_beside(self, path: str, step: Literal[1, -1]) -> NDArray[np.int64]:
        reader = self.reader
        of_page = reader.sets.one("path", path)
        mine = every((*during(self.period), *self._own_conditions(), of_page, "visit > 0"))
        containing = self._all_rows("views", mine)
        rows = reader.of_website(
            "views",
            *self._days_of_hits,
            "visit > 0",
            f"visit IN (SELECT visit FROM {containing})",
        )
        views = "arraySort(groupArray((view, CAST(path AS String), mine)))"
        beside = (
            "arrayPushBack(arrayPopFront(arrayMap(x -> (x.2, 1), a)), ('', 0))"
            if step == 1
            else "arrayPushFront(arrayPopBack(arrayMap(x -> (x.2, 1), a)), ('', 0))"
        )
        found = reader.run(
            "SELECT tupleElement(pair, 1) AS text, tupleElement(pair, 2) AS is_there,"
            " count() AS views FROM (SELECT arrayJoin(arrayFilter((y, x) -> x.3 = 1,"
            f" {beside}, a)) AS pair FROM (SELECT {views} AS a FROM (SELECT visit, view, path,"
            f" CAST({mine} AS UInt8) AS mine FROM {rows}) GROUP BY visit HAVING min(view) = visit))"
            " GROUP BY pair"
        )
        codes = reader.texts.codes(Dimension.PATH, found.get("text", ()))
        counts = np.zeros(len(reader.texts(Dimension.PATH)) + 1, np.int64)
        places = np.where(column_of(found, "is_there") == 1, codes, len(counts) - 1)
        np.add.at(counts, places, column_of(found, "views"))
        return counts

    # Goals

    def conversions(self, goals: Sequence[Goal], buckets: Buckets | None) -> ReachedGoals:
        passing, without_view = self._passing()
        found = [self._of_goal(goal, buckets, passing, without_view=without_view) for goal in goals]
        visits = self._count_visits(goals, buckets) if self.query.with_visits else None
        return ReachedGoals(found, visits, NO_GAPS)

    def _of_goal(
        self, goal: Goal, buckets: Buckets | None, passing: list[Condition], *, without_view: bool
    ) -> Conversions:
        reader, places = self.reader, places_in(buckets)
        table, condition = self._reaching(goal)
        key, counted, here = "view", "count()", [*self.here, *passing]
        if table == "events":
            key, counted = "event", "uniqExact(event)"
            here = [*self.here, self._events_of(passing, without_view=without_view)]
        rows = reader.of_website(table, *here, condition, final=table == "views")
        found = reader.run(
            f"SELECT {places.key} AS bucket, {counted} AS hits FROM {rows} GROUP BY bucket"
        )
        counts = np.zeros(places.size, np.int64)
        np.add.at(counts, _places(found, places), column_of(found, "hits"))
        if goal.revenue is None:
            return Conversions(goal, counts, None)
        paying = (self._has_revenue(goal), f"{key} IN (SELECT {key} FROM {rows})")
        if table == "views":
            amounts = reader.of_website("events", "view > 0", *paying)
            source = (
                f"(SELECT view, name, value FROM {amounts}) AS amounts"
                f" INNER JOIN (SELECT view, time_ms FROM {rows}) AS hits USING (view)"
            )
        else:
            source = reader.of_website("events", *here, *paying)
        paid = reader.run(
            f"SELECT {places.key} AS bucket, {as_texts('name, value')}, count() AS times"
            f" FROM {source} GROUP BY bucket, name, value"
        )
        amounts_found = AmountCounts(
            _places(paid, places), reader.property_codes(paid), column_of(paid, "times")
        )
        return Conversions(goal, counts, amounts_found)

    def count_visits(self, buckets: Buckets | None) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self._count_visits((), buckets)[0]
        return counts

    def _count_visits(self, goals: Sequence[Goal], buckets: Buckets | None) -> NDArray[np.int64]:
        """Return the visits by bucket, and those that reached each goal, shape (1 + goals, n)."""
        places = places_in(buckets)
        days = [begun_in(self.period)]
        columns = ["count() AS visits0"]
        columns += [
            f"countIf({self.reaches(goal, days)}) AS visits{number}"
            for number, goal in enumerate(goals, 1)
        ]
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, {', '.join(columns)}"
            f" FROM {self._begins('visit, visit_day, time_ms')}"
            " GROUP BY bucket"
        )
        counts = np.zeros((len(columns), places.size), np.int64)
        for number, row in enumerate(counts):
            np.add.at(row, _places(found, places), column_of(found, f"visits{number}"))
        return counts

    def count_steps(self, goals: Sequence[Goal]) -> NDArray[np.int64]:
        of_website, chosen = self.reader.of_website, self.chosen()
        rows = []
        for table, number in (("views", "view"), ("events", "event")):
            flags = [
                f"CAST({condition if of == table else 0} AS UInt8) AS g{place}"
                for place, (of, condition) in enumerate(map(self._reaching, goals))
            ]
            hits = of_website(table, *chosen, final=False)
            rows.append(
                f"SELECT visit, time_ms, {number} AS number, {', '.join(flags)} FROM {hits}"
            )
        never = "(toInt64(9223372036854775807), toUInt64(0))"
        moments = [
            f"arrayPushBack(arraySort(groupArrayIf((time_ms, number), g{place})), {never})"
            f" AS a{place}"
            for place in range(len(goals))
        ]
        steps = f"(SELECT {', '.join(moments)} FROM ({' UNION ALL '.join(rows)}) GROUP BY visit)"
        # Each step looks at the moment that the one before it has found.
        for place in range(len(goals)):
            # The first may be at any time, also before 1970.
            since = f"arrayFirst(x -> x >= m{place - 1}, a{place})" if place else "a0[1]"
            kept = [f"m{each}" for each in range(place)] + [
                f"a{each}" for each in range(place + 1, len(goals))
            ]
            steps = f"(SELECT {', '.join([f'{since} AS m{place}', *kept])} FROM {steps})"
        counts = [f"countIf(m{place} < {never}) AS steps{place}" for place in range(len(goals))]
        found = self.reader.run(f"SELECT {', '.join(counts)} FROM {steps}")
        return np.array([int(found[f"steps{place}"][0]) for place in range(len(goals))], np.int64)


def _is_within(settled: Container[int], *conditions: Days) -> bool:
    """Return whether all days that fulfil some conditions are settled."""
    days = Days.in_all(conditions)
    return all(day in settled for day in range(days.first, days.last + 1))


def _places(found: Found, places: Places) -> NDArray[np.int64]:
    return places.places_of(column_of(found, "bucket"))


def _tally(found: Found, numbers: NDArray[np.int64], size: int) -> Tally:
    sums = np.zeros((len(_TALLY), size), np.int64)
    for row, of_numbers in enumerate(sums):
        of_numbers[numbers] = column_of(found, f"t{row}")
    return Tally(sums, NO_GAPS)


def _rounded(durations_ms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return durations in whole milliseconds; 0 of none."""
    return np.rint(np.nan_to_num(durations_ms)).astype(np.int64)


def _visit_sums(found: Found, codes: NDArray[np.int64]) -> VisitSums:
    """Return sums by code. Those that were not asked for are 0."""
    order = np.argsort(codes)
    nothing = np.zeros(len(codes), np.int64)
    sums = [column_of(found, name) if name in found else nothing for name in _SUM_NAMES]
    return VisitSums(codes[order], np.array(sums, np.int64)[:, order])
