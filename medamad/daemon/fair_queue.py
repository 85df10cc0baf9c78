"""A queue in which each asker has its turn, so that whoever asks much keeps nobody else waiting."""

from collections import Counter
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from attrs import define, field

Asker: TypeAlias = tuple[Hashable, ...]
"""Who asks, from the large to the small: a share link, and a network in which it is shown.

Those who share the first take turns among themselves within its turns, and so on. The empty one is
the daemon itself, which waits for nobody.
"""

_REMEMBERED: Final = 1_000


class Piece(Protocol):
    """A piece of work. No two are equal."""

    @property
    def asker(self) -> Asker:
        """Whose it is."""


T = TypeVar("T", bound=Piece)


@define(eq=False)
class FairQueue(Generic[T]):
    """Pieces of work that wait, by asker, and how many of each asker are under way.

    `at_once` of one asker, by what comes first of it, may be under way. Among those that may be
    begun, it is the turn of whoever has waited longest since the last one; who asks again while
    others wait comes after them.
    """

    at_once: int
    _waiting: dict[Asker, dict[T, None]] = field(factory=dict)
    _under_way: Counter[Asker] = field(factory=Counter)
    _turns: dict[Asker, int] = field(factory=dict)
    """The number of the last turn, of each asker and of what they have in common."""
    _turn: int = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._waiting.values()))

    def add(self, piece: T) -> None:
        """Let a piece of work wait."""
        self._waiting.setdefault(piece.asker, {})[piece] = None

    def remove(self, piece: T) -> None:
        """Let a piece of work wait no more, if it does."""
        pieces = self._waiting.get(piece.asker, {})
        pieces.pop(piece, None)
        if not pieces:
            self._waiting.pop(piece.asker, None)
        if not self._waiting:
            # Nobody's turn depends on it, and networks are kept no longer than is of use.
            self._turns.clear()

    def begin(self) -> T | None:
        """Take the next piece, None where there is none that may be begun; see `ended`."""
        free = (asker for asker in self._waiting if self._under_way[asker[:1]] < self.at_once)
        asker = min(free, key=self._last_turns, default=None)
        if asker is None:
            return None
        piece = next(iter(self._waiting[asker]))
        self._turn += 1
        for size in range(1, len(asker) + 1):
            self._turns.pop(asker[:size], None)
            self._turns[asker[:size]] = self._turn
        while len(self._turns) > _REMEMBERED:
            del self._turns[next(iter(self._turns))]
        self._under_way[asker[:1]] += 1
        self.remove(piece)
        return piece

    def ended(self, piece: T) -> None:
        """Count a piece as under way no more."""
        who = piece.asker[:1]
        self._under_way[who] -= 1
        if not self._under_way[who]:
            del self._under_way[who]

    def to_give_way(self, asker: Asker) -> T | None:
        """Return the piece that is to make room for one of `asker`, None where that has its share.

        It is the latest of whoever has most that wait.
        """
        for size in range(1, len(asker) + 1):
            counts: Counter[Asker] = Counter()
            for other, pieces in self._waiting.items():
                if other[: size - 1] == asker[: size - 1]:
                    counts[other[:size]] += len(pieces)
            greatest = max(counts, key=counts.__getitem__, default=asker)
            if counts[greatest] > counts[asker[:size]] + 1:
                theirs = (other for other in self._waiting if other[:size] == greatest)
                return next(reversed(self._waiting[max(theirs, key=self._waiting_of)]))
        return None

    def _waiting_of(self, asker: Asker) -> int:
        return len(self._waiting[asker])

    def _last_turns(self, asker: Asker) -> tuple[int, ...]:
        return tuple(self._turns.get(asker[:size], 0) for size in range(1, len(asker) + 1))
