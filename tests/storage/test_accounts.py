from collections.abc import Callable

import pytest
import pytest_twisted
from attrs import evolve
from support.storage.hits import a_view
from support.storage.visible_hits import until_removed
from twisted.internet.defer import Deferred

from medamad.domain.accounts import Account, Login
from medamad.domain.errors import Unauthorised
from medamad.storage.accounts import MOST_LOGINS, add_login, read_login, touch_login
from medamad.storage.environment.environment import Environment
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


@pytest_twisted.ensureDeferred
async def test_a_new_account_replaces_logins_tokens_and_shares(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("one.example", 1)
    await store.account.put(Account("old", "hash", 1, 1))
    await store.account.add_login(b"digest", Login(1, 1))
    await store.append([a_view()])
    new = Account("new", "hash", 2, 2)
    await store.replace_account(new)
    assert (store.account.read(), store.account.login(b"digest"), store.websites.all()) == (
        new,
        None,
        [],
    )
    await until_removed(store)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_account_change_sees_earlier_queued_changes(
    open_store: OpenStore,
) -> None:
    store = open_store()
    with pytest.raises(Unauthorised):
        await store.account.change(lambda account: account)
    await store.account.put(Account("me", "hash", 1, 1))
    await store.account.add_login(b"digest", Login(1, 1))
    await store.account.add_login(b"other", Login(1, 1))
    password = Deferred.fromCoroutine(
        store.account.change(
            lambda account: evolve(account, password_hash="new"), login=b"digest", end_logins=True
        )
    )
    name = Deferred.fromCoroutine(
        store.account.change(lambda account: evolve(account, username="you"), login=b"digest")
    )
    overlay = Deferred.fromCoroutine(
        store.account.change(lambda account: evolve(account, username="late"), login=b"other")
    )
    assert await password == Account("me", "new", 1, 1)
    assert await name == store.account.read() == Account("you", "new", 1, 1)
    with pytest.raises(Unauthorised, match="the login has ended"):
        await overlay
    await store.close()


@pytest_twisted.ensureDeferred
async def test_logins_are_stored_used_and_ended(open_store: OpenStore) -> None:
    store = open_store()
    account = Account("admin", "hash", 1, 1)
    await store.account.put(account)
    for name in (b"a", b"b", b"c"):
        await store.account.add_login(name, Login(10, 10))
    await store.account.touch_login(b"a", 20)
    await store.account.touch_login(b"a", 15)
    await store.account.touch_login(b"unknown", 20)
    await store.account.end_login(b"c")
    await store.close()
    store = open_store()
    logins = [store.account.login(name) for name in (b"a", b"b", b"c", b"unknown")]
    assert logins == [Login(10, 20), Login(10, 10), None, None]
    await store.account.change(lambda kept: kept, login=b"a", end_logins=True)
    assert [store.account.login(name) for name in (b"a", b"b")] == [Login(10, 20), None]
    assert store.account.read() == account
    assert await store.account.delete_expired_logins(lambda login: login.last_seen < 20) == 0
    assert await store.account.delete_expired_logins(lambda login: login.last_seen < 21) == 1
    assert store.account.login(b"a") is None
    await store.close()


def test_excess_logins_end_least_recently_used_first(
    environment: Environment,
) -> None:
    databases = environment.databases
    numbers = range(MOST_LOGINS + 5)
    with environment.lmdb.begin(write=True) as txn:
        for number in numbers:
            add_login(txn, databases, b"%d" % number, Login(number, number))
            if number == 100:
                touch_login(txn, databases, b"3", 10_000)
        add_login(txn, databases, b"of a clock set back", Login(0, 0))
        kept = [n for n in numbers if read_login(txn, databases, b"%d" % n) is not None]
        assert kept == [3, *numbers[7:]]
        assert read_login(txn, databases, b"of a clock set back") is not None
