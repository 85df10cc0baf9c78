"""Which differences between two periods are changes, and which chance explains.

Visits vary at least as counts of independent events do: their variance is at least their mean
(Poisson). They may vary more, by as much as those of earlier weeks did around their trend. So a
difference is a change if it is beyond both: the normal quantile with Poisson's variance, and the
quantile of Student's t with the variance of the earlier weeks, which is known only as well as their
number allows. Each of the two tests alone errs as rarely as the level says.

Of amounts, such as revenue, the least variance is that of a compound Poisson process: the sum of
the squares of single amounts takes the place of the number of visits, which is the same if each
amount is 1.
"""

from functools import lru_cache
from math import cos, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Figures: TypeAlias = NDArray[np.int64] | NDArray[np.float64]

MAX_WEEKS: Final = 12
"""So many earlier weeks are looked at, if there are so many."""
MIN_WEEKS: Final = 4
"""With fewer, it is unknown how much more than Poisson's the variance is."""
MIN_TESTED: Final = 20
"""A part with less in both periods together is too small for a change, and not tested."""

_TREND: Final = 2
"""The degrees of freedom that a straight line takes."""
LEVEL_OF_TOTAL: Final = 0.04
LEVEL_OF_PARTS: Final = 0.05
LEVEL_OF_PARTS_ALONE: Final = 0.01
"""Without a change, the total seems to have changed in 4% of all cases, and any of the parts
although the total has not in 1%, which makes 5%. If the total has changed, parts have 5%. The level
of parts is that of all of them together, to be divided by their number (Bonferroni)."""


@frozen(eq=False)
class Compared:
    """Figures of two periods: sums of single values, such as of 1 for each visit, shape (n,) each.

    `counts` has how many values there are in both periods, `squares` the sum of their squares.
    """

    before: Figures
    now: Figures
    counts: NDArray[np.int64]
    squares: Figures

    @classmethod
    def of_counts(cls, before: NDArray[np.int64], now: NDArray[np.int64]) -> Self:
        """Return numbers of what counts 1."""
        return cls(before, now, before + now, before + now)


@frozen(eq=False)
class Verdicts:
    """Which of n differences are certain to be changes, and which may be, shape (n,) each.

    Those that only may be are beyond Poisson's variance, and no other is known.
    """

    are_changes: NDArray[np.bool_]
    are_unknown: NDArray[np.bool_]

    def by_chance(self, place: int) -> bool | None:
        """Return whether chance explains a difference; None if that is unknown."""
        return None if self.are_unknown[place] else not self.are_changes[place]


def dispersions(weeks: NDArray[np.intp], figures: Figures, squares: Figures) -> NDArray[np.float64]:
    """Return by how much the variance of n figures exceeds Poisson's, as a factor, shape (n,).

    `figures` and the sums of `squares` are those of earlier weeks, shape (weeks, n), and `weeks`
    has when these were. The variance is that around a straight line, since growth is no chance. 0
    without any figures, or if there are fewer than MIN_WEEKS.
    """
    if len(weeks) < MIN_WEEKS:
        return np.zeros(figures.shape[1])
    mean = figures.mean(axis=0)
    times = weeks - weeks.mean()
    residuals = figures - mean - np.outer(times, times @ figures / (times @ times))
    variance = np.sum(residuals**2, axis=0, dtype=np.float64) / (len(weeks) - _TREND)
    least = squares.mean(axis=0)
    return np.asarray(variance / np.where(least > 0, least, 1), np.float64)


def against_earlier(
    now: NDArray[np.int64], weeks: NDArray[np.intp], earlier: NDArray[np.int64], *, level: float
) -> Verdicts:
    """Return the verdicts on n counts, against those of earlier weeks, shape (weeks, n)."""
    # The mean of the weeks is the sum of periods that together are so much longer.
    chance = Chance(1 / len(earlier), len(earlier))
    figures = Compared.of_counts(earlier.sum(axis=0), now)
    return chance.verdicts(figures, dispersions(weeks, earlier, earlier), level=level)


@frozen(eq=False)
class Chance:
    """What chance explains of the differences between two periods of some lengths.

    `ratio` is the length of the second relative to the first, `weeks` the number of earlier weeks.
    """

    ratio: float
    weeks: int

    def differences(self, figures: Compared) -> NDArray[np.float64]:
        """Return the differences from what the second period would have without a change."""
        return np.asarray(figures.now - figures.before * self.ratio, np.float64)

    def verdicts(
        self, figures: Compared, dispersion: NDArray[np.float64], *, level: float
    ) -> Verdicts:
        """Return the verdicts on n figures. Those of fewer than MIN_TESTED are never changes."""
        differences, scale = self.differences(figures), np.sqrt(figures.squares * self.ratio)
        is_tested = figures.counts >= MIN_TESTED
        is_beyond = is_tested & self._are_beyond(differences, scale, dispersion, level)
        is_known = self.weeks >= MIN_WEEKS
        return Verdicts(is_beyond & is_known, is_beyond & (not is_known))

    def exceed_share(self, figures: Compared, place: int, dispersion: float) -> NDArray[np.float64]:
        """Return by how much pieces exceed their share of a part's change, 0 if chance explains it.

        `figures` has the n pieces that the part is split into by each of some dimensions, and in
        `place` the part itself. Without a change of its own, a piece has the same share of the
        change as of the part. Shape (n,), positive in the direction of the part's change.
        """
        sizes, squares = figures.before + figures.now, figures.squares
        shares = sizes / (sizes[place] or 1)
        differences = self.differences(figures)
        excess = differences - differences[place] * shares
        # A piece and the rest of the part vary independently.
        of_rest = np.maximum(squares[place] - squares, 0)
        scale = np.sqrt(((1 - shares) ** 2 * squares + shares**2 * of_rest) * self.ratio)
        is_tested = (figures.counts >= MIN_TESTED) & (figures.counts < figures.counts[place])
        level = LEVEL_OF_PARTS / max(int(is_tested.sum()), 1)
        certain = is_tested & self._are_beyond(excess, scale, np.array(dispersion), level)
        exceeding: NDArray[np.float64] = np.where(certain, excess * np.sign(differences[place]), 0)
        return exceeding

    def _are_beyond(
        self,
        differences: NDArray[np.float64],
        scale: NDArray[np.float64],
        dispersion: NDArray[np.float64],
        level: float,
    ) -> NDArray[np.bool_]:
        """Return which differences are beyond both quantiles. `scale` is Poisson's deviation."""
        normal = NormalDist().inv_cdf(1 - level / 2)
        student = _student_quantile(level, self.weeks - _TREND) if dispersion.any() else 0.0
        quantile = np.maximum(normal, student * np.sqrt(dispersion))
        beyond: NDArray[Any] = np.abs(differences) > quantile * scale
        return beyond


@lru_cache(maxsize=256)
def _student_quantile(level: float, freedom: int) -> float:
    """Return the bound beyond which Student's t is on either side with a probability of `level`."""
    low, high = 0.0, pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if 1 - _probability_within(angle, freedom) > level:
            low = angle
        else:
            high = angle
    return sqrt(freedom) * tan(low)


def _probability_within(angle: float, freedom: int) -> float:
    """Return the probability that |t| ≤ tan(angle)·√freedom (Abramowitz and Stegun 26.7.3, 4)."""
    is_odd = freedom % 2
    term = cos(angle) if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + is_odd, freedom, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    total *= sin(angle)
    return 2 / pi * (angle + total) if is_odd else total
