"""Conditions of statements."""

from medamad.domain.zones import DAY_MS
from medamad.query.clickhouse.sql import ALL, Days, begun_in, every
from medamad.query.period import ALWAYS, Period


def test_the_days_of_a_question_are_those_in_all_its_conditions() -> None:
    assert Days.in_all(["visit > 0", Days(3, 9), "visit_day < 1", Days(5), Days(0, 8)]) == Days(
        5, 8
    )
    assert Days.in_all(["visit > 0"]) == Days()
    assert begun_in(Period(2 * DAY_MS, 4 * DAY_MS - 1)) == Days(2, 3)
    assert begun_in(ALWAYS) == Days()


def test_days_without_bounds_are_no_condition() -> None:
    assert str(Days()) == ALL
    assert every([Days(), "visit > 0"]) == "visit > 0"
    assert str(Days(5)) == "visit_day >= toDate(toUInt16(5))"
    bounded = "visit_day >= toDate(toUInt16(5)) AND visit_day <= toDate(toUInt16(8))"
    assert every([Days(5, 8)]) == bounded
