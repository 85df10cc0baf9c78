"""Changes of the account are atomic, also with concurrent ones."""

from typing import Any

import pytest
from attrs import evolve
from support.accounts_in_memory import (
    HOME,
    NOW,
    PASSWORD,
    Doubles,
    begun,
    done,
    log_in,
    outcome,
)

from medamad.accounts.accounts import Accounts
from medamad.accounts.credentials import digest, hash_password
from medamad.domain.accounts import Settings
from medamad.domain.errors import BadRequest, Unauthorised


def test_an_empty_change_changes_nothing(doubles: Doubles, accounts: Accounts) -> None:
    token, before = log_in(accounts), doubles.store.kept
    doubles.clock.advance(10)
    assert done(accounts.change(token)) is before
    assert done(accounts.change(token, settings={})) is before
    assert doubles.store.kept is before


def test_everything_changes_together(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.clock.advance(10)
    changed = done(
        accounts.change(
            token, username="eve", password="battery", settings={"script_type": ["page-events"]}
        )
    )
    assert changed is doubles.store.kept
    assert (changed.username, changed.created, changed.updated) == ("eve", NOW, NOW + 10)
    assert changed.settings == Settings("en", ("page-events",))
    accounts.authenticate(token)
    done(accounts.log_in("eve", "battery", HOME))


@pytest.mark.parametrize(
    ("change", "field_"),
    [
        ({"username": "ab", "password": "battery"}, "username"),
        ({"username": "eve", "password": "1234"}, "password"),
        ({"username": "eve", "settings": {"language": "xx"}}, r"settings\.language"),
        ({"password": "battery", "settings": {"script_type": 1}}, r"settings\.script_type"),
    ],
)
def test_one_invalid_field_changes_nothing(
    doubles: Doubles, accounts: Accounts, change: dict[str, Any], field_: str
) -> None:
    token, before = log_in(accounts), doubles.store.kept
    with pytest.raises(BadRequest, match=f"^{field_}: "):
        done(accounts.change(token, **change))
    assert doubles.store.kept is before


def test_a_new_password_ends_other_sessions_and_removes_the_file(doubles: Doubles) -> None:
    accounts = doubles.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    mine, other = (done(accounts.log_in("admin", first.password, HOME)).token for _ in range(2))
    done(accounts.change(mine, settings={"language": "de"}))
    accounts.authenticate(other)
    assert first.file.exists()
    done(accounts.change(mine, password="battery"))
    accounts.authenticate(mine)
    with pytest.raises(Unauthorised):
        accounts.authenticate(other)
    with pytest.raises(Unauthorised):
        done(accounts.log_in("admin", first.password, HOME))
    assert not first.file.exists()


def test_concurrent_changes_both_apply(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.store.is_held = True
    one = begun(accounts.change(token, username="eve"))
    other = begun(accounts.change(token, settings={"language": "fr"}))
    while doubles.store.writes:
        doubles.store.writes.pop(0).callback(None)
    outcome(one)
    changed = outcome(other)
    assert (changed.username, changed.settings.language) == ("eve", "fr")
    assert doubles.store.kept is changed


def test_a_concurrently_replaced_password_is_rejected(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.pool.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    change = begun(accounts.change(token, password="battery"))
    (login_turn, change_turn), doubles.pool.waiting = doubles.pool.waiting, []
    doubles.store.is_held = True
    change_turn.callback(None)
    login_turn.callback(None)
    doubles.store.writes.pop().callback(None)
    outcome(change)
    doubles.pool.go_on()
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert set(doubles.store.logins) == {digest(token)}


def test_a_change_ends_a_login_under_way(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.store.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    change = begun(accounts.change(token, password="battery"))
    doubles.store.writes.pop().callback(None)
    doubles.store.writes.pop().callback(None)
    late = outcome(attempt).token
    outcome(change)
    with pytest.raises(Unauthorised):
        accounts.authenticate(late)


def test_a_password_replaced_by_another_process_is_rejected(
    doubles: Doubles, accounts: Accounts
) -> None:
    doubles.store.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    assert doubles.store.kept is not None
    doubles.store.kept = evolve(doubles.store.kept, password_hash=hash_password("battery"))
    while doubles.store.writes:
        doubles.store.writes.pop(0).callback(None)
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert doubles.store.logins == {}


def test_a_change_keeps_concurrent_changes_of_another_process(
    doubles: Doubles, accounts: Accounts
) -> None:
    token, encoded = log_in(accounts), hash_password("battery")
    doubles.store.is_held = True
    change = begun(accounts.change(token, username="eve"))
    assert doubles.store.kept is not None
    doubles.store.kept = evolve(doubles.store.kept, password_hash=encoded)
    doubles.store.writes.pop().callback(None)
    changed = outcome(change)
    assert (changed.username, changed.password_hash) == ("eve", encoded)
    assert doubles.store.kept is changed


def test_a_session_ended_by_another_process_cannot_change_anything(
    doubles: Doubles, accounts: Accounts
) -> None:
    token, before = log_in(accounts), doubles.store.kept
    doubles.store.is_held = True
    change = begun(accounts.change(token, password="battery"))
    doubles.store.logins.clear()
    doubles.store.writes.pop().callback(None)
    with pytest.raises(Unauthorised):
        outcome(change)
    assert doubles.store.kept is before
