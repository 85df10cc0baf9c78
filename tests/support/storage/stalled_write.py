"""A write into a store that does not end until it is told to."""

import threading

from attrs import define
from support.daemon import PATIENCE_S
from twisted.internet.defer import Deferred

from medamad.storage.environment.writer import Transaction
from medamad.storage.store import Store


@define
class Stuck:
    """A change that does not end until it is let go."""

    begun: threading.Event
    is_let_go: threading.Event
    done: "Deferred[bool]"

    @classmethod
    def in_writer(cls, store: Store) -> "Stuck":
        begun, is_let_go = threading.Event(), threading.Event()

        def change(_txn: Transaction) -> bool:
            begun.set()
            return is_let_go.wait(PATIENCE_S)

        stuck = cls(begun, is_let_go, store.writer.submit(change))
        assert begun.wait(PATIENCE_S)
        return stuck
