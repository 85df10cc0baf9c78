from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.log_lines import logged_warnings

from medamad.domain.accounts import Account
from medamad.domain.alerts import SERVICE, Alerts, ChangedPart, Facts, Part, Rule
from medamad.domain.errors import NotFound
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import ALERTS, open_as_guest, open_to_read
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

RULE = Rule(id="rule", kind="disk", threshold=5, url="https://example.com/")
CHANGED = ChangedPart(parts=(Part("source", "é"), Part("device", "")), before=1, now=0)
FACTS: Facts = {"free": 4, "reason": "é", "parts": [CHANGED]}
MADE = Alerts((RULE,)).with_findings(RULE, {"": FACTS}, [], now=1, ids=["notice"])


def make(old: Alerts) -> Alerts:
    assert old == Alerts()
    return MADE


@pytest_twisted.ensureDeferred
async def test_alerts_survive_a_restart_with_what_is_to_be_sent(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    for number in (SERVICE, website.number):
        assert await store.alerts.change(number, make) == MADE
    await store.close()
    store = open_store()
    assert store.alerts.all() == {SERVICE: MADE, website.number: MADE}
    assert store.alerts.of(other.number) == Alerts()
    await store.close()


@pytest_twisted.ensureDeferred
async def test_alerts_go_with_the_website_or_the_account(open_store: OpenStore) -> None:
    store = open_store()
    await store.account.put(Account("me", "hash", 1, 1))
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    for number in (SERVICE, website.number, other.number):
        await store.alerts.change(number, make)
    await store.delete_website(website)
    assert set(store.alerts.all()) == {SERVICE, other.number}
    with pytest.raises(NotFound):
        await store.alerts.change(website.number, make)
    await store.replace_account(Account("you", "hash", 2, 2))
    assert store.alerts.all() == {}
    await store.close()


@pytest.mark.parametrize("value", [b"", b"nonsense", b"1234{}"])
@pytest_twisted.ensureDeferred
async def test_damaged_alerts_count_as_none_and_are_reported(
    open_store: OpenStore, tmp_path: Path, value: bytes
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    for number in (SERVICE, website.number):
        await store.alerts.change(number, make)
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        for number in (SERVICE, 99):
            txn.put(ALERTS + number.to_bytes(4, "big"), value, db=guest.databases.meta)
    guest.close()
    found = "the service, alerts: its checksum does not match"
    environment, txn = open_to_read(tmp_path / "data")
    assert list(StoreCheck(environment, txn).findings()) == [
        found,
        "website 99, alerts: its checksum does not match",
    ]
    txn.abort()
    environment.close()
    store = open_store()
    with logged_warnings() as lines:
        assert store.alerts.of(website.number) == MADE
        assert store.alerts.of(SERVICE) == Alerts()
    assert lines == [f"a damaged part of the store is ignored: {found}"]
    assert await store.alerts.change(SERVICE, make) == MADE
    await store.close()


@pytest_twisted.ensureDeferred
async def test_alerts_of_no_website_are_reported(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.alerts.change(website.number, make)
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        txn.delete(website.number.to_bytes(4, "big"), db=guest.databases.websites)
    guest.close()
    environment, txn = open_to_read(tmp_path / "data")
    findings = list(StoreCheck(environment, txn).findings())
    txn.abort()
    environment.close()
    assert f"website {website.number}, alerts: there is no such website" in findings
