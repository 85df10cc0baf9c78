"""Values in `meta` that are JSON, with a checksum over name and value.

One that cannot be read counts as none. The log names it when it is read, and `check` names all.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec
from attrs import field, frozen

from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.environment.meta import decoded, entries, sound, with_checksum
from medamad.storage.errors import Damaged

V = TypeVar("V")


@frozen
class MetaKind(Generic[V]):
    """A kind of value: the prefix of its names, which a key follows, its type, and its name."""

    prefix: bytes
    type: type[V]
    what: str
    _decoder: msgspec.json.Decoder[V] = field(init=False, eq=False, repr=False)
    """Made with the kind, since msgspec crashes if two threads prepare to decode the same type."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_decoder", msgspec.json.Decoder(self.type))

    def place(self, _key: bytes, /) -> str:
        """Return what messages call the value of a key."""
        return self.what

    def read(self, txn: Txn, databases: Databases, key: bytes = b"") -> V | None:
        """Return the value of a key, None if there is none."""
        stored = txn.get(self.prefix + key, db=databases.meta)
        return None if stored is None else self._sound(key, stored)

    def all(self, txn: Txn, databases: Databases) -> list[tuple[bytes, V]]:
        """Return all values with their keys."""
        found = [(key, self._sound(key, stored)) for key, stored in self._stored(txn, databases)]
        return [(key, value) for key, value in found if value is not None]

    def write(self, txn: Txn, databases: Databases, key: bytes, value: V) -> None:
        """Store the value of a key, replacing any other."""
        name = self.prefix + key
        txn.put(name, with_checksum(name, msgspec.json.encode(value)), db=databases.meta)

    def delete(self, txn: Txn, databases: Databases, key: bytes = b"") -> bool:
        """Delete the value of a key; return whether it existed."""
        return bool(txn.delete(self.prefix + key, db=databases.meta))

    def delete_all(self, txn: Txn, databases: Databases) -> None:
        """Delete the values of all keys."""
        for key, _ in list(self._stored(txn, databases)):
            self.delete(txn, databases, key)

    def count(self, txn: Txn, databases: Databases) -> int:
        """Return how many there are, damaged ones too."""
        return sum(1 for _ in self._stored(txn, databases))

    def findings(self, txn: Txn, databases: Databases) -> Iterator[str]:
        """Return a message for each that is damaged."""
        for key, stored in self._stored(txn, databases):
            try:
                self._decode(key, stored)
                self.check(txn, databases, key)
            except Damaged as error:
                yield f"{self.place(key)}: {error}"

    def check(self, _txn: Txn, _databases: Databases, _key: bytes, /) -> None:
        """Raise Damaged if there should be no such key."""

    def _stored(self, txn: Txn, databases: Databases) -> Iterator[tuple[bytes, bytes]]:
        for name, stored in entries(txn, databases.meta, self.prefix):
            yield name.removeprefix(self.prefix), stored

    def _sound(self, key: bytes, stored: bytes) -> V | None:
        return sound(self.place(key), lambda: self._decode(key, stored), None)

    def _decode(self, key: bytes, stored: bytes) -> V:
        return decoded(
            self.prefix + key, stored, self.type, lambda value, **_: self._decoder.decode(value)
        )
