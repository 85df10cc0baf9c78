"""The engine over ClickHouse: what `medamad.query.reader` asks for, in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.clickhouse.client import Client
from medamad.domain.dimensions import Dimension, property_text
from medamad.domain.goals import Goal
from medamad.domain.zones import DAY_MS
from medamad.lookup.referrers import Sources
from medamad.query.buckets import Buckets
from medamad.query.clickhouse.sql import (
    ALL,
    Places,
    Sets,
    begun_in,
    during,
    every,
    on_days,
    places_in,
)
from medamad.query.clickhouse.texts import WebsiteTexts
from medamad.query.filters import (
    BOUNCE_FIELD,
    BOUNCES,
    DURATION_FIELD,
    ENTRY_FIELDS,
    EXIT_FIELDS,
    VIEW_CONDITIONS,
    VIEW_FIELDS,
    VISIT_DURATION_FIELD,
    VISIT_FIELDS,
    VISIT_VIEWS_FIELD,
    Bounds,
    FilterField,
    code_masks,
    goal_mask,
    matches_without_view,
    property_mask,
)
from medamad.query.period import ALWAYS, Period
from medamad.query.reader import Reader, Selected
from medamad.query.request import (
    NO_GAPS,
    Cancellation,
    Gap,
    Gaps,
    Query,
)
from medamad.query.spans import Spans
from medamad.query.sums import (
    SINCE_PLACES,
    VISITS,
    Amounts,
    Conversions,
    FirstViewAmounts,
    FirstViewText,
    PropertyCounts,
    Quartiles,
    ReachedGoals,
    RowVisits,
    Series,
    Tally,
    VisitSums,
)
from medamad.storage.segments.format import BOUNCE_MS

Found: TypeAlias = Mapping[str, Any]
"""A result: its columns by name."""

_OPEN_MS: Final = 5 * 60_000
_SLOT_MS: Final = 15 * 60_000
"""Days begin at a multiple of this in every zone of today."""

_TALLY: Final[Mapping[str, str]] = {
    "views": "count()",
    "day_visitors": "sum(first_today)",
    "page_visitors": "sum(first_of_page)",
    "timed_visitors": "countIf(first_today AND duration_ms > 0)",
    "bounces": f"countIf(first_today AND duration_ms BETWEEN 1 AND {BOUNCE_MS})",
    "duration_ms": "sum(duration_ms)",
}
_TALLIED: Final = ", ".join(f"{sql} AS t_{name}" for name, sql in _TALLY.items())
_BEHAVIOUR: Final[Mapping[str, str]] = {
    VISIT_VIEWS_FIELD: "count()",
    VISIT_DURATION_FIELD: "sum(duration_ms)",
}
"""The sums of the views of a visit that a filter bounds."""
_ALL_QUARTILES: Final = "quantilesExactInclusiveIf(0.25, 0.5, 0.75)(duration_ms, duration_ms > 0)"
_QUARTILES: Final = "countIf(duration_ms > 0) AS timed, " + ", ".join(
    f"{_ALL_QUARTILES}[{number}] AS q{number}" for number in (1, 2, 3)
)
_MEDIAN: Final = "quantileExactInclusiveIf(0.5)(duration_ms, duration_ms > 0) AS median"
_OF_VISIT: Final = "any(visit_day) AS day, count() AS views, sum(duration_ms) AS visible_ms"
_VISIT_SUMS: Final = (
    "count() AS s_visits, sum(views) AS s_views, countIf(views = 1 AND NOT engaged) AS s_bounces,"
    " sum(visible_ms) AS s_ms"
)
_SUM_NAMES: Final = ("s_visits", "s_views", "s_bounces", "s_ms")


@frozen(eq=False)
class ClickHouseReader(Reader):
    """Reads a website of a cluster. Raises ClickHouseError if a server cannot answer."""

    client: Client
    website: int
    sources: Sources
    cancellation: Cancellation
    texts: WebsiteTexts
    sets: Sets = field(init=False)

    @sets.default
    def _make_sets(self) -> Sets:
        return Sets(self.texts)

    def time_bounds(self) -> tuple[int, int]:
        found = self.run(
            f"SELECT min(time_ms) AS least, max(time_ms) AS most, count() AS views"
            f" FROM {self.of_website('views', final=False)}"
        )
        (views,) = found["views"].tolist()
        return (int(found["least"][0]), int(found["most"][0])) if views else (1, 0)

    def open_pages(self, now_ms: int) -> int:
        period = Period(now_ms - _OPEN_MS, now_ms)
        found = self.run(
            "SELECT count() AS views FROM "
            + self.of_website("views", *during(period), "duration_ms = 0")
        )
        return int(found["views"][0])

    def select(self, query: Query) -> "ClickHouseSelected":
        return ClickHouseSelected(self, query, query.period)

    def count_properties(self, query: Query, *, by_value: bool) -> PropertyCounts:
        selected = self.select(query)
        label = "name, value" if by_value else "name"
        matching = selected.property_condition or ALL
        here = [*during(query.period), matching, selected.events_of_views(without_view=True)]
        counted = self.run(
            f"SELECT {_as_texts(label)}, uniqExact(event) AS events"
            f" FROM {self.of_website('events', *here, final=False)} GROUP BY {label}"
        )
        total = self.run(
            "SELECT uniqExact(event) AS events"
            f" FROM {self.of_website('events', *here, final=False)}"
        )
        events = dict(zip(_labels(counted), counted.get("events", ()), strict=True))
        visits: dict[str, int] = {}
        gaps = selected.left_out
        if query.with_visits:
            seen = self.run(
                f"SELECT {_as_texts(label)}, uniqExact(visit) AS visits FROM "
                + self.of_website("events", *selected.chosen(), matching, final=False)
                + f" GROUP BY {label}"
            )
            visits = dict(zip(_labels(seen), seen.get("visits", ()), strict=True))
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

    def run(self, statement: str) -> Found:
        """Return the result of a SELECT. Raises ClickHouseError, and Cancelled."""
        self.cancellation.check()
        return self.client.query(
            statement, uploads=self.sets.used_in(statement), check=self.cancellation.check
        )

    def of_website(self, table: str, *conditions: str, final: bool = True) -> str:
        """Return a table's rows of the website that fulfil some conditions, as SQL has it.

        Rows that were sent several times may be there several times unless they are `final`.
        """
        where = every((f"website = {self.website}", *conditions))
        # A duration may be that of an earlier version of a row.
        final = final or "duration_ms" in where
        return f"{self.client.table(table)}{' FINAL' if final else ''} WHERE {where}"

    def property_codes(self, found: Found) -> NDArray[np.int64]:
        """Return the codes of the properties in the columns `name` and `value`."""
        return self.texts.codes(Dimension.PROPERTY, _labels(found))


def _as_texts(columns: str) -> str:
    return ", ".join(f"CAST({name} AS String) AS as_{name}" for name in columns.split(", "))


def _labels(found: Found) -> list[str]:
    names: list[str] = found.get("as_name", [])
    if "as_value" not in found:
        return names
    return [property_text(*pair) for pair in zip(names, found["as_value"], strict=True)]


@frozen(eq=False)
class ClickHouseSelected(Selected):
    """The views that match a query and are in a period, as conditions."""

    reader: ClickHouseReader
    query: Query
    period: Period
    view_condition: str = field(init=False)
    """That a view itself matches the filters on views."""
    property_condition: str | None = field(init=False)
    """That an event's property matches the filters on properties, None if there are none."""
    _entries: list[str] = field(init=False)
    _exits: list[str] = field(init=False)
    _cached: dict[str, Any] = field(factory=dict, init=False)

    @view_condition.default
    def _match_views(self) -> str:
        bounds = Bounds.of(self.query, DURATION_FIELD)
        conditions = self._conditions(VIEW_FIELDS)
        if bounds is not None:
            conditions += ["duration_ms > 0", _within("duration_ms", bounds)]
        return every(conditions)

    @property_condition.default
    def _match_properties(self) -> str | None:
        if not self.query.has_property_filter:
            return None
        reader = self.reader
        mask = property_mask(reader.texts, self.query, reader.cancellation)
        return reader.sets.matching("", Dimension.PROPERTY, mask)

    @_entries.default
    def _match_entries(self) -> list[str]:
        return self._conditions(ENTRY_FIELDS)

    @_exits.default
    def _match_exits(self) -> list[str]:
        return self._conditions(EXIT_FIELDS, "argMax({}, view)")

    def _conditions(self, fields: Mapping[str, FilterField], column: str = "{}") -> list[str]:
        reader = self.reader
        masks = code_masks(reader.texts, self.query, reader.sources, reader.cancellation, fields)
        return [
            reader.sets.matching(column.format(dimension.attribute), dimension, mask)
            for dimension, mask in masks.items()
        ]

    # What is selected

    @property
    def _is_of_visits(self) -> bool:
        return bool(self.query.filters_on(VISIT_FIELDS))

    @property
    def left_out(self) -> Gaps:
        return self.visit_gaps if self._is_of_visits else NO_GAPS

    @property
    def visit_gaps(self) -> Gaps:
        if "gaps" not in self._cached:
            self._cached["gaps"] = self._find_gaps()
        found: Gaps = self._cached["gaps"]
        return found

    def _find_gaps(self) -> Gaps:
        """Return the days in the period on which views are without a visit.

        That is, all views that an import has of a day, or all others.
        """
        without = self._batches_by_day("visit = 0", *during(self.period))
        if not without:
            return NO_GAPS
        # Few views of a website belong to no visit: only then do the others matter.
        batches = ", ".join(sorted({str(batch) for batch, _ in without}))
        start_ms, end_ms = self.period.start_ms, self.period.end_ms
        whole_days = Period(
            None if start_ms is None else start_ms - DAY_MS,
            None if end_ms is None else end_ms + DAY_MS,
        )
        having = self._batches_by_day("visit > 0", *during(whole_days), f"batch IN ({batches})")
        return Gaps((Gap.VISITS, day) for _, day in without - having)

    def _batches_by_day(self, *conditions: str) -> set[tuple[int, int]]:
        """Return the batches of some views, each with a local day that it has some on."""
        found = self.reader.run(
            f"SELECT DISTINCT batch, toInt64(floor(time_ms / {_SLOT_MS})) AS slot"
            f" FROM {self.reader.of_website('views', *conditions, final=False)}"
        )
        zone = Period(zone=self.period.zone)
        return {
            (batch, day)
            for batch, slot in zip(_column(found, "batch"), _column(found, "slot"), strict=True)
            for day in zone.days_of(int(slot) * _SLOT_MS, int(slot) * _SLOT_MS)
        }

    def during(self, period: Period, gap: Gap = Gap.FIGURES) -> Self:  # noqa: ARG002 - no rollups
        return evolve(self, period=period)

    def with_single_durations(self) -> tuple[Self, Gaps]:
        return self, NO_GAPS

    def _visit_conditions(self) -> list[str]:
        """Return the conditions on the visit of a row that it fulfils if the visit matches."""
        if not self._is_of_visits:
            return []
        of_website = self.reader.of_website
        days = self._days_of_hits()
        begun = of_website("views", *days, "view = visit", *self._entries, final=False)
        conditions = ["visit > 0", *days, f"visit IN (SELECT visit FROM {begun})"]
        whole = [*self._exits, *self._behaviour(days)]
        if whole:
            rows = of_website("views", *days, "visit > 0")
            visits = f"{rows} GROUP BY visit HAVING {every(whole)}"
            conditions.append(f"visit IN (SELECT visit FROM {visits})")
        return conditions + [self.reaches(goal, days) for goal in self.query.goals]

    def _behaviour(self, days: Sequence[str]) -> list[str]:
        """Return the conditions on what a visit that matches consists of, which aggregate views."""
        conditions = [
            _within(sum_of_views, bounds)
            for field_, sum_of_views in _BEHAVIOUR.items()
            if (bounds := Bounds.of(self.query, field_)) is not None
        ]
        for bounced in self.query.filters_on((BOUNCE_FIELD,)):
            has_bounced = f"(count() = 1 AND NOT visit IN ({self._engaged(days)}))"
            is_wanted = bounced.values == BOUNCES[:1]
            conditions.append(has_bounced if is_wanted else f"NOT {has_bounced}")
        return conditions

    def _engaged(self, days: Sequence[str]) -> str:
        """Return the visits with an event later than the load of its view."""
        late = self.reader.of_website("events", *days, "visit > 0", "late", final=False)
        return f"SELECT visit FROM {late}"

    def reaches(self, goal: Goal, days: Sequence[str]) -> str:
        """Return the condition that the visit of a row reached a goal; it began on some days."""
        table, condition = self._reaching(goal)
        rows = self.reader.of_website(table, *days, "visit > 0", condition, final=False)
        return f"visit IN (SELECT visit FROM {rows})"

    def _reaching(self, goal: Goal) -> tuple[str, str]:
        """Return the table whose rows reach a goal, and the condition that one does."""
        reader = self.reader
        mask = goal_mask(reader.texts, goal, reader.cancellation)
        if goal.path is not None:
            return "views", reader.sets.matching("path", Dimension.PATH, mask)
        return "events", reader.sets.matching("", Dimension.PROPERTY, mask)

    def _days_of_hits(self) -> list[str]:
        """Return the conditions that a visit began on the days on which those of hits here did."""
        if self.period == ALWAYS or not during(self.period):
            return []
        key = f"days {self.period.start_ms} {self.period.end_ms}"
        if key not in self._cached:
            bounds = []
            for table in ("views", "events"):
                rows = self.reader.of_website(table, *during(self.period), final=False)
                found = self.reader.run(
                    "SELECT min(visit_day) AS first, max(visit_day) AS last, count() AS hits"
                    f" FROM {rows}"
                )
                if found["hits"][0]:
                    bounds += [int(found["first"][0]), int(found["last"][0])]
            self._cached[key] = on_days(min(bounds), max(bounds)) if bounds else ["0"]
        days: list[str] = self._cached[key]
        return days

    def _own_conditions(self, *, with_properties: bool = True) -> list[str]:
        """Return the conditions that a view matches all filters."""
        conditions = [self.view_condition]
        if with_properties and self.property_condition is not None:
            rows = self.reader.of_website(
                "events", "view > 0", self.property_condition, final=False
            )
            conditions.append(f"view IN (SELECT view FROM {rows})")
        return conditions + self._visit_conditions()

    def _views(self, *conditions: str) -> str:
        """Return the selected views that also fulfil some conditions."""
        return self.reader.of_website(
            "views", *during(self.period), *self._own_conditions(), *conditions
        )

    @property
    def _matches_all(self) -> bool:
        return every(self._own_conditions()) == ALL and not self.query.filters

    def _selecting(self) -> list[str]:
        """Return the conditions that a visit which began in the period has a selected view."""
        conditions = [*begun_in(self.period), "visit > 0", *self._visit_conditions()]
        if self.query.filters_on(VIEW_CONDITIONS):
            rows = self.reader.of_website(
                "views",
                "visit > 0",
                *during(self.period),
                *self._own_conditions(),
                final=False,
            )
            conditions.append(f"visit IN (SELECT visit FROM {rows})")
        return conditions

    def _begins(self, *conditions: str, final: bool = True) -> str:
        """Return the first views of the selected visits, those that fulfil some conditions."""
        here = ["view = visit", *during(self.period), *self._selecting()]
        return self.reader.of_website("views", *here, *conditions, final=final)

    def chosen(self) -> list[str]:
        """Return the conditions that a row belongs to a selected visit."""
        begins = self._begins(final=False)
        return [*begun_in(self.period), "visit > 0", f"visit IN (SELECT visit FROM {begins})"]

    def _grouped(self, columns: str, *conditions: str, engaged: bool = True) -> str:
        """Return the selected visits, a row for each, with columns that aggregate its views.

        `conditions` are on the visit.
        """
        of_website = self.reader.of_website
        began = "anyIf(time_ms, view = visit)"
        begun = [each.replace("time_ms", began) for each in during(self.period)]
        rows = of_website("views", *self._selecting(), *conditions)
        late = self._engaged(begun_in(self.period))
        is_engaged = f", visit IN ({late}) AS engaged" if engaged else ""
        return (
            f"(SELECT visit, {_OF_VISIT}, {columns}{is_engaged} FROM {rows} GROUP BY visit"
            f" HAVING {every(('min(view) = visit', *begun))})"
        )

    # Views

    def tally(self, dimension: Dimension, *, with_durations: bool = True) -> Tally:  # noqa: ARG002
        column = dimension.attribute
        found = self.reader.run(
            f"SELECT CAST({column} AS String) AS text, {_TALLIED} FROM {self._views()}"
            f" GROUP BY {column}"
        )
        codes = self.reader.texts.codes(dimension, found.get("text", ()))
        return _tally(found, codes, len(self.reader.texts(dimension)))

    def total(self) -> Series:
        return self._series(places_in(None))

    def series(self, buckets: Buckets) -> Series:
        return self._series(places_in(buckets))

    def _series(self, places: Places) -> Series:
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, {_TALLIED}, {_MEDIAN} FROM {self._views()}"
            " GROUP BY bucket"
        )
        medians_ms = np.zeros(places.size, np.int64)
        numbers = _places(found, places)
        if len(numbers):
            medians_ms[numbers] = np.rint(np.nan_to_num(found["median"])).astype(np.int64)
        return Series(_tally(found, numbers, places.size), medians_ms)

    def quartiles(self, paths: NDArray[np.integer[Any]], size: int) -> Quartiles:  # noqa: ARG002
        wanted = np.zeros(len(self.reader.texts(Dimension.PATH)), np.bool_)
        wanted[paths] = True
        condition = self.reader.sets.matching("path", Dimension.PATH, wanted)
        found = self.reader.run(
            f"SELECT CAST(path AS String) AS text, {_QUARTILES} FROM {self._views(condition)}"
            " GROUP BY path"
        )
        codes = self.reader.texts.codes(Dimension.PATH, found.get("text", ()))
        counts = np.zeros(len(wanted), np.int64)
        quarters = np.zeros((3, len(wanted)), np.int64)
        if len(codes):
            inside = codes < len(wanted)
            counts[codes[inside]] = found["timed"][inside]
            for row in range(3):
                fourfold = np.rint(4 * np.nan_to_num(found[f"q{row + 1}"])).astype(np.int64)
                quarters[row, codes[inside]] = fourfold[inside]
        return _quartiles_of(counts[paths], quarters[:, paths])

    def visitors_by_since(self, spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        places = places_in(spans.buckets)
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, CAST(since AS String) AS text,"
            f" sum(first_today) AS visitors FROM {self._views()} GROUP BY bucket, since"
        )
        sums = np.zeros((len(spans), 1 + len(SINCE_PLACES)), np.int64)
        numbers = np.clip(_places(found, places), 0, max(len(spans) - 1, 0))
        rows = [SINCE_PLACES.get(text, 0) for text in found.get("text", ())]
        np.add.at(sums, (numbers, np.array(rows, np.intp)), _column(found, "visitors"))
        return sums, np.ones(len(spans), np.bool_)

    # Visits

    def visits_by_bucket(self, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
        places = places_in(buckets, "began_ms")
        visits = self._grouped("anyIf(time_ms, view = visit) AS began_ms")
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, {_VISIT_SUMS} FROM {visits} GROUP BY bucket"
        )
        sums = _visit_sums(found, _places(found, places))
        return sums.dense(places.size), self.visit_gaps

    def visits_by_dimension(
        self,
        dimension: Dimension,
        size: int,
        *,
        with_bounces: bool = False,
        include_rollups: bool = True,  # noqa: ARG002 - there are none
        conversions: Goal | None = None,
    ) -> RowVisits:
        days = begun_in(self.period)
        begun = self._count_begun(dimension, days if with_bounces else None)
        visits, converted = begun, None
        if dimension is Dimension.PATH:
            visits = self._count_seen()
        if conversions is not None:
            reached = self.reaches(conversions, days)
            if dimension is Dimension.PATH:
                converted = self._count_seen(reached)
            else:
                converted = self._count_begun(dimension, None, reached)
        size = max(size, len(self.reader.texts(dimension)))
        return RowVisits(
            visits.dense(size).visits,
            begun.dense(size).bounces,
            np.zeros(size, np.int64) if converted is None else converted.dense(size).visits,
            int(begun.visits.sum()),
            self.visit_gaps,
        )

    def _count_begun(
        self, dimension: Dimension, days: Sequence[str] | None, *conditions: str
    ) -> VisitSums:
        """Return the visits by the text of their first view.

        Also how many of them bounced, with the conditions that a visit began on their days.
        """
        column, bounces = dimension.attribute, ""
        if days is not None:
            # To look for the others takes a third of the time of grouping all views by visit.
            several = ("visit > 0", "view > visit")
            of_several = self.reader.of_website("views", *days, *several, final=False)
            others = f"SELECT visit FROM {of_several} UNION ALL {self._engaged(days)}"
            bounces = f", countIf(visit NOT IN ({others})) AS s_bounces"
        return self._by_text(
            f"SELECT CAST({column} AS String) AS text, count() AS s_visits{bounces}"
            f" FROM {self._begins(*conditions)} GROUP BY {column}",
            dimension,
        )

    def _count_seen(self, *conditions: str) -> VisitSums:
        """Return the visits that saw each page."""
        seen = self.reader.of_website("views", *self.chosen(), *conditions, final=False)
        return self._by_text(
            "SELECT CAST(path AS String) AS text, uniqExact(visit) AS s_visits"
            f" FROM {seen} GROUP BY path",
            Dimension.PATH,
        )

    def _by_text(self, statement: str, dimension: Dimension) -> VisitSums:
        found = self.reader.run(statement)
        return _visit_sums(found, self.reader.texts.codes(dimension, found.get("text", ())))

    def visits_by_first_view(
        self, groupings: Sequence[FirstViewText], *, last: int
    ) -> tuple[list[VisitSums], Gaps]:
        found = []
        for grouping in groupings:
            dimension, among, reached = grouping.dimension, self._among(grouping), ALL
            if grouping.reached is not None:
                reached = self.reaches(grouping.reached, begun_in(self.period))
            if last == VISITS:
                found.append(self._count_begun(dimension, None, among, reached))
                continue
            conditions = [reached]
            if among != ALL:
                conditions.append(
                    f"visit IN (SELECT visit FROM {self._begins(among, final=False)})"
                )
            visits = self._grouped(
                f"anyIf({dimension.attribute}, view = visit) AS first", *conditions
            )
            found.append(
                self._by_text(
                    f"SELECT CAST(first AS String) AS text, {_VISIT_SUMS} FROM {visits}"
                    " GROUP BY first",
                    dimension,
                )
            )
        return found, self.visit_gaps

    def _among(self, grouping: FirstViewText) -> str:
        """Return the condition that a first view has any of the texts of a grouping."""
        if grouping.among is None:
            return ALL
        dimension, codes = grouping.among
        mask = np.zeros(len(self.reader.texts(dimension)), np.bool_)
        mask[list(codes)] = True
        return self.reader.sets.matching(dimension.attribute, dimension, mask)

    def amounts_by_first_view(
        self, goal: Goal, groupings: Sequence[FirstViewText]
    ) -> tuple[list[FirstViewAmounts], Gaps]:
        reader = self.reader
        days = begun_in(self.period)
        table, condition = self._reaching(goal)
        key = "view" if table == "views" else "event"
        reaching = reader.of_website(table, *days, "visit > 0", condition, final=False)
        amounts = reader.of_website(
            "events",
            *self.chosen(),
            self._has_revenue(goal),
            f"{key} IN (SELECT {key} FROM {reaching})",
        )
        found = []
        for grouping in groupings:
            column = grouping.dimension.attribute
            begins = self._begins(self._among(grouping))
            rows = reader.run(
                f"SELECT CAST(first AS String) AS text, {_as_texts('name, value')},"
                f" count() AS times FROM (SELECT visit, name, value FROM {amounts}) AS amounts"
                f" INNER JOIN (SELECT visit, {column} AS first FROM {begins}) AS begins"
                " USING (visit) GROUP BY first, name, value"
            )
            found.append(
                FirstViewAmounts(
                    reader.texts.codes(grouping.dimension, rows.get("text", ())),
                    reader.property_codes(rows),
                    _column(rows, "times"),
                )
            )
        return found, self.visit_gaps

    def _has_revenue(self, goal: Goal) -> str:
        """Return the condition that an event's property has the amount of a goal's conversion."""
        if goal.revenue is None:
            return "0"
        having = Goal(id="", name="", event=goal.revenue)
        return self._reaching(having)[1]

    def exit_pages(self, *, with_pages: bool) -> tuple[VisitSums, VisitSums | None, Gaps]:
        visits = self._grouped("argMax(path, view) AS last", engaged=False)
        sums = self._by_text(
            f"SELECT CAST(last AS String) AS text, count() AS s_visits FROM {visits} GROUP BY last",
            Dimension.PATH,
        )
        pages = self._count_seen() if with_pages else None
        return sums, pages, self.visit_gaps

    def pages_beside(self, path: str, step: Literal[1, -1]) -> NDArray[np.int64]:
        reader = self.reader
        of_page = reader.sets.one("path", path)
        mine = every((*during(self.period), *self._own_conditions(), of_page, "visit > 0"))
        containing = reader.of_website("views", mine, final=False)
        rows = reader.of_website("views", "visit > 0", f"visit IN (SELECT visit FROM {containing})")
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
        places = np.where(_column(found, "is_there") == 1, codes, len(counts) - 1)
        np.add.at(counts, places, _column(found, "views"))
        return counts

    # Goals

    def conversions(self, goals: Sequence[Goal], buckets: Buckets | None) -> ReachedGoals:
        passing, without_view = self._passing()
        found = [self._of_goal(goal, buckets, passing, without_view=without_view) for goal in goals]
        visits = self._count_visits(goals, buckets) if self.query.with_visits else None
        return ReachedGoals(found, visits, NO_GAPS)

    def _passing(self) -> tuple[list[str], bool]:
        """Return the conditions on a view whose hits convert, and whether hits without one do."""
        query = self.query
        without_view = matches_without_view(query) and not query.has_property_filter
        if not query.with_visits or not query.filters_on(VIEW_CONDITIONS):
            return self._own_conditions(), without_view
        days = self._days_of_hits()
        rows = self.reader.of_website(
            "views", "visit > 0", *days, *self._own_conditions(), final=False
        )
        begun = self.reader.of_website("views", "view = visit", *days, final=False)
        return [
            "visit > 0",
            *days,
            f"visit IN (SELECT visit FROM {rows})",
            f"visit IN (SELECT visit FROM {begun})",
        ], False

    def _of_goal(
        self, goal: Goal, buckets: Buckets | None, passing: list[str], *, without_view: bool
    ) -> Conversions:
        reader = self.reader
        table, condition = self._reaching(goal)
        places = places_in(buckets)
        here = during(self.period)
        if table == "views":
            rows = reader.of_website("views", *here, *passing, condition)
            found = reader.run(
                f"SELECT {places.key} AS bucket, count() AS hits FROM {rows} GROUP BY bucket"
            )
        else:
            passes = self._events_of(passing, without_view=without_view)
            rows = reader.of_website("events", *here, passes, condition, final=False)
            found = reader.run(
                f"SELECT {places.key} AS bucket, uniqExact(event) AS hits FROM {rows}"
                " GROUP BY bucket"
            )
        counts = np.zeros(places.size, np.int64)
        np.add.at(counts, _places(found, places), _column(found, "hits"))
        if goal.revenue is None:
            return Conversions(goal, counts, None)
        has_revenue = self._has_revenue(goal)
        if table == "views":
            amounts = reader.of_website(
                "events", "view > 0", has_revenue, f"view IN (SELECT view FROM {rows})"
            )
            source = (
                f"(SELECT view, name, value FROM {amounts}) AS amounts"
                f" INNER JOIN (SELECT view, time_ms FROM {rows}) AS hits USING (view)"
            )
        else:
            source = reader.of_website(
                "events", *here, passes, has_revenue, f"event IN (SELECT event FROM {rows})"
            )
        paid = reader.run(
            f"SELECT {places.key} AS bucket, {_as_texts('name, value')}, count() AS times"
            f" FROM {source} GROUP BY bucket, name, value"
        )
        amounts_found = Amounts(
            reader.property_codes(paid), _places(paid, places), _column(paid, "times")
        )
        return Conversions(goal, counts, amounts_found)

    def events_of_views(self, *, without_view: bool) -> str:
        """Return the condition that an event's view matches the filters but those on properties.

        `without_view` lets events without a view be let through if the filters do.
        """
        return self._events_of(
            self._own_conditions(with_properties=False),
            without_view=without_view and matches_without_view(self.query),
        )

    def _events_of(self, passing: Iterable[str], *, without_view: bool) -> str:
        """Return the condition that an event's view passes, or that it has none."""
        conditions = [each for each in passing if each != ALL]
        if not conditions and without_view:
            return ALL
        of_visit = ("visit", "visit_day")
        if all(each.startswith(of_visit) for each in conditions):
            passes = every(("view > 0", *conditions))
        else:
            views = self.reader.of_website("views", *conditions, final=False)
            passes = f"view > 0 AND view IN (SELECT view FROM {views})"
        return f"({passes} OR view = 0)" if without_view else f"({passes})"

    def count_visits(self, buckets: Buckets | None) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self._count_visits((), buckets)[0]
        return counts

    def _count_visits(self, goals: Sequence[Goal], buckets: Buckets | None) -> NDArray[np.int64]:
        """Return the visits by bucket, and those that reached each goal, shape (1 + goals, n)."""
        places = places_in(buckets)
        days = begun_in(self.period)
        columns = ["count() AS visits0"]
        columns += [
            f"countIf({self.reaches(goal, days)}) AS visits{number}"
            for number, goal in enumerate(goals, 1)
        ]
        found = self.reader.run(
            f"SELECT {places.key} AS bucket, {', '.join(columns)} FROM {self._begins()}"
            " GROUP BY bucket"
        )
        counts = np.zeros((len(columns), places.size), np.int64)
        for number, row in enumerate(counts):
            np.add.at(row, _places(found, places), _column(found, f"visits{number}"))
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
            least = f"m{place - 1}" if place else "(toInt64(0), toUInt64(0))"
            since = f"arrayFirst(x -> x >= {least}, a{place})"
            kept = [f"m{each}" for each in range(place)] + [
                f"a{each}" for each in range(place + 1, len(goals))
            ]
            steps = f"(SELECT {', '.join([f'{since} AS m{place}', *kept])} FROM {steps})"
        counts = [f"countIf(m{place} < {never}) AS steps{place}" for place in range(len(goals))]
        found = self.reader.run(f"SELECT {', '.join(counts)} FROM {steps}")
        return np.array([int(found[f"steps{place}"][0]) for place in range(len(goals))], np.int64)


def _within(number: str, bounds: Bounds) -> str:
    return f"{number} BETWEEN {bounds.least} AND {bounds.greatest}"


def _column(found: Found, name: str) -> NDArray[np.int64]:
    """Return a column of whole numbers; that of an empty result is empty."""
    return np.asarray(found.get(name, ())).astype(np.int64)


def _places(found: Found, places: Places) -> NDArray[np.int64]:
    return places.places_of(_column(found, "bucket"))


def _tally(found: Found, numbers: NDArray[np.int64], size: int) -> Tally:
    sums = np.zeros((len(_TALLY), size), np.int64)
    for row, name in zip(sums, _TALLY, strict=True):
        row[numbers] = _column(found, f"t_{name}")
    views, day_visitors, page_visitors, timed_visitors, bounces, duration_ms = sums
    return Tally(
        views=views,
        day_visitors=day_visitors,
        page_visitors=page_visitors,
        timed_visitors=timed_visitors,
        bounces=bounces,
        duration_ms=duration_ms,
    )


def _quartiles_of(counts: NDArray[np.int64], fourfold: NDArray[np.int64]) -> Quartiles:
    """Return quartiles of which four times their value is known, exactly.

    Any two whole numbers stand for it that it is between in the right proportion.
    """
    below, rest = np.divmod(fourfold, 4)
    quarters = np.maximum(counts - 1, 0) * np.array([[1], [2], [3]]) % 4
    low_ms = below + np.where(quarters == 3, rest, 0)  # noqa: PLR2004 - of four
    high_ms = below + np.select([quarters == 1, quarters == 2], [rest, rest // 2], 0)  # noqa: PLR2004
    return Quartiles(counts, low_ms, high_ms)


def _visit_sums(found: Found, codes: NDArray[np.int64]) -> VisitSums:
    """Return sums by code. Those that were not asked for are 0."""
    order = np.argsort(codes)
    nothing = np.zeros(len(codes), np.int64)
    sums = [_column(found, name) if name in found else nothing for name in _SUM_NAMES]
    return VisitSums(codes[order], np.array(sums, np.int64)[:, order])
