"""Fill a store with the traffic of a plan, without a daemon.

    python benchmarks/fill.py --data FOLDER [--views 10000000] [--days 90] [--small 1000]

The folder is then good for `medamad run --data FOLDER`. The last 100,000 views are stored hit by
hit, so that there is an unflushed memtable; those before them as flushed segments. `--small`
websites of a few hits each are put beside the large one.
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from attrs import evolve
from content import HOSTNAME
from plan import DAY_MS, Plan
from traffic import Bulk, batches
from twisted.internet import task
from twisted.internet.defer import Deferred

from medamad.domain.dimensions import Dimension, WidthClass, split_property
from medamad.domain.hits import Event, Hit, Properties, Unload, View
from medamad.domain.websites import Website
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.storage.bulk_loads import add, begin

_BATCH = 2_000
_SMALL_VIEWS = 5
_NUMBERS_PER_VIEW = 4
"""Sequence numbers of a view and its events, at most."""


def small_views(websites: list[Website], until_ms: int) -> Iterator[View]:
    """Return the views of the small websites: a few on the last day of each."""
    random = Random(1)
    times_ms = sorted(
        random.randrange(until_ms - DAY_MS // 2, until_ms)
        for _ in range(len(websites) * _SMALL_VIEWS)
    )
    for number, time_ms in enumerate(times_ms):
        website = websites[number % len(websites)]
        yield View(
            website=website.number,
            time_ms=time_ms,
            beacon=f"small-{number:x}",
            first_today=True,
            first_of_page=True,
            path=random.choice(("/", "/about", "/contact")),
            browser="Firefox",
            os="Linux",
            device="Desktop",
            country="DE",
            locale="de-DE",
            host=website.hostname,
        )


def hits_of(bulk: Bulk, website: int, series: int) -> list[Hit]:
    """Return the loads, unloads and custom events of a batch, in order of time.

    `series` makes the beacons of different batches distinct.
    """
    beacons = [f"{series:x}-{number:x}" for number in range(len(bulk))]
    properties: dict[int, Properties] = {}
    customs: list[Hit] = []
    for view, time_ms, carried in _events(bulk):
        if view >= 0 and time_ms == bulk.time_ms[view] and view not in properties:
            properties[view] = carried
        else:
            beacon = beacons[view] if view >= 0 else ""
            customs.append(
                Event(website=website, time_ms=time_ms, properties=carried, beacon=beacon)
            )
    texts = [
        [bulk.texts[dimension][code] for code in bulk.codes[dimension].tolist()]
        for dimension in bulk.codes
    ]
    names = [dimension.attribute for dimension in bulk.codes]
    numbers = (
        bulk.time_ms,
        bulk.first_today,
        bulk.first_of_page,
        bulk.width_class,
        bulk.duration_ms,
    )
    hits: list[Hit] = []
    columns = (column.tolist() for column in numbers)
    for place, (numbers_of, texts_of) in enumerate(
        zip(zip(*columns, strict=True), zip(*texts, strict=True), strict=True)
    ):
        time_ms, first_today, first_of_page, width_class, duration_ms = numbers_of
        beacon = beacons[place]
        hits.append(
            View(
                website=website,
                time_ms=time_ms,
                beacon=beacon,
                first_today=first_today,
                first_of_page=first_of_page,
                width_class=WidthClass(width_class),
                properties=properties.get(place, ()),
                **dict(zip(names, texts_of, strict=True)),
            )
        )
        if duration_ms:
            left_ms = time_ms + duration_ms
            hits.append(Unload(time_ms=left_ms, beacon=beacon, duration_ms=duration_ms))
    return sorted([*hits, *customs], key=lambda hit: hit.time_ms)


def _events(bulk: Bulk) -> Iterator[tuple[int, int, Properties]]:
    """Return the view, the time and the properties of each event, in the batch's order."""
    pairs = [split_property(text) for text in bulk.texts[Dimension.PROPERTY]]
    begins = np.flatnonzero(np.diff(bulk.event, prepend=-1))
    ends = [*begins[1:].tolist(), len(bulk.event)]
    codes = bulk.property.tolist()
    for start, end in zip(begins.tolist(), ends, strict=True):
        carried = tuple(pairs[code] for code in codes[start:end])
        yield int(bulk.event_view[start]), int(bulk.event_time_ms[start]), carried


async def fill(store: Store, plan: Plan, small: int) -> None:
    """Register the websites and store their traffic."""
    began = plan.since_ms // 1000
    website = await store.add_website(HOSTNAME, began)
    loaded = await begin(store, website, _NUMBERS_PER_VIEW * plan.views)
    first, stored, is_loading = loaded.spans[0].at, 0, True
    for series, bulk in enumerate(batches(plan)):
        if stored < plan.before_memtable:
            first = await add(store, loaded, bulk, first)
        else:
            if is_loading:
                await store.imports.finish(loaded)
                is_loading = False
            await _append(store, hits_of(bulk, website.number, series))
        stored += len(bulk)
    if is_loading:
        await store.imports.finish(loaded)
    others = [await store.add_website(f"small-{n}.example", began) for n in range(small)]
    if others:
        await _append(store, list(small_views(others, plan.until_ms)))


async def _append(store: Store, hits: list[Hit] | list[View]) -> None:
    for start in range(0, len(hits), _BATCH):
        await store.append(hits[start : start + _BATCH])


async def fill_folder(reactor: Any, folder: Path, plan: Plan, small: int) -> None:
    """Open the store of a folder, fill it and close it."""
    store = start_store(folder, StoreSettings(), reactor)
    try:
        await fill(store, plan, small)
    finally:
        await store.close()


def add_plan(parser: ArgumentParser) -> None:
    """Add the arguments that make a plan."""
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--paths", type=int, default=5_000)
    parser.add_argument("--steepness", type=float, default=1.0, help="of the paths (Zipf)")
    parser.add_argument("--memtable", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--until", type=int, metavar="MS", help="end of the traffic (Unix ms)")


def plan_of(arguments: Namespace, views: int) -> Plan:
    """Return a plan with `views` views, until now unless the arguments say otherwise."""
    plan = Plan(
        until_ms=arguments.until or int(time.time()) // 60 * 60_000,
        views=views,
        days=arguments.days,
        memtable=arguments.memtable,
        paths=arguments.paths,
        steepness=arguments.steepness,
        seed=arguments.seed,
    )
    return evolve(plan, memtable=min(plan.memtable, views))


def main() -> None:
    """Fill."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--small", type=int, default=0)
    add_plan(parser)
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    plan = plan_of(arguments, arguments.views)

    def run(reactor: Any) -> Deferred[None]:
        return Deferred.fromCoroutine(fill_folder(reactor, arguments.data, plan, arguments.small))

    task.react(run)


if __name__ == "__main__":
    main()
