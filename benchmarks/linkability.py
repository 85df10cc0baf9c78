"""How many of a visitor's later views and visits of a day can be linked to an earlier one.

    python benchmarks/linkability.py [--views-per-day N ...] [--days N] [--seed N]

The ground truth is the demonstration's traffic of one website: its generator knows who made which
view. The attacker has the store, goes through the views of a day by time, and attributes each to a
visitor seen before or to a new one:

- A visitor's first view of the day is stored as such, so it belongs to a new visitor. Without that
  column, a view belongs to a new visitor if no other fits.
- Any other view is attributed to a visitor with the same values in every column that stays the same
  all day. If the number of the view is stored, the visitor's last view must have the one before. If
  first views of a page are stored, the page must be new to the visitor, or not, accordingly.
- If several visitors fit, the one who left a page in the two seconds before is taken, by the stored
  time on page; else the one with the most recent view among those who had left their page.
- If none fits, only the columns that stay the same all day count.

With the number of the visit, the attacker knows which views make up each visit, and attributes them
together: by the number of the first and the pages of all, to the fitting visitor with the most
recent view. Without it, a visit is attributed as its first view is.

A view, or visit, is later if the same person was there before on that day. It is linked if the view
that the attacker takes to be the one before it is that person's; for a visit, the one before its
first. Each row of the table repeats the attack with other columns: with the number of the visit
and, in brackets, without. The people of the demonstration are less varied than real
ones (22 browsers with one minor version for each major one, 18 countries), so the real figures of a
website with as many views are higher.
"""

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Final, TypeAlias

from attrs import define, field, frozen

from medamad.demo.sites import SITES
from medamad.demo.traffic import DemoVisit, TrafficPlan, visits_by_day
from medamad.domain.hits import Unload, View
from medamad.domain.zones import DAY_MS

_SITE: Final = SITES[0]
_UNTIL_MS: Final = 1_790_000_000_000 // DAY_MS * DAY_MS
_NEXT_PAGE_MS: Final = 2_000

VISIT: Final = "the number of the visit"
NUMBER: Final = "the number of the view"
FIRST_TODAY: Final = "first views of the day"
FIRST_OF_PAGE: Final = "first views of a page"
TIME_ON_PAGE: Final = "time on page"
EXACT_WIDTH: Final = "the exact width"
EXACT_VERSIONS: Final = "full versions"


@frozen(eq=False)
class SeenView:
    """A stored view, and what is known about it apart from that."""

    visitor: int
    visit: int
    view: View
    left_ms: int
    """When the page was left; 0 if unknown."""
    number: int
    width_px: int
    versions: tuple[str, str]

    @property
    def time_ms(self) -> int:
        """When it happened."""
        return self.view.time_ms


SAME_ALL_DAY: Final[Mapping[str, Callable[[SeenView], object]]] = MappingProxyType(
    {
        "the browser and its version": lambda seen: (seen.view.browser, seen.view.browser_version),
        "the operating system and its version": lambda seen: (seen.view.os, seen.view.os_version),
        "the device": lambda seen: seen.view.device,
        "the country": lambda seen: seen.view.country,
        "the language": lambda seen: seen.view.locale,
        "the host": lambda seen: seen.view.host,
        "the width class": lambda seen: seen.view.width_class,
        EXACT_WIDTH: lambda seen: seen.width_px,
        EXACT_VERSIONS: lambda seen: seen.versions,
    }
)
"""The columns that do not change within a visitor's day."""

_EXACT: Final = frozenset({NUMBER, EXACT_WIDTH, EXACT_VERSIONS})
STORED: Final = frozenset({*SAME_ALL_DAY, FIRST_TODAY, FIRST_OF_PAGE, TIME_ON_PAGE}) - _EXACT
"""All columns that are stored but VISIT."""


@define
class Guess:
    """A visitor as the attacker imagines one."""

    last: SeenView
    views: int = 0
    pages: set[str] = field(factory=set)

    def add(self, views: Sequence[SeenView]) -> None:
        """Attribute views to this visitor."""
        self.last = views[-1]
        self.views += len(views)
        self.pages.update(seen.view.path for seen in views)


@define
class Attacker:
    """Attributes the views of one day, a few at a time, by the columns that he has."""

    columns: frozenset[str]
    guesses: dict[tuple[object, ...], list[Guess]] = field(factory=lambda: defaultdict(list))

    def attribute(self, views: Sequence[SeenView], *, are_visit: bool) -> SeenView | None:
        """Attribute views to one visitor. Return the last view of that visitor before, if any."""
        first = views[0]
        key = tuple(value(first) for name, value in SAME_ALL_DAY.items() if name in self.columns)
        known = self.guesses[key]
        guess = None
        if FIRST_TODAY not in self.columns or not first.view.first_today:
            guess = self._choose(known, views, are_visit=are_visit)
        before = None if guess is None else guess.last
        if guess is None:
            known.append(guess := Guess(first))
        guess.add(views)
        return before

    def _choose(
        self, known: Sequence[Guess], views: Sequence[SeenView], *, are_visit: bool
    ) -> Guess | None:
        first = views[0]
        fitting: Sequence[Guess] = [guess for guess in known if self._fits(guess, views)]
        if FIRST_TODAY in self.columns:
            fitting = fitting or known
        if not are_visit and TIME_ON_PAGE in self.columns:
            waits_ms = {
                index: first.time_ms - guess.last.left_ms for index, guess in enumerate(fitting)
            }
            just_left = [i for i, wait_ms in waits_ms.items() if 0 <= wait_ms <= _NEXT_PAGE_MS]
            if just_left:
                return fitting[min(just_left, key=waits_ms.__getitem__)]
            fitting = [fitting[i] for i, wait_ms in waits_ms.items() if wait_ms >= 0] or fitting
        return max(fitting, key=lambda guess: guess.last.time_ms, default=None)

    def _fits(self, guess: Guess, views: Sequence[SeenView]) -> bool:
        if NUMBER in self.columns and guess.last.number != views[0].number - 1:
            return False
        if FIRST_OF_PAGE not in self.columns:
            return True
        within: set[str] = set()
        for seen in views:
            path = seen.view.path
            if path not in within and seen.view.first_of_page == (path in guess.pages):
                return False
            within.add(path)
        return True


Links: TypeAlias = Mapping[SeenView, SeenView | None]
"""The view that the attacker takes to be the visitor's one before each view, None for no such."""


def linked(days: Iterable[Sequence[SeenView]], columns: frozenset[str]) -> tuple[float, float]:
    """Return the shares of later views, and of later visits, that are linked."""
    later, right = [0, 0], [0, 0]
    for views in days:
        visits = _visits(views)
        groups = visits if VISIT in columns else [[seen] for seen in views]
        links = attribute(groups, columns, are_visits=VISIT in columns)
        begins = [visit[0] for visit in visits]
        for place, some in enumerate((views, begins)):
            people: set[int] = set()
            for seen in some:
                if seen.visitor in people:
                    before = links[seen]
                    later[place] += 1
                    right[place] += before is not None and before.visitor == seen.visitor
                people.add(seen.visitor)
    return right[0] / later[0], right[1] / later[1]


def attribute(
    groups: Iterable[Sequence[SeenView]], columns: frozenset[str], *, are_visits: bool
) -> Links:
    """Return the links of one day's views, each group of which is attributed to one visitor."""
    attacker = Attacker(columns)
    links: dict[SeenView, SeenView | None] = {}
    for group in groups:
        links[group[0]] = attacker.attribute(group, are_visit=are_visits)
        links.update(zip(group[1:], group, strict=False))
    return links


def _visits(views: Iterable[SeenView]) -> list[list[SeenView]]:
    by_number: dict[int, list[SeenView]] = defaultdict(list)
    for seen in views:
        by_number[seen.visit].append(seen)
    return list(by_number.values())


def days_of(views_per_day: int, days: int, seed: int) -> list[list[SeenView]]:
    """Return the views of each day by time."""
    plan = TrafficPlan(until_ms=_UNTIL_MS, days=days, views=views_per_day * days, seed=seed)
    visits: list[DemoVisit] = []
    for _, of_day in visits_by_day(plan, {_SITE.hostname: 1}, [_SITE]):
        visits += of_day
    seen = sorted(_seen(visits), key=attrgetter("time_ms"))
    return [list(views) for _, views in groupby(seen, key=lambda view: view.time_ms // DAY_MS)]


def _seen(visits: Iterable[DemoVisit]) -> Iterator[SeenView]:
    for number, visit in enumerate(visits):
        left_ms = {hit.beacon: hit.time_ms for hit in visit.hits if isinstance(hit, Unload)}
        browser = visit.person.browser
        for view in visit.hits:
            if isinstance(view, View):
                yield SeenView(
                    visitor=visit.visitor,
                    visit=number,
                    view=view,
                    left_ms=left_ms.get(view.beacon, 0),
                    number=view.number_today,
                    width_px=view.width_px,
                    versions=(browser.version, browser.os_version),
                )


def sets() -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the sets of columns that are compared, each with its name."""
    yield "everything that is stored", STORED
    for name in sorted(STORED):
        yield f"without {name}", STORED - {name}
    for name in sorted(_EXACT):
        yield f"as well as {name}", STORED | {name}
    yield "as well as all three of these", STORED | _EXACT


def main() -> None:
    """Print a table: a row for each set of columns."""
    parser = ArgumentParser(description="Print which shares of views and visits can be linked.")
    parser.add_argument("--views-per-day", type=int, nargs="+", default=[500, 5_000, 20_000])
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sizes = arguments.views_per_day
    traffic = [days_of(size, arguments.days, arguments.seed) for size in sizes]
    heads = [f"{what}, {size:,} views a day" for what in ("visits", "views") for size in sizes]
    print(f"| from | {' | '.join(heads)} |")
    print(f"| --- |{' ---: |' * len(heads)}")
    for name, columns in sets():
        known = [linked(days, columns | {VISIT}) for days in traffic]
        guessed = [linked(days, columns) for days in traffic]
        cells = [
            f"{a[place]:.0%} ({b[place]:.0%})"
            for place in (1, 0)
            for a, b in zip(known, guessed, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
