"""Which properties bear the same name: of those alone that somebody is adding up."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension, split_property
from medamad.store.environment import Databases
from medamad.store.name_keys import NAME_KEY, is_borne_out, split_name
from medamad.store.reading import Writing
from medamad.store.texts import DAMAGED

NamesOf: TypeAlias = Callable[[NDArray[Any]], NDArray[np.intp]]
"""Gives numbers for codes of Dimension.PROPERTY: the same for those that bear the same name."""

_DIMENSION: Final = Dimension.PROPERTY


@define(eq=False)
class PropertyNames:
    """Those of one website, looked up one by one: all texts would hold the writer up for long.

    A `NamesOf`. Works in whatever transaction `_writing` is at.
    """

    _writing: Writing
    _databases: Databases
    _website: int
    _number_of_code: dict[int, int] = field(factory=dict)
    _number_of_name: dict[str, int] = field(factory=dict)

    def look_up(self, columns: Iterable[NDArray[Any]]) -> Iterator[None]:
        """Look up, one at a time, the codes of some columns that are not known yet."""
        for codes in columns:
            for code in np.unique(codes).tolist():
                if code not in self._number_of_code:
                    numbers = self._number_of_name
                    self._number_of_code[code] = numbers.setdefault(self._name(code), len(numbers))
                    yield

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Give the numbers of some codes, looking up what is not known yet."""
        for _ in self.look_up([codes]):
            pass
        return np.array([self._number_of_code[code] for code in codes.tolist()], np.intp)

    def _name(self, code: int) -> str:
        space, txn = (self._website, _DIMENSION), self._writing.txn
        key = NAME_KEY.pack(*space, code)
        value = txn.get(key, db=self._databases.names)
        if value is None or not is_borne_out(txn, self._databases, space, key, value):
            return DAMAGED
        return split_property(split_name(key, value)[1])[0]
