"""What the exclusions of a website leave out, day by day."""

from datetime import tzinfo
from typing import Any, Final

import numpy as np

from medamad.domain.errors import BadRequest
from medamad.domain.exported_settings import ExportedSettings
from medamad.domain.goals import Definitions, Exclusion
from medamad.domain.zones import DAY_MS
from medamad.query.buckets import make_buckets
from medamad.query.filters import parse_filters
from medamad.query.period import Period, parse_period
from medamad.query.reader import Reader
from medamad.query.request import Query

_LEAST_MS: Final = -(1 << 62)
_GREATEST_MS: Final = 1 << 62


def rule_of(exclusion: Exclusion, definitions: Definitions) -> Query:
    """Return the query that selects what an exclusion leaves out.

    Raises BadRequest naming the parameter, also for filters that there are not.
    """
    filters = parse_filters(exclusion.filters, lambda: definitions)
    for key, value in exclusion.filters:
        if not parse_filters([(key, value)], lambda: definitions):
            raise BadRequest(f"{key}: there is no such filter")
    return Query(parse_period(exclusion.start, exclusion.end), filters)


def check_exported(settings: ExportedSettings) -> None:
    """Raise BadRequest for exclusions in exported settings that cannot be applied."""
    definitions = Definitions(goals=settings.goals)
    for listed in settings.exclusions:
        rule = rule_of(listed.exclusion, definitions)
        if not rule.filters and rule.period == Period():
            raise BadRequest("exclusions: expected at least one filter, or a period")


def rules_of(definitions: Definitions) -> tuple[Query, ...]:
    """Return the queries that select what is left out."""
    return tuple(rule_of(exclusion, definitions) for exclusion in definitions.exclusions)


def rules_during(definitions: Definitions, period: Period) -> list[Query]:
    """Return the rules that may leave something out of a period: visits go on after they began."""
    return [
        rule
        for rule in rules_of(definitions)
        if not period.is_outside(
            _LEAST_MS if rule.period.start_ms is None else rule.period.start_ms,
            _GREATEST_MS if rule.period.end_ms is None else rule.period.end_ms + DAY_MS,
        )
    ]


def left_out_by_day(
    reader: Reader, rule: Query, zone: tzinfo, *, has_visits: bool
) -> dict[str, Any]:
    """Return the views that a rule leaves out, and with `has_visits` the visits.

    In all, and in `interval` on the days of a zone that have any. A view counts on its own day, a
    visit on the day on which it began. Days of which only rollups are left are days of their zone.
    """
    found = reader.select_left_out(rule)
    first_ms = min(first_ms for _, (first_ms, _) in found)
    last_ms = max(last_ms for _, (_, last_ms) in found)
    buckets = make_buckets("day", first_ms, last_ms, zone)
    names = ("views", "visits") if has_visits else ("views",)
    columns = {name: np.zeros(len(buckets.dates), np.int64) for name in names}
    for left_out, _ in found if buckets.dates else ():
        selected = left_out.during(Period(first_ms, last_ms))
        columns["views"] += selected.series(buckets).tally.views
        if has_visits:
            of_visits, _ = selected.visits_by_bucket(buckets)
            columns["visits"] += of_visits.visits
    days = [
        {"date": date, **{name: int(column[place]) for name, column in columns.items()}}
        for place, date in enumerate(buckets.dates)
        if columns["views"][place]
    ]
    return {**{name: sum(day[name] for day in days) for name in names}, "interval": days}
