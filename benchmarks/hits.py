"""Views as the hits that a tracker sends for them, to be stored one by one."""

from collections.abc import Iterator

import numpy as np
from bulk import Bulk

from medamad.domain.dimensions import Dimension, WidthClass, split_property
from medamad.domain.hits import Event, Hit, Properties, Unload, View


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
    for begin, end in zip(begins.tolist(), ends, strict=True):
        carried = tuple(pairs[code] for code in codes[begin:end])
        yield int(bulk.event_view[begin]), int(bulk.event_time_ms[begin]), carried
