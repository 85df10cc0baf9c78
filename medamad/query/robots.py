"""Robots: how many pages they read in a period, by name, operator, purpose, path or day.

They are counted by day in the server's time zone, so every day that the period touches counts as a
whole.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import tzinfo
from typing import Final, TypeAlias

from attrs import field, frozen

from medamad.domain.instants import day_as_text
from medamad.domain.zones import day_at
from medamad.lookup.robots import Robots
from medamad.query.period import Period
from medamad.query.request import MAX_ROWS, Gap, Gaps, Result
from medamad.storage.request_totals import RequestDays

NAME: Final = "name"
OPERATOR: Final = "operator"
PURPOSE: Final = "purpose"
PATH: Final = "path"
DAY: Final = "day"
PARTS: Final = (NAME, OPERATOR, PURPOSE, PATH, DAY)
"""What requests can be counted by. The first is the default."""
FIELDS: Final = (NAME, OPERATOR, PURPOSE, PATH)
"""What they can be chosen by."""

Row: TypeAlias = dict[str, str | int | float]


@frozen(kw_only=True)
class RobotQuery:
    """What to count requests by, which ones, and the page of rows to return.

    `chosen` has the values of some of FIELDS that a request must have.
    """

    by: str = NAME
    chosen: Mapping[str, str] = field(factory=dict)
    limit: int = MAX_ROWS
    offset: int = 0


def days_touched(period: Period, zone: tzinfo) -> tuple[int | None, int | None]:
    """Return the first and the last day of a period, as days since 1970-01-01; None for no bound.

    They are the dates at its ends in a zone.
    """
    first_ms, last_ms = period.start_ms, period.end_ms
    return (
        None if first_ms is None else day_at(zone, first_ms // 1000),
        None if last_ms is None else day_at(zone, last_ms // 1000),
    )


def robot_rows(days: RequestDays, robots: Robots, query: RobotQuery) -> Result[list[Row]]:
    """Return the requests by name, operator, purpose, path or day.

    Most first, but days in their order.
    """
    counts: Counter[str | int] = Counter()
    path_chosen = query.chosen.get(PATH)
    for day, of_day in days.counts.items():
        for name, by_path in of_day.items():
            robot = robots.of(name)
            known = {NAME: name, OPERATOR: robot.operator, PURPOSE: str(robot.purpose)}
            if all(known.get(field, value) == value for field, value in query.chosen.items()):
                key = day if query.by == DAY else known.get(query.by)
                for path, count in by_path.items():
                    if path_chosen in (None, path):
                        counts[path if key is None else key] += count
    total = counts.total()
    ordered = (
        sorted(counts.items())
        if query.by == DAY
        else sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    )
    rows = [
        {
            **_described(query.by, key, robots),
            "requests": count,
            "requests_percentage": round(count / total, 4),
        }
        for key, count in ordered[query.offset : query.offset + query.limit]
    ]
    return Result(rows, Gaps((Gap.DAMAGED, day) for day in days.damaged))


def _described(by: str, key: str | int, robots: Robots) -> Row:
    if by == DAY:
        return {"date": day_as_text(int(key))}
    if by == NAME:
        robot = robots.of(str(key))
        return {"name": key, "operator": robot.operator, "purpose": str(robot.purpose)}
    return {by: key}
