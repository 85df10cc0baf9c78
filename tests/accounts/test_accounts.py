"""Creating the first account, and deleting it."""

import pytest
from support.accounts_in_memory import HOME, NOW, Bench, begun, done, log_in, outcome

from medamad.accounts.accounts import Accounts
from medamad.accounts.credentials import verify
from medamad.accounts.first_login import FirstLoginError
from medamad.domain.accounts import Settings
from medamad.domain.errors import ApiError, Unauthorised, Unavailable


def test_the_first_account_is_created_once_and_written_to_a_file(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.username == "admin"
    assert first.file == bench.folder / "first-login.txt"
    assert first.file.read_text() == f"username: admin\npassword: {first.password}\n"
    stored = bench.store.kept
    assert stored is not None
    assert (stored.username, stored.created, stored.updated) == ("admin", NOW, NOW)
    assert stored.settings == Settings("en", ("default",))
    assert verify(stored.password_hash, first.password)
    assert done(accounts.ensure_first()) is None
    assert bench.store.kept is stored


def test_a_given_first_account_leaves_no_file(bench: Bench, accounts: Accounts) -> None:
    assert list(bench.folder.iterdir()) == []
    assert accounts.authenticate(log_in(accounts)).username == "ada"


def test_an_invalid_given_login_prevents_the_start(bench: Bench) -> None:
    with pytest.raises(FirstLoginError, match=r"^MEDAMAD_PASSWORD: "):
        bench.accounts({"MEDAMAD_PASSWORD": "x"})


def test_concurrent_starts_create_one_account(bench: Bench) -> None:
    accounts = bench.accounts({})
    bench.store.is_held = True
    one, other = begun(accounts.ensure_first()), begun(accounts.ensure_first())
    bench.store.writes.pop().callback(None)
    assert outcome(one) is not None
    assert outcome(other) is None
    assert bench.store.writes == []


# Deleting


def test_deleting_resets_the_service_to_its_first_start(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    token, other = (done(accounts.log_in("admin", first.password, HOME)).token for _ in range(2))
    done(accounts.change(token, username="eve", password="battery"))
    again = done(accounts.delete(token))
    assert bench.store.websites == 0
    for ended in (token, other):
        with pytest.raises(Unauthorised):
            accounts.authenticate(ended)
    assert again.username == "admin"
    assert again.password not in (first.password, "battery")
    assert again.file is not None
    assert again.file.read_text() == f"username: admin\npassword: {again.password}\n"
    done(accounts.log_in("admin", again.password, HOME))


def test_a_second_concurrent_deletion_is_unauthorised(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    one, other = begun(accounts.delete(token)), begun(accounts.delete(token))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(one)
    with pytest.raises(Unauthorised):
        outcome(other)
    assert bench.store.kept is not None


def test_a_change_during_a_deletion_restores_nothing(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    deletion = begun(accounts.delete(token))
    change = begun(accounts.change(token, username="eve"))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(deletion)
    with pytest.raises(Unauthorised):
        outcome(change)
    assert bench.store.kept is not None
    assert bench.store.kept.username == "ada"


def test_a_login_during_a_deletion_fails(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    done(accounts.change(token, password="battery"))
    bench.store.is_held = True
    deletion = begun(accounts.delete(token))
    attempt = begun(accounts.log_in("ada", "battery", HOME))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(deletion)
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert bench.store.logins == {}


@pytest.mark.parametrize("was_there", [True, False])
def test_a_deletion_that_fails_changes_nothing(bench: Bench, was_there: bool) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    token = done(accounts.log_in("admin", first.password, HOME)).token
    if not was_there:
        done(accounts.change(token, password=first.password))
    before = {file.name: file.read_text() for file in bench.folder.iterdir()}
    assert bool(before) is was_there
    bench.store.fault = Unavailable("full", retry_after=1)
    with pytest.raises(Unavailable):
        done(accounts.delete(token))
    bench.store.fault = None
    assert {file.name: file.read_text() for file in bench.folder.iterdir()} == before
    assert bench.store.websites == 2
    assert accounts.authenticate(token).username == "admin"
    done(accounts.log_in("admin", first.password, HOME))


def test_the_new_password_is_written_before_the_old_account_is_deleted(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    token = done(accounts.log_in("admin", first.password, HOME)).token
    before, bench.store.is_held = bench.store.kept, True
    deletion = begun(accounts.delete(token))
    written = first.file.read_text()
    assert bench.store.kept is before
    bench.store.writes.pop().callback(None)
    assert bench.store.writes == [], "it is one transaction"
    assert written == f"username: admin\npassword: {outcome(deletion).password}\n"


def test_a_failed_write_does_not_block_the_next(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.fault = Unavailable("full", retry_after=1)
    with pytest.raises(ApiError):
        done(accounts.change(token, username="eve"))
    with pytest.raises(ApiError):
        log_in(accounts)
    bench.store.fault = None
    assert done(accounts.change(token, username="eve")).username == "eve"
