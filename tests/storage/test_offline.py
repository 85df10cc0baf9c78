import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.utils import getProcessOutputAndValue

from medamad.domain.accounts import Account, Login
from medamad.storage.errors import NoStore
from medamad.storage.offline import change_password
from medamad.storage.store import Store

IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from medamad.storage.offline import change_password
print(change_password(Path(sys.argv[1]), "new", 5))
"""


@pytest_twisted.ensureDeferred
async def test_the_password_can_be_changed_while_a_daemon_runs(
    open_store: Callable[..., Store], tmp_path: Path
) -> None:
    store = open_store()
    await store.account.put(Account("me", "old", 1, 1))
    await store.account.add_login(b"digest", Login(1, 1))
    arguments = ["-c", IN_ANOTHER_PROCESS, str(tmp_path / "data")]
    out, err, code = await getProcessOutputAndValue(sys.executable, arguments, env=None)
    assert (out, err, code) == (b"me\n", b"", 0)
    assert store.account.read() == Account("me", "new", 1, 5)
    assert store.account.login(b"digest") is None
    await store.account.add_login(b"digest", Login(6, 6))
    await store.close()


@pytest_twisted.ensureDeferred
async def test_the_password_can_be_changed_while_no_daemon_runs(
    open_store: Callable[..., Store], tmp_path: Path
) -> None:
    await open_store().close()
    with pytest.raises(NoStore, match="no account yet"):
        change_password(tmp_path / "data", "new", 5)
    store = open_store()
    await store.account.put(Account("me", "old", 1, 1))
    await store.close()
    assert change_password(tmp_path / "data", "new", 5) == "me"
    store = open_store()
    assert store.account.read() == Account("me", "new", 1, 5)
    await store.close()


def test_changing_the_password_requires_a_store(tmp_path: Path) -> None:
    with pytest.raises(NoStore, match="there is no store here"):
        change_password(tmp_path, "new", 5)
