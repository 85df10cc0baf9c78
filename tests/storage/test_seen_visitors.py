"""Visitors of followed logs: remembered in memory, for a day and within a limit."""

from support.storage.hits import DAY_MS, NOW_MS
from support.storage.log_lines import logged_warnings

from medamad.domain.hits import Visitor
from medamad.storage.wal.seen_visitors import SeenVisitors


def first(seen: SeenVisitors, day: int, *names: str, now_ms: int = NOW_MS) -> list[bool]:
    """Return who of some visitors is there for the first time on a day."""
    batch = seen.batch(now_ms)
    found = [batch.is_first(Visitor(name, day, is_stored=False), 1) for name in names]
    batch.remember()
    return found


def test_everyone_counts_once_on_each_day_and_website_and_page() -> None:
    seen = SeenVisitors()
    assert first(seen, 7, "ada", "bob", "ada") == [True, True, False]
    assert first(seen, 7, "ada", "eve") == [False, True]
    assert first(seen, 8, "ada") == [True]
    batch, ada = seen.batch(NOW_MS), Visitor("ada", 7, is_stored=False)
    asked = ((1, "/"), (1, "/"), (1, "/a"), (2,), (2, "/"))
    assert [batch.is_first(ada, *each) for each in asked] == [True, False, True, True, True]


def test_what_is_not_committed_is_not_remembered() -> None:
    seen = SeenVisitors()
    seen.batch(NOW_MS).is_first(Visitor("ada", 7, is_stored=False), 1)
    assert first(seen, 7, "ada") == [True]


def test_an_old_log_does_not_make_today_forgotten() -> None:
    seen = SeenVisitors(most=10)
    assert first(seen, 100, "ada") == [True]
    for day in range(50):
        assert first(seen, day, "bob", "eve", "bob") == [True, True, False]
        assert first(seen, day, "bob") == [False]
        assert first(seen, 100, "ada") == [False]
    assert first(seen, 0, "bob") == [True]


def test_a_day_is_forgotten_when_nothing_comes_from_it() -> None:
    seen = SeenVisitors()
    assert first(seen, 7, "ada") == [True]
    assert first(seen, 8, "ada", now_ms=NOW_MS + DAY_MS) == [True]
    assert first(seen, 7, "ada", now_ms=NOW_MS + DAY_MS) == [False]
    assert first(seen, 9, "ada", now_ms=NOW_MS + 3 * DAY_MS) == [True]
    assert not seen.of(7)
    assert not seen.of(8)
    assert seen.of(9)


def test_beyond_the_limit_visitors_count_again_and_it_is_said() -> None:
    seen = SeenVisitors(most=3)
    assert first(seen, 7, "a", "b", "c") == [True] * 3
    assert first(seen, 7, "a", "b", "c") == [False] * 3
    with logged_warnings() as lines:
        assert first(seen, 7, "d") == [True]
    (said,) = lines
    assert said.startswith("visitors in followed logs count again today: more than 3 of them")
    assert first(seen, 7, "a") == [True]
