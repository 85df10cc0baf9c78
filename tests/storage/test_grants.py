from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.log_lines import logged_warnings

from medamad.domain.accounts import Account, Scope, Share, Token
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import open_as_guest, open_to_read
from medamad.storage.grants import SHARES
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

TOKEN = Token("id", "report", Scope.SEND, (1, 2), 5, 6, 7)
SHARE = Share("s" * 24, "club", 1, 5, "hash", ("https://a.example",))


@pytest_twisted.ensureDeferred
async def test_grants_survive_a_restart_in_order_of_creation(
    open_store: OpenStore,
) -> None:
    store = open_store()
    await store.tokens.add(b"b" * 32, TOKEN)
    await store.tokens.add(b"c" * 32, Token("early", "a", Scope.READ, None, 1))
    await store.shares.add(b"s", SHARE)
    await store.close()
    store = open_store()
    assert [token.id for _, token in store.tokens.all()] == ["early", "id"]
    assert store.tokens.find(b"b" * 32) == TOKEN
    assert store.tokens.find(b"b") is None
    assert store.shares.all() == [(b"s", SHARE)]
    assert await store.shares.revoke(b"s")
    assert not await store.shares.revoke(b"s")
    await store.close()


@pytest_twisted.ensureDeferred
async def test_grants_of_the_same_second_stay_in_order(open_store: OpenStore) -> None:
    store = open_store()
    names = ["c", "a", "d", "b"]
    for name in names:
        await store.tokens.add(name.encode(), Token(name, name, Scope.READ, None, 5))
        await store.shares.add(name.encode(), Share(name, name, 1, 5))
    await store.tokens.revoke(b"a")
    await store.tokens.add(b"0", Token("0", "0", Scope.READ, None, 5))
    await store.close()
    store = open_store()
    assert [token.id for _, token in store.tokens.all()] == ["c", "d", "b", "0"]
    assert [share.id for _, share in store.shares.all()] == names
    await store.close()


@pytest_twisted.ensureDeferred
async def test_grants_end_with_the_account(open_store: OpenStore) -> None:
    store = open_store()
    await store.account.put(Account("me", "hash", 1, 1))
    await store.tokens.add(b"k", TOKEN)
    await store.shares.add(b"s", SHARE)
    await store.replace_account(Account("you", "hash", 2, 2))
    assert (store.tokens.all(), store.shares.all()) == ([], [])
    await store.close()


@pytest.mark.parametrize("value", [b"", b"nonsense", b"1234{}"])
@pytest_twisted.ensureDeferred
async def test_a_damaged_grant_gives_no_access_and_is_reported(
    open_store: OpenStore, tmp_path: Path, value: bytes
) -> None:
    store = open_store()
    await store.tokens.add(b"good", TOKEN)
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        for name in (b"token:bad", b"share:bad"):
            txn.put(name, value, db=guest.databases.meta)
        assert SHARES.in_order(txn, guest.databases) == []
    guest.close()
    store = open_store()
    with logged_warnings() as lines:
        assert store.tokens.all() == [(b"good", TOKEN)]
        assert store.tokens.find(b"bad") is None
    assert len([line for line in lines if "one of the tokens: " in line]) == 2
    await store.close()
    environment, txn = open_to_read(tmp_path / "data")
    found = list(StoreCheck(environment, txn).findings())
    txn.abort()
    environment.close()
    assert sorted(line.partition(":")[0] for line in found) == [
        "one of the share links",
        "one of the tokens",
    ]
