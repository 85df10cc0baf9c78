"""Deferreds of what becomes of hits, for tests that wait for one after the other."""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from medamad.domain.accounts import Token
from medamad.domain.hits import Hit
from medamad.ingest.networks import Sender
from medamad.ingest.payload import LoadPayload
from medamad.ingest.pipeline import Pipeline
from medamad.ingest.write_queue import WriteQueue
from medamad.storage.wal.log import Outcome


def received(
    pipeline: Pipeline, sent: bytes | LoadPayload, sender: Sender, token: Token | None = None
) -> "Deferred[str | None]":
    """Send a hit through the pipeline; fire with the reason that it is ignored."""
    deferred, fire = _deferred()
    pipeline.receive(sent, sender, fire, token)
    return deferred


def added(queue: WriteQueue, hit: Hit, *arguments: Any) -> "Deferred[Outcome]":
    """Add a hit to the queue; fire with its outcome."""
    deferred, fire = _deferred()
    queue.add(hit, fire, *arguments)
    return deferred


def _deferred() -> "tuple[Deferred[Any], Callable[[object], None]]":
    deferred: Deferred[Any] = Deferred()

    def fire(result: object) -> None:
        (deferred.errback if isinstance(result, Exception) else deferred.callback)(result)

    return deferred, fire
