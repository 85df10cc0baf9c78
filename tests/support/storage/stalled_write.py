"""A write to a store that lasts until it is released."""

import threading

from attrs import define
from support.daemon import PATIENCE_S
from twisted.internet.defer import Deferred

from medamad.storage.environment.writer import Transaction
from medamad.storage.store import Store


@define
class StalledWrite:
    """A change that lasts until it is released."""

    begun: threading.Event
    is_released: threading.Event
    done: "Deferred[bool]"

    @classmethod
    def in_writer(cls, store: Store) -> "StalledWrite":
        begun, is_released = threading.Event(), threading.Event()

        def change(_txn: Transaction) -> bool:
            begun.set()
            return is_released.wait(PATIENCE_S)

        stuck = cls(begun, is_released, store.writer.submit(change))
        assert begun.wait(PATIENCE_S)
        return stuck
