"""Batches on their way out: they go in small steps, and later where there was no room for that."""

from collections.abc import Callable
from functools import partial

from attrs import define, field
from msgspec.structs import replace
from twisted.internet.defer import DeferredLock

from medamad.model.errors import NotFound
from medamad.store.batches import Batch, State, delete_batch, read_batch, write_batch
from medamad.store.environment import Environment
from medamad.store.shelf import Shelf
from medamad.store.shelves import Shelves
from medamad.store.upkeep import Upkeep
from medamad.store.writer import Submit, Transaction


@define(eq=False)
class BatchRemoval:
    """Used in the reactor's thread. What a stop leaves behind is found by the next start."""

    _environment: Environment
    _submit: Submit
    _shelves: Shelves
    _upkeep: Upkeep
    _one_at_a_time: DeferredLock
    _undone: Callable[[Shelf], None]
    """Is told what has lost hits: names of it may not be used any more."""
    _left: dict[int, Batch] = field(factory=dict)
    """What is to go and may still be there, by number."""

    def add(self, batch: Batch) -> None:
        """Have `go_on` remove a batch that was never whole."""
        self._left[batch.number] = batch

    async def hide(self, website: int, number: int) -> Batch:
        """Hide a batch and have `go_on` remove it; returns it as it was. Raises NotFound."""
        async with self._one_at_a_time:
            batch = await self._submit(partial(self._hide_known, website, number))
        self._left[number] = batch
        return batch

    async def go_on(self) -> None:
        """Remove what is to go. Raises Unavailable; what could not be done is left to be done."""
        for batch in list(self._left.values()):
            async with self._one_at_a_time:
                if batch.number in self._left:
                    await self._remove(batch)
                    del self._left[batch.number]

    async def _remove(self, batch: Batch) -> None:
        shelf = self._shelves.find(batch.website)
        if shelf is None:
            return  # its website was deleted, and all that it had with it
        await self._submit(partial(self._hide, batch, shelf))
        await self._upkeep.remove_batch(shelf, batch.number)
        await self._submit(partial(self._forget, batch))
        await self._submit(partial(self._shelves.count_visitors, shelf))
        self._undone(shelf)

    # Steps

    def _hide_known(self, website: int, number: int, txn: Transaction) -> Batch:
        batch = read_batch(txn.lmdb, self._environment.databases, website, number)
        shelf = self._shelves.find(website)
        if shelf is None or batch is None or batch.state is State.LEAVING:
            raise NotFound(f"batch: nothing was imported as number {number}")
        self._hide(batch, shelf, txn)
        return batch

    def _hide(self, batch: Batch, shelf: Shelf, txn: Transaction) -> None:
        write_batch(txn.lmdb, self._environment.databases, replace(batch, state=State.LEAVING))

        def hidden() -> None:
            shelf.hide(batch.number)
            self._shelves.publish(shelf)

        txn.after_commit(hidden)

    def _forget(self, batch: Batch, txn: Transaction) -> None:
        delete_batch(txn.lmdb, self._environment.databases, batch)
