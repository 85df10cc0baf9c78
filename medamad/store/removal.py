"""What deleted websites have left behind goes in small steps, so that it holds no hit up."""

from collections.abc import Callable
from functools import partial
from typing import Final

from attrs import define, field

from medamad.model.errors import Unavailable
from medamad.store.environment import Environment
from medamad.store.reading import Leases
from medamad.store.websites import remove_some, tombstones
from medamad.store.writer import Submit, Transaction

MOST_KEYS: Final = 500
"""How many keys go in one step."""
_SHORTER: Final = 8
"""How many times shorter a step is made where there is no room for it."""


@define(eq=False)
class Removal:
    """Used in the reactor's thread. A tombstone in the store says what is still to be removed."""

    _environment: Environment
    _submit: Submit
    _leases: Leases
    _under_way: set[int] = field(factory=set)

    async def remove(self, website: int) -> None:
        """Remove what a deleted website has left, once no question sees it any more.

        Raises Unavailable when the store cannot even do a little of it; what was done stays done.
        """
        if website in self._under_way:
            return
        self._under_way.add(website)
        try:
            await self._leases.ended(website)
            await self._remove(website)
        finally:
            self._under_way.discard(website)

    async def go_on(self, is_registered: Callable[[int], bool]) -> None:
        """Remove what could not be removed before. Raises as `remove`."""
        with self._environment.reading() as txn:
            left = list(tombstones(txn, self._environment.databases.meta))
        for website in left:
            if not is_registered(website):
                await self.remove(website)

    async def _remove(self, website: int) -> None:
        most, is_gone = MOST_KEYS, False
        while not is_gone:
            try:
                is_gone = await self._submit(partial(self._some, website, most))
            except Unavailable:
                # To remove takes room as well, the more the more keys it is at once.
                if most == 1:
                    raise
                most = max(1, most // _SHORTER)

    def _some(self, website: int, most: int, txn: Transaction) -> bool:
        return remove_some(txn.lmdb, self._environment.databases, website, most)
