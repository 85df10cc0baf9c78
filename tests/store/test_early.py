from medamad.store.early import KEPT_MS, Early

NOW_MS = 1_790_000_000_000


def test_the_longest_leaving_and_all_events_wait() -> None:
    early = Early(10)
    early.leave(b"b", NOW_MS, 300)
    early.leave(b"b", NOW_MS + 1, 200)
    early.happen(b"b", NOW_MS + 2, 1, 77)
    waiting = early.waiting(b"b", NOW_MS + 3)
    assert waiting is not None
    assert (waiting.duration_ms, waiting.events) == (300, [(1, 77)])
    early.forget(b"b")
    assert early.waiting(b"b", NOW_MS + 3) is None


def test_it_waits_for_60_seconds() -> None:
    early = Early(10)
    early.leave(b"b", NOW_MS, 300)
    assert early.waiting(b"b", NOW_MS + KEPT_MS) is not None
    assert early.waiting(b"b", NOW_MS + KEPT_MS + 1) is None
    early.leave(b"b", NOW_MS + KEPT_MS + 1, 100)
    waiting = early.waiting(b"b", NOW_MS + KEPT_MS + 1)
    assert waiting is not None
    assert waiting.duration_ms == 100


def test_memory_is_bounded() -> None:
    early = Early(3)
    for number in range(10):
        early.leave(bytes([number]), NOW_MS + number, 1)
    kept = [number for number in range(10) if early.waiting(bytes([number]), NOW_MS + 10)]
    assert kept == [7, 8, 9]
    for number in range(100):
        early.happen(b"\x09", NOW_MS + 10, 1, number)
    waiting = early.waiting(b"\x09", NOW_MS + 10)
    assert waiting is not None
    assert len(waiting.events) == 30
