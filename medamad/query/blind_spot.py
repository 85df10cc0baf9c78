"""The blind spot: page loads in followed logs that neither robots made nor the tracker counted.

Both are totals. The log has the page loads of each day by browser and path, and the store has the
views; their difference says how much the tracker misses, not whom. The first day that a log was
followed is left out, as it may have begun late, and so is what is before a day without any loads.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Final, TypeAlias

import numpy as np

from medamad.domain.dimensions import OTHER, Dimension
from medamad.domain.instants import day_as_text
from medamad.domain.zones import start_of_day
from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.reports import SummaryOptions, summary
from medamad.query.request import NO_GAPS, Gap, Gaps, Query, Result
from medamad.storage.request_totals import RequestCounts, RequestDays

PARTS: Final = ("browser", "path", "day")
"""What loads can be compared by. The first is the default."""
BlindSpot: TypeAlias = dict[str, Any]
_DIMENSIONS: Final = {"browser": Dimension.BROWSER, "path": Dimension.PATH}


def followed_days(loads: RequestDays, first: int | None, last: int | None) -> list[int]:
    """Return the latest days without a gap, within two bounds, that were followed from midnight."""
    begun = min((*loads.counts, *loads.damaged), default=0)
    wanted = [day for day in sorted(loads.counts) if day > begun and _is_within(day, first, last)]
    days: list[int] = []
    for day in reversed(wanted):
        if days and day != days[-1] - 1:
            break
        days.append(day)
    return days[::-1]


def blind_spot(
    reader: Reader,
    loads: Mapping[int, RequestCounts],
    zone: tzinfo,
    *,
    by: str,
    limit: int,
    now_ms: int,
) -> Result[BlindSpot]:
    """Return the page loads of some days in a row: counted, robots', and not seen by the tracker.

    There are none if all were made by robots: such a log says nothing of what the tracker sees.
    Rows have those of people by browser, path or day, most loads first, but days in their order.
    """
    people = _people(loads, by)
    if not people:
        return Result({"loads": 0, "robots": 0, "counted": 0, "unseen": 0, "rows": []}, NO_GAPS)
    first, last = min(loads), max(loads)
    period = Period(start_of_day(zone, first) * 1000, start_of_day(zone, last + 1) * 1000 - 1, zone)
    query = Query(period=period)
    robots = sum(sum(of_day.get("", {}).values()) for of_day in loads.values())
    options = SummaryOptions(now_ms=now_ms, interval="day" if by == "day" else None)
    found = summary(reader, query, options=options)
    figures: Any = found.content
    current, gaps = figures["current"], found.gaps
    if by == "day":
        counted = {row.date[:10]: row.pageviews for row in figures["interval"]}
    else:
        tally, texts = reader.select(query).tally(_DIMENSIONS[by]), reader.texts(_DIMENSIONS[by])
        codes = np.flatnonzero(tally.views).tolist()
        counted = {texts[code]: int(tally.views[code]) for code in codes}
        gaps |= tally.gaps
    if by == "path" and OTHER in people:
        # Loads of a path may be told apart for some browsers alone, and views always are.
        counted = {path: min(count, counted.get(path, 0)) for path, count in people.items()}
        counted[OTHER] += current.pageviews - sum(counted.values())
    ordered = sorted(people) if by == "day" else sorted(people, key=lambda key: (-people[key], key))
    rows = [
        {
            "date" if by == "day" else by: key,
            "loads": people[key],
            "counted": counted.get(key, 0),
            "unseen": max(0, people[key] - counted.get(key, 0)),
        }
        for key in ordered[:limit]
    ]
    content: BlindSpot = {
        "first": day_as_text(first),
        "last": day_as_text(last),
        "loads": people.total() + robots,
        "robots": robots,
        "counted": current.pageviews,
        "unseen": max(0, people.total() - current.pageviews),
        "rows": rows,
    }
    return Result(content, gaps)


def damaged_gaps(loads: RequestDays, first: int | None, last: int | None) -> Gaps:
    """Return the days within two bounds whose page loads are damaged."""
    return Gaps((Gap.DAMAGED, day) for day in loads.damaged if _is_within(day, first, last))


def _is_within(day: int, first: int | None, last: int | None) -> bool:
    return (first is None or day >= first) and (last is None or day <= last)


def _people(loads: Mapping[int, RequestCounts], by: str) -> Counter[str]:
    people: Counter[str] = Counter()
    for day, of_day in loads.items():
        for browser, by_path in of_day.items():
            if browser:
                for path, count in by_path.items():
                    key = {"browser": browser, "path": path}.get(by) or day_as_text(day)
                    people[key] += count
    return people
