"""The calendar weeks and months that reports are of."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Self

from attrs import evolve, frozen

from medamad.domain.subscriptions import Every, Subscription
from medamad.domain.zones import day_at, start_of_day, zone_named
from medamad.query.period import Period

_EPOCH: Final = date(1970, 1, 1)


@frozen
class Span:
    """A calendar week, which begins on Monday, or a calendar month."""

    every: Every
    first: date
    zone: tzinfo = UTC

    @classmethod
    def with_day(cls, every: Every, day: date, zone: tzinfo) -> Self:
        """Return the week or month that a day is in."""
        if every is Every.WEEK:
            return cls(every, day - timedelta(days=day.weekday()), zone)
        return cls(every, day.replace(day=1), zone)

    @classmethod
    def last_over(cls, every: Every, unix_s: int, zone: tzinfo) -> Self:
        """Return the last week or month that is over at an instant."""
        return cls.with_day(every, _EPOCH + timedelta(days=day_at(zone, unix_s)), zone).previous

    @property
    def name(self) -> str:
        """What tells it apart from all other weeks and months."""
        day = self.first.isoformat()
        return day if self.every is Every.WEEK else day[: len("2026-01")]

    @property
    def following(self) -> Self:
        """The next one."""
        return self._with(self.first + timedelta(days=7 if self.every is Every.WEEK else 31))

    @property
    def previous(self) -> Self:
        """The one before."""
        return self._with(self.first - timedelta(days=1))

    def _with(self, day: date) -> Self:
        return evolve(self, first=self.with_day(self.every, day, self.zone).first)

    @property
    def last(self) -> date:
        """Its last day."""
        return self.following.first - timedelta(days=1)

    @property
    def end_s(self) -> int:
        """The Unix second at which it is over."""
        return self._start_of(self.following.first)

    @property
    def period(self) -> Period:
        """Its period."""
        return Period(self._start_of(self.first) * 1000, self.end_s * 1000 - 1, self.zone)

    def _start_of(self, day: date) -> int:
        return start_of_day(self.zone, (day - _EPOCH).days)

    def due_s(self, day: int, hour: int) -> int:
        """Return when its report is due: on a day of the next one (1 is the first), at an hour.

        An hour that the clock leaves out is the one after, and of one that comes twice the first.
        """
        on = self.following.first + timedelta(days=day - 1)
        return int(datetime.combine(on, time(hour), self.zone).timestamp())


def due_span(subscription: Subscription, now_s: int) -> Span | None:
    """Return the week or month whose report is due and not mailed yet, the last one of several."""
    span = Span.last_over(subscription.every, now_s, zone_named(subscription.timezone))
    day, hour = subscription.day, subscription.hour
    while span.due_s(day, hour) > now_s:
        span = span.previous
    since = subscription.confirmed
    if since is None or span.due_s(day, hour) <= max(since, subscription.changed):
        return None
    return None if span.name in subscription.done else span


def rescheduled(old: Subscription, new: Subscription, now_s: int) -> Subscription:
    """Return a subscription that was changed, of which nothing is mailed that was due before.

    Except for what was due and could not be mailed yet.
    """
    if new.schedule == old.schedule or due_span(old, now_s) is not None:
        return new
    return evolve(new, changed=now_s)
