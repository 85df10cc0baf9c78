"""The visits of settled days that rules leave out, cached from one request to the next.

To find them takes longer than most questions. The hits of a settled day do not change until the day
is touched, so what was found for it stays right for as long.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

MOST_VISITS: Final = 200_000
"""How many visits of a website are cached, and sent with a statement, at most."""
_MOST_WEBSITES: Final = 100

FindVisits: TypeAlias = Callable[[Sequence[int]], tuple[NDArray[np.uint64], NDArray[np.int64]]]
"""Returns visits that began on some days, and the day of each: more than MOST_VISITS if these are
not all."""


@define(eq=False)
class _OfWebsite:
    """The visits of a website that some rules leave out."""

    rules: object
    visits: dict[int, tuple[int, NDArray[np.uint64]]] = field(factory=dict)
    """By day, with how often the day had been touched."""
    are_too_many: bool = False


@define(eq=False)
class VisitsLeftOut:
    """For any thread."""

    _found: OrderedDict[int, _OfWebsite] = field(factory=OrderedDict, init=False)
    _lock: Lock = field(factory=Lock, init=False)

    def on(
        self, website: int, rules: object, settled: Mapping[int, int], find: FindVisits
    ) -> NDArray[np.uint64] | None:
        """Return the visits that began on some settled days, None if there are too many.

        `rules` is what differs if other visits may be left out. `settled` says how often each day
        had been touched when it was settled.
        """
        with self._lock:
            known = self._found.get(website)
            if known is None or known.rules != rules:
                known = self._found[website] = _OfWebsite(rules)
            self._found.move_to_end(website)
            if len(self._found) > _MOST_WEBSITES:
                self._found.popitem(last=False)
            visits = dict(known.visits)
        missing = [day for day, seen in settled.items() if visits.get(day, (-1,))[0] != seen]
        if missing and not known.are_too_many:
            numbers, days = find(missing)
            for day in missing:
                visits[day] = settled[day], np.unique(numbers[days == day])
            with self._lock:
                known.visits.update((day, visits[day]) for day in missing)
                if sum(len(numbers) for _, numbers in known.visits.values()) > MOST_VISITS:
                    known.are_too_many = True
                    known.visits.clear()
        if known.are_too_many:
            return None
        return np.concatenate([np.zeros(0, np.uint64), *(visits[day][1] for day in settled)])
