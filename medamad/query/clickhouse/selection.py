"""Which views, events and visits of a website a query selects, as conditions of SQL."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from attrs import frozen

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.domain.zones import DAY_MS
from medamad.query.clickhouse.sql import (
    ALL,
    NONE,
    Condition,
    Days,
    any_of,
    begun_in,
    begun_on_whole_days,
    date,
    during,
    every,
    on_any_of,
)
from medamad.query.clickhouse.website_rows import WebsiteRows, column_of
from medamad.query.filters import (
    BOUNCE_FIELD,
    DURATION_FIELD,
    ENTRY_FIELDS,
    EXIT_FIELDS,
    HOSTING_FIELD,
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
from medamad.query.period import Period
from medamad.query.request import NO_GAPS, Gap, Gaps, Query
from medamad.query.sums import VisitGrouping

_SLOT_MS: Final = 15 * 60_000
"""Days begin at a multiple of this in every zone of today."""

_BEHAVIOUR: Final[Mapping[str, str]] = {
    VISIT_VIEWS_FIELD: "count()",
    VISIT_DURATION_FIELD: "sum(duration_ms)",
}
"""The sums of the views of a visit that a filter bounds."""
_OF_VISIT: Final = "views, visible_ms, engaged"
_SUMS_OF_VIEWS: Final = "count() AS views, sum(duration_ms) AS visible_ms"


@frozen(eq=False)
class Selection:
    """The views that match a query and are in a period, as conditions."""

    reader: WebsiteRows
    query: Query
    period: Period
    days: Sequence[Condition] = ()
    """Conditions on the day on which the visit of a row began, in a period of all time."""

    @cached_property
    def view_condition(self) -> str:
        """The condition that a view itself matches the filters on views."""
        numbers = {DURATION_FIELD: "duration_ms", HOSTING_FIELD: "hosting"}
        return every([*self._conditions(VIEW_FIELDS), *self._bounds(numbers)])

    @cached_property
    def property_condition(self) -> str | None:
        """The condition that an event's property matches the filters on these, None without any."""
        if not self.query.has_property_filter:
            return None
        reader = self.reader
        mask = property_mask(reader.texts, self.query, reader.cancellation)
        return reader.sets.matching("", Dimension.PROPERTY, mask)

    def _all_rows(self, table: str, *conditions: Condition, final: bool = False) -> str:
        """Return rows for a subquery, which finds what rows that count belong to.

        They count, too: rules leave out whole visits, and views with their events. So it is only
        the rows outside of subqueries of which those that are left out have to be found.
        """
        return self.reader.of_website(table, *conditions, final=final, are_all=True)

    def _conditions(self, fields: Mapping[str, FilterField], column: str = "{}") -> list[str]:
        reader = self.reader
        masks = code_masks(reader.texts, self.query, reader.sources, reader.cancellation, fields)
        return [
            reader.sets.matching(column.format(dimension.attribute), dimension, mask)
            for dimension, mask in masks.items()
        ]

    @property
    def _is_of_visits(self) -> bool:
        return bool(self.query.filters_on(VISIT_FIELDS))

    @property
    def left_out(self) -> Gaps:
        """The days in the period of which filters on visits leave views out."""
        return self.visit_gaps if self._is_of_visits else NO_GAPS

    @cached_property
    def visit_gaps(self) -> Gaps:
        """The days in the period on which views belong to no known visit.

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

    def _batches_by_day(self, *conditions: Condition) -> set[tuple[int, int]]:
        """Return the batches of some views, each with a local day that it has some on."""
        found = self.reader.run(
            f"SELECT DISTINCT batch, toInt64(floor(time_ms / {_SLOT_MS})) AS slot"
            f" FROM {self._all_rows('views', *conditions)}"
        )
        zone = Period(zone=self.period.zone)
        return {
            (batch, day)
            for batch, slot in zip(column_of(found, "batch"), column_of(found, "slot"), strict=True)
            for day in zone.days_of(int(slot) * _SLOT_MS, int(slot) * _SLOT_MS)
        }

    def _visit_conditions(self) -> list[Condition]:
        """Return the conditions on the visit of a row that it fulfils if the visit matches."""
        if not self._is_of_visits:
            return []
        days = self._days_of_hits
        begun = self._all_rows("views", *days, "view = visit", *self._conditions(ENTRY_FIELDS))
        conditions: list[Condition] = [
            *("visit > 0", *days),
            f"visit IN (SELECT visit FROM {begun})",
        ]
        aggregated = self._conditions(EXIT_FIELDS, "argMax({}, view)") + self._behaviour(days)
        if aggregated:
            rows = self._all_rows("views", *days, "visit > 0", final=True)
            visits = f"{rows} GROUP BY visit HAVING {every(aggregated)}"
            conditions.append(f"visit IN (SELECT visit FROM {visits})")
        return conditions + [self.reaches(goal, days) for goal in self.query.goals]

    def _behaviour(self, days: Sequence[Condition]) -> list[str]:
        """Return the conditions on what a visit that matches consists of, which aggregate views."""
        has_bounced = f"(count() = 1 AND NOT visit IN ({self._engaged(days)}))"
        return self._bounds({**_BEHAVIOUR, BOUNCE_FIELD: has_bounced})

    def _bounds(self, numbers: Mapping[str, str]) -> list[str]:
        """Return the conditions that numbers are in the bounds of the filters on their fields."""
        bounds = ((number, Bounds.of(self.query, field)) for field, number in numbers.items())
        return [
            f"{number} BETWEEN {each.least} AND {each.greatest}"
            for number, each in bounds
            if each is not None
        ]

    def _engaged(self, days: Sequence[Condition]) -> str:
        """Return the visits with an event later than the load of its view."""
        late = self._all_rows("events", *days, "visit > 0", "late")
        return f"SELECT visit FROM {late}"

    def reaches(self, goal: Goal, days: Sequence[Condition]) -> str:
        """Return the condition that the visit of a row reached a goal; it began on some days."""
        table, condition = self._reaching(goal)
        rows = self._all_rows(table, *days, "visit > 0", condition)
        return f"visit IN (SELECT visit FROM {rows})"

    def _reaching(self, goal: Goal) -> tuple[str, str]:
        """Return the table whose rows reach a goal, and the condition that one does."""
        reader = self.reader
        mask = goal_mask(reader.texts, goal, reader.cancellation)
        if goal.path is not None:
            return "views", reader.sets.matching("path", Dimension.PATH, mask)
        return "events", reader.sets.matching("", Dimension.PROPERTY, mask)

    @cached_property
    def _days_of_hits(self) -> Sequence[Condition]:
        """The conditions that a visit began on days that include those of hits here."""
        if not during(self.period):
            return self.days
        days = begun_in(self.period)
        # Few began on other days than those of the period, and they are soon found.
        outside = any_of((f"visit_day < {date(days.first)}", f"visit_day > {date(days.last)}"))
        columns = "min(visit_day) AS first, max(visit_day) AS last"
        rows = " UNION ALL ".join(
            f"SELECT {columns} FROM {self._all_rows(table, *during(self.period), outside)}"
            " HAVING count() > 0"
            for table in ("views", "events")
        )
        found = self.reader.run(rows)
        firsts, lasts = (column_of(found, name).tolist() for name in ("first", "last"))
        return [Days(min([days.first, *firsts]), max([days.last, *lasts]))]

    def _own_conditions(self, *, with_properties: bool = True) -> list[Condition]:
        """Return the conditions that a view matches all filters."""
        on_view = self._conditions_on_view(with_properties=with_properties)
        return [*on_view, *self._visit_conditions()]

    def _conditions_on_view(self, *, with_properties: bool = True) -> list[str]:
        """Return the conditions that a view matches all filters but those on visits."""
        conditions = [self.view_condition]
        if with_properties and self.property_condition is not None:
            rows = self._all_rows("events", *self.days, "view > 0", self.property_condition)
            conditions.append(f"view IN (SELECT view FROM {rows})")
        return conditions

    @property
    def here(self) -> list[Condition]:
        """The conditions that a row is in the period."""
        # What rules leave out is then looked for on few days.
        days = self._days_of_hits if self.reader.rules else ()
        return [*days, *during(self.period)]

    def _views(self, *conditions: Condition) -> str:
        """Return the selected views that also fulfil some conditions."""
        return self.reader.of_website("views", *self.here, *self._own_conditions(), *conditions)

    def _selecting(self) -> list[Condition]:
        """Return the conditions that a visit which began in the period has a selected view."""
        conditions = [begun_in(self.period), "visit > 0", *self._visit_conditions()]
        if self.query.filters_on(VIEW_CONDITIONS):
            rows = self._all_rows(
                "views", *self.days, "visit > 0", *during(self.period), *self._conditions_on_view()
            )
            conditions.append(f"visit IN (SELECT visit FROM {rows})")
        return conditions

    @cached_property
    def _settled(self) -> str:
        """The condition that a visit began on a settled day, so that it is a row of `visits`."""
        return on_any_of([*self.reader.settled_days], self.period)

    def _begins(
        self, columns: str, *conditions: str, with_bounces: bool = False, are_all: bool = False
    ) -> str:
        """Return the selected visits whose first view fulfils some conditions, in parentheses.

        A row for each, with some columns of its first view, and `has_bounced`. With `are_all`, it
        is for a subquery, and may have a row several times.
        """
        of_website = self._all_rows if are_all else self.reader.of_website
        here = [*during(self.period), *self._selecting()]
        bounced, is_alone = "", ""
        if with_bounces:
            # To look for the others takes a third of the time of grouping all views by visit.
            days: list[Condition] = [f"NOT {self._settled}", begun_in(self.period)]
            several = self._all_rows("views", *days, "visit > 0", "view > visit")
            others = f"SELECT visit FROM {several} UNION ALL {self._engaged(days)}"
            bounced = ", (views = 1 AND NOT engaged) AS has_bounced"
            is_alone = f", visit NOT IN ({others}) AS has_bounced"
        rows = [
            f"SELECT {columns}{is_alone} FROM "
            + of_website("views", f"NOT {self._settled}", "view = visit", *here, *conditions)
        ]
        if self._settled != NONE:
            rows.append(
                f"SELECT {columns}{bounced} FROM "
                + of_website("visits", self._settled, *here, *conditions)
            )
        return f"({' UNION ALL '.join(rows)})"

    def _numbers(self, *conditions: str) -> str:
        """Return the numbers of the selected visits whose first view fulfils some conditions."""
        return f"(SELECT visit FROM {self._begins('visit', *conditions, are_all=True)})"

    def chosen(self) -> list[Condition]:
        """Return the conditions that a row belongs to a selected visit."""
        here: list[Condition] = [begun_in(self.period), "visit > 0"]
        if self._is_of_visits or self.query.filters_on(VIEW_CONDITIONS):
            return [*here, f"visit IN {self._numbers()}"]
        # To look for each visit takes long. On most days all of them are selected; only of the
        # first ones, the first views may be past their retention, unlike others of the visit.
        on_whole_days = begun_on_whole_days(self.period, self.reader.first_day + 2)
        return [*here, f"(({on_whole_days}) OR visit IN {self._numbers(f'NOT ({on_whole_days})')})"]

    @property
    def begins_left_out(self) -> str:
        """The condition on the first view of a visit that the query, as a rule, leaves it out.

        The period is that of the rule's query; that of the selection has to be without bounds.
        """
        period = self.query.period
        return every((begun_in(period), *during(period), *self._selecting()))

    @property
    def leaves_out_visit(self) -> str:
        """The condition on a view that the query, as a rule of all time, leaves out its visit."""
        return every(self._own_conditions())

    @property
    def leaves_out_view(self) -> str:
        """The condition on a view without a known visit that the query, as a rule, leaves it out.

        NONE if that leaves out visits only.
        """
        if self._is_of_visits:
            return NONE
        return every((*during(self.query.period), *self._own_conditions()))

    @property
    def leaves_out_events(self) -> str:
        """The condition on an event without a view that the query, as a rule, leaves it out."""
        if not matches_without_view(self.query):
            return NONE
        conditions = during(self.query.period)
        if self.property_condition is not None:
            having = self._all_rows("events", *self.days, "view = 0", self.property_condition)
            conditions.append(f"event IN (SELECT event FROM {having})")
        return every(conditions)

    def _grouped(self, column: str, *conditions: str) -> str:
        """Return the selected visits, a row for each, with sums of its views, in parentheses.

        `column` is one of the table of visits. `conditions` are on the visit.
        """
        of_website, selecting = self.reader.of_website, self._selecting()
        rows = []
        if self._settled != NONE:
            here = (self._settled, *during(self.period), *selecting, *conditions)
            of_visits = of_website("visits", *here)
            rows.append(f"SELECT visit, {_OF_VISIT}, {column} FROM {of_visits}")
        value = "argMax(path, view)" if column == "exit_path" else f"anyIf({column}, view = visit)"
        began_here = during(self.period, "anyIf(time_ms, view = visit)")
        unsettled = f"NOT {self._settled}"
        late = self._engaged([unsettled, begun_in(self.period)])
        rows.append(
            f"SELECT visit, {_SUMS_OF_VIEWS}, visit IN ({late}) AS engaged, {value} AS {column}"
            f" FROM {of_website('views', unsettled, *selecting, *conditions)}"
            f" GROUP BY visit HAVING {every(('min(view) = visit', *began_here))}"
        )
        return f"({' UNION ALL '.join(rows)})"

    def _seen(self, *conditions: str) -> str:
        """Return pages, each with how many of the selected visits saw it, in parentheses.

        A page may have several rows. The conditions are on the visit.
        """
        of_website = self.reader.of_website
        views = of_website(
            "views", f"NOT {self._settled}", *self.chosen(), *conditions, final=False
        )
        rows = [f"SELECT path AS page, uniqExact(visit) AS visits FROM {views} GROUP BY page"]
        if self._settled != NONE:
            here = (self._settled, *during(self.period), *self._selecting(), *conditions)
            pages = f"SELECT arrayJoin(pages) AS page FROM {of_website('visits', *here)}"
            rows.append(f"SELECT page, count() AS visits FROM ({pages}) GROUP BY page")
        return f"({' UNION ALL '.join(rows)})"

    def _among(self, grouping: VisitGrouping) -> str:
        """Return the condition that a first view has any of the texts of a grouping."""
        if grouping.among is None:
            return ALL
        dimension, codes = grouping.among
        mask = np.zeros(len(self.reader.texts(dimension)), np.bool_)
        mask[list(codes)] = True
        return self.reader.sets.matching(dimension.attribute, dimension, mask)

    def _has_revenue(self, goal: Goal) -> str:
        """Return the condition that an event's property has the amount of a goal's conversion."""
        if goal.revenue is None:
            return "0"
        having = Goal(id="", name="", event=goal.revenue)
        return self._reaching(having)[1]

    def _passing(self) -> tuple[list[Condition], bool]:
        """Return the conditions on a view whose hits convert, and whether hits without one do."""
        query = self.query
        without_view = matches_without_view(query) and not query.has_property_filter
        if not query.with_visits or not query.filters_on(VIEW_CONDITIONS):
            return self._own_conditions(), without_view
        days = self._days_of_hits
        rows = self._all_rows("views", "visit > 0", *days, *self._own_conditions())
        begun = self._all_rows("views", "view = visit", *days)
        return [
            "visit > 0",
            *days,
            f"visit IN (SELECT visit FROM {rows})",
            f"visit IN (SELECT visit FROM {begun})",
        ], False

    def events_of_views(self, *, without_view: bool) -> str:
        """Return the condition that an event's view matches the filters but those on properties.

        `without_view` lets events without a view be let through if the filters do.
        """
        return self._events_of(
            self._own_conditions(with_properties=False),
            without_view=without_view and matches_without_view(self.query),
        )

    def _events_of(self, passing: Iterable[Condition], *, without_view: bool) -> str:
        """Return the condition that an event's view passes, or that it has none."""
        conditions = [each for each in passing if str(each) != ALL]
        if not conditions and without_view:
            return ALL
        if all(isinstance(each, Days) or each.startswith("visit") for each in conditions):
            passes = every(("view > 0", *conditions))
        else:
            views = self._all_rows("views", *conditions)
            passes = f"view > 0 AND view IN (SELECT view FROM {views})"
        return f"({passes} OR view = 0)" if without_view else f"({passes})"
