"""Robots: how many pages they read in a period, by name, operator, purpose, path or day.

They are counted by day in the server's time zone, so every day that the period touches counts as a
whole.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, tzinfo
from typing import Final, TypeAlias

from attrs import field, frozen

from medamad.domain.zones import day_at
from medamad.lookup.robots import Robot, Robots
from medamad.query.period import Period
from medamad.query.request import MAX_ROWS, Gap, Gaps, Result
from medamad.storage.request_totals import RequestCounts, RequestDays

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
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


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
    for day, of_day in days.counts.items():
        for name, robot, path, count in _requests(of_day, robots, query.chosen):
            counts[_key(query.by, name, robot, path, day)] += count
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


def _requests(
    counts: RequestCounts, robots: Robots, chosen: Mapping[str, str]
) -> Iterator[tuple[str, Robot, str, int]]:
    wanted_path = chosen.get(PATH)
    for name, by_path in counts.items():
        robot = robots.of(name)
        has = {NAME: name, OPERATOR: robot.operator, PURPOSE: str(robot.purpose)}
        if all(has[field] == value for field, value in chosen.items() if field != PATH):
            for path, count in by_path.items():
                if wanted_path in (None, path):
                    yield name, robot, path, count


def _key(by: str, name: str, robot: Robot, path: str, day: int) -> str | int:
    match by:
        case "name":
            return name
        case "operator":
            return robot.operator
        case "purpose":
            return str(robot.purpose)
        case "path":
            return path
        case _:
            return day


def _described(by: str, key: str | int, robots: Robots) -> Row:
    if by == DAY:
        return {"date": date.fromordinal(_EPOCH_DAY + int(key)).isoformat()}
    if by == NAME:
        robot = robots.of(str(key))
        return {"name": key, "operator": robot.operator, "purpose": str(robot.purpose)}
    return {by: key}
