from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.log_lines import logged_warnings

from medamad.domain.accounts import Account
from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.goals import Definitions, Funnel, Goal
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import GOALS, open_as_guest, open_to_read
from medamad.storage.offline import change_goals, goals_of
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

CART = Goal(id="cart", name="Cart", path="/cart")
PAID = Goal(id="paid", name="Paid", event="order", value="é", revenue="total", currency="EUR")
CHECKOUT = Funnel("buy", "Checkout", ("cart", "paid"))
DEFINED = Definitions((CART, PAID), (CHECKOUT,))


def define(old: Definitions) -> Definitions:
    assert old == Definitions()
    return old.with_goal(CART).with_goal(PAID).with_funnel(CHECKOUT)


@pytest_twisted.ensureDeferred
async def test_goals_and_funnels_survive_a_restart_and_a_rename(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    assert await store.goals.change(website.number, define) == DEFINED
    await store.rename_website(website, "new.example", 2)
    await store.close()
    store = open_store()
    assert store.goals.of(website.number) == DEFINED
    assert store.goals.of(other.number) == Definitions()
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
async def test_goals_and_funnels_go_with_the_website(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    for number in (website.number, other.number):
        await store.goals.change(number, define)
    await store.delete_website(website)
    assert store.goals.of(website.number) == Definitions()
    assert store.goals.of(other.number) == DEFINED
    with pytest.raises(NotFound):
        await store.goals.change(website.number, define)
    await store.close()
    assert stored(tmp_path / "data") == [GOALS + other.number.to_bytes(4, "big")]


@pytest_twisted.ensureDeferred
async def test_goals_and_funnels_go_with_the_account(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    await store.account.put(Account("me", "hash", 1, 1))
    for hostname in ("example.com", "other.example"):
        await store.goals.change((await store.add_website(hostname, 1)).number, define)
    await store.replace_account(Account("you", "hash", 2, 2))
    await store.close()
    assert stored(tmp_path / "data") == []


def stored(folder: Path) -> list[bytes]:
    environment, txn = open_to_read(folder)
    names = [name for name, _ in txn.cursor(db=environment.databases.meta)]
    txn.abort()
    environment.close()
    return [name for name in names if name.startswith(GOALS)]


@pytest_twisted.ensureDeferred
async def test_commands_change_them_beside_the_daemon(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store, folder = open_store(), tmp_path / "data"
    number = (await store.add_website("example.com", 1)).number
    await store.close()
    assert change_goals(folder, "Example.com", define) == DEFINED
    assert goals_of(folder, "example.com") == DEFINED
    with pytest.raises(BadRequest, match=r"^hostname: no website other\.example is registered$"):
        goals_of(folder, "other.example")
    with pytest.raises(BadRequest, match=r"^hostname: no website other\.example is registered$"):
        change_goals(folder, "other.example", define)
    store = open_store()
    assert store.goals.of(number) == DEFINED
    await store.close()


@pytest.mark.parametrize("value", [b"", b"nonsense", b"1234{}"])
@pytest_twisted.ensureDeferred
async def test_damaged_goals_count_as_none_and_are_reported(
    open_store: OpenStore, tmp_path: Path, value: bytes
) -> None:
    store = open_store()
    sound, bad = [
        (await store.add_website(hostname, 1)).number
        for hostname in ("example.com", "other.example")
    ]
    for number in (sound, bad):
        await store.goals.change(number, define)
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        txn.put(GOALS + bad.to_bytes(4, "big"), value, db=guest.databases.meta)
    guest.close()
    found = f"website {bad}, goals and funnels: its checksum does not match"
    environment, txn = open_to_read(tmp_path / "data")
    assert list(StoreCheck(environment, txn).findings()) == [found]
    txn.abort()
    environment.close()
    with logged_warnings() as lines:
        store = open_store()
        assert store.goals.of(sound) == DEFINED
        assert store.goals.of(bad) == Definitions()
    assert [line for line in lines if "goals" in line] == [
        f"damaged goals and funnels are ignored: {found}",
        f"damaged goals and funnels are ignored: {found}",
    ]
    assert await store.goals.change(bad, define) == DEFINED
    await store.close()
