"""Logging in and out: credentials, session lifetime and throttling."""

from collections import Counter

import pytest
from support.accounts_in_memory import (
    DAY,
    HOME,
    NOW,
    PASSWORD,
    Doubles,
    begun,
    deferred_error,
    done,
    log_in,
    outcome,
)
from support.log_failures import LoggedFailures
from twisted.internet.defer import Deferred

from medamad.accounts.accounts import Accounts, NewSession
from medamad.accounts.credentials import digest
from medamad.domain.accounts import Login
from medamad.domain.errors import BadRequest, TooMany, Unauthorised, Unavailable


def test_a_session_lasts_until_logout(doubles: Doubles, accounts: Accounts) -> None:
    token, other = log_in(accounts), log_in(accounts)
    assert accounts.authenticate(token) is doubles.store.kept
    assert set(doubles.store.logins) == {digest(token), digest(other)}
    done(accounts.log_out(token))
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)
    with pytest.raises(Unauthorised):
        done(accounts.log_out(token))
    accounts.authenticate(other)


@pytest.mark.parametrize("token", [None, "", "x", "é\ud800", "x" * 100_000])
def test_an_unknown_session_is_unauthorised(accounts: Accounts, token: str | None) -> None:
    with pytest.raises(
        Unauthorised, match=r"^the session cookie is missing or its login has ended$"
    ):
        accounts.authenticate(token)


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("ada", "correct hors"),
        ("Ada", "correct horse"),
        ("eve", "correct horse"),
        ("", ""),
        ("日本語", "x"),
    ],
)
def test_wrong_credentials_are_unauthorised(
    accounts: Accounts, username: str, password: str
) -> None:
    with pytest.raises(Unauthorised, match=r"^the username or the password is wrong$"):
        done(accounts.log_in(username, password, HOME))


@pytest.mark.parametrize("username", ["ada", "eve"])
def test_an_unknown_username_takes_the_same_time(
    doubles: Doubles, accounts: Accounts, username: str
) -> None:
    doubles.pool.is_held = True
    attempt = begun(accounts.log_in(username, "wrong", HOME))
    assert len(doubles.pool.waiting) == 1
    doubles.pool.go_on()
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert doubles.pool.waiting == []


@pytest.mark.parametrize("field_", ["username", "password"])
@pytest.mark.parametrize("text", ["x" * 1_025, "a\x00", "\ud800"])
def test_unencodable_credentials_are_rejected(accounts: Accounts, field_: str, text: str) -> None:
    pair = {"username": "ada", "password": "correct horse", field_: text}
    with pytest.raises(BadRequest, match=f"^{field_}: "):
        done(accounts.log_in(pair["username"], pair["password"], HOME))


def test_a_session_ends_after_seven_idle_days(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    doubles.clock.advance(7 * DAY)
    accounts.authenticate(token)
    doubles.clock.advance(7 * DAY + 1)
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)


def test_a_session_ends_after_thirty_days(doubles: Doubles, accounts: Accounts) -> None:
    token = log_in(accounts)
    for _ in range(30):
        doubles.clock.advance(DAY)
        accounts.authenticate(token)
    doubles.clock.advance(1)
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)


def test_an_expired_session_is_deleted(doubles: Doubles, accounts: Accounts) -> None:
    ended = log_in(accounts)
    doubles.clock.advance(7 * DAY)
    token = log_in(accounts)
    done(accounts.tidy())
    assert sorted(doubles.store.logins) == sorted([digest(ended), digest(token)])
    doubles.clock.advance(1)
    done(accounts.tidy())
    assert list(doubles.store.logins) == [digest(token)]


def test_a_use_is_stored_once_a_minute_and_once_at_a_time(
    doubles: Doubles, accounts: Accounts
) -> None:
    token = log_in(accounts)
    doubles.store.is_held = True
    doubles.clock.advance(60)
    accounts.authenticate(token)
    assert doubles.store.writes == []
    doubles.clock.advance(1)
    accounts.authenticate(token)
    accounts.authenticate(token)
    doubles.store.writes.pop().callback(None)
    assert doubles.store.writes == []
    assert doubles.store.logins[digest(token)] == Login(NOW, NOW + 61)


@pytest.mark.parametrize(
    ("fault", "logged"), [(Unavailable("full", retry_after=1), []), (OSError("odd"), ["odd"])]
)
def test_a_use_that_cannot_be_stored_is_retried(
    doubles: Doubles,
    accounts: Accounts,
    logged_failures: LoggedFailures,
    fault: Exception,
    logged: list[str],
) -> None:
    token = log_in(accounts)
    doubles.clock.advance(100)
    doubles.store.fault = fault
    accounts.authenticate(token)
    assert [str(error) for error in logged_failures.take(OSError)] == logged
    doubles.store.fault = None
    accounts.authenticate(token)
    assert doubles.store.logins[digest(token)].last_seen == NOW + 100


def test_after_ten_failures_and_a_wait_the_right_password_works(
    doubles: Doubles, accounts: Accounts
) -> None:
    for _ in range(10):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong")
    with pytest.raises(TooMany) as error:
        log_in(accounts)
    assert error.value.retry_after == 1
    doubles.clock.advance(1)
    accounts.authenticate(log_in(accounts))
    for _ in range(10):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong")


def test_a_guesser_does_not_delay_others(accounts: Accounts) -> None:
    for _ in range(10):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong", b"guesser")
    accounts.authenticate(log_in(accounts))


def many(accounts: Accounts, count: int, networks: int) -> list[Deferred[NewSession]]:
    """Guess passwords concurrently."""
    return [
        begun(accounts.log_in("ada", f"guess {number}", b"guesser %d" % (number % networks)))
        for number in range(count)
    ]


def go_on_to_the_end(doubles: Doubles) -> None:
    while doubles.pool.waiting:
        doubles.pool.go_on()


@pytest.mark.parametrize("count", [64, 1_000])
def test_parallel_guesses_are_no_faster(doubles: Doubles, accounts: Accounts, count: int) -> None:
    doubles.pool.is_held = True
    guesses = many(accounts, count, networks=1)
    assert len(doubles.pool.waiting) == 10
    owner = begun(accounts.log_in("ada", PASSWORD, HOME))
    go_on_to_the_end(doubles)
    accounts.authenticate(outcome(owner).token)
    refused = Counter(type(deferred_error(guess)) for guess in guesses)
    assert refused == {Unauthorised: 10, Unavailable: count - 10}


def test_waiting_passwords_are_bounded(doubles: Doubles, accounts: Accounts) -> None:
    log_in(accounts)
    doubles.pool.is_held = True
    guesses = many(accounts, 1_000, networks=1_000)
    assert len(doubles.pool.waiting) == 56
    with pytest.raises(Unavailable) as error:
        log_in(accounts, network=b"never seen")
    assert error.value.retry_after == 1
    # From where the owner has been before there is still room, and for a change of the password.
    owner = begun(accounts.log_in("ada", PASSWORD, HOME))
    go_on_to_the_end(doubles)
    token = outcome(owner).token
    errors = list(map(deferred_error, guesses))
    assert Counter(map(type, errors)) == {Unauthorised: 56, Unavailable: 944}
    assert {error.retry_after for error in errors if isinstance(error, Unavailable)} == {1}
    more = many(accounts, 1_000, networks=1_000)
    change = begun(accounts.change(token, password="another one"))
    go_on_to_the_end(doubles)
    outcome(change)
    assert len(list(map(deferred_error, more))) == 1_000
    # Enough networks guess together for others to wait with them.
    doubles.pool.is_held = False
    with pytest.raises(TooMany):
        log_in(accounts, "another one", b"never seen")
    log_in(accounts, "another one", HOME)
    doubles.clock.advance(3_601)
    log_in(accounts, "another one", b"never seen")


def guess_until_slowed(doubles: Doubles, accounts: Accounts, network: bytes) -> None:
    """Guess from a network at every moment at which it may, until it waits for the longest time."""
    for _ in range(20):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong", network)
        doubles.clock.advance(60)
    with pytest.raises(Unauthorised):
        log_in(accounts, "wrong", network)


def test_a_known_device_is_not_delayed_by_a_guesser_in_its_network(
    doubles: Doubles, accounts: Accounts
) -> None:
    device = done(accounts.log_in("ada", PASSWORD, HOME)).device
    guess_until_slowed(doubles, accounts, HOME)
    with pytest.raises(TooMany):
        log_in(accounts)
    # A typing error of the owner's costs nothing either.
    with pytest.raises(Unauthorised):
        done(accounts.log_in("ada", "typo", HOME, device))
    again = done(accounts.log_in("ada", PASSWORD, HOME, device))
    accounts.authenticate(again.token)
    assert again.device == device


def test_a_known_device_is_slowed_by_its_own_failures(doubles: Doubles, accounts: Accounts) -> None:
    device, other = (done(accounts.log_in("ada", PASSWORD, HOME)).device for _ in range(2))
    for _ in range(10):
        with pytest.raises(Unauthorised):
            done(accounts.log_in("ada", "wrong", HOME, device))
    with pytest.raises(TooMany) as error:
        done(accounts.log_in("ada", PASSWORD, b"elsewhere", device))
    assert error.value.retry_after == 1
    # Its network has not failed, nor has another device.
    log_in(accounts)
    done(accounts.log_in("ada", PASSWORD, HOME, other))
    doubles.clock.advance(1)
    done(accounts.log_in("ada", PASSWORD, HOME, device))


def test_a_known_device_has_room_from_any_network(doubles: Doubles, accounts: Accounts) -> None:
    device = done(accounts.log_in("ada", PASSWORD, HOME)).device
    doubles.pool.is_held = True
    guesses = many(accounts, 1_000, networks=1_000)
    owner = begun(accounts.log_in("ada", PASSWORD, b"never seen", device))
    go_on_to_the_end(doubles)
    accounts.authenticate(outcome(owner).token)
    assert len(list(map(deferred_error, guesses))) == 1_000


def test_a_new_password_forgets_known_devices(doubles: Doubles, accounts: Accounts) -> None:
    first = done(accounts.log_in("ada", PASSWORD, HOME))
    done(accounts.change(first.token, password="battery"))
    guess_until_slowed(doubles, accounts, HOME)
    with pytest.raises(TooMany):
        done(accounts.log_in("ada", "battery", HOME, first.device))
    doubles.clock.advance(3_601)
    assert done(accounts.log_in("ada", "battery", HOME, first.device)).device != first.device
