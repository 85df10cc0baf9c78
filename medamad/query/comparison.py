"""The report of the hours since a moment, against the same hours of earlier weeks."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.domain.goals import Definitions, Goal
from medamad.domain.instants import second_as_text
from medamad.domain.zones import DAY_MS
from medamad.query.chance import LEVEL_OF_PARTS, against_earlier
from medamad.query.change_counts import lacks_days
from medamad.query.goal_reports import goal_figures
from medamad.query.period import Period
from medamad.query.reader import Reader, SeriesOptions
from medamad.query.reports import SummaryOptions, summary
from medamad.query.request import NO_GAPS, Filter, Gaps, Query, Result

Comparison: TypeAlias = dict[str, Any]

MAX_WEEKS: Final = 8
"""So many earlier weeks are compared with, if there are so many."""

_WEEK_MS: Final = 7 * DAY_MS
_NOT_FOUND: Final = "404"
"""The property that the tracker sends of pages that the website answered with 404."""
_SHARE: Final = re.compile(r"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)(?P<percent>%?)\Z")


@frozen
class Metric:
    """A figure that is compared: one of a summary, the conversions of a goal, or pages not found.

    Only counts can be told from what chance explains, not rates and medians.
    """

    name: str
    of_summary: str | None = None
    goal: Goal | None = None
    is_count: bool = True
    more_is_worse: bool = False


VISITS: Final = Metric("visits", "visits")
VISITORS: Final = Metric("visitors", "visitors")
PAGEVIEWS: Final = Metric("pageviews", "pageviews")
BOUNCES: Final = Metric("bounces", "visit_bounce_percentage", is_count=False, more_is_worse=True)
TIME: Final = Metric("time", "duration", is_count=False)
NOT_FOUND: Final = Metric("not-found", more_is_worse=True)
USUAL: Final = (VISITS, VISITORS, PAGEVIEWS, BOUNCES, TIME, NOT_FOUND)
"""The metrics of every website; the conversions of its goals are further ones."""


@frozen(kw_only=True)
class ComparisonOptions:
    """What is compared, from a moment to the present, and from which share on it is worse."""

    since_ms: int
    now_ms: int
    metrics: Sequence[Metric]
    worse_than: float | None = None


def parse_metrics(
    text: str | None, definitions: Definitions, *, keeps_visits: bool, has_visitors: bool
) -> list[Metric]:
    """Return the metrics of some names, separated by commas; without any, all that there are.

    A goal has the name of its metric, or its id. Raises BadRequest.
    """
    left_out = {
        **({} if keeps_visits else {VISITS: "visits", BOUNCES: "visits"}),
        **({} if has_visitors else {VISITORS: "visitors"}),
    }
    of_goals = [Metric(goal.name, goal=goal) for goal in definitions.goals]
    if text is None:
        return [*(each for each in USUAL if each not in left_out), *of_goals]
    known = {each.name.casefold(): each for each in reversed(of_goals)}
    known |= {each.goal.id: each for each in of_goals if each.goal is not None}
    known |= {each.name: each for each in USUAL}
    metrics = []
    for name in (part.strip() for part in text.split(",")):
        metric = known.get(name) or known.get(name.casefold())
        if metric is None:
            names = ", ".join(each.name for each in USUAL)
            raise BadRequest(f"metric: expected some of {names}, or goals by their names: {name}")
        if metric in left_out:
            raise BadRequest(f"metric: {left_out[metric]} are not counted (see the configuration)")
        metrics.append(metric)
    return list(dict.fromkeys(metrics))


def parse_share(text: str, name: str) -> float:
    """Return a share such as 20% or 0.2. Raises BadRequest naming the parameter."""
    if match := _SHARE.match(text):
        number = float(match["number"])
        if match["percent"]:
            return number / 100
        # 20 is meant as 20%, not as 20 times as much.
        if number <= 1:
            return number
    raise BadRequest(f"{name}: expected a share such as 20% or 0.2")


def comparison(reader: Reader, query: Query, *, options: ComparisonOptions) -> Result[Comparison]:
    """Return each metric since a moment, its mean in the same hours of earlier weeks, its change.

    It is compared with nothing if it has days that others cannot be compared with. `by_chance` is
    whether chance explains the change, None if that is unknown. With `worse_than`,
    `is_worse` is whether the metric is worse by more than this share, and not by chance. Raises
    BadRequest for a moment that is not in the last seven days.
    """
    since_ms, now_ms, metrics = options.since_ms, options.now_ms, options.metrics
    if since_ms > now_ms:
        raise BadRequest("since: expected a time that is not in the future")
    if now_ms - since_ms >= _WEEK_MS:
        raise BadRequest("since: expected a time in the last seven days")
    now, gaps = _figures(reader, query, options, Period(since_ms, now_ms))
    known, earlier = [], []
    first_ms, _ = reader.time_bounds()
    for week in range(1, 1 if lacks_days(gaps) else MAX_WEEKS + 1):
        period = Period(since_ms - week * _WEEK_MS, now_ms - week * _WEEK_MS)
        if since_ms - week * _WEEK_MS < first_ms:
            break
        figures, of_week = _figures(reader, query, options, period)
        if not lacks_days(of_week):
            known.append(-week)
            earlier.append(figures)
    by_chance = _by_chance(metrics, now, np.array(known, np.intp), earlier)
    rows = []
    for place, metric in enumerate(metrics):
        of_weeks = [week[place] for week in earlier]
        before = [each for each in of_weeks if each is not None]
        mean = sum(before) / len(before) if before else None
        rows.append(
            {
                "metric": metric.name,
                **({} if metric.goal is None else {"goal": metric.goal.id}),
                **_row(metric, now[place], mean, by_chance[place], options.worse_than),
            }
        )
    content = {
        "since": second_as_text(since_ms // 1000),
        "until": second_as_text(now_ms // 1000),
        "earlier_weeks": len(known),
        "metrics": rows,
    }
    return Result(content, gaps)


def _row(
    metric: Metric,
    now: float | None,
    before: float | None,
    by_chance: bool | None,
    worse_than: float | None,
) -> Comparison:
    difference = None if now is None or before is None else now - before
    row: Comparison = {
        "now": now,
        "before": None if before is None else round(before, 4),
        "change": round(difference / before, 4) if difference is not None and before else None,
        "by_chance": by_chance,
    }
    if worse_than is not None:
        worse_by = (difference or 0) if metric.more_is_worse else -(difference or 0)
        is_beyond = worse_by > worse_than * (before or 0)
        row["is_worse"] = is_beyond and by_chance is not True
    return row


def _by_chance(
    metrics: Sequence[Metric],
    now: Sequence[float | None],
    weeks: NDArray[np.intp],
    earlier: Sequence[Sequence[float | None]],
) -> list[bool | None]:
    """Return for each metric whether chance explains its change; None if that is unknown."""
    counts = [place for place, metric in enumerate(metrics) if metric.is_count]
    found: list[bool | None] = [None] * len(metrics)
    if counts and len(weeks):
        figures = np.array([[week[place] for place in counts] for week in earlier], np.int64)
        of_now = np.array([now[place] for place in counts], np.int64)
        level = LEVEL_OF_PARTS / len(counts)
        verdicts = against_earlier(of_now, weeks, figures, level=level)
        for number, place in enumerate(counts):
            found[place] = verdicts.by_chance(number)
    return found


def _figures(
    reader: Reader, query: Query, options: ComparisonOptions, period: Period
) -> tuple[list[float | None], Gaps]:
    """Return the figures of the metrics in a period, None where one is unknown."""
    reader.cancellation.check()
    query = evolve(query, period=period, with_blanks=True)
    metrics, gaps = options.metrics, NO_GAPS
    found: dict[Metric, float | None] = {}
    if any(metric.of_summary for metric in metrics):
        with_visits = VISITS in metrics or BOUNCES in metrics
        of_summary = evolve(query, with_visits=with_visits)
        result = summary(reader, of_summary, options=SummaryOptions(now_ms=options.now_ms))
        row: Any = result.content["current"]
        gaps |= result.gaps
        for metric in metrics:
            if metric.of_summary:
                is_unknown = (metric is BOUNCES and not row.visits) or (
                    metric is TIME and not row.duration
                )
                found[metric] = None if is_unknown else getattr(row, metric.of_summary)
    goals = [metric.goal for metric in metrics if metric.goal is not None]
    if goals:
        of_goals = goal_figures(
            reader, query, goals=goals, options=SeriesOptions(now_ms=options.now_ms)
        )
        by_id = {row["id"]: row["conversions"] for row in of_goals.content}
        gaps |= of_goals.gaps
        found |= {each: by_id[each.goal.id] for each in metrics if each.goal is not None}
    if NOT_FOUND in metrics:
        name_filter = Filter("prop_name", "eq", (_NOT_FOUND,))
        counted = reader.count_properties(
            evolve(query, filters=(*query.filters, name_filter)), by_value=False
        )
        found[NOT_FOUND] = int(counted.events[[x == _NOT_FOUND for x in counted.labels]].sum())
        gaps |= counted.gaps
    return [found[metric] for metric in metrics], gaps
