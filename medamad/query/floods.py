"""Floods: hours in which one kind of visit grew far beyond its share, and what would leave it out.

The visits of each hour are compared with those of the same hour on other days. Where there are far
more than chance explains, the values are sought that nearly all of the additional visits have, and
few others: of the browser, the system, the device, the country, the language, the entry page, and
whether the network is that of a hosting provider. What people do together, such as following a link
to one page, shows in the page alone, so the page alone is no flood.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.instants import second_as_text
from medamad.domain.zones import DAY_MS
from medamad.query.buckets import Buckets
from medamad.query.chance import LEVEL_OF_PARTS, MIN_WEEKS, against_earlier
from medamad.query.filters import ENTRY_FIELDS, HOSTING_FIELD, TRUTHS, VIEW_FIELDS
from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.request import NO_GAPS, Filter, Gap, Gaps, Query, Result
from medamad.query.sums import VisitGrouping

MAX_FLOODS: Final = 5
"""So many are described: those with the most visits beyond the usual ones."""
COVERED: Final = 0.97
"""The least share of the additional visits that the filters of a flood let through."""
MAX_VALUES: Final = 5
"""The most values of a filter."""
_FAR: Final = 3
"""An hour of a flood has so many times the usual visits."""
_LEAST: Final = 50
"""An hour of a flood has so many visits beyond the usual ones."""
_LEAST_OF_EDGE: Final = 5
_NEAR_HOURS: Final = 2
"""Hours of one flood have at most so many others between them."""
_DISTINGUISHES: Final = 0.5
"""A column distinguishes if other visits have the values of the flood at most this often."""
_FEW: Final = 1
"""So few usual visits in the hours of a flood need no further filter to be spared."""
_SAME: Final = 1.5
"""A filter is dropped if this factor bounds how many more other visits are let through then."""
_HOURS: Final = 24
_HOUR_MS: Final = 3_600_000

_ENTRY_PAGE: Final = "entry_page"
_FIELDS: Final = {
    **{name: VIEW_FIELDS[name] for name in ("browser", "os", "device", "country", "language")},
    _ENTRY_PAGE: ENTRY_FIELDS[_ENTRY_PAGE],
}
"""The columns by which visits are told apart, besides HOSTING_FIELD."""

Flood: TypeAlias = dict[str, Any]
Filters: TypeAlias = tuple[Filter, ...]
Counts: TypeAlias = Mapping[str, Mapping[str, float]]
"""Visits by field and by value."""


def floods(reader: Reader, query: Query, *, now_ms: int) -> Result[list[Flood]]:
    """Return the floods in a period, those with the most visits first.

    Each has `filters`, which are those of a query; the hours from `start` to `end` in which its
    visits began; the `visits` that match, as `visits_percentage` of all that began in these hours,
    with their `views`; and how many `usual_visits` match in such hours without a flood. There is
    none without four days to compare with.
    """
    search = _Search.of(reader, query, now_ms)
    if search is None:
        return Result([], NO_GAPS)
    found = [search.describe(span) for span in search.spans]
    rows = [flood for flood in found if flood is not None]
    return Result(sorted(rows, key=lambda flood: -flood["visits"]), search.gaps)


@frozen
class _Span:
    """The hours of a flood by their places, and the visits that they usually have."""

    begin: int
    end: int
    usual: float


@frozen(eq=False)
class _Search:
    """The search for floods among the visits of some whole days, hour by hour."""

    reader: Reader
    hours: Buckets
    visits: NDArray[np.int64]
    """The visits of each hour."""
    spans: Sequence[_Span]
    """The largest first."""
    usual: float
    """The visits of the days without floods."""
    gaps: Gaps
    _known: dict[Filters, Counts] = field(factory=dict)
    """What `_others` has counted."""

    @classmethod
    def of(cls, reader: Reader, query: Query, now_ms: int) -> "_Search | None":
        """Return the search in a period, None if it has too few days."""
        first_ms, end_ms = reader.time_bounds()[0], now_ms
        if query.period.start_ms is not None:
            first_ms = max(query.period.start_ms, first_ms)
        if query.period.end_ms is not None:
            end_ms = min(query.period.end_ms, now_ms)
        hours = _hours_between(first_ms, end_ms)
        visits, gaps = _visits_by_hour(reader, query, hours)
        unknown = gaps.days(Gap.FIGURES, Gap.INTERVAL, Gap.VISITS, Gap.DAMAGED)
        if unknown:
            # Where visits are unknown, there seem to be few.
            hours = _hours_between((unknown[-1] + 1) * DAY_MS, end_ms)
            visits = visits[len(visits) - len(hours.dates) :]
        if len(visits) < _HOURS * (1 + MIN_WEEKS):
            return None
        spans = _spans(visits)
        usual = visits.sum() - sum(visits[span.begin : span.end].sum() for span in spans)
        return cls(reader, hours, visits, spans, float(usual), gaps)

    def describe(self, span: _Span) -> Flood | None:
        """Return a flood, None if its visits are like all others."""
        ratio = span.usual / self.usual if self.usual else 0.0
        filters: Filters = ()
        now, before = self._counts(filters, span), self._others(filters)
        covered = COVERED * (_total(now) - _total(before) * ratio)
        while not filters or _total(before) * ratio > _FEW:
            known = {each.field for each in filters}
            found = [
                values
                for field in now
                if field not in known
                and (values := _values(field, now[field], before[field], ratio, covered))
            ]
            share, best = min(found, key=lambda each: each[0], default=(1.0, None))
            if best is None or share > _DISTINGUISHES:
                break
            filters = (*filters, best)
            now, before = self._counts(filters, span), self._others(filters)
        for each in filters:
            # One that was found early may say nothing more after the others.
            without = tuple(other for other in filters if other is not each)
            if without and _total(self._others(without)) <= _SAME * _total(before):
                filters = without
        if not {each.field for each in filters} - {_ENTRY_PAGE}:
            return None
        return self._row(filters, self._widened(filters, span))

    def _row(self, filters: Filters, span: _Span) -> Flood:
        selected = self.reader.select(Query(_period_of(self.hours, span), filters))
        sums, _ = selected.visits_by_bucket(None)
        found = int(sums.visits.sum())
        usual = span.usual / self.usual * _total(self._others(filters)) if self.usual else 0
        edges_ms = self.hours.edges_ms
        return {
            "filters": filters,
            "start": second_as_text(int(edges_ms[span.begin]) // 1000),
            "end": second_as_text(int(edges_ms[span.end]) // 1000 - 1),
            "visits": found,
            "visits_percentage": round(found / int(self.visits[span.begin : span.end].sum()), 4),
            "views": int(sums.views.sum()),
            "usual_visits": round(usual),
        }

    def _widened(self, filters: Filters, span: _Span) -> _Span:
        """Return the hours of a flood with those around it that have its visits, too."""
        visits, _ = _visits_by_hour(self.reader, Query(filters=filters), self.hours)
        usual = _usual_by_hour(visits)
        is_far = (visits >= _FAR * usual) & (visits - usual >= _LEAST_OF_EDGE)
        begin, end = span.begin, span.end
        while begin > 0 and is_far[begin - 1]:
            begin -= 1
        while end < len(visits) and is_far[end]:
            end += 1
        longer = (end - begin) / (span.end - span.begin)
        return _Span(begin, end, span.usual * longer)

    def _others(self, filters: Filters) -> Counts:
        """Count the visits that match filters in the hours without a flood."""
        if filters not in self._known:
            of_floods = [self._counts(filters, span) for span in self.spans]
            self._known[filters] = {
                field: Counter(of_field)
                - sum((Counter(flood[field]) for flood in of_floods), Counter[str]())
                for field, of_field in self._counts(filters, None).items()
            }
        return self._known[filters]

    def _counts(self, filters: Filters, span: _Span | None) -> Counts:
        """Count the visits that match filters in a flood, or in all hours, by their values."""
        reader, period = self.reader, _period_of(self.hours, span)
        reader.cancellation.check()
        selected = reader.select(Query(period, filters))
        groupings = [VisitGrouping(field.dimension) for field in _FIELDS.values()]
        sums = selected.group_visits(groupings).sums
        counts: dict[str, Counter[str]] = {}
        for (name, of), found in zip(_FIELDS.items(), sums, strict=True):
            texts, counts[name] = reader.texts(of.dimension), Counter()
            for code, visits in zip(found.codes.tolist(), found.visits.tolist(), strict=True):
                if visits:
                    counts[name][of.namings[0](texts[code], reader.sources)] += visits
        counts[HOSTING_FIELD] = Counter()
        for value in TRUTHS:
            with_value = (*filters, Filter(HOSTING_FIELD, "eq", (value,)))
            of_value, _ = reader.select(Query(period, with_value)).visits_by_bucket(None)
            counts[HOSTING_FIELD][value] = int(of_value.visits.sum())
        return counts


def _hours_between(start_ms: int, end_ms: int) -> Buckets:
    """Return the hours of UTC of as many whole days as there are, up to the hour of the end."""
    end_ms = -(-(end_ms + 1) // _HOUR_MS) * _HOUR_MS
    count = max(end_ms - start_ms, 0) // DAY_MS * _HOURS
    edges_ms = end_ms + np.arange(-count, 1, dtype=np.int64) * _HOUR_MS
    return Buckets(edges_ms, [second_as_text(ms // 1000) for ms in edges_ms[:-1].tolist()])


def _period_of(hours: Buckets, span: _Span | None = None) -> Period:
    begin, end = (0, -1) if span is None else (span.begin, span.end)
    return Period(int(hours.edges_ms[begin]), int(hours.edges_ms[end]) - 1)


def _visits_by_hour(reader: Reader, query: Query, hours: Buckets) -> tuple[NDArray[np.int64], Gaps]:
    selected = reader.select(evolve(query, period=_period_of(hours)))
    sums, gaps = selected.visits_by_bucket(hours)
    return sums.visits, gaps | selected.left_out


def _usual_by_hour(visits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what each hour usually has: the median of the same hour of all days, shape (n,)."""
    medians = np.median(visits.reshape(-1, _HOURS), axis=0)
    return np.tile(medians, len(visits) // _HOURS)


def _spans(visits: NDArray[np.int64]) -> list[_Span]:
    """Return the floods among the visits of some hours, the largest MAX_FLOODS."""
    usual = _usual_by_hour(visits)
    is_far = (visits >= _FAR * usual) & (visits - usual >= _LEAST)
    places = [int(place) for place in np.flatnonzero(is_far) if _is_change(visits, is_far, place)]
    spans: list[tuple[int, int]] = []
    for place in places:
        if spans and place - spans[-1][1] <= _NEAR_HOURS:
            spans[-1] = (spans[-1][0], place + 1)
        else:
            spans.append((place, place + 1))
    spans.sort(key=lambda span: -float((visits - usual)[slice(*span)].sum()))
    return [_Span(*span, float(usual[slice(*span)].sum())) for span in spans[:MAX_FLOODS]]


def _is_change(visits: NDArray[np.int64], is_far: NDArray[np.bool_], place: np.intp) -> bool:
    """Return whether chance does not explain the visits of an hour, by those of other days."""
    same_hour = np.arange(place % _HOURS, len(visits), _HOURS)
    days = np.flatnonzero(~is_far[same_hour])
    earlier = visits[same_hour][days].reshape(-1, 1)
    if len(days) < MIN_WEEKS:
        return False
    level = LEVEL_OF_PARTS / len(visits)
    verdicts = against_earlier(visits[place : place + 1], days, earlier, level=level)
    return bool(verdicts.are_changes[0])


def _total(counts: Counts) -> float:
    return sum(counts[_ENTRY_PAGE].values())


def _values(
    field: str,
    now: Mapping[str, float],
    before: Mapping[str, float],
    ratio: float,
    covered: float,
) -> tuple[float, Filter] | None:
    """Return the fewest values that cover so many additional visits, and the share of others.

    None if that takes too many, or no filter can name them.
    """
    excess = {value: visits - before.get(value, 0) * ratio for value, visits in now.items()}
    chosen: list[str] = []
    for value in sorted(excess, key=lambda value: (-excess[value], value)):
        if covered <= 0 or len(chosen) == MAX_VALUES:
            break
        chosen.append(value)
        covered -= excess[value]
    if covered > 0 or not chosen or (len(chosen) > 1 and any("," in each for each in chosen)):
        return None
    share = sum(before.get(value, 0) for value in chosen) / (sum(before.values()) or 1)
    return share, Filter(field, "eq" if len(chosen) == 1 else "in", tuple(chosen))
