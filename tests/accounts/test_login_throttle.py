from collections.abc import Iterator
from itertools import count
from random import Random

import pytest

from medamad.accounts.login_throttle import LoginThrottle
from medamad.domain.errors import TooMany, Unavailable

HOME, CAFE, ABROAD = b"\x0a\x00\x00", b"\xc0\x00\x02", b"\xcb\x00\x71"
NOW = 1_750_000_000.0


def fail(throttle: LoginThrottle, network: bytes, times: int, now: float = NOW) -> None:
    for _ in range(times):
        throttle.failed(network, now)


def wait(throttle: LoginThrottle, network: bytes, now: float = NOW) -> int:
    """Begin and end an attempt; return 0, or the seconds the network has to wait."""
    try:
        throttle.admit(network, now)
    except TooMany as error:
        return error.retry_after
    throttle.ended(network)
    return 0


def begin(throttle: LoginThrottle, network: bytes, times: int) -> int:
    """Begin attempts concurrently; return how many were admitted."""
    for begun in range(times):
        try:
            throttle.admit(network, NOW)
        except Unavailable:
            return begun
    return times


def test_ten_failures_in_a_row_are_not_delayed() -> None:
    throttle = LoginThrottle()
    for _ in range(10):
        assert wait(throttle, HOME, NOW) == 0
        throttle.failed(HOME, NOW)
    assert wait(throttle, HOME, NOW) == 1


def test_the_wait_doubles_up_to_a_minute() -> None:
    throttle = LoginThrottle(draw=lambda _: 0)
    fail(throttle, HOME, 10)
    now, waits = NOW, []
    for _ in range(9):
        seconds = wait(throttle, HOME, now)
        assert wait(throttle, HOME, now + seconds - 0.5) == 1
        now += seconds
        assert wait(throttle, HOME, now) == 0
        throttle.failed(HOME, now)
        waits.append(seconds)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_attempts_sent_together_are_not_admitted_together() -> None:
    throttle = LoginThrottle()
    fail(throttle, HOME, 12)
    later = NOW + 4
    assert [wait(throttle, HOME, later) for _ in range(3)] == [0, 4, 4]


def test_after_the_longest_wait_one_waiting_network_is_admitted_at_random() -> None:
    lots: list[int] = []
    throttle = LoginThrottle(draw=lambda of: lots.append(of) or of - 1)
    fail(throttle, HOME, 20)
    assert [wait(throttle, HOME, NOW + second) for second in (1, 30)] == [59, 30]
    # Three may be admitted: the one that failed, and two that waited. Each is equally likely.
    assert [wait(throttle, HOME, NOW + 60) for _ in range(4)] == [1, 1, 0, 60]
    assert lots == [3, 2, 1]
    assert [wait(throttle, HOME, NOW + 61) for _ in range(100)] == [59] * 100
    lots.clear()
    assert [wait(throttle, HOME, NOW + 120) for _ in range(8)] == [*([1] * 7), 0]
    assert lots == [8, 7, 6, 5, 4, 3, 2, 1]


def test_a_single_network_is_admitted_after_its_wait() -> None:
    throttle = LoginThrottle()
    for failures in range(10, 30):
        fail(throttle, HOME, 1, NOW + 100 * failures)
        assert wait(throttle, HOME, NOW + 100 * failures + 60) == 0


@pytest.mark.parametrize("every_s", [0.1, 0.5, 2, 60])
@pytest.mark.parametrize("seed", range(5))
def test_a_network_that_waits_is_admitted_despite_an_impatient_guesser(
    every_s: float, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - lots that come out the same each time
    throttle = LoginThrottle(draw=random.randrange)
    fail(throttle, HOME, 20)
    retry_at, guesses = NOW + random.uniform(0, 60), 0
    for number in count(1):
        now = NOW + number * every_s
        if retry_at < now:
            seconds = wait(throttle, HOME, retry_at)
            if not seconds:
                break
            retry_at += seconds
        if not wait(throttle, HOME, now):
            throttle.failed(HOME, now)
            guesses += 1
        assert now < NOW + 7_200
    assert guesses <= (now - NOW) / 60


def test_a_success_resets_the_failures() -> None:
    throttle = LoginThrottle()
    fail(throttle, HOME, 9)
    throttle.succeeded(HOME)
    fail(throttle, HOME, 9)
    assert wait(throttle, HOME, NOW) == 0


def test_many_guessing_networks_are_slowed_as_one() -> None:
    throttle = LoginThrottle()
    fail(throttle, HOME, 5)
    fail(throttle, CAFE, 6)
    assert wait(throttle, HOME, NOW) == 2
    assert wait(throttle, CAFE, NOW) == 2


def test_a_network_that_has_not_failed_never_waits() -> None:
    throttle = LoginThrottle()
    fail(throttle, CAFE, 500)
    assert wait(throttle, HOME, NOW) == 0


def test_failures_elsewhere_do_not_lengthen_a_current_wait() -> None:
    throttle = LoginThrottle()
    fail(throttle, HOME, 20)
    fail(throttle, CAFE, 20, NOW + 59)
    assert wait(throttle, HOME, NOW + 60) == 0


def test_an_hour_without_failures_resets_them() -> None:
    throttle = LoginThrottle()
    fail(throttle, HOME, 20)
    assert wait(throttle, HOME, NOW + 3_601) == 0
    assert wait(throttle, HOME, NOW + 3_601) == 0


def test_setting_the_clock_back_does_not_lengthen_the_wait() -> None:
    throttle = LoginThrottle(draw=lambda _: 0)
    fail(throttle, HOME, 20)
    assert wait(throttle, HOME, NOW - 86_400) == 60
    assert wait(throttle, HOME, NOW - 86_400 + 60) == 0


def test_memory_is_bounded() -> None:
    throttle = LoginThrottle(capacity=3)
    for number in range(10):
        throttle.failed(bytes([number]), NOW)
    assert len(throttle) == 3
    assert wait(throttle, b"\x00", NOW) == 0
    assert wait(throttle, b"\x09", NOW) == 1


def test_parallel_attempts_are_bounded_by_the_failures_left() -> None:
    throttle = LoginThrottle()
    assert begin(throttle, HOME, 1_000) == 10
    assert begin(throttle, CAFE, 1) == 1
    for _ in range(10):
        throttle.failed(HOME, NOW)
        throttle.ended(HOME)
    assert wait(throttle, HOME) == 1


def test_after_failures_fewer_attempts_run_in_parallel() -> None:
    throttle = LoginThrottle()
    fail(throttle, HOME, 7)
    assert begin(throttle, HOME, 64) == 3


def test_attempts_under_way_elsewhere_count_for_the_account() -> None:
    throttle = LoginThrottle()
    assert [begin(throttle, bytes([number]), 1) for number in range(12)] == [1] * 12
    # None has to wait for the others, but none gets a second try during its first.
    assert begin(throttle, b"\x00", 1) == 0
    assert begin(throttle, HOME, 64) == 1


def test_attempts_that_end_make_room() -> None:
    throttle = LoginThrottle()
    assert begin(throttle, HOME, 64) == 10
    throttle.ended(HOME)
    assert begin(throttle, HOME, 64) == 1
    throttle.succeeded(HOME)
    for _ in range(10):
        throttle.ended(HOME)
    assert begin(throttle, HOME, 64) == 10


def test_the_networks_of_logins_are_bounded() -> None:
    throttle = LoginThrottle()
    fail(throttle, CAFE, 1)
    assert not throttle.is_known(CAFE)
    throttle.succeeded(CAFE)
    for number in range(99):
        throttle.succeeded(bytes([number]))
    assert throttle.is_known(CAFE)
    throttle.succeeded(HOME)
    assert (throttle.is_known(CAFE), throttle.is_known(HOME)) == (False, True)


def many(networks: int) -> Iterator[bytes]:
    return (number.to_bytes(3, "big") for number in range(networks))


def test_networks_guess_together_from_the_tenth_on() -> None:
    throttle = LoginThrottle(draw=lambda _: 0, joint=True)
    for network in many(9):
        assert wait(throttle, network) == 0
        throttle.failed(network, NOW)
    assert wait(throttle, HOME) == 0
    throttle.failed(HOME, NOW)
    assert wait(throttle, CAFE) == 1
    now, waits = NOW, []
    for network in many(20):
        seconds = wait(throttle, network + b"x", now)
        now += seconds
        assert wait(throttle, network + b"x", now) == 0
        throttle.failed(network + b"x", now)
        waits.append(seconds)
    assert waits[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert set(waits[8:]) == {60}
    assert wait(throttle, ABROAD, now + 3_601) == 0


def test_one_of_ten_networks_that_goes_on_alone_is_slowed_like_one() -> None:
    throttle = LoginThrottle(draw=lambda _: 0, joint=True)
    for network in many(10):
        throttle.failed(network, NOW)
    attempts = 0
    for second in range(3_600):
        if wait(throttle, HOME, NOW + second) == 0:
            throttle.failed(HOME, NOW + second)
            attempts += 1
    assert attempts < 70


def test_attempts_of_many_networks_at_once_are_not_admitted_together() -> None:
    throttle = LoginThrottle(joint=True)
    for network in many(12):
        throttle.failed(network, NOW)
    later = NOW + 60
    throttle.admit(HOME, later)
    with pytest.raises((Unavailable, TooMany)):
        throttle.admit(CAFE, later)


def test_networks_without_failures_do_not_wait_for_others_unless_they_guess_together() -> None:
    throttle = LoginThrottle()
    for network in many(100):
        throttle.failed(network, NOW)
    assert wait(throttle, HOME) == 0
