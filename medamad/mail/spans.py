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
    over, span = _last_due(subscription, now_s)
    since = subscription.since
    if since is None or span.due_s(subscription.day, subscription.hour) <= since:
        return None
    return None if _is_done(subscription, span, over) else span


def _last_due(subscription: Subscription, now_s: int) -> tuple[Span, Span]:
    """Return the last week or month that is over, and the last one whose report is due."""
    over = span = Span.last_over(subscription.every, now_s, zone_named(subscription.timezone))
    while span.due_s(subscription.day, subscription.hour) > now_s:
        span = span.previous
    return over, span


def _is_done(subscription: Subscription, span: Span, over: Span) -> bool:
    """Return whether its report, or a later one, needs no further attempt.

    What was done while the clock was ahead says nothing of now, when `over` is the last one over.
    """
    done = (name for name in subscription.done if len(name) == len(span.name))
    return any(span.name <= name <= over.name for name in done)


def rescheduled(old: Subscription, new: Subscription, now_s: int) -> Subscription:
    """Return a subscription that was changed, which mails what becomes due from now on.

    It also mails at once what would already have been due, had it not been due later before the
    change, or could not be mailed yet.
    """
    if new.schedule == old.schedule or old.since is None:
        return new
    over, span = _last_due(new, now_s)
    is_open = (
        new.every is old.every
        and span.due_s(old.day, old.hour) > old.since
        and not _is_done(new, span, over)
    )
    return evolve(new, changed=span.due_s(new.day, new.hour) - 1 if is_open else now_s)
