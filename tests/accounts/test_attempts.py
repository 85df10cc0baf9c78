from itertools import count
from random import Random

import pytest

from medamad.accounts.login_throttle import Attempts
from medamad.domain.errors import TooMany, Unavailable

HOME, CAFE, ABROAD = b"\x0a\x00\x00", b"\xc0\x00\x02", b"\xcb\x00\x71"
NOW = 1_750_000_000.0


def fail(attempts: Attempts, network: bytes, times: int, now: float = NOW) -> None:
    for _ in range(times):
        attempts.failed(network, now)


def wait(attempts: Attempts, network: bytes, now: float = NOW) -> int:
    """Begin an attempt and end it; gives 0, or the seconds that the network has to wait."""
    try:
        attempts.admit(network, now)
    except TooMany as refusal:
        return refusal.retry_after
    attempts.ended(network)
    return 0


def begin(attempts: Attempts, network: bytes, times: int) -> int:
    """Begin so many attempts at once; gives how many were let begin."""
    for begun in range(times):
        try:
            attempts.admit(network, NOW)
        except Unavailable:
            return begun
    return times


def test_ten_failures_in_a_row_cost_nothing() -> None:
    attempts = Attempts()
    for _ in range(10):
        assert wait(attempts, HOME, NOW) == 0
        attempts.failed(HOME, NOW)
    assert wait(attempts, HOME, NOW) == 1


def test_the_wait_doubles_up_to_a_minute() -> None:
    attempts = Attempts(draw=lambda _: 0)
    fail(attempts, HOME, 10)
    now, waits = NOW, []
    for _ in range(9):
        seconds = wait(attempts, HOME, now)
        assert wait(attempts, HOME, now + seconds - 0.5) == 1
        now += seconds
        assert wait(attempts, HOME, now) == 0
        attempts.failed(HOME, now)
        waits.append(seconds)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_attempts_sent_together_are_not_admitted_together() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 12)
    later = NOW + 4
    assert [wait(attempts, HOME, later) for _ in range(3)] == [0, 4, 4]


def test_after_the_longest_wait_one_of_those_who_were_told_of_it_is_let_in_by_lot() -> None:
    lots: list[int] = []
    attempts = Attempts(draw=lambda of: lots.append(of) or of - 1)
    fail(attempts, HOME, 20)
    assert [wait(attempts, HOME, NOW + second) for second in (1, 30)] == [59, 30]
    # Three may come: who has failed, and two who were told. Each is as likely as the others.
    assert [wait(attempts, HOME, NOW + 60) for _ in range(4)] == [1, 1, 0, 60]
    assert lots == [3, 2, 1]
    assert [wait(attempts, HOME, NOW + 61) for _ in range(100)] == [59] * 100
    lots.clear()
    assert [wait(attempts, HOME, NOW + 120) for _ in range(8)] == [*([1] * 7), 0]
    assert lots == [8, 7, 6, 5, 4, 3, 2, 1]


def test_who_is_alone_is_let_in_after_any_wait() -> None:
    attempts = Attempts()
    for failures in range(10, 30):
        fail(attempts, HOME, 1, NOW + 100 * failures)
        assert wait(attempts, HOME, NOW + 100 * failures + 60) == 0


@pytest.mark.parametrize("every_s", [0.1, 0.5, 2, 60])
@pytest.mark.parametrize("seed", range(5))
def test_who_comes_when_told_gets_in_beside_a_guesser_who_is_always_earlier(
    every_s: float, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - lots that come out the same each time
    attempts = Attempts(draw=random.randrange)
    fail(attempts, HOME, 20)
    told, guesses = NOW + random.uniform(0, 60), 0
    for number in count(1):
        now = NOW + number * every_s
        if told < now:
            seconds = wait(attempts, HOME, told)
            if not seconds:
                break
            told += seconds
        if not wait(attempts, HOME, now):
            attempts.failed(HOME, now)
            guesses += 1
        assert now < NOW + 7_200
    assert guesses <= (now - NOW) / 60


def test_a_success_ends_the_row() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 9)
    attempts.succeeded(HOME)
    fail(attempts, HOME, 9)
    assert wait(attempts, HOME, NOW) == 0


def test_many_networks_guessing_together_are_slowed_as_one() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 5)
    fail(attempts, CAFE, 6)
    assert wait(attempts, HOME, NOW) == 2
    assert wait(attempts, CAFE, NOW) == 2


def test_a_network_that_has_not_failed_never_waits() -> None:
    attempts = Attempts()
    fail(attempts, CAFE, 500)
    assert wait(attempts, HOME, NOW) == 0


def test_failures_elsewhere_do_not_lengthen_a_wait_under_way() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 20)
    fail(attempts, CAFE, 20, NOW + 59)
    assert wait(attempts, HOME, NOW + 60) == 0


def test_a_quiet_hour_is_forgotten() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 20)
    assert wait(attempts, HOME, NOW + 3_601) == 0
    assert wait(attempts, HOME, NOW + 3_601) == 0


def test_a_clock_that_is_set_back_makes_no_longer_wait() -> None:
    attempts = Attempts(draw=lambda _: 0)
    fail(attempts, HOME, 20)
    assert wait(attempts, HOME, NOW - 86_400) == 60
    assert wait(attempts, HOME, NOW - 86_400 + 60) == 0


def test_memory_is_bounded() -> None:
    attempts = Attempts(capacity=3)
    for number in range(10):
        attempts.failed(bytes([number]), NOW)
    assert len(attempts) == 3
    assert wait(attempts, b"\x00", NOW) == 0
    assert wait(attempts, b"\x09", NOW) == 1


def test_of_attempts_at_once_no_more_begin_than_could_fail() -> None:
    attempts = Attempts()
    assert begin(attempts, HOME, 1_000) == 10
    assert begin(attempts, CAFE, 1) == 1
    for _ in range(10):
        attempts.failed(HOME, NOW)
        attempts.ended(HOME)
    assert wait(attempts, HOME) == 1


def test_after_failures_fewer_begin_at_once() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 7)
    assert begin(attempts, HOME, 64) == 3


def test_attempts_under_way_elsewhere_count_for_the_account() -> None:
    attempts = Attempts()
    assert [begin(attempts, bytes([number]), 1) for number in range(12)] == [1] * 12
    # None of them has to wait for the others, but none gets a second try beside its first.
    assert begin(attempts, b"\x00", 1) == 0
    assert begin(attempts, HOME, 64) == 1


def test_attempts_that_end_make_room() -> None:
    attempts = Attempts()
    assert begin(attempts, HOME, 64) == 10
    attempts.ended(HOME)
    assert begin(attempts, HOME, 64) == 1
    attempts.succeeded(HOME)
    for _ in range(10):
        attempts.ended(HOME)
    assert begin(attempts, HOME, 64) == 10


def test_networks_of_logins_are_known_in_bounded_memory() -> None:
    attempts = Attempts()
    fail(attempts, CAFE, 1)
    assert not attempts.is_known(CAFE)
    attempts.succeeded(CAFE)
    for number in range(99):
        attempts.succeeded(bytes([number]))
    assert attempts.is_known(CAFE)
    attempts.succeeded(HOME)
    assert (attempts.is_known(CAFE), attempts.is_known(HOME)) == (False, True)
