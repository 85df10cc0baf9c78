"""Websites that have gone quiet: they had views, and have none any more.

The tracker may be gone since a relaunch, or a proxy may be broken. The rule works in quarters of an
hour. A website is quiet if none of the last quarters has a view, at least 12 of them (three hours),
and if the same span of time had at least 20 views on each of the seven days before its last view;
or in each of the three weeks before; or in each of the three fortnights. Of a longer silence the
first day, the first week or the first fortnight counts. So a website with few views, or with views
by day alone, or with none on Sundays, is not reported at night or on Sundays. One with as few as
ten views a week is reported after a fortnight.

The hours in which the daemon did not run are no silence. After 30 days a website is not reported
any more. Only a view that was counted here can be the last view, because views that are imported
day by day say nothing about the present; the views before it may be imported. Views in the future,
from a clock that was ahead, do not count, and neither do those of a day of which some are unknown.
"""

from typing import Final

from medamad.domain.dimensions import Dimension
from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.request import Gap, Query

LEAST_SILENCE: Final = 12
LEAST_VIEWS: Final = 20
_QUARTER_MS: Final = 900_000
_DAY: Final = 96
_COMPARED: Final = ((_DAY, 7), (7 * _DAY, 3), (14 * _DAY, 3))
"""What a silence is compared with: the length of a period in quarters, and how many periods."""
_FORGOTTEN_AFTER: Final = 30 * _DAY


def quiet_since(reader: Reader, now_ms: int, listening_since_ms: int) -> int | None:
    """Return the time of a quiet website's last view, or None if it is not quiet.

    All times are Unix milliseconds. `listening_since_ms` is since when the daemon has been taking
    hits without a break.
    """
    now = now_ms // _QUARTER_MS
    last_ms = reader.last_counted_ms(Period((now - _FORGOTTEN_AFTER) * _QUARTER_MS, now_ms))
    if last_ms is None:
        return None
    last = last_ms // _QUARTER_MS
    silent_after = max(last, listening_since_ms // _QUARTER_MS)
    length = now - silent_after - 1
    if length < LEAST_SILENCE:
        return None
    for period, times in _COMPARED:
        # If the daemon did not run after the last view, compare whole periods from there.
        periods_after = -((last - silent_after) // period)
        first = silent_after + 1 - period * (times + periods_after)
        begins = (first + number * period for number in range(times))
        compared_ms = min(length, period) * _QUARTER_MS
        if all(
            (views_in(reader, begin * _QUARTER_MS, compared_ms) or 0) >= LEAST_VIEWS
            for begin in begins
        ):
            return last_ms
    return None


def views_in(reader: Reader, begin_ms: int, length_ms: int) -> int | None:
    """Return how many views there are in some milliseconds.

    None if some of these are unknown, or if some count that exclusions leave out elsewhere.
    """
    selected = reader.select(Query(Period(begin_ms, begin_ms + length_ms - 1)))
    tally = selected.tally(Dimension.DEVICE, with_durations=False)
    gaps = selected.left_out | tally.gaps
    unknown = gaps.days(Gap.FIGURES, Gap.DAMAGED, Gap.EXCLUSIONS)
    return None if unknown else int(tally.views.sum())
