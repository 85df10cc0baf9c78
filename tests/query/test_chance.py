"""What chance explains, on simulated traffic of which it is known whether it changed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import field, frozen
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query import sums
from medamad.query.chance import MAX_WEEKS, Chance, Compared, dispersions
from medamad.query.changes import ChangesOptions, changes
from medamad.query.period import Period
from medamad.query.request import NO_GAPS, Cancellation, Gaps, Query
from medamad.query.sums import GroupedVisits, VisitGrouping, VisitSums
from medamad.storage.dictionary.decode import TextCache

WEEK_MS = 7 * 86_400_000
WEEKS = MAX_WEEKS + 2
NOW_MS = WEEKS * WEEK_MS
VISITS = 400
"""A week's visits."""
REPORTS = 400
OFTEN = pytest.mark.parametrize("reports", [REPORTS, pytest.param(20_000, marks=pytest.mark.slow)])
"""So many simulated weeks; the long form tells 5% from 5.5%."""

PARTS = {
    Dimension.REFERRER: 6,
    Dimension.PATH: 20,
    Dimension.COUNTRY: 12,
    Dimension.DEVICE: 3,
    Dimension.UTM_CAMPAIGN: 4,
}
"""How many different texts each dimension has."""


@frozen(eq=False)
class Weeks:
    """An engine that knows only the visits of weeks, by the code of each dimension.

    Of each dimension, shape (WEEKS, codes).
    """

    visits: dict[Dimension, NDArray[np.int64]]
    period: Period = field(factory=lambda: Period(0, NOW_MS - 1))
    sources: Sources = field(factory=lambda: Sources({}))
    cancellation: Cancellation = field(factory=Cancellation)
    cache: TextCache = field(factory=TextCache)
    left_out: Gaps = NO_GAPS

    @property
    def texts(self) -> Any:
        return self

    def __call__(self, dimension: Dimension) -> list[str]:
        return [f"{code}.example" for code in range(PARTS[dimension])]

    def time_bounds(self) -> tuple[int, int]:
        return 0, NOW_MS - 1

    def select(self, _query: Query) -> "Weeks":
        return self

    def during(self, period: Period) -> "Weeks":
        return Weeks(self.visits, period, self.sources, self.cancellation, self.cache)

    def group_visits(self, groupings: Sequence[VisitGrouping]) -> GroupedVisits:
        assert all(each.up_to == sums.VISITS for each in groupings)
        week = (self.period.start_ms or 0) // WEEK_MS
        found = [self._sums(each, week) for each in groupings]
        of_codes = [VisitSums(np.arange(len(each)), each[np.newaxis]) for each in found]
        return GroupedVisits(of_codes, int(found[0].sum()), NO_GAPS)

    def _sums(self, grouping: VisitGrouping, week: int) -> NDArray[np.int64]:
        sums = self.visits[grouping.dimension][week]
        if grouping.among is None:
            return sums
        # Any other part is split as the whole is.
        dimension, codes = grouping.among
        of_part = self.visits[dimension][week, list(codes)].sum()
        return np.rint(sums * of_part / max(sums.sum(), 1)).astype(np.int64)


def shares_of(parts: int) -> NDArray[np.float64]:
    shares = 1 / np.arange(1, parts + 1)
    return np.asarray(shares / shares.sum())


def poisson(rng: Generator, change: float) -> NDArray[np.int64]:
    """Return the visits of weeks by source."""
    return rng.poisson(VISITS * shares_of(6) * change_of(change))


def bursty_as_a_whole(rng: Generator, change: float) -> NDArray[np.int64]:
    """Return negative binomial visits, three to thirty times as variable as Poisson's."""
    shape = rng.choice([15, 50, 200])
    weeks = rng.gamma(shape, 1 / shape, (WEEKS, 1))
    return rng.poisson(VISITS * shares_of(6) * weeks * change_of(change))


def bursty_by_source(rng: Generator, change: float) -> NDArray[np.int64]:
    """Return negative binomial visits of each source alone."""
    shape = rng.choice([4, 20, 100])
    bursts = rng.gamma(shape, 1 / shape, (WEEKS, 6))
    return rng.poisson(VISITS * shares_of(6) * bursts * change_of(change))


def growing(rng: Generator, change: float) -> NDArray[np.int64]:
    """Return visits that had been growing until two weeks ago."""
    growth = np.minimum(np.linspace(0.3, 1.1, WEEKS), 1)[:, np.newaxis]
    return rng.poisson(VISITS * shares_of(6) * growth * change_of(change))


def change_of(factor: float) -> NDArray[np.float64]:
    return np.where(np.arange(WEEKS) == WEEKS - 1, factor, 1.0)[:, np.newaxis]


def report(rng: Generator, by_source: NDArray[np.int64]) -> Any:
    """Return what changed in the last week. Other dimensions are independent of the source."""
    totals = by_source.sum(axis=1)
    visits = {
        dimension: rng.multinomial(totals, shares_of(parts)) for dimension, parts in PARTS.items()
    }
    visits[Dimension.REFERRER] = by_source
    query = Query(Period(NOW_MS - WEEK_MS, NOW_MS - 1))
    reader: Any = Weeks(visits)
    return changes(reader, query, options=ChangesOptions(now_ms=NOW_MS, limit=100)).content


def says_that_something_changed(content: Any) -> bool:
    parts = [part for each in content["dimensions"] for part in each["parts"]]
    return any(each["by_chance"] is False for each in (content, *parts))


@OFTEN
@pytest.mark.parametrize("traffic", [poisson, bursty_as_a_whole, bursty_by_source, growing])
def test_at_most_one_week_in_twenty_without_a_change_reports_one(
    traffic: Any, reports: int
) -> None:
    rng = default_rng(1)
    found = 0
    for _ in range(reports):
        content = report(rng, traffic(rng, 1))
        assert content["earlier_weeks"] == MAX_WEEKS
        found += says_that_something_changed(content)
    assert found <= reports * 0.05


@OFTEN
@pytest.mark.parametrize("traffic", [poisson, growing])
@pytest.mark.parametrize("change", [0.7, 1.3])
def test_nine_of_ten_changes_by_thirty_percent_are_found(
    traffic: Any, change: float, reports: int
) -> None:
    rng = default_rng(2)
    found = sum(report(rng, traffic(rng, change))["by_chance"] is False for _ in range(reports))
    assert found >= reports * 0.9


def test_a_source_that_loses_most_of_its_visits_is_named() -> None:
    rng = default_rng(3)
    found = []
    for _ in range(REPORTS):
        by_source = poisson(rng, 1)
        by_source[-1, 0] = rng.poisson(VISITS * shares_of(6)[0] / 3)
        content = report(rng, by_source)
        parts = content["dimensions"][0]["parts"]
        found.append([each["name"] for each in parts if each["by_chance"] is False])
    assert sum("0.example" in names for names in found) >= REPORTS * 0.9
    assert sum(names not in ([], ["0.example"]) for names in found) <= REPORTS * 0.05


@pytest.mark.parametrize(
    ("weeks", "level", "quantile"),
    # From tables of Student's t; the variance of these weeks is a hundred times their mean.
    [(12, 0.05, 2.228139), (12, 0.001, 4.586894), (5, 0.01, 5.840909), (4, 0.05, 4.302653)],
)
def test_the_bound_is_that_of_students_t(weeks: int, level: float, quantile: float) -> None:
    chance, dispersion = Chance(1, weeks), np.array([100.0])
    for size, is_change in ((0.999, False), (1.001, True)):
        difference = size * quantile * (1_000_000 * 100) ** 0.5
        before = np.array([500_000 - round(difference / 2)])
        figures = Compared.of_counts(before, 1_000_000 - before)
        verdicts = chance.verdicts(figures, dispersion, level=level)
        assert verdicts.are_changes.tolist() == [is_change]


def test_the_variance_is_at_least_that_of_poisson() -> None:
    chance, steady = Chance(1, MAX_WEEKS), np.array([0.0])
    # Nearly 1.96 and 2.06 standard deviations of the sum of both.
    for now, is_change in ((444, False), (463, True)):
        figures = Compared.of_counts(np.array([400]), np.array([now]))
        verdicts = chance.verdicts(figures, steady, level=0.05)
        assert verdicts.are_changes.tolist() == [is_change]


def test_the_variance_of_amounts_is_at_least_the_sum_of_their_squares() -> None:
    # Some orders are a hundred times as large as others.
    rng = default_rng(4)
    chance, steady, found = Chance(1, MAX_WEEKS), np.array([0.0]), 0
    for _ in range(REPORTS):
        before, now = (rng.lognormal(3, 1.5, rng.poisson(100)) for _ in range(2))
        amounts = np.concatenate([before, now])
        figures = Compared(
            np.array([before.sum()]),
            np.array([now.sum()]),
            np.array([len(amounts)]),
            np.array([(amounts**2).sum()]),
        )
        found += int(chance.verdicts(figures, steady, level=0.05).are_changes[0])
    assert 0 < found <= REPORTS * 0.05


def test_growth_is_no_chance() -> None:
    weeks = np.array([-1, -2, -3, -5])
    figures = np.array([[90, 12], [80, 8], [70, 12], [50, 8]])
    steady, varying = dispersions(weeks, figures, figures)
    assert steady == pytest.approx(0)
    assert varying > 0
