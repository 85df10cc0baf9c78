"""What may happen to a daemon, and what a naive reader of the contract expects of it then.

Each step is done to the daemon through HTTP, and recorded in plain lists. What the texts of a hit
become when stored is given with them; modules with tests of their own answer for that.
"""

from collections import defaultdict
from typing import Any, Final

from attrs import define, field, frozen
from hypothesis import strategies as st

from medamad.storage.compaction.planner import Sizes

Entry = dict[str, Any]

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
EARLY_MS: Final = 60_000
TIMEOUT_MS: Final = 30 * 60_000
ALONE_MS: Final = 5 * 60_000
"""How long after its last activity a view from elsewhere continues a visit."""

PAGES: Final = {
    "/": {"path": "/"},
    "/a": {"path": "/a"},
    "/a/?utm_source=news&UTM_Medium=mail&utm_campaign=x#top": {
        "path": "/a",
        "utm_source": "news",
        "utm_medium": "mail",
        "utm_campaign": "x",
    },
    "/A": {"path": "/A"},
    "/stra%C3%9Fe?utm_term=x&utm_content=y": {
        "path": "/straße",
        "utm_term": "x",
        "utm_content": "y",
    },
    "/with,comma": {"path": "/with,comma"},
}
REFERRERS: Final = {
    "": "",
    "https://www.google.com/search?q=x": "google.com/search",
    "https://other.example/a/": "other.example/a",
    "https://t.co": "t.co",
}
AGENTS: Final = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0": {
        "browser": "Firefox",
        "os": "Linux",
        "device": "Desktop",
    },
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/126.0.0.0 Mobile Safari/537.36": {
        "browser": "Chrome",
        "os": "Android",
        "device": "Mobile",
    },
    "something of our own": {"browser": "Unknown", "os": "Unknown", "device": "Unknown"},
}
ZONES: Final = {"Europe/Berlin": "DE", "Europe/London": "GB", "Mars/Olympus": ""}
LANGUAGES: Final = {"en-GB,en;q=0.5": "en-GB", "de-DE": "de-DE", "en": "en", "*": ""}
PROPERTIES: Final = (
    ({"plan": "free"}, {"plan": "free"}),
    ({"plan": "pro", "logged_in": True}, {"plan": "pro", "logged_in": "true"}),
    ({"Plan": "", "n": 3, "share": 1.5}, {"Plan": "", "n": "3", "share": "1.5"}),
)
NAMES: Final = (("one.example", "uno.example"), ("two.example", "dos.example"))
"""Two websites; each goes by one name or the other."""


@frozen
class Load:
    site: int
    beacon: str
    page: str
    referrer: str
    agent: str
    zone: str
    language: str
    properties: int | None
    p: bool
    q: bool
    www: bool
    follows: bool
    """Whether it comes from the page that was seen last, if its visit goes on."""


@frozen
class Unload:
    beacon: str
    ms: int


@frozen
class Custom:
    site: int
    beacon: str | None
    properties: int


@frozen
class Rename:
    site: int


@frozen
class Delete:
    site: int


@frozen
class Restart:
    pass


@frozen
class Wait:
    ms: int

    def end_ms(self, now_ms: int) -> int:
        return now_ms + self.ms


@frozen
class WaitForNight:
    """Time goes by until a few minutes before midnight."""

    def end_ms(self, now_ms: int) -> int:
        return now_ms + (-5 * EARLY_MS - now_ms) % DAY_MS


@frozen
class Tidy:
    """What the daemon does each minute. `is_awaited` says whether anything happens meanwhile."""

    is_awaited: bool


@frozen
class Retain:
    """From now on views are kept for so many days, 0 for forever; then rollups remain."""

    raw_days: int


@frozen
class Check:
    """All figures are asked for, and compared."""


Step = (
    Load | Unload | Custom | Rename | Delete | Restart | Wait | WaitForNight | Tidy | Retain | Check
)

_sites = st.integers(0, 1)
_beacons = st.sampled_from([f"b{number}" for number in range(20)])
_loads = st.builds(
    Load,
    site=_sites,
    beacon=_beacons,
    page=st.sampled_from(list(PAGES)),
    referrer=st.sampled_from(list(REFERRERS)),
    # Mostly of the same browser, so that visits go on.
    agent=st.sampled_from([*AGENTS, *[next(iter(AGENTS))] * 6]),
    zone=st.sampled_from(list(ZONES)),
    language=st.sampled_from([*LANGUAGES, *[next(iter(LANGUAGES))] * 12]),
    properties=st.none() | st.integers(0, 2),
    p=st.booleans(),
    q=st.booleans(),
    www=st.booleans(),
    follows=st.booleans(),
)
_unloads = st.builds(
    Unload, beacon=_beacons, ms=st.sampled_from((1, 4999, 5000, 5001, 90_000, 10**12))
)
_customs = st.builds(Custom, site=_sites, beacon=st.none() | _beacons, properties=st.integers(0, 2))
_waits = st.builds(
    Wait,
    ms=st.sampled_from(
        (
            *(1, 999, 30_000, EARLY_MS, EARLY_MS, EARLY_MS + 1),
            *(9 * EARLY_MS, 9 * EARLY_MS, TIMEOUT_MS),
            *(HOUR_MS, 9 * HOUR_MS, DAY_MS, DAY_MS + 1, 26 * HOUR_MS, 50 * HOUR_MS),
        )
    ),
)
_often = {
    _loads: 24,
    _unloads: 20,
    _customs: 9,
    _waits: 12,
    st.builds(WaitForNight): 2,
    st.builds(Rename, site=_sites): 1,
    st.builds(Delete, site=_sites): 1,
    st.builds(Restart): 2,
    st.builds(Tidy, is_awaited=st.booleans()): 10,
    st.builds(Retain, raw_days=st.sampled_from((0, 1, 1, 2))): 2,
    st.builds(Check): 1,
}
_steps = st.sampled_from([kind for kind, times in _often.items() for _ in range(times)])

small_sizes = st.builds(
    Sizes,
    chunk_views=st.integers(1, 6),
    merged_members=st.integers(2, 3),
    counted_from=st.integers(0, 3),
)
stories = st.lists(_steps.flatmap(lambda kind: kind), min_size=80, max_size=160)


def a_load(beacon: str, site: int = 0) -> "Load":
    page, referrer, agent, zone, language = map(
        next, map(iter, (PAGES, REFERRERS, AGENTS, ZONES, LANGUAGES))
    )
    return Load(
        site,
        beacon,
        page,
        referrer,
        agent,
        zone,
        language,
        properties=0,
        p=True,
        q=True,
        www=False,
        follows=True,
    )


def _loads_of(first: int, last: int) -> list["Step"]:
    return [a_load(f"b{number}") for number in range(first, last + 1)]


_night: list["Step"] = [Wait(26 * HOUR_MS), Tidy(is_awaited=True), Check()]
all_of_it: Final[list["Step"]] = [
    Custom(site=0, beacon="b9", properties=1),
    *_loads_of(0, 4),
    Tidy(is_awaited=True),
    *_loads_of(9, 9),  # its event is in a block by now,
    Unload("b0", ms=700),  # and so is this view
    Check(),
    *_night,  # which is folded into the block, and the blocks become a group
    a_load("b0", site=1),
    *_night,
    a_load("b1", site=1),
    *_night,  # the two become one block
    WaitForNight(),
    a_load("b2"),
    Wait(9 * EARLY_MS),
    a_load("b3"),  # of the same visit, after midnight
    a_load("b4", site=1),
    Retain(raw_days=1),
    Wait(50 * HOUR_MS),
    Tidy(is_awaited=True),
    Check(),  # the visit is gone as a whole, but not what began after midnight
]
"""A story, for blocks of two views, in which everything is done in the background."""


@define(eq=False)
class Visit:
    """A visit that may go on. `number_today` and `page` are those of its last view."""

    number: int
    last_ms: int
    number_today: int
    page: str


@define(eq=False)
class Visitor:
    """A browser, which counts its views of the day, and its visits in the order of last views."""

    day: int = 0
    views_today: int = 0
    visits: list[Visit] = field(factory=list)

    def next_number(self, now_ms: int) -> int:
        """Return which view of the day the next one is."""
        return self.views_today + 1 if self.day == now_ms // DAY_MS else 1

    def followed(self, now_ms: int) -> Visit | None:
        """Return the visit that a view continues that comes from its last page.

        Where two visits go on, and the view could be of either, nobody follows a link.
        """
        live = self._before(now_ms, TIMEOUT_MS)
        return live[0] if len(live) == 1 else None

    def continued(self, load: Load, now_ms: int) -> Visit | None:
        """Return the visit that a view continues."""
        visit = self.followed(now_ms)
        if visit is not None and load.follows:
            return visit
        if self.next_number(now_ms) == 1:
            return None
        close = self._before(now_ms, ALONE_MS)
        return min(close, key=lambda visit: (now_ms - visit.last_ms, visit.number), default=None)

    def _before(self, now_ms: int, most_ms: int) -> list[Visit]:
        """Return the visits active so recently that may have had the view before the next."""
        number = self.next_number(now_ms)
        return [
            visit
            for visit in self.visits
            if now_ms - visit.last_ms <= most_ms and number in (1, visit.number_today + 1)
        ]


@define(eq=False)
class Site:
    """A website as expected. A deleted one is replaced by another of the same name."""

    hostname: str
    views: list[Entry] = field(factory=list)
    events: list[Entry] = field(factory=list)
    visitors: dict[tuple[str, str], Visitor] = field(factory=lambda: defaultdict(Visitor))


@define(eq=False)
class Expected:
    """What the contract demands after the steps recorded so far."""

    sites: list[Site] = field(factory=lambda: [Site(names[0]) for names in NAMES])
    _known: dict[str, tuple[Site, Entry]] = field(factory=dict)
    _early: list[tuple[str, int, Unload | tuple[Site, Entry]]] = field(factory=list)
    """What came before its load: the beacon, when, and what."""
    _ids: int = 0

    def origin(self, load: Load, now_ms: int) -> tuple[str, int]:
        """Return the referrer of a load, and which view of the browser's day it is."""
        site = self.sites[load.site]
        visitor = site.visitors[load.agent, load.language]
        visit = visitor.followed(now_ms) if load.follows else None
        url = load.referrer if visit is None else f"https://{site.hostname}{visit.page}"
        return url, visitor.next_number(now_ms)

    def load(self, load: Load, now_ms: int) -> None:
        if self._view(load.beacon, now_ms) is not None:
            return
        self._ids += 1
        site = self.sites[load.site]
        visitor = site.visitors[load.agent, load.language]
        is_followed = load.follows and visitor.followed(now_ms) is not None
        view = {
            "id": self._ids,
            "visit": self._visit(visitor, load, now_ms),
            "time_ms": now_ms,
            "p": load.p,
            "q": load.q,
            "duration_ms": 0,
            "referrer": "" if is_followed else REFERRERS[load.referrer],
            "country": ZONES[load.zone],
            "locale": LANGUAGES[load.language],
            **PAGES[load.page],
            **AGENTS[load.agent],
        }
        site.views.append(view)
        self._known[load.beacon] = (site, view)
        if load.properties is not None:
            self._happens(site, view["id"], load.properties, now_ms)["of_load"] = True
        for beacon, came_ms, early in self._early:
            if beacon != load.beacon or now_ms - came_ms > EARLY_MS:
                continue
            if isinstance(early, Unload):
                view["duration_ms"] = max(view["duration_ms"], min(early.ms, DAY_MS))
            elif early[0] is site:
                early[1]["view"] = view["id"]
        self._early = [early for early in self._early if early[0] != load.beacon]

    def unload(self, unload: Unload, now_ms: int) -> None:
        known = self._view(unload.beacon, now_ms)
        if known is None:
            self._early.append((unload.beacon, now_ms, unload))
        else:
            self._keep_alive(*known, now_ms)
            known[1]["duration_ms"] = max(known[1]["duration_ms"], min(unload.ms, DAY_MS))

    def custom(self, custom: Custom, now_ms: int) -> None:
        site = self.sites[custom.site]
        known = None if custom.beacon is None else self._view(custom.beacon, now_ms)
        of_site = known is not None and known[0] is site
        if of_site:
            self._keep_alive(*known, now_ms)
        event = self._happens(site, known[1]["id"] if of_site else None, custom.properties, now_ms)
        if custom.beacon is not None and known is None:
            self._early.append((custom.beacon, now_ms, (site, event)))

    def rename(self, step: Rename) -> tuple[str, str]:
        site = self.sites[step.site]
        old, names = site.hostname, NAMES[step.site]
        site.hostname = names[1 - names.index(old)]
        return old, site.hostname

    def delete(self, step: Delete) -> str:
        hostname = self.sites[step.site].hostname
        self.sites[step.site] = Site(hostname)
        return hostname

    def restart(self) -> None:
        """Drop what is only in memory: what waits for its load, and the visits that go on."""
        self._early.clear()
        for site in self.sites:
            for visitor in site.visitors.values():
                visitor.visits.clear()

    def _visit(self, visitor: Visitor, load: Load, now_ms: int) -> int:
        """Return the visit of a new view."""
        visit = visitor.continued(load, now_ms)
        visitor.views_today, visitor.day = visitor.next_number(now_ms), now_ms // DAY_MS
        if visit is None:
            visit = Visit(self._ids, now_ms, visitor.views_today, load.page)
        else:
            visitor.visits.remove(visit)
            visit.last_ms, visit.number_today = now_ms, visitor.views_today
            visit.page = load.page
        visitor.visits.append(visit)
        return visit.number

    @staticmethod
    def _keep_alive(site: Site, view: Entry, now_ms: int) -> None:
        """Let the visit of a view go on, unless it has ended."""
        for visitor in site.visitors.values():
            for visit in visitor.visits:
                if visit.number == view["visit"] and now_ms - visit.last_ms <= TIMEOUT_MS:
                    visit.last_ms = now_ms

    def _happens(self, site: Site, view: int | None, number: int, now_ms: int) -> Entry:
        self._ids += 1
        properties = PROPERTIES[number][1]
        event = {"time_ms": now_ms, "view": view, "properties": properties, "number": self._ids}
        site.events.append(event)
        return event

    def _view(self, beacon: str, now_ms: int) -> tuple[Site, Entry] | None:
        known = self._known.get(beacon)
        if known is None or known[0] not in self.sites:
            return None
        return known if now_ms - known[1]["time_ms"] <= DAY_MS else None
