"""Whether anybody still waits for the answer to a question."""

from collections.abc import Iterator
from typing import Any

from attrs import define, evolve, frozen

from medamad.store.parts import Part, Snapshot


class NobodyWaits(Exception):
    """A question was given up because whoever asked it has gone."""


@define(eq=False)
class Wanted:
    """Tells a question in its thread, between two parts, whether to go on."""

    is_wanted: bool = True

    def watched(self, snapshot: Snapshot) -> Snapshot:
        """Give a snapshot whose parts raise NobodyWaits once the answer is no longer wanted."""
        return evolve(snapshot, parts=_Watched(snapshot.parts, self))


@frozen(eq=False)
class _Watched:
    _parts: Any
    _wanted: Wanted

    def __iter__(self) -> Iterator[Part]:
        for part in self._parts:
            if not self._wanted.is_wanted:
                raise NobodyWaits
            yield part
