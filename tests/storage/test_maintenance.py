from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo

import pytest_twisted
from support.storage.hits import NOW_MS, a_view

from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store


@pytest_twisted.ensureDeferred
async def test_equal_retention_rules_are_computed_once(
    open_store: Callable[..., Store],
) -> None:
    """They are computed every minute and for /metrics, in the reactor's thread."""
    asked = []

    class Zone(tzinfo):
        def utcoffset(self, when: datetime | None) -> timedelta:
            asked.append(when)
            return timedelta(0)

        def dst(self, _when: datetime | None) -> timedelta:
            return timedelta(0)

    retention = Retention(others=Keep(90), websites={"kept.example": Keep(900)}, zone=Zone())
    store = open_store(retention=retention)
    counts = []
    for number in range(3):
        await store.add_website("kept.example" if number == 1 else f"{number}.example", 1)
        await store.append([a_view(website=number + 1)])
        asked.clear()
        assert not store.maintenance.has_expired(NOW_MS)
        counts.append(len(asked))
    assert (counts[1], counts[2]) == (2 * counts[0], 2 * counts[0])
    await store.close()
