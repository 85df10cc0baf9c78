"""The account in a real store, after a restart."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import execute

from medamad.accounts.accounts import Accounts
from medamad.domain.errors import Unauthorised
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

PASSWORD = "correct horse"
GIVEN = {"MEDAMAD_USERNAME": "ada", "MEDAMAD_PASSWORD": PASSWORD}
NOW = 1_750_000_000

Open = Callable[..., tuple[Store, Accounts]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def open_again(now: float = NOW) -> tuple[Store, Accounts]:
        settings = StoreSettings(map_size=64 << 20, min_free_disk=0)
        store = start_store(tmp_path, settings, reactor)
        accounts = Accounts(
            records=store.account,
            replace=store.replace_account,
            data_dir=tmp_path,
            hashing=execute,
            clock=lambda: now,
            environ=GIVEN,
        )
        return store, accounts

    return open_again


@pytest_twisted.ensureDeferred
async def test_account_and_sessions_survive_a_restart(opened: Open) -> None:
    store, accounts = opened()
    assert await accounts.ensure_first() is not None
    token, ended = [(await accounts.log_in("ada", PASSWORD, b"")).token for _ in range(2)]
    await accounts.log_out(ended)
    changed = await accounts.change(token, username="eve", settings={"language": "ja"})
    await store.close()
    store, accounts = opened(NOW + 7 * 86_400)
    assert await accounts.ensure_first() is None
    assert accounts.authenticate(token) == changed
    with pytest.raises(Unauthorised):
        accounts.authenticate(ended)
    await store.close()
    # The use was stored, so a week begins again.
    store, accounts = opened(NOW + 14 * 86_400)
    accounts.authenticate(token)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_new_password_and_a_deletion_are_on_disk(opened: Open) -> None:
    store, accounts = opened()
    await accounts.ensure_first()
    token, other = [(await accounts.log_in("ada", PASSWORD, b"")).token for _ in range(2)]
    await accounts.change(token, password="battery")
    await store.add_website("example.com", NOW)
    await store.close()
    store, accounts = opened()
    accounts.authenticate(token)
    with pytest.raises(Unauthorised):
        accounts.authenticate(other)
    await accounts.delete(token)
    assert store.websites.all() == []
    await store.close()
    store, accounts = opened()
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)
    with pytest.raises(Unauthorised):
        await accounts.log_in("ada", "battery", b"")
    accounts.authenticate((await accounts.log_in("ada", PASSWORD, b"")).token)
    await store.close()
