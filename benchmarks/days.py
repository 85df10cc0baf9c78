"""The days of the traffic: visitors, visits, pages and times on page, drawn with numpy."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field
from audience import Audience
from content import Content
from numpy.typing import NDArray
from plan import DAY_MS, HOUR_MS, Plan
from weighted_draws import Odds

Columns: TypeAlias = dict[str, NDArray[Any]]
"""What is known of views, as arrays of equal length."""

_WEEKDAYS: Final = (1.1, 1.15, 1.1, 1.05, 0.95, 0.7, 0.8)
_HOURS: Final = Odds.of([1.15 - math.cos((hour - 3.5) / 24 * math.tau) for hour in range(24)])
_RETURNING: Final = 0.4
"""Share of a day's visitors who came within the month before."""
_RETURN_PROBABILITY: Final = 0.18
"""How often a visit is followed by another on the same day."""
_DEPTH: Final = 2.2
_MAX_VISIT_VIEWS: Final = 40
_UNLOAD_PROBABILITY: Final = 0.88
_BOUNCE_PROBABILITY: Final = 0.28
_READING_MS: Final = 62_000
_LEFT_OPEN: Final = 0.002
_EVENT_ODDS: Final = 0.04
_EVENT_IS_LATE: Final = 0.01
_EVENT_HAS_NO_VIEW: Final = 0.02


@define
class Days:
    """The views of all days, generated day by day."""

    plan: Plan
    content: Content
    audience: Audience
    _random: np.random.Generator = field(init=False)
    _known: int = 0
    """How many visitors there have been."""
    _monthly: int = 0
    """How many of them are new within a month, as many as had come before the first day."""

    def __attrs_post_init__(self) -> None:
        self._random = np.random.default_rng(self.plan.seed)
        self._known = self._monthly = max(self.plan.views // self.plan.days * 6, 100)

    def __iter__(self) -> Iterator[Columns]:
        plan = self.plan
        over: list[Columns] = []
        for day, wanted in enumerate(self._wanted()):
            ends_ms = plan.since_ms + (day + 1) * DAY_MS
            columns = joined([*over, self._day(day, wanted)])
            columns = taken(columns, np.argsort(columns["time_ms"], kind="stable"))
            ready = int(np.searchsorted(columns["time_ms"], ends_ms))
            yield taken(columns, slice(0, ready))
            over = [taken(columns, slice(ready, None))]

    def _wanted(self) -> list[int]:
        """Return the number of views on each day: more on workdays, slowly growing."""
        plan = self.plan
        weekdays = [
            datetime.fromtimestamp((plan.since_ms + n * DAY_MS) / 1000, UTC).weekday()
            for n in range(plan.days)
        ]
        weights = [
            _WEEKDAYS[weekday] * (1 + n / plan.days / 2) for n, weekday in enumerate(weekdays)
        ]
        due = np.rint(np.cumsum(weights) / np.sum(weights) * plan.views).astype(np.int64)
        counts: list[int] = np.diff(due, prepend=0).tolist()
        return counts

    def _day(self, day: int, wanted: int) -> Columns:
        """Return the views of the visits that begin on a day, by visitor and then by time."""
        visitors = wanted // 2 + 20
        while True:
            columns = self._visits(day, visitors)
            in_time = np.flatnonzero(columns["time_ms"] < self.plan.until_ms)[:wanted]
            if len(in_time) == wanted:
                return self._flagged(taken(columns, in_time))
            visitors *= 2

    def _visits(self, day: int, visitors: int) -> Columns:
        random, content = self._random, self.content
        visitor = self._visitors(visitors)
        visit_of = np.repeat(
            np.arange(visitors), random.geometric(1 - _RETURN_PROBABILITY, visitors)
        )
        depths = np.minimum(random.geometric(1 / _DEPTH, len(visit_of)), _MAX_VISIT_VIEWS)
        views = int(depths.sum())
        lands = np.zeros(views, np.bool_)
        lands[np.cumsum(depths) - depths] = True
        view_of = np.repeat(visit_of, depths)
        begins = np.flatnonzero(np.diff(view_of, prepend=-1))
        seen_ms = self._seen_ms(views)
        # From one view to the next of the same visitor: a click, or hours until the next visit.
        step_ms = seen_ms + random.integers(200, 1500, views)
        again = np.flatnonzero(lands[1:] & (view_of[1:] == view_of[:-1]))
        step_ms[again] += random.exponential(3 * HOUR_MS, len(again)).astype(np.int64)
        since_ms = np.cumsum(step_ms) - step_ms
        since_ms -= np.repeat(since_ms[begins], np.diff(begins, append=views))
        kind = Audience.kind(visitor)
        landing = np.flatnonzero(lands)
        path = content.path_odds.draw(random, views)
        path[landing] = content.landing_odds.draw(random, len(landing))
        early = np.flatnonzero(content.published_day[path] > day)
        path[early] %= (len(content.published_day) + 1) // 2
        referrer = np.zeros(views, np.uint16)
        referrer[landing] = content.referrer_odds.draw(random, len(landing))
        campaign = np.zeros(views, np.uint16)
        campaign[landing] = content.campaign_odds.draw(random, len(landing))
        left = random.random(views, np.float32) < _UNLOAD_PROBABILITY
        return {
            "time_ms": self._moments(day, kind)[view_of] + since_ms,
            "visitor": view_of,
            "visit": (day << 40) + np.cumsum(lands),
            "kind": kind[view_of],
            "path": path,
            "referrer": referrer,
            "campaign": campaign,
            "duration_ms": np.where(left, seen_ms, 0).astype(np.uint32),
            **self._events(seen_ms),
        }

    def _visitors(self, count: int) -> NDArray[np.uint64]:
        """Return the numbers of a day's visitors: new ones, and some of the month before."""
        known = self._random.random(count) < _RETURNING
        visitor = np.empty(count, np.uint64)
        ago = self._monthly * self._random.random(count) ** 2
        visitor[known] = self._known - 1 - ago[known].astype(np.uint64)
        new = int(count - known.sum())
        visitor[~known] = np.arange(self._known, self._known + new, dtype=np.uint64)
        self._known += new
        return visitor

    def _moments(self, day: int, kind: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Return the time of each visitor's first view, drawn by the local hour."""
        starts_ms = self.plan.since_ms + day * DAY_MS
        hours = _HOURS.draw(self._random, len(kind)) + self._random.random(len(kind))
        local_ms = ((hours - self.audience.hours_ahead[kind]) * HOUR_MS).astype(np.int64)
        moments: NDArray[np.int64] = starts_ms + (local_ms - starts_ms) % DAY_MS
        return moments

    def _seen_ms(self, count: int) -> NDArray[np.int64]:
        """Return times on page: many bounces, most read, a few left open for hours."""
        random = self._random
        seen_ms = random.lognormal(math.log(_READING_MS), 1.0, count)
        sort = random.random(count)
        short = np.flatnonzero(sort < _BOUNCE_PROBABILITY)
        seen_ms[short] = random.uniform(300, 5_000, len(short))
        long = np.flatnonzero(sort > 1 - _LEFT_OPEN)
        seen_ms[long] = HOUR_MS * 24 ** random.random(len(long))
        return np.clip(seen_ms, 1, DAY_MS).astype(np.int64)

    def _events(self, seen_ms: NDArray[np.int64]) -> Columns:
        """Return the events in views: `event` is a pattern, 0 for none."""
        random, count = self._random, len(seen_ms)
        happens = np.flatnonzero(random.random(count, np.float32) < _EVENT_ODDS)
        late = random.random(len(happens)) < _EVENT_IS_LATE
        within_ms = np.where(late, DAY_MS - 1, seen_ms[happens])
        event, after_ms = np.zeros(count, np.uint16), np.zeros(count, np.uint32)
        event[happens] = random.choice(self.content.patterns.events, len(happens))
        after_ms[happens] = random.random(len(happens)) * within_ms
        alone = np.zeros(count, np.bool_)
        alone[happens] = random.random(len(happens)) < _EVENT_HAS_NO_VIEW
        return {"event": event, "event_after_ms": after_ms, "event_alone": alone}

    def _flagged(self, columns: Columns) -> Columns:
        """Return views, sorted by visitor and time, with the flags of first views."""
        visitor, path = columns.pop("visitor"), columns["path"].astype(np.int64)
        day = columns["time_ms"].astype(np.int64) // DAY_MS
        first = np.ones(len(visitor), np.bool_)
        first[1:] = (visitor[1:] != visitor[:-1]) | (day[1:] != day[:-1])
        pages = np.cumsum(first) * (int(path.max(initial=0)) + 1) + path
        first_of_page = np.zeros(len(first), np.bool_)
        first_of_page[np.unique(pages, return_index=True)[1]] = True
        return {**columns, "first_today": first, "first_of_page": first_of_page}


def joined(parts: list[Columns]) -> Columns:
    """Return the views of several parts as one."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def taken(columns: Columns, places: slice | NDArray[Any]) -> Columns:
    """Return some of the views."""
    return {name: column[places] for name, column in columns.items()}
