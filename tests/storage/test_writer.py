"""Repeatedly failing commits are reported once."""

from typing import Any

import lmdb
import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.domain.errors import Unavailable
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.writer import SAME_FAILURE_S, Transaction, Writer


def fail(_transaction: Transaction) -> None:
    raise lmdb.MapFullError


def succeed(_transaction: Transaction) -> None:
    pass


@pytest_twisted.ensureDeferred
async def test_repeatedly_failing_commits_are_reported_once(environment: Environment) -> None:
    now, lines = [0.0], list[str]()

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.storage.environment.writer":
            lines.append(formatEvent(event))

    its_reactor: Any = reactor
    writer = Writer(environment, its_reactor, lines.append, lambda: now[0])
    globalLogPublisher.addObserver(observe)
    try:
        for seconds in (0.0, 1.0, SAME_FAILURE_S, 2 * SAME_FAILURE_S):
            now[0] = seconds
            with pytest.raises(Unavailable):
                await writer.submit(fail)
            # As when little is written to a full disk.
            await writer.submit(succeed)
        assert (len(lines), writer.failures) == (1, 1)
        now[0] += SAME_FAILURE_S + 1
        with pytest.raises(Unavailable):
            await writer.submit(fail)
        assert (len(lines), writer.failures) == (2, 2)
        assert set(lines) == {"changes are not stored: all that store.map_size allows is in use"}
    finally:
        globalLogPublisher.removeObserver(observe)
        writer.stop()
