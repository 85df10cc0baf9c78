"""Creating the first account, and deleting it."""

import pytest
from support.accounts_in_memory import HOME, NOW, Doubles, begun, done, log_in, outcome

from medamad.accounts.accounts import Accounts
from medamad.accounts.credentials import verify
from medamad.accounts.first_login import FirstLoginError
from medamad.domain.accounts import Settings
from medamad.domain.errors import ApiError, Unauthorised, Unavailable


def test_the_first_account_is_created_once_and_written_to_a_file(doubles: Doubles) -> None:
    accounts = doubles.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.username == "admin"
    assert first.file == doubles.folder / "first-login.txt"
    assert first.file.read_text() == f"username: admin\npassword: {first.password}\n"
    stored = doubles.store.kept
    assert stored is not None
    assert (stored.username, stored.created, stored.updated) == ("admin", NOW, NOW)
    assert stored.settings == Settings("en", ("default",))
    assert verify(stored.password_hash, first.password)
    assert done(accounts.ensure_first()) is None
    assert doubles.store.kept is stored


def test_a_given_first_account_leaves_no_file(doubles: Doubles, accounts: Accounts) -> None:
    assert list(doubles.folder.iterdir()) == []
    assert accounts.authenticate(log_in(accounts)).username == "ada"


def test_an_invalid_given_login_prevents_the_start(doubles: Doubles) -> None:
    with pytest.raises(FirstLoginError, match=r"^MEDAMAD_PASSWORD: "):
        doubles.accounts({"MEDAMAD_PASSWORD": "x"})


def test_concurrent_starts_create_one_account(doubles: Doubles) -> None:
    accounts = doubles.accounts({})
    doubles.store.is_held = True
    one, other = begun(accounts.ensure_first()), begun(accounts.ensure_first())
    doubles.store.writes.pop().callback(None)
    assert outcome(one) is not None
    assert outcome(other) is None
    assert doubles.store.writes == []


# Deleting


def test_deleting_resets_the_service_to_its_first_start(doubles: Doubles) -> None:
    accounts = doubles.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    token, other = (done(accounts.log_in("admin", first.password, HOME)).token for _ in range(2))
    done(accounts.change(token, username="eve", password="battery"))
    again = done(accounts.delete(token))
    assert doubles.store.websites == 0
    for ended in (token, other):
        with pytest.raises(Unauthorised):
            accounts.authenticate(ended)
    assert again.username == "admin"
    assert again.password not in (first.password, "battery")
    assert again.file is not None
    assert again.file.read_text() == f"username: admin\npassword: {again.password}\n"
    done(accounts.log_in("admin", again.password, HOME))


def test_a_second_concurrent_deletion_is_unauthorised(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.store.is_held = True
    one, other = begun(accounts.delete(token)), begun(accounts.delete(token))
    while doubles.store.writes:
        doubles.store.writes.pop(0).callback(None)
    outcome(one)
    with pytest.raises(Unauthorised):
        outcome(other)
    assert doubles.store.kept is not None


def test_a_change_during_a_deletion_restores_nothing(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.store.is_held = True
    deletion = begun(accounts.delete(token))
    change = begun(accounts.change(token, username="eve"))
    while doubles.store.writes:
        doubles.store.writes.pop(0).callback(None)
    outcome(deletion)
    with pytest.raises(Unauthorised):
        outcome(change)
    assert doubles.store.kept is not None
    assert doubles.store.kept.username == "ada"


def test_a_login_during_a_deletion_fails(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    done(accounts.change(token, password="battery"))
    doubles.store.is_held = True
    deletion = begun(accounts.delete(token))
    attempt = begun(accounts.log_in("ada", "battery", HOME))
    while doubles.store.writes:
        doubles.store.writes.pop(0).callback(None)
    outcome(deletion)
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert doubles.store.logins == {}


@pytest.mark.parametrize("was_there", [True, False])
def test_a_deletion_that_fails_changes_nothing(doubles: Doubles, was_there: bool) -> None:
    accounts = doubles.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    token = done(accounts.log_in("admin", first.password, HOME)).token
    if not was_there:
        done(accounts.change(token, password=first.password))
    before = {file.name: file.read_text() for file in doubles.folder.iterdir()}
    assert bool(before) is was_there
    doubles.store.fault = Unavailable("full", retry_after=1)
    with pytest.raises(Unavailable):
        done(accounts.delete(token))
    doubles.store.fault = None
    assert {file.name: file.read_text() for file in doubles.folder.iterdir()} == before
    assert doubles.store.websites == 2
    assert accounts.authenticate(token).username == "admin"
    done(accounts.log_in("admin", first.password, HOME))


def test_the_new_password_is_written_before_the_old_account_is_deleted(
    doubles: Doubles,
) -> None:
    accounts = doubles.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    token = done(accounts.log_in("admin", first.password, HOME)).token
    before, doubles.store.is_held = doubles.store.kept, True
    deletion = begun(accounts.delete(token))
    written = first.file.read_text()
    assert doubles.store.kept is before
    doubles.store.writes.pop().callback(None)
    assert doubles.store.writes == [], "it is one transaction"
    assert written == f"username: admin\npassword: {outcome(deletion).password}\n"


def test_a_failed_write_does_not_block_the_next(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.store.fault = Unavailable("full", retry_after=1)
    with pytest.raises(ApiError):
        done(accounts.change(token, username="eve"))
    with pytest.raises(ApiError):
        log_in(accounts)
    doubles.store.fault = None
    assert done(accounts.change(token, username="eve")).username == "eve"
