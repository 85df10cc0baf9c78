"""Giving codes to many texts at once, of hits that were counted before: whatever the bounds."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension
from medamad.model.errors import NotFound
from medamad.store.environment import Txn
from medamad.store.names import Names
from medamad.store.shelf import Shelf
from medamad.store.writer import Submit, Transaction

Codes = dict[Dimension, NDArray[np.integer[Any]]]

_STEP_NAMES: Final = 1_000


@frozen(eq=False)
class TextCoding:
    """Works in short steps of the writer. Nothing may tidy names away meanwhile."""

    _submit: Submit
    _names: Names
    has_website: Callable[[int], bool]
    _check_room: Callable[[Txn], None]

    async def codes(
        self, shelf: Shelf, texts: Iterable[tuple[Dimension, Sequence[str]]], time_ms: int
    ) -> Codes:
        """Give the store's codes of the texts of some dimensions, in their order.

        Raises NotFound when the website is deleted, Unavailable where hits would be refused.
        """
        codes: Codes = {}
        for dimension, known in texts:
            pieces = [
                await self._submit(
                    partial(
                        self._code_some, shelf, dimension, known[at : at + _STEP_NAMES], time_ms
                    )
                )
                for at in range(0, len(known), _STEP_NAMES)
            ]
            codes[dimension] = np.array([code for piece in pieces for code in piece], np.uint32)
        return codes

    def _code_some(
        self,
        shelf: Shelf,
        dimension: Dimension,
        texts: Sequence[str],
        time_ms: int,
        txn: Transaction,
    ) -> list[int]:
        if shelf.is_deleted or not self.has_website(shelf.website):
            raise NotFound("hostname: the website has been deleted")
        self._check_room(txn.lmdb)
        coding = self._names.coding(txn.lmdb, time_ms)
        txn.after_commit(coding.adopt)
        return [coding.any_code(shelf.website, dimension, text) for text in texts]
