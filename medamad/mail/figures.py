"""The figures of a report: those of a website in a week or month, beside those of the last one."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Final

from attrs import evolve, frozen

from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.goals import Goal
from medamad.mail.spans import Span
from medamad.query.change_counts import PAGEVIEWS, VISITORS, VISITS
from medamad.query.changes import Change, ChangesOptions, changes
from medamad.query.goal_reports import goal_figures
from medamad.query.reader import Reader, SeriesOptions
from medamad.query.reports import ROW_REPORTS, SummaryOptions, summary
from medamad.query.request import NO_GAPS, Gap, Query, Result

LISTS: Final = ("pages", "referrers", "countries")
"""The statistics whose first rows a report has."""
ROWS: Final = 5
"""How many rows of each."""
_OF_VISITS: Final = ("views_per_visit", "visit_bounce_percentage", "visit_duration")
_DATE_LENGTH: Final = len("2026-01-31")
_LACKING: Final = (Gap.FIGURES, Gap.INTERVAL, Gap.VISITS, Gap.DAMAGED)


@frozen
class Counted:
    """What the configuration says is counted."""

    visits: bool = True
    visitors: bool = True

    @property
    def measures(self) -> list[str]:
        """The counts that a report has, by which days and rows can be counted."""
        of_people = ((VISITORS, self.visitors), (VISITS, self.visits))
        return [*(name for name, is_on in of_people if is_on), PAGEVIEWS]


@frozen
class Figure:
    """A figure by the name of its measure, None where it is unknown."""

    measure: str
    now: float | None
    before: float | None


@frozen
class GoalFigures:
    """How often a goal was reached, and the exact revenue, if it has one."""

    name: str
    now: int
    before: int
    revenue: Decimal | None
    revenue_before: Decimal | None
    currency: str | None


@frozen(kw_only=True)
class WebsiteFigures:
    """All figures of a website in a report."""

    hostname: str
    measure: str
    figures: Sequence[Figure]
    by_day: Sequence[tuple[date, int]]
    """The days that the calendar of the time zone has."""
    changes: Change | None
    """What changed, as `changes` returns it; None where only views are counted."""
    lists: dict[str, Sequence[tuple[str, int]]]
    """Names and figures of the first rows of each of LISTS."""
    goals: Sequence[GoalFigures]
    annotations: Sequence[Annotation]
    """Those of the days, in order of time."""
    is_incomplete: bool
    """Whether some days are not in all figures, since only their sums are kept, or by damage."""
    lacks_exclusions: bool
    """Whether exclusions do not apply to some days, of which only sums are kept."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted, before or now."""
        return not any(figure.now or figure.before for figure in self.figures)


def website_figures(
    reader: Reader,
    hostname: str,
    span: Span,
    *,
    goals: Sequence[Goal],
    annotations: Annotations,
    counted: Counted,
    now_ms: int,
) -> WebsiteFigures:
    """Return the figures of a website in a week or month that is over."""
    gaps = NO_GAPS

    def content(result: Result[Any]) -> Any:
        nonlocal gaps
        gaps |= result.gaps
        return result.content

    now = Query(span.period, with_visits=counted.visits)
    before = evolve(now, period=span.previous.period)
    options = SummaryOptions(now_ms=now_ms, interval="day")
    total = content(summary(reader, now, options=options))
    earlier = content(summary(reader, before, options=evolve(options, interval=None)))
    measures = counted.measures
    # Views may have been imported that belong to no known visit or visitor.
    measure = next(
        (
            name
            for name in (VISITS, VISITORS)
            if name in measures
            and (getattr(total["current"], name) or getattr(earlier["current"], name))
        ),
        PAGEVIEWS,
    )
    rows = evolve(now, is_brief=True, with_views=True, order=measure, limit=ROWS)
    changed = None
    if measure != PAGEVIEWS:
        changes_options = ChangesOptions(now_ms=now_ms, metric=measure, compared=before.period)
        changed = content(changes(reader, Query(span.period), options=changes_options))
    reached = partial(goal_figures, reader, goals=goals, options=SeriesOptions(now_ms=now_ms))
    found = WebsiteFigures(
        hostname=hostname,
        measure=measure,
        figures=[
            Figure(name, _known(total["current"], name), _known(earlier["current"], name))
            for name in (*measures, *(_OF_VISITS if counted.visits else ()))
        ],
        by_day=[
            (date.fromisoformat(row.date[:_DATE_LENGTH]), getattr(row, measure))
            for row in total["interval"]
        ],
        changes=changed,
        lists={
            name: _first_rows(content(ROW_REPORTS[name](reader, rows)), measure) for name in LISTS
        },
        goals=_goals(content(reached(now)), content(reached(before))) if goals else [],
        annotations=_annotations(annotations, span),
        is_incomplete=False,
        lacks_exclusions=False,
    )
    is_incomplete = bool(gaps.days(*_LACKING))
    lacks_exclusions = bool(gaps.days(Gap.EXCLUSIONS))
    return evolve(found, is_incomplete=is_incomplete, lacks_exclusions=lacks_exclusions)


def _annotations(annotations: Annotations, span: Span) -> list[Annotation]:
    start_ms, end_ms = span.period.start_ms, span.period.end_ms
    found = (each for each in annotations.all if each.is_between(start_ms, end_ms, span.zone))
    return sorted(found, key=lambda each: each.start_s(span.zone))


def _known(row: Any, measure: str) -> float | None:
    """Return a figure; means of no visits are unknown."""
    if measure in _OF_VISITS and not row.visits:
        return None
    figure: float = getattr(row, measure)
    return figure


def _first_rows(rows: Sequence[Any], measure: str) -> list[tuple[str, int]]:
    return [
        (getattr(row, row.__struct_fields__[0]), getattr(row, measure))
        for row in rows
        if getattr(row, measure)
    ]


def _goals(now: Sequence[Any], before: Sequence[Any]) -> list[GoalFigures]:
    earlier = {row["id"]: row for row in before}
    return [
        GoalFigures(
            name=row["name"],
            now=row["conversions"],
            before=earlier[row["id"]]["conversions"],
            revenue=row["revenue"]["sum"] if "revenue" in row else None,
            revenue_before=earlier[row["id"]]["revenue"]["sum"] if "revenue" in row else None,
            currency=row["revenue"]["currency"] if "revenue" in row else None,
        )
        for row in now
    ]
