"""What came before its load: leavings and events whose view is not known yet.

Requests of one page can overtake each other. What came waits for 60 seconds, in bounded memory, and
is let go of an hour later: the clock may be set back by as much meanwhile.
"""

from collections import OrderedDict, deque
from typing import Final

from attrs import define, field

from medamad.store.trusted import JUMP_MS

KEPT_MS: Final = 60_000
_MOST_OF_EACH: Final = 30


@define(eq=False)
class _Waiting:
    """What came for one beacon, the last of it at `came_ms`.

    Leavings by time, duration and the websites that the page may be of (None for any); events by
    time, website and number.
    """

    came_ms: int = 0
    leavings: deque[tuple[int, int, frozenset[int] | None]] = field(
        factory=lambda: deque(maxlen=_MOST_OF_EACH)
    )
    events: deque[tuple[int, int, int]] = field(factory=lambda: deque(maxlen=_MOST_OF_EACH))


@define(eq=False)
class Early:
    """Used by the writer thread alone.

    Holds `capacity` beacons at most, those that something came for last, and 30 of each kind.
    """

    _capacity: int
    _waiting: OrderedDict[bytes, _Waiting] = field(factory=OrderedDict)

    def leave(
        self,
        digest: bytes,
        now_ms: int,
        duration_ms: int,
        websites: frozenset[int] | None = None,
    ) -> None:
        """Keep a leaving, of a page of these websites (None for any)."""
        self._of(digest, now_ms).leavings.append((now_ms, duration_ms, websites))

    def happen(self, digest: bytes, now_ms: int, website: int, event: int) -> None:
        """Keep that an event, stored without a view, names this beacon."""
        self._of(digest, now_ms).events.append((now_ms, website, event))

    def duration_ms(self, digest: bytes, website: int, now_ms: int) -> int:
        """Give the longest duration that waits for a website's load that has come now, else 0."""
        waiting = self._waiting.get(digest)
        if waiting is None:
            return 0
        return max(
            (
                ms
                for came_ms, ms, of in waiting.leavings
                if (of is None or website in of) and _is_kept(came_ms, now_ms)
            ),
            default=0,
        )

    def events(self, digest: bytes, website: int, now_ms: int) -> list[int]:
        """Give the numbers of a website's events that wait for a load that has come now."""
        waiting = self._waiting.get(digest)
        if waiting is None:
            return []
        return [
            event
            for came_ms, of, event in waiting.events
            if of == website and _is_kept(came_ms, now_ms)
        ]

    def forget(self, digest: bytes) -> None:
        """Forget what waited for a load that is stored now."""
        self._waiting.pop(digest, None)

    def let_go(self, now_ms: int, most: int) -> int:
        """Let go of what has waited in vain, of at most `most` beacons.

        Returns of how many: fewer than `most` when no more are left.
        """
        gone = 0
        while gone < most and self._waiting:
            earliest = next(iter(self._waiting.values()))
            if now_ms - earliest.came_ms <= KEPT_MS + JUMP_MS:
                break
            self._waiting.popitem(last=False)
            gone += 1
        return gone

    def __len__(self) -> int:
        """Give for how many beacons something waits."""
        return len(self._waiting)

    def _of(self, digest: bytes, now_ms: int) -> _Waiting:
        """Give what waits for a beacon, as the latest of all; the earliest makes room."""
        waiting = self._waiting.pop(digest, None) or _Waiting()
        waiting.came_ms = now_ms
        self._waiting[digest] = waiting
        if len(self._waiting) > self._capacity:
            self._waiting.popitem(last=False)
        return waiting


def _is_kept(came_ms: int, now_ms: int) -> bool:
    # The clock may have been set back meanwhile, a little or far.
    return abs(now_ms - came_ms) <= KEPT_MS
