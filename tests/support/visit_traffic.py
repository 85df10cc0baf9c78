"""Traffic of which it is known who made it: views and unloads, and the visit of each.

The mix, unless a test chooses other shares:

- a person comes on every other day, between 6:00 and 24:00 (one in 25 shortly before midnight); one
  in ten comes a second time on that day, from 40 minutes after the first at the earliest;
- every other visit ends after one page; on average there are more than two. A page is one of 40,
  the first of which is read by every fourth, and is read for 35 s (median, log-normal);
- 2 % of the pauses are around the limit of 30 minutes: 20 to 40, in every other one with the page
  hidden before, after 5 seconds or 20 minutes;
- 10 % of the steps open two to four pages in tabs at the same time, which are read on in any order;
- 94 % of the later views come from the page before, 5 % from the one before that, and 1 % from
  elsewhere; 0.5 % of the people send no referrer at all;
- 0.3 % of the loads are lost, 0.3 % arrive up to 50 s late, 1 % are repeated, and 0.3 % are sent
  before the response to the ping, without a number;
- of the keys that several people share, half have windows of one width, the others of four widths;
- the table of live visits is forgotten as often as `restarts` says.

A visit is what one person did with no gap longer than 30 minutes, by the hits that were sent.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from random import Random
from typing import Literal

from attrs import define, evolve, field, frozen
from msgspec.structs import replace

from medamad.domain.hits import Unload, View
from medamad.storage.wal.visits import LiveVisits

START_MS = 1_789_948_800_000
"""A midnight, UTC."""
DAY_MS = 86_400_000
MINUTE_MS = 60_000
TIMEOUT_MS = 30 * MINUTE_MS
_WIDTHS = (1280, 1440, 1536, 1920)
_PAGES = [f"/page-{number}" for number in range(40)]
_WEIGHTS = [1 / (number + 1) for number in range(40)]

Source = Literal["tracker", "uncounted", "medama", "pixel", "server"]


@frozen(kw_only=True)
class Mix:
    """What traffic consists of; see the module."""

    people: int = 1
    """How many people share a key."""
    keys: int = 100
    days: int = 2
    source: Source = "tracker"
    """What counts the views: our tracker, also where it counts no visitors, Medama's, the pixel, or
    a server that names visitors."""
    lost: float = 0.003
    late: float = 0.003
    repeated: float = 0.01
    unnumbered: float = 0.003
    present: float = 0.5
    elsewhere: float = 0.01
    private: float = 0.005
    """People who send no referrer."""
    at_midnight: float = 0.04
    """Those who come shortly before it."""
    pauses: float = 0.02
    """Pauses around the limit."""
    restarts: int = 0


@frozen
class Arrival:
    """A hit that arrives, and the true visit that it belongs to; a repeated load has the same."""

    hit: View | Unload
    visit: int


@define
class _Step:
    """One load or unload of a person."""

    time_ms: int
    beacon: str
    path: str = ""
    from_page: str | None = None
    is_load: bool = True


@define
class _Person:
    """Plays what one person does on one day after the other."""

    random: Random
    key: int
    identity: bytes
    width_px: int
    sends_referrer: bool
    elsewhere: float
    at_midnight: float
    pauses: float
    beacons: Iterator[str]
    steps: list[_Step] = field(factory=list)

    def live_through(self, day: int) -> None:
        """Add the sessions of a day."""
        random = self.random
        starts = sorted(
            random.uniform(23.8, 24)
            if random.random() < self.at_midnight
            else random.uniform(6, 24)
            for _ in range(random.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, 2)))
        )
        for hour in starts:
            start_ms = START_MS + day * DAY_MS + round(hour * 60 * MINUTE_MS)
            last_ms = self.steps[-1].time_ms if self.steps else 0
            self._visit(max(start_ms, last_ms + random.randint(40, 80) * MINUTE_MS))

    def _visit(self, now_ms: int) -> None:
        random = self.random
        tabs = [self._load(now_ms, None)]
        while random.random() < 0.5:
            opened = random.choice(tabs[-2:]) if len(tabs) > 1 else tabs[-1]
            now_ms = self._pause(now_ms, opened)
            chance = random.random()
            source = None if chance < self.elsewhere else opened.path
            if self.elsewhere <= chance < self.elsewhere + 0.05 and opened.from_page is not None:
                source = opened.from_page
            if random.random() < 0.1:
                for _ in range(random.randint(2, 4)):
                    tabs.append(self._load(now_ms, source))
                    now_ms += random.randint(500, 8_000)
            else:
                tabs.append(self._load(now_ms, source))
        self._unload(now_ms + self._reading_ms(), tabs[-1])

    def _reading_ms(self) -> int:
        return min(round(self.random.lognormvariate(10.46, 1.1)), 15 * MINUTE_MS) + 400

    def _pause(self, now_ms: int, page: _Step) -> int:
        """Return when a page has been read; it is left, or hidden in between."""
        random = self.random
        if random.random() < self.pauses:
            if random.random() < 0.5:
                now_ms += random.choice((5_000, 20 * MINUTE_MS))
                self._unload(now_ms, page)
            now_ms += random.randint(20 * MINUTE_MS, 40 * MINUTE_MS)
        else:
            now_ms += self._reading_ms()
        self._unload(now_ms, page)
        return now_ms + 50

    def _load(self, time_ms: int, from_page: str | None) -> _Step:
        path = self.random.choices(_PAGES, _WEIGHTS)[0]
        if not self.sends_referrer:
            from_page = None
        self.steps.append(_Step(time_ms, next(self.beacons), path, from_page))
        return self.steps[-1]

    def _unload(self, time_ms: int, page: _Step) -> None:
        self.steps.append(_Step(time_ms, page.beacon, is_load=False))


def arrivals(mix: Mix, seed: int) -> list[Arrival]:
    """Return the hits of a mix in the order in which they arrive."""
    random = Random(seed)  # noqa: S311 - it is to be reproducible
    beacons, visits = (f"b{number}" for number in count()), count(1)
    found: list[Arrival] = []
    for key in range(mix.keys):
        width_px = random.choice(_WIDTHS) if key % 2 else 0
        for person in range(mix.people):
            name = f"{key}-{person}" if mix.source == "server" else str(key)
            someone = _Person(
                random,
                key,
                name.encode(),
                width_px or random.choice(_WIDTHS),
                random.random() >= mix.private,
                mix.elsewhere,
                mix.at_midnight,
                mix.pauses,
                beacons,
            )
            for day in range(mix.days):
                if random.random() < mix.present:
                    someone.live_through(day)
            found += _sent(someone, mix, visits)
    if mix.source == "server":
        found.sort(key=lambda each: each.hit.time_ms)
        return [_replayed(each, place) for place, each in enumerate(found)]
    return sorted(found, key=lambda each: each.hit.time_ms)


def _sent(person: _Person, mix: Mix, visits: Iterator[int]) -> Iterator[Arrival]:
    """Return what a person's browser sends, with the visit of each hit."""
    random, number_today, day, visit, last_ms = person.random, 0, 0, 0, 0
    lost: set[str] = set()
    for step in sorted(person.steps, key=lambda step: step.time_ms):
        if step.is_load:
            today = step.time_ms // DAY_MS
            number_today, day = number_today + 1 if today == day else 1, today
        if step.is_load and random.random() < mix.lost:
            lost.add(step.beacon)
        if step.beacon in lost:
            continue
        if step.time_ms - last_ms > TIMEOUT_MS:
            if not step.is_load:
                continue
            visit = next(visits)
        last_ms = step.time_ms
        if not step.is_load:
            yield Arrival(
                Unload(time_ms=step.time_ms, beacon=step.beacon, duration_ms=1_000), visit
            )
            continue
        view = _view(person, mix, step, number_today)
        yield Arrival(view, visit)
        if random.random() < mix.repeated:
            again_ms = view.time_ms + random.randint(1_000, 5_000)
            yield Arrival(evolve(view, time_ms=again_ms), visit)


def _view(person: _Person, mix: Mix, step: _Step, number_today: int) -> View:
    random = person.random
    late_ms = random.randint(1_000, 50_000) if random.random() < mix.late else 0
    is_early = random.random() < mix.unnumbered and mix.source == "tracker"
    has_number = mix.source in {"tracker", "pixel"} and not is_early
    return View(
        website=1,
        time_ms=step.time_ms + random.randint(20, 40) + late_ms,
        beacon=step.beacon,
        first_today=_says_first(mix, step, number_today, is_early=is_early),
        first_of_page=False,
        path=step.path,
        identity=person.identity,
        number_today=number_today if has_number else 0,
        width_px=person.width_px if mix.source in {"tracker", "uncounted"} else 0,
        from_page=None if mix.source == "pixel" else step.from_page,
        referrer="search.example/" if _is_referred(person, step) else "",
    )


def _is_referred(person: _Person, step: _Step) -> bool:
    """Return whether a view comes from another website that it names: every other one does."""
    return step.from_page is None and person.sends_referrer and int(step.beacon[1:]) % 2 == 0


def _says_first(mix: Mix, step: _Step, number_today: int, *, is_early: bool) -> bool:
    """Return whether a view is said to be its visitor's first of the day."""
    if mix.source == "uncounted":
        return False
    return step.from_page is None if is_early else number_today == 1


def _replayed(arrival: Arrival, place: int) -> Arrival:
    """Return a hit as a server sends it from its log, a day in about a minute."""
    hit = arrival.hit
    sent_ms = START_MS + 10 * DAY_MS + place
    if isinstance(hit, Unload):
        return Arrival(replace(hit, time_ms=sent_ms), arrival.visit)
    view = evolve(hit, time_ms=sent_ms, happened_ms=hit.time_ms, first_today=False)
    return Arrival(view, arrival.visit)


@frozen
class Exactness:
    """How well visits were found; shares as fractions."""

    visits: int
    """The true number of visits."""
    exact: float
    """The share of true visits whose views are exactly those of one visit that was found."""
    visits_error: float
    bounces_error: float
    entries_error: float
    """The sum over all pages of |entries found - true entries|, divided by the true visits."""


def measure(mix: Mix, seed: int, batch_size: int = 50) -> Exactness:
    """Assign the views of a mix, in batches, and compare with the truth."""
    live, true, found = LiveVisits(), {}, {}
    sent = arrivals(mix, seed)
    restarts = {len(sent) * each // (mix.restarts + 1) for each in range(1, mix.restarts + 1)}
    paths: dict[int, str] = {}
    visit_of: dict[str, int] = {}
    for start in range(0, len(sent), batch_size):
        batch = live.batch()
        for place, arrival in enumerate(sent[start : start + batch_size], start + 1):
            hit = arrival.hit
            if isinstance(hit, Unload):
                batch.keep_alive(visit_of.get(hit.beacon, 0), hit.time_ms, hit.time_ms)
            elif hit.beacon not in visit_of:
                visit_of[hit.beacon] = found[place] = batch.assign(hit, place)
                true[place], paths[place] = arrival.visit, hit.path
        batch.remember()
        if restarts & set(range(start, start + batch_size)):
            live = LiveVisits()
    return _compared(_sets(true), _sets(found), paths)


def _sets(visit_of: dict[int, int]) -> set[frozenset[int]]:
    """Return the views of each visit."""
    views: defaultdict[int, set[int]] = defaultdict(set)
    for view, visit in visit_of.items():
        views[visit].add(view)
    return set(map(frozenset, views.values()))


def _compared(
    true: set[frozenset[int]], found: set[frozenset[int]], paths: dict[int, str]
) -> Exactness:
    def bounces(visits: Iterable[frozenset[int]]) -> int:
        return sum(len(visit) == 1 for visit in visits)

    def entries(visits: Iterable[frozenset[int]]) -> Counter[str]:
        return Counter(paths[min(visit)] for visit in visits)

    expected, actual = entries(true), entries(found)
    errors = sum(abs(actual[path] - expected[path]) for path in expected.keys() | actual.keys())
    return Exactness(
        visits=len(true),
        exact=len(true & found) / len(true),
        visits_error=abs(len(found) - len(true)) / len(true),
        bounces_error=abs(bounces(found) - bounces(true)) / max(bounces(true), 1),
        entries_error=errors / len(true),
    )
