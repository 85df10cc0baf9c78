from medamad.account.attempts import Attempts

HOME, CAFE, ABROAD = b"\x0a\x00\x00", b"\xc0\x00\x02", b"\xcb\x00\x71"
NOW = 1_750_000_000.0


def fail(attempts: Attempts, network: bytes, times: int, now: float = NOW) -> None:
    for _ in range(times):
        attempts.failed(network, now)


def test_ten_failures_in_a_row_cost_nothing() -> None:
    attempts = Attempts()
    for _ in range(10):
        assert attempts.admit(HOME, NOW) == 0
        attempts.failed(HOME, NOW)
    assert attempts.admit(HOME, NOW) == 1


def test_the_wait_doubles_up_to_a_minute() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 10)
    now, waits = NOW, []
    for _ in range(9):
        wait = attempts.admit(HOME, now)
        assert attempts.admit(HOME, now + wait - 0.5) == 1
        now += wait
        assert attempts.admit(HOME, now) == 0
        attempts.failed(HOME, now)
        waits.append(wait)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_attempts_sent_together_are_not_admitted_together() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 12)
    later = NOW + 4
    assert [attempts.admit(HOME, later) for _ in range(3)] == [0, 4, 4]


def test_a_success_ends_the_row() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 9)
    attempts.succeeded(HOME)
    fail(attempts, HOME, 9)
    assert attempts.admit(HOME, NOW) == 0


def test_many_networks_guessing_together_are_slowed_as_one() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 5)
    fail(attempts, CAFE, 6)
    assert attempts.admit(HOME, NOW) == 2
    assert attempts.admit(CAFE, NOW) == 2


def test_a_network_that_has_not_failed_never_waits() -> None:
    attempts = Attempts()
    fail(attempts, CAFE, 500)
    assert attempts.admit(HOME, NOW) == 0


def test_failures_elsewhere_do_not_lengthen_a_wait_under_way() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 20)
    fail(attempts, CAFE, 20, NOW + 59)
    assert attempts.admit(HOME, NOW + 60) == 0


def test_a_quiet_hour_is_forgotten() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 20)
    assert attempts.admit(HOME, NOW + 3_601) == 0
    assert attempts.admit(HOME, NOW + 3_601) == 0


def test_a_clock_that_is_set_back_makes_no_longer_wait() -> None:
    attempts = Attempts()
    fail(attempts, HOME, 20)
    assert attempts.admit(HOME, NOW - 86_400) == 60
    assert attempts.admit(HOME, NOW - 86_400 + 60) == 0


def test_memory_is_bounded() -> None:
    attempts = Attempts(capacity=3)
    for number in range(10):
        attempts.failed(bytes([number]), NOW)
    assert len(attempts) == 3
    assert attempts.admit(b"\x00", NOW) == 0
    assert attempts.admit(b"\x09", NOW) == 1
