"""Changes of the account are atomic, also with concurrent ones."""

from typing import Any

import pytest
from attrs import evolve
from support.accounts_in_memory import HOME, NOW, PASSWORD, Bench, begun, done, log_in, outcome

from medamad.accounts.accounts import Accounts
from medamad.accounts.credentials import digest, hash_password
from medamad.domain.accounts import Settings
from medamad.domain.errors import BadRequest, Unauthorised


def test_an_empty_change_changes_nothing(bench: Bench, accounts: Accounts) -> None:
    token, before = log_in(accounts), bench.store.kept
    bench.clock.advance(10)
    assert done(accounts.change(token)) is before
    assert done(accounts.change(token, settings={})) is before
    assert bench.store.kept is before


def test_everything_changes_together(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.clock.advance(10)
    changed = done(
        accounts.change(
            token, username="eve", password="battery", settings={"script_type": ["page-events"]}
        )
    )
    assert changed is bench.store.kept
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
    bench: Bench, accounts: Accounts, change: dict[str, Any], field_: str
) -> None:
    token, before = log_in(accounts), bench.store.kept
    with pytest.raises(BadRequest, match=f"^{field_}: "):
        done(accounts.change(token, **change))
    assert bench.store.kept is before


def test_a_new_password_ends_other_sessions_and_removes_the_file(bench: Bench) -> None:
    accounts = bench.accounts({})
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


def test_concurrent_changes_both_apply(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    one = begun(accounts.change(token, username="eve"))
    other = begun(accounts.change(token, settings={"language": "fr"}))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(one)
    changed = outcome(other)
    assert (changed.username, changed.settings.language) == ("eve", "fr")
    assert bench.store.kept is changed


def test_a_concurrently_replaced_password_is_rejected(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.pool.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    change = begun(accounts.change(token, password="battery"))
    (login_turn, change_turn), bench.pool.waiting = bench.pool.waiting, []
    bench.store.is_held = True
    change_turn.callback(None)
    login_turn.callback(None)
    bench.store.writes.pop().callback(None)
    outcome(change)
    bench.pool.go_on()
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert set(bench.store.logins) == {digest(token)}


def test_a_change_ends_a_login_under_way(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    change = begun(accounts.change(token, password="battery"))
    bench.store.writes.pop().callback(None)
    bench.store.writes.pop().callback(None)
    late = outcome(attempt).token
    outcome(change)
    with pytest.raises(Unauthorised):
        accounts.authenticate(late)


def test_a_password_replaced_by_another_process_is_rejected(
    bench: Bench, accounts: Accounts
) -> None:
    bench.store.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    assert bench.store.kept is not None
    bench.store.kept = evolve(bench.store.kept, password_hash=hash_password("battery"))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert bench.store.logins == {}


def test_a_change_keeps_concurrent_changes_of_another_process(
    bench: Bench, accounts: Accounts
) -> None:
    token, encoded = log_in(accounts), hash_password("battery")
    bench.store.is_held = True
    change = begun(accounts.change(token, username="eve"))
    assert bench.store.kept is not None
    bench.store.kept = evolve(bench.store.kept, password_hash=encoded)
    bench.store.writes.pop().callback(None)
    changed = outcome(change)
    assert (changed.username, changed.password_hash) == ("eve", encoded)
    assert bench.store.kept is changed


def test_a_session_ended_by_another_process_cannot_change_anything(
    bench: Bench, accounts: Accounts
) -> None:
    token, before = log_in(accounts), bench.store.kept
    bench.store.is_held = True
    change = begun(accounts.change(token, password="battery"))
    bench.store.logins.clear()
    bench.store.writes.pop().callback(None)
    with pytest.raises(Unauthorised):
        outcome(change)
    assert bench.store.kept is before
