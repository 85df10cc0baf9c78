"""What came before its load: leavings and events whose view is not known yet.

Requests of one page can overtake each other. Kept in memory for 60 seconds, within bounds.
"""

from typing import Final

from attrs import define, field

KEPT_MS: Final = 60_000


@define(eq=False)
class Waiting:
    """What waits for the load with one beacon. `events`: website and number of each."""

    since_ms: int
    duration_ms: int = 0
    events: list[tuple[int, int]] = field(factory=list)


@define(eq=False)
class Early:
    """Used by the writer thread alone. Holds at most `capacity` beacons, 30 events for each."""

    _capacity: int
    _waiting: dict[bytes, Waiting] = field(factory=dict)

    def leave(self, digest: bytes, now_ms: int, duration_ms: int) -> None:
        """Keep a leaving; the longest counts."""
        waiting = self._of(digest, now_ms)
        waiting.duration_ms = max(waiting.duration_ms, duration_ms)

    def happen(self, digest: bytes, now_ms: int, website: int, event: int) -> None:
        """Keep that an event, stored without a view, names this beacon."""
        waiting = self._of(digest, now_ms)
        if len(waiting.events) < 30:  # noqa: PLR2004 - as the class says
            waiting.events.append((website, event))

    def waiting(self, digest: bytes, now_ms: int) -> Waiting | None:
        """Give what waits for a load that has come now."""
        waiting = self._waiting.get(digest)
        if waiting is None or not 0 <= now_ms - waiting.since_ms <= KEPT_MS:
            return None
        return waiting

    def forget(self, digest: bytes) -> None:
        """Forget what waited for a load that is stored now."""
        self._waiting.pop(digest, None)

    def _of(self, digest: bytes, now_ms: int) -> Waiting:
        waiting = self._waiting.get(digest)
        if waiting is None or not 0 <= now_ms - waiting.since_ms <= KEPT_MS:
            self._waiting.pop(digest, None)
            self._drop_old(now_ms)
            waiting = self._waiting[digest] = Waiting(since_ms=now_ms)
        return waiting

    def _drop_old(self, now_ms: int) -> None:
        while self._waiting:
            oldest = next(iter(self._waiting))
            is_old = now_ms - self._waiting[oldest].since_ms > KEPT_MS
            if not is_old and len(self._waiting) < self._capacity:
                return
            del self._waiting[oldest]
