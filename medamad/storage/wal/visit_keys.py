"""What a visit is, and the keys that visitors' identities are hashed with. Never written."""

from datetime import tzinfo
from functools import partial
from secrets import token_bytes
from typing import Final
from zoneinfo import ZoneInfo

from attrs import define, field, frozen

from medamad.domain.zones import day_at, start_of_day

_UTC: Final = ZoneInfo("UTC")
_new_key: Final = partial(token_bytes, 16)


@frozen(kw_only=True)
class VisitSettings:
    """What a visit is, and how many are kept in memory."""

    is_on: bool = True
    timeout_ms: int = 30 * 60_000
    capacity: int = 200_000
    zone: tzinfo = _UTC
    """At its midnight the hash key is replaced."""


@define(eq=False)
class HashKeys:
    """The key that identities are hashed with, and that of the day before while it is needed."""

    current: bytes = field(factory=_new_key)
    old: bytes = b""
    """The key of the day before; b"" once no visit of it can go on."""
    parity: int = 0
    """0 or 1, in turn from day to day: what a hash begins with, so that its day is known."""
    _zone: tzinfo = _UTC
    _begin_ms: int = 0
    _end_ms: int = 0

    def advance(self, now_ms: int, settings: VisitSettings) -> bool:
        """Replace the key if a new day has begun, and return whether one has.

        Hits may be a little out of order.
        """
        is_set_up = self._zone is settings.zone and self._end_ms
        if is_set_up and self._begin_ms - settings.timeout_ms <= now_ms < self._end_ms:
            return False
        self._zone = settings.zone
        day = day_at(self._zone, now_ms // 1000)
        self._begin_ms, self._end_ms = (
            start_of_day(self._zone, each) * 1000 for each in (day, day + 1)
        )
        if not is_set_up:
            return False
        self.old, self.current = self.current, _new_key()
        self.parity = 1 - self.parity
        return True

    def midnight_ms(self, time_ms: int) -> int:
        """Return when the day of a time began."""
        if self._begin_ms <= time_ms < self._end_ms:
            return self._begin_ms
        return start_of_day(self._zone, day_at(self._zone, time_ms // 1000)) * 1000
