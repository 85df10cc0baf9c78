from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.log_lines import logged_warnings

from medamad.domain.accounts import Account
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.goals import Definitions, Funnel, Goal
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import (
    ANNOTATIONS,
    GOALS,
    open_as_guest,
    open_to_read,
)
from medamad.storage.offline import change_value, value_of
from medamad.storage.store import Store
from medamad.storage.website_values import GOALS_AND_FUNNELS

OpenStore = Callable[..., Store]

CART = Goal(id="cart", name="Cart", path="/cart")
PAID = Goal(id="paid", name="Paid", event="order", value="é", revenue="total", currency="EUR")
CHECKOUT = Funnel("buy", "Checkout", ("cart", "paid"))
DEFINED = Definitions((CART, PAID), (CHECKOUT,))
NOTES = Annotations((Annotation(id="note", time="2024-05-01", text="é", link="https://a.example"),))


def annotate(old: Annotations) -> Annotations:
    assert old == Annotations()
    return NOTES


def define(old: Definitions) -> Definitions:
    assert old == Definitions()
    return old.with_goal(CART).with_goal(PAID).with_funnel(CHECKOUT)


@pytest_twisted.ensureDeferred
async def test_they_survive_a_restart_and_a_rename(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    assert await store.goals.change(website.number, define) == DEFINED
    assert await store.annotations.change(website.number, annotate) == NOTES
    await store.rename_website(website, "new.example", 2)
    await store.close()
    store = open_store()
    assert store.goals.of(website.number) == DEFINED
    assert store.annotations.of(website.number) == NOTES
    assert store.goals.of(other.number) == Definitions()
    assert store.annotations.of(other.number) == Annotations()
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_change_that_fails_stores_nothing(open_store: OpenStore) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    await store.goals.change(number, define)
    with pytest.raises(Conflict):
        await store.goals.change(number, lambda old: old.without_goal("cart"))
    assert store.goals.of(number) == DEFINED
    await store.close()


@pytest_twisted.ensureDeferred
async def test_they_go_with_the_website(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    for number in (website.number, other.number):
        await store.goals.change(number, define)
        await store.annotations.change(number, annotate)
    await store.delete_website(website)
    assert store.goals.of(website.number) == Definitions()
    assert store.goals.of(other.number) == DEFINED
    assert store.annotations.of(website.number) == Annotations()
    with pytest.raises(NotFound):
        await store.goals.change(website.number, define)
    with pytest.raises(NotFound):
        await store.annotations.change(website.number, annotate)
    await store.close()
    assert stored(tmp_path / "data") == [
        prefix + other.number.to_bytes(4, "big") for prefix in (ANNOTATIONS, GOALS)
    ]


@pytest_twisted.ensureDeferred
async def test_they_go_with_the_account(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    await store.account.put(Account("me", "hash", 1, 1))
    for hostname in ("example.com", "other.example"):
        number = (await store.add_website(hostname, 1)).number
        await store.goals.change(number, define)
        await store.annotations.change(number, annotate)
    await store.replace_account(Account("you", "hash", 2, 2))
    await store.close()
    assert stored(tmp_path / "data") == []


def stored(folder: Path) -> list[bytes]:
    environment, txn = open_to_read(folder)
    names = [name for name, _ in txn.cursor(db=environment.databases.meta)]
    txn.abort()
    environment.close()
    return [name for name in names if name.startswith((GOALS, ANNOTATIONS))]


@pytest_twisted.ensureDeferred
async def test_commands_change_them_beside_the_daemon(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store, folder = open_store(), tmp_path / "data"
    number = (await store.add_website("example.com", 1)).number
    await store.close()
    assert change_value(folder, GOALS_AND_FUNNELS, "Example.com", define) == DEFINED
    assert value_of(folder, GOALS_AND_FUNNELS, "example.com") == DEFINED
    with pytest.raises(BadRequest, match=r"^hostname: no website other\.example is registered$"):
        value_of(folder, GOALS_AND_FUNNELS, "other.example")
    with pytest.raises(BadRequest, match=r"^hostname: no website other\.example is registered$"):
        change_value(folder, GOALS_AND_FUNNELS, "other.example", define)
    store = open_store()
    assert store.goals.of(number) == DEFINED
    await store.close()


@pytest.mark.parametrize("value", [b"", b"nonsense", b"1234{}"])
@pytest_twisted.ensureDeferred
async def test_damaged_ones_count_as_none_and_are_reported(
    open_store: OpenStore, tmp_path: Path, value: bytes
) -> None:
    store = open_store()
    sound, bad = [
        (await store.add_website(hostname, 1)).number
        for hostname in ("example.com", "other.example")
    ]
    for number in (sound, bad):
        await store.goals.change(number, define)
        await store.annotations.change(number, annotate)
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        for prefix in (GOALS, ANNOTATIONS):
            txn.put(prefix + bad.to_bytes(4, "big"), value, db=guest.databases.meta)
    guest.close()
    found = [
        f"website {bad}, {what}: its checksum does not match"
        for what in ("goals and funnels", "annotations")
    ]
    environment, txn = open_to_read(tmp_path / "data")
    assert list(StoreCheck(environment, txn).findings()) == found
    txn.abort()
    environment.close()
    with logged_warnings() as lines:
        store = open_store()
        assert store.goals.of(sound) == DEFINED
        assert store.goals.of(bad) == Definitions()
        assert store.annotations.of(sound) == NOTES
        assert store.annotations.of(bad) == Annotations()
    assert [line for line in lines if "website" in line] == [
        f"a damaged part of the store is ignored: {each}" for each in (*found, *found)
    ]
    assert await store.goals.change(bad, define) == DEFINED
    await store.close()
