"""A write into a store that does not end until it is told to."""

import threading

from attrs import define
from daemon import PATIENCE_S
from twisted.internet.defer import Deferred

from medamad.store.store import Store
from medamad.store.writer import Transaction


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

        stuck = cls(begun, is_let_go, store._writer.submit(change))
        assert begun.wait(PATIENCE_S)
        return stuck
