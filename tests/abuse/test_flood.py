"""Floods of hits with new values: what they can make grow is bounded."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_twisted
from support.abuse.new_value_flood import (
    BOUNDS,
    FEW,
    OTHERS,
    PER_MINUTE,
    Kept,
    Place,
    many_networks,
    one_network,
)
from twisted.internet.defer import Deferred

from medamad.domain.dimensions import Dimension
from medamad.storage.wal.memtable import CHUNK_VIEWS

KNOWN = 5
"""How many views and custom events each website has before."""
LONGEST_S = 3_600
LONG = (pytest.mark.slow, pytest.mark.timeout(LONGEST_S))
FLOODS = 3
"""Of a hit that is kept, each flood keeps something; the rest of the process grows now and then."""
OBJECTS_A_HIT = 1 / 4
"""How many objects there may be more in memory; of a hit that is kept it would be one at least."""
MEMORY_A_HIT = 24
"""How many bytes there may be more in memory: a number takes 28, its place in a list 8."""
ANY_BYTES = 8 << 20
"""What a process takes at one moment and not at another."""
DISK_A_HIT = 600
"""How many bytes there may be more in the file: were the names of a hit kept, 2,500."""
BYTES_A_HIT = 1_500
"""What a hit may take in the file while it waits to be flushed, beacon, record and all."""
FEW_BYTES = 64 * 1_024
"""What the pages of a few commits take."""
BYTES_A_LEAVING = 120
MOST_LEAVINGS = 4 * CHUNK_VIEWS
"""From this number on, views are flushed."""


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    built = Place(tmp_path, getattr(request, "param", Kept()))
    pytest_twisted.blockon(Deferred.fromCoroutine(built.open()))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


async def known_before(place: Place) -> None:
    """Send the hits whose statistics must not change."""
    for host in ("attacked.example", "other.example"):
        for number in range(KNOWN):
            assert await place.send(host, number, many_networks(number), "known")


def check_names(place: Place) -> None:
    """Check that what is stored of the flood is bounded."""
    for dimension, bound in {**BOUNDS, Dimension.BROWSER_VERSION: OTHERS}.items():
        most = bound
        if dimension == Dimension.PROPERTY:
            most *= BOUNDS[Dimension.PROPERTY_NAME]
        # (other) comes on top of the limit, for properties once per name.
        most += 2 + BOUNDS[Dimension.PROPERTY_NAME] * (dimension == Dimension.PROPERTY)
        assert len(place.names(place.attacked, dimension)) <= most, dimension


def check_counts(place: Place, taken: int, known: int) -> None:
    """Check that each hit of the flood is counted, beyond the limits as (other)."""
    views = place.views()
    assert sum(views.values()) == place.customs() == taken + known
    for counts, name, bound in (
        (views, "/known", BOUNDS[Dimension.PATH]),
        (
            place.visitors("referrer_urls", "referrer"),
            "rknown.example/known",
            BOUNDS[Dimension.REFERRER],
        ),
        (place.visitors("campaigns", "campaign"), "known", BOUNDS[Dimension.UTM_CAMPAIGN]),
    ):
        assert counts[name] == known
        assert counts["(other)"] == taken - (bound - 1)


@pytest.mark.parametrize("count", [4_000, pytest.param(1_000_000, marks=LONG)])
@pytest_twisted.ensureDeferred
async def test_few_hits_are_accepted_from_one_network(place: Place, count: int) -> None:
    await known_before(place)
    others = place.figures(place.other)
    disk = place.used_bytes()
    await place.flood(range(count), one_network)
    assert place.used_bytes() - disk <= 2 * BYTES_A_HIT * (PER_MINUTE + 2_000)
    assert sum(place.views().values()) + place.customs() == PER_MINUTE + 2 * KNOWN
    assert place.figures(place.other) == others
    # Others are accepted as before.
    assert await place.send("attacked.example", 1, bytes((198, 51, 100, 1)), "known")
    place.now += 60
    assert await place.send("attacked.example", 1, one_network(1), "known")


@pytest.mark.parametrize("count", [4_000, pytest.param(1_000_000, marks=LONG)])
@pytest_twisted.ensureDeferred
async def test_repeated_unloads_need_little_room(place: Place, count: int) -> None:
    await known_before(place)
    await place.leave("known-0", [1, 2])
    others = place.figures(place.other)
    before = place.store.usage().used
    await place.leave("known-0", [7] * count)
    assert place.store.usage().used - before <= FEW_BYTES
    await place.leave("known-0", range(8, 8 + count))
    kept_bytes = min(count, MOST_LEAVINGS) * BYTES_A_LEAVING
    assert place.store.usage().used - before <= kept_bytes + FEW_BYTES
    seen = place.figures(place.attacked)
    await place.open_again()
    assert place.figures(place.attacked) == seen
    assert place.figures(place.other) == others
    assert place.views() == {"/known": KNOWN}


@pytest.mark.parametrize(
    ("place", "first", "count"),
    [(FEW, 5_000, 4_000), pytest.param(Kept(), 400_000, 200_000, marks=LONG)],
    indirect=["place"],
)
@pytest_twisted.ensureDeferred
async def test_new_values_from_many_networks_need_bounded_memory_and_disk(
    place: Place, first: int, count: int
) -> None:
    await known_before(place)
    others = place.figures(place.other)
    # What is in memory for a while is there by then: the tail, the latest beacons, networks
    # and browsers.
    assert await place.flood(range(first), many_networks) == first
    taken = first
    measured = [await place.used()]
    for _ in range(FLOODS):
        assert await place.flood(range(taken, taken + count), many_networks) == count
        taken += count
        measured.append(await place.used())
    grown = list(pairwise(measured))
    assert min(after.objects - before.objects for before, after in grown) <= OBJECTS_A_HIT * count
    assert (
        min(after.memory_bytes - before.memory_bytes for before, after in grown)
        <= MEMORY_A_HIT * count + ANY_BYTES
    )
    assert measured[-1].disk_bytes - measured[0].disk_bytes <= DISK_A_HIT * FLOODS * count
    assert len(place.pipeline.rate_limiter) <= place.kept.networks
    for _ in range(2):
        check_names(place)
        check_counts(place, taken, KNOWN)
        assert place.figures(place.other) == others
        await place.open_again()
    # What was known before is still counted as what it is.
    assert await place.send("attacked.example", taken, many_networks(0), "known")
    check_counts(place, taken, KNOWN + 1)
