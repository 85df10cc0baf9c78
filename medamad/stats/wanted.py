"""Whether anybody still waits for the answer to a question."""

from collections.abc import Iterator
from typing import Any

from attrs import define, evolve, frozen

from medamad.store.parts import Part, Snapshot


class NobodyWaits(Exception):
    """A question was given up because whoever asked it has gone."""


@define(eq=False)
class Wanted:
    """Tells a question in its thread, at each part and when it checks, whether to go on."""

    is_wanted: bool = True

    def watched(self, snapshot: Snapshot) -> Snapshot:
        """Give a snapshot that raises NobodyWaits once the answer is no longer wanted."""
        return evolve(snapshot, parts=_WatchedParts(snapshot.parts, self), check=self.check)

    def check(self) -> None:
        """Raise NobodyWaits if the answer is no longer wanted."""
        if not self.is_wanted:
            raise NobodyWaits


@frozen(eq=False)
class _WatchedParts:
    _parts: Any
    _wanted: Wanted

    def __iter__(self) -> Iterator[Part]:
        for part in self._parts:
            self._wanted.check()
            yield part
