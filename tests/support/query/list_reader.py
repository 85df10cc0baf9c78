# ruff: noqa: ARG002 - what makes an engine faster does nothing here
"""An engine over lists of hits in plain Python: a second `medamad.query.reader.Reader`.

The hits are those of `support.query.oracle`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Self

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray
from support.query.oracle import Entry, is_event, is_path, pairs_of, times

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, property_text
from medamad.domain.goals import Goal
from medamad.lookup.referrers import Sources
from medamad.query.buckets import Buckets
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
    Mask,
    code_masks,
    goal_mask,
    matches_without_view,
    property_mask,
)
from medamad.query.period import ALWAYS, Period
from medamad.query.reader import Reader, Selected
from medamad.query.request import NO_GAPS, Cancellation, Gap, Gaps, Query
from medamad.query.sums import (
    SINCE_PLACES,
    AmountCounts,
    Conversions,
    GroupedVisits,
    PropertyCounts,
    Quartiles,
    ReachedGoals,
    Series,
    Tally,
    VisitGrouping,
    VisitSums,
    WhichView,
)
from medamad.storage.dictionary.decode import TextCache

BOUNCE_MS: Final = 5_000

Visit = list[Entry]
"""The views of a visit, in order."""


@frozen(eq=False)
class ListTexts:
    """The texts of each dimension in the order in which they occur."""

    texts: dict[Dimension, list[str]]
    cache: TextCache = field(factory=TextCache)

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        return self.texts[dimension]

    def code(self, dimension: Dimension, text: str) -> int:
        return self.texts[dimension].index(text)


@frozen(eq=False)
class ListReader(Reader):
    """A website's views and events."""

    views: Sequence[Entry]
    events: Sequence[Entry]
    sources: Sources
    cancellation: Cancellation = field(factory=Cancellation)
    texts: ListTexts = field(init=False)

    @texts.default
    def _collect(self) -> ListTexts:
        found = {
            dimension: [view.get(dimension.attribute, "") for view in self.views]
            for dimension in VIEW_DIMENSIONS
        }
        pairs = [pair for event in self.events for pair in pairs_of(event)]
        found[Dimension.PROPERTY] = [property_text(*pair) for pair in pairs]
        # No view has the text with the code 0.
        return ListTexts({each: ["?", *dict.fromkeys(texts)] for each, texts in found.items()})

    def time_bounds(self) -> tuple[int, int]:
        moments = [view["time_ms"] for view in self.views]
        return (min(moments), max(moments)) if moments else (1, 0)

    def last_counted_ms(self, period: Period) -> int | None:
        moments = (view["time_ms"] for view in self.views)
        return max((moment for moment in moments if _has(period, moment)), default=None)

    def open_pages(self, now_ms: int) -> int:
        period = Period(now_ms - 5 * 60_000, now_ms)
        return sum(not v["duration_ms"] and _has(period, v["time_ms"]) for v in self.views)

    def select(self, query: Query) -> "ListSelected":
        return ListSelected(self, query, query.period)

    def select_left_out(self, rule: Query) -> list[tuple["ListSelected", tuple[int, int]]]:
        # A visit that began in the period may have its matching view after that.
        found, period = self.select(rule).during(ALWAYS), rule.period
        begins = (visit[0] for visit in found.visits())
        visits = {view["visit"] for view in begins if _has(period, view["time_ms"])}
        alone = {view["id"] for view in found.views() if not view["visit"]}
        views = [
            view
            for view in self.views
            if view["visit"] in visits or (view["id"] in alone and _has(period, view["time_ms"]))
        ]
        left_out = ListReader(views, self.events, self.sources)
        return [(left_out.select(Query()), left_out.time_bounds())]

    def count_properties(self, query: Query, *, by_value: bool) -> PropertyCounts:
        selected = self.select(query)
        by_id = {view["id"]: view for view in self.views}
        seen_in = {
            view["id"]: number for number, visit in enumerate(selected.visits()) for view in visit
        }
        events: Counter[str] = Counter()
        visits: dict[str, set[int]] = {}
        total = 0
        for event in self.events:
            labels = {
                property_text(*pair) if by_value else pair[0]
                for pair in pairs_of(event)
                if selected.properties[self.texts.code(Dimension.PROPERTY, property_text(*pair))]
            }
            if event["view"] in seen_in:
                for label in labels:
                    visits.setdefault(label, set()).add(seen_in[event["view"]])
            view = by_id.get(event["view"])
            passes = matches_without_view(query) if view is None else selected.passes_itself(view)
            if passes and _has(query.period, event["time_ms"]):
                events.update(labels)
                total += bool(labels)
        labels_in_order = sorted({*events, *visits})
        return PropertyCounts(
            labels_in_order,
            np.array([events[label] for label in labels_in_order], np.int64),
            np.array([len(visits.get(label, ())) for label in labels_in_order], np.int64)
            if query.with_visits
            else None,
            total,
            NO_GAPS,
        )


def _has(period: Period, time_ms: int) -> bool:
    return bool(period.mask(np.array([time_ms], np.int64))[0])


@frozen(eq=False)
class ListSelected(Selected):
    """The views of a reader that match a query and are in a period."""

    reader: ListReader
    query: Query
    period: Period
    left_out: Gaps = NO_GAPS
    visit_gaps: Gaps = NO_GAPS
    masks: dict[Dimension, Mask] = field(init=False)
    entries: dict[Dimension, Mask] = field(init=False)
    exits: dict[Dimension, Mask] = field(init=False)
    properties: Mask = field(init=False)

    @masks.default
    def _find_masks(self) -> dict[Dimension, Mask]:
        return self._masks(VIEW_FIELDS)

    @entries.default
    def _find_entries(self) -> dict[Dimension, Mask]:
        return self._masks(ENTRY_FIELDS)

    @exits.default
    def _find_exits(self) -> dict[Dimension, Mask]:
        return self._masks(EXIT_FIELDS)

    @properties.default
    def _find_properties(self) -> Mask:
        return property_mask(self.reader.texts, self.query, self.reader.cancellation)

    def _masks(self, fields: Any) -> dict[Dimension, Mask]:
        reader = self.reader
        return code_masks(reader.texts, self.query, reader.sources, reader.cancellation, fields)

    # What is selected

    def code(self, view: Entry, dimension: Dimension) -> int:
        return self.reader.texts.code(dimension, view.get(dimension.attribute, ""))

    def passes_itself(self, view: Entry) -> bool:
        """Whether a view matches, without the filters on properties."""
        if not self._matches(view, self.masks):
            return False
        if not self._is_within(HOSTING_FIELD, int(view.get("hosting", False))):
            return False
        if not self._is_within(DURATION_FIELD, view["duration_ms"] or -1):
            return False
        if not self.query.filters_on(VISIT_FIELDS):
            return True
        visit = [each for each in self.reader.views if each["visit"] == view["visit"]]
        return (
            bool(view["visit"])
            and self._matches(visit[0], self.entries)
            and self._matches(visit[-1], self.exits)
            and self._is_within(VISIT_VIEWS_FIELD, len(visit))
            and self._is_within(VISIT_DURATION_FIELD, sum(times(visit)))
            and all(
                self._bounced(visit) is (each.values == ("true",))
                for each in self.query.filters_on((BOUNCE_FIELD,))
            )
            and all(self._moments(visit, goal) for goal in self.query.goals)
        )

    def _is_within(self, field: str, number: int) -> bool:
        bounds = Bounds.of(self.query, field)
        return bounds is None or bounds.least <= number <= bounds.greatest

    def _matches(self, view: Entry, masks: dict[Dimension, Mask]) -> bool:
        return all(mask[self.code(view, dimension)] for dimension, mask in masks.items())

    def _passes(self, view: Entry) -> bool:
        if not self.passes_itself(view):
            return False
        return not self.query.has_property_filter or any(
            self.properties[self._property_code(pair)]
            for event in self.reader.events
            if event["view"] == view["id"]
            for pair in pairs_of(event)
        )

    def _property_code(self, pair: tuple[str, str]) -> int:
        return self.reader.texts.code(Dimension.PROPERTY, property_text(*pair))

    def views(self) -> list[Entry]:
        """Return the selected views."""
        return [
            view
            for view in self.reader.views
            if _has(self.period, view["time_ms"]) and self._passes(view)
        ]

    def visits(self) -> list[Visit]:
        """Return the selected visits."""
        wanted = {view["visit"] for view in self.views()} - {0}
        visits = (
            [view for view in self.reader.views if view["visit"] == number]
            for number in sorted(wanted)
        )
        return [visit for visit in visits if _has(self.period, visit[0]["time_ms"])]

    def _moments(self, visit: Visit, goal: Goal) -> list[tuple[int, int]]:
        """Return the times and numbers of the hits with which a visit reached a goal."""
        ids = {view["id"] for view in visit}
        if goal.path is not None:
            return [(v["time_ms"], v["id"]) for v in visit if is_path(v["path"], goal.path)]
        return [
            (event["time_ms"], event.get("number", number))
            for number, event in enumerate(self.reader.events, 1)
            if event["view"] in ids and is_event(event, goal)
        ]

    def during(self, period: Period, gap: Gap = Gap.FIGURES) -> Self:
        return evolve(self, period=period)

    def with_single_durations(self) -> tuple[Self, Gaps]:
        return self, NO_GAPS

    # Views

    def tally(self, dimension: Dimension, *, with_durations: bool = True) -> Tally:
        size = len(self.reader.texts(dimension))
        return _tally(self.views(), lambda view: self.code(view, dimension), size)

    def series(self, buckets: Buckets | None) -> Series:
        def place_of(view: Entry) -> int:
            return _place(buckets, view)

        size = 1 if buckets is None else len(buckets.dates)
        views = self.views()
        groups = [[view for view in views if place_of(view) == place] for place in range(size)]
        medians_ms = _quartiles([times(group) for group in groups]).quartile(2)
        return Series(_tally(views, place_of, size), medians_ms)

    def quartiles(self, paths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        views = self.views()
        found = _quartiles(
            [
                times([view for view in views if self.code(view, Dimension.PATH) == code])
                for code in paths.tolist()
            ]
        )
        return np.stack([found.quartile(number) for number in (1, 2, 3)])

    def visitors_by_since(self, buckets: Buckets) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        sums = np.zeros((len(buckets.dates), 1 + len(SINCE_PLACES)), np.int64)
        for view in self.views():
            if view["p"]:
                (bucket,) = buckets.nearest(np.array([view["time_ms"]]))
                sums[bucket, SINCE_PLACES.get(view.get("since", ""), 0)] += 1
        return sums, np.ones(len(buckets.dates), np.bool_)

    # Visits

    def visits_by_bucket(self, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
        visits = self.visits()
        size = 1 if buckets is None else len(buckets.dates)
        groups = [
            [visit for visit in visits if _place(buckets, visit[0]) == place]
            for place in range(size)
        ]
        return self._sums(dict(enumerate(groups))), NO_GAPS

    def group_visits(
        self, groupings: Sequence[VisitGrouping], *, include_rollups: bool = True
    ) -> GroupedVisits:
        return GroupedVisits(list(map(self._group, groupings)), len(self.visits()), NO_GAPS)

    def _group(self, grouping: VisitGrouping) -> VisitSums:
        visits = self.visits()
        if grouping.among is not None:
            dimension, codes = grouping.among
            visits = [visit for visit in visits if self.code(visit[0], dimension) in codes]
        if grouping.reached is not None:
            visits = [visit for visit in visits if self._moments(visit, grouping.reached)]
        rows: dict[int, list[Visit]] = {}
        for visit in visits:
            views = {WhichView.FIRST: visit[:1], WhichView.ANY: visit, WhichView.LAST: visit[-1:]}
            for code in {self.code(view, grouping.dimension) for view in views[grouping.which]}:
                rows.setdefault(code, []).append(visit)
        return self._sums(rows)

    def amounts_by_first_view(
        self, goal: Goal, groupings: Sequence[VisitGrouping]
    ) -> tuple[list[AmountCounts], Gaps]:
        found = []
        for grouping in groupings:
            counts: Counter[tuple[int, int]] = Counter()
            for visit in self.visits():
                is_among = grouping.among is None or (
                    self.code(visit[0], grouping.among[0]) in grouping.among[1]
                )
                code = self.code(visit[0], grouping.dimension)
                for pair in self._pairs_of_amounts(visit, goal) if is_among else ():
                    counts[code, self._property_code(pair)] += 1
            columns = [(*key, times) for key, times in counts.items()]
            found.append(AmountCounts(*np.array(columns, np.int64).reshape(-1, 3).T))
        return found, NO_GAPS

    def _pairs_of_amounts(self, visit: Visit, goal: Goal) -> list[tuple[str, str]]:
        """Return the properties with the amounts of a visit's conversions."""
        ids = {
            view["id"] for view in visit if goal.path is None or is_path(view["path"], goal.path)
        }
        return [
            pair
            for event in self.reader.events
            if event["view"] in ids and (goal.path is not None or is_event(event, goal))
            for pair in pairs_of(event)
            if pair[0] == goal.revenue
        ]

    def _sums(self, rows: dict[int, list[Visit]]) -> VisitSums:
        codes = sorted(rows)
        sums = [
            (
                len(rows[code]),
                sum(map(len, rows[code])),
                sum(map(self._bounced, rows[code])),
                sum(sum(times(visit)) for visit in rows[code]),
            )
            for code in codes
        ]
        return VisitSums(np.array(codes, np.int64), np.array(sums, np.int64).reshape(-1, 4).T)

    def _bounced(self, visit: Visit) -> bool:
        (first, *others) = visit
        return not others and not any(
            event["view"] == first["id"]
            and (not event.get("of_load") or event["time_ms"] > first["time_ms"])
            for event in self.reader.events
            if pairs_of(event)
        )

    def pages_beside(self, path: str, step: Literal[1, -1]) -> NDArray[np.int64]:
        counts = np.zeros(len(self.reader.texts(Dimension.PATH)) + 1, np.int64)
        for view in self.views():
            if view["path"] == path and view["visit"]:
                visit = [each for each in self.reader.views if each["visit"] == view["visit"]]
                place = visit.index(view) + step
                is_there = 0 <= place < len(visit)
                counts[self.code(visit[place], Dimension.PATH) if is_there else -1] += 1
        return counts

    # Goals

    def conversions(self, goals: Sequence[Goal], buckets: Buckets | None) -> ReachedGoals:
        visits = [
            self.count_visits(buckets),
            *(
                self._count([v for v in self.visits() if self._moments(v, g)], buckets)
                for g in goals
            ),
        ]
        return ReachedGoals(
            [self._of_goal(goal, buckets) for goal in goals],
            np.stack(visits) if self.query.with_visits else None,
            NO_GAPS,
        )

    def _of_goal(self, goal: Goal, buckets: Buckets | None) -> Conversions:
        size = 1 if buckets is None else len(buckets.dates)
        counts = np.zeros(size, np.int64)
        amounts: list[tuple[int, int]] = []
        for hit, pairs in self._hits(goal):
            if _has(self.period, hit["time_ms"]):
                bucket = _place(buckets, hit)
                counts[bucket] += 1
                amounts += [
                    (self._property_code(pair), bucket) for pair in pairs if pair[0] == goal.revenue
                ]
        codes, places = np.array(amounts, np.intp).reshape(-1, 2).T
        of_amounts = AmountCounts(places, codes, np.ones(len(codes), np.int64))
        return Conversions(goal, counts, None if goal.revenue is None else of_amounts)

    def _hits(self, goal: Goal) -> Iterator[tuple[Entry, list[tuple[str, str]]]]:
        """Return the views or events that reach a goal, each with the properties of its amount."""
        reader, mask = self.reader, goal_mask(self.reader.texts, goal, self.reader.cancellation)
        has_filters_on_views = bool(self.query.filters_on(VIEW_CONDITIONS))
        if has_filters_on_views:
            selected = {view["visit"] for view in reader.views if self._passes(view)} - {0}
            passing = {view["id"] for view in reader.views if view["visit"] in selected}
        else:
            passing = {view["id"] for view in reader.views if self._passes(view)}
        if goal.path is not None:
            for view in reader.views:
                if view["id"] in passing and mask[self.code(view, Dimension.PATH)]:
                    events = [event for event in reader.events if event["view"] == view["id"]]
                    yield view, [pair for event in events for pair in pairs_of(event)]
            return
        known = {view["id"] for view in reader.views}
        for event in reader.events:
            is_loose = event["view"] not in known
            passes = (
                not has_filters_on_views and matches_without_view(self.query)
                if is_loose
                else event["view"] in passing
            )
            if passes and any(mask[self._property_code(pair)] for pair in pairs_of(event)):
                yield event, pairs_of(event)

    def count_visits(self, buckets: Buckets | None) -> NDArray[np.int64]:
        return self._count(self.visits(), buckets)

    def _count(self, visits: Iterable[Visit], buckets: Buckets | None) -> NDArray[np.int64]:
        counts = np.zeros(1 if buckets is None else len(buckets.dates), np.int64)
        for visit in visits:
            counts[_place(buckets, visit[0])] += 1
        return counts

    def count_steps(self, goals: Sequence[Goal]) -> NDArray[np.int64]:
        counts = []
        left = [(visit, (-(1 << 62), 0)) for visit in self.visits()]
        for goal in goals:
            reached = [
                (visit, min((m for m in self._moments(visit, goal) if m >= since), default=None))
                for visit, since in left
            ]
            left = [(visit, moment) for visit, moment in reached if moment is not None]
            counts.append(len(left))
        return np.array(counts, np.int64)


def _place(buckets: Buckets | None, hit: Entry) -> int:
    return 0 if buckets is None else int(buckets.of(np.array([hit["time_ms"]], np.int64))[0])


def _tally(views: Iterable[Entry], place_of: Callable[[Entry], int], size: int) -> Tally:
    sums = np.zeros((6, size), np.int64)
    for view in views:
        duration_ms = view["duration_ms"]
        is_timed = bool(view["p"] and duration_ms)
        is_bounce = is_timed and duration_ms <= BOUNCE_MS
        added = (1, bool(view["p"]), bool(view["q"]), is_timed, is_bounce, duration_ms)
        sums[:, place_of(view)] += added
    return Tally(sums, NO_GAPS)


def _quartiles(groups: Sequence[list[int]]) -> Quartiles:
    """Return the two durations of each group that each of its quartiles is between."""
    ends = np.zeros((2, 3, len(groups)), np.int64)
    for place, group in enumerate(map(sorted, groups)):
        last = len(group) - 1
        for number in (1, 2, 3) if group else ():
            low = last * number // 4
            ends[:, number - 1, place] = group[low], group[min(low + 1, last)]
    return Quartiles(np.array([len(group) for group in groups], np.int64), *ends)
