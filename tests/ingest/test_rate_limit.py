from medamad.ingest.rate_limit import RateLimiter

NOW = 1_700_000_000.0
HERE = b"\xc6\x33\x64"
ELSEWHERE = b"\xc6\x33\x65"


def test_a_burst_may_use_a_whole_minutes_allowance() -> None:
    limiter = RateLimiter()
    assert [limiter.take(HERE, 60, NOW) for _ in range(61)] == [0] * 60 + [1]


def test_each_network_has_its_own_allowance() -> None:
    limiter = RateLimiter()
    waits = [limiter.take(network, 2, NOW) for network in (HERE, HERE, HERE, ELSEWHERE)]
    assert waits == [0, 0, 30, 0]


def test_the_allowance_refills_evenly() -> None:
    limiter = RateLimiter()
    assert [limiter.take(HERE, 2, NOW) for _ in range(3)] == [0, 0, 30]
    assert limiter.take(HERE, 2, NOW + 29.5) == 1
    assert [limiter.take(HERE, 2, NOW + 30) for _ in range(2)] == [0, 30]
    assert [limiter.take(HERE, 2, NOW + 600) for _ in range(3)] == [0, 0, 30]


def test_a_retry_after_the_stated_wait_is_accepted() -> None:
    limiter, now = RateLimiter(), NOW
    for _ in range(100):
        wait_s = limiter.take(HERE, 7, now)
        assert 0 <= wait_s <= 60
        if wait_s:
            now += wait_s
            assert limiter.take(HERE, 7, now) == 0


def test_a_rejected_hit_uses_no_allowance() -> None:
    limiter = RateLimiter()
    assert limiter.take(HERE, 1, NOW) == 0
    assert {limiter.take(HERE, 1, NOW) for _ in range(100)} == {60}
    assert limiter.take(HERE, 1, NOW + 60) == 0


def test_hits_of_no_network_are_never_limited() -> None:
    limiter = RateLimiter()
    assert {limiter.take(b"", 1, NOW) for _ in range(10)} == {0}
    assert len(limiter) == 0


def test_zero_disables_the_limit_and_the_limit_can_change() -> None:
    limiter = RateLimiter()
    assert {limiter.take(HERE, 0, NOW) for _ in range(10)} == {0}
    assert [limiter.take(HERE, 1, NOW) for _ in range(2)] == [0, 60]
    assert limiter.take(HERE, 0, NOW) == 0


def test_setting_the_clock_back_locks_nobody_out() -> None:
    limiter = RateLimiter()
    assert limiter.take(HERE, 60, NOW) == 0
    assert [limiter.take(HERE, 60, NOW - 86_400) for _ in range(61)] == [0] * 60 + [1]


def test_the_least_recently_seen_network_is_evicted() -> None:
    limiter = RateLimiter(capacity=100)
    for number in range(200):
        assert limiter.take(bytes([198, 51, number]), 1, NOW) == 0
    assert len(limiter) == 100
    assert limiter.take(bytes([198, 51, 199]), 1, NOW) == 60
    assert limiter.take(bytes([198, 51, 0]), 1, NOW) == 0
