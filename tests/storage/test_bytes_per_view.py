"""How much of the file a view takes until it is flushed: pages in use, with the beacon index."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
import pytest_twisted
from support.storage.hits import NOW_MS, a_view

from medamad.domain.dimensions import WidthClass
from medamad.domain.hits import Hit, Unload, View
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
VIEWS = 1_000
PATHS = [f"/articles/{number}" for number in range(700)]
REFERRERS = ["", *(f"search{number}.example/results" for number in range(200))]
BROWSERS = ["Chrome", "Safari", "Firefox", "Edge", "Opera", "Samsung Internet"]
SYSTEMS = ["Windows", "Android", "iOS", "macOS", "Linux"]
COUNTRIES = [first + second for first in "ABCDEFG" for second in "EIMRS"]


def traffic(beacons: str = "") -> Iterator[View]:
    """Return views with texts as common as those of a website, a tenth from campaigns."""
    rng = Random(1)  # noqa: S311 - the same each time

    def common(texts: Sequence[str]) -> str:
        return texts[min(int(rng.paretovariate(0.7)) - 1, len(texts) - 1)]

    for number in range(VIEWS):
        campaign = {}
        if rng.random() < 0.1:
            names = ("utm_source", "utm_medium", "utm_campaign")
            campaign = {name: f"{name} {rng.randrange(9)}" for name in names}
        yield a_view(
            time_ms=NOW_MS + number * 400,
            beacon=f"{beacons}{rng.getrandbits(64):x}",
            identity=b"%d" % rng.randrange(number + 1),
            first_today=rng.random() < 0.4,
            path=common(PATHS),
            referrer=common(REFERRERS),
            browser=common(BROWSERS),
            browser_version=str(rng.randrange(100, 130)),
            os=common(SYSTEMS),
            device=rng.choice(("Desktop", "Mobile")),
            country=common(COUNTRIES),
            locale=common(("en", "de", "fr-FR", "es", "pt-BR")),
            host="example.com",
            width_class=rng.choice(tuple(WidthClass)),
            **campaign,
        )


async def bytes_per_view(store: Store, hits: Sequence[Hit], at_once: int) -> float:
    """Store hits whose texts are known, and return by how much the pages in use grow, per view."""
    environment = store.environment
    await store.add_website("example.com", 1)
    used = []
    for some, size in ((list(traffic("earlier ")), 100), (hits, at_once)):
        for begin in range(0, len(some), size):
            await store.append(some[begin : begin + size])
        with environment.reading() as txn:
            used.append(environment.used_bytes(txn))
    await store.close()
    return (used[1] - used[0]) / VIEWS


@pytest.mark.parametrize(
    ("at_once", "recent_beacons", "most"),
    [
        (100, 65_536, 60),
        (500, 65_536, 60),
        (1, 65_536, 90),
        # With the beacons of all views in the index on disk.
        (100, 0, 115),
        (1, 0, 145),
    ],
)
@pytest_twisted.ensureDeferred
async def test_unflushed_views_take_few_bytes(
    open_store: OpenStore, at_once: int, recent_beacons: int, most: int
) -> None:
    store = open_store(recent_beacons=recent_beacons)
    assert await bytes_per_view(store, list(traffic()), at_once) < most


@pytest.mark.parametrize(("at_once", "most"), [(100, 85), (1, 135)])
@pytest_twisted.ensureDeferred
async def test_their_unloads_take_few_bytes_more(
    open_store: OpenStore, at_once: int, most: int
) -> None:
    hits: list[Hit] = []
    for place, view in enumerate(traffic()):
        hits.append(view)
        left_ms = view.time_ms + 1_000 * (place % 300)
        hits.append(Unload(time_ms=left_ms, beacon=view.beacon, duration_ms=left_ms % 200_000 + 1))
    hits.sort(key=lambda hit: hit.time_ms)
    assert await bytes_per_view(open_store(), hits, at_once) < most
