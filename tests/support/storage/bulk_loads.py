"""What happened before, made up to be loaded at once, and what is to be there then."""

from itertools import chain

import numpy as np
from support.storage.contents import Row, in_order
from support.storage.hits import DAY_MS, NOW_MS

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, property_text, split_property
from medamad.storage.import_content import Bulk, contents_of
from medamad.storage.imports import Imported

LEFT_OUT = (Dimension.UTM_TERM, Dimension.UTM_CONTENT, Dimension.BROWSER_VERSION)
VALUES = ("", "one", "two", "straße", "four")


def made(seed: int, views_made: int, events: int, first_ms: int = NOW_MS - 9 * DAY_MS) -> Bulk:
    """Make up a bulk: one path for each view, and events of some of them."""
    rng = np.random.default_rng(seed)
    texts: dict[Dimension, list[str]] = {
        dimension: list(VALUES) for dimension in VIEW_DIMENSIONS if dimension not in LEFT_OUT
    }
    texts[Dimension.PATH] = [f"/bulk-{seed}/{number}" for number in range(views_made)]
    texts[Dimension.PROPERTY] = [
        property_text(name, value) for name in ("plan", "n") for value in ("a", "b", "c")
    ]
    codes = {
        dimension: rng.integers(0, len(VALUES), views_made)
        for dimension in texts
        if dimension not in (Dimension.PATH, Dimension.PROPERTY)
    }
    codes[Dimension.PATH] = rng.permutation(views_made)
    rows = np.sort(np.concatenate([np.arange(events), rng.integers(0, max(events, 1), events)]))
    rows = rows[:events] if not events else rows
    event_view = rng.integers(-1, views_made, max(events, 1))
    time_ms = np.sort(rng.integers(first_ms, first_ms + DAY_MS, views_made))
    event_ms = first_ms + rng.integers(0, DAY_MS, max(events, 1))
    return Bulk(
        time_ms=time_ms,
        first_today=rng.random(views_made) < 0.5,
        first_of_page=rng.random(views_made) < 0.5,
        duration_ms=rng.choice(np.array([0, 1, 5_000, 5_001, 86_400_000], np.uint32), views_made),
        number_today=rng.integers(0, 1 << 16, views_made).astype(np.uint16),
        width_px=rng.integers(0, 1 << 16, views_made).astype(np.uint16),
        codes=codes,
        texts=texts,
        event=rows * 3 + 5,
        event_time_ms=event_ms[rows],
        event_view=event_view[rows],
        # A property comes once in an event.
        property=np.arange(len(rows)) % 6,
    )


def imported(bulk: Bulk, first: int) -> Imported:
    """Return what a bulk is as a part of a batch."""
    texts = dict(bulk.used_texts())
    codes = {dimension: np.arange(len(known)) for dimension, known in texts.items()}
    (content,) = contents_of(bulk, first, codes, [len(bulk)])
    return Imported(content, texts)


def expected(bulk: Bulk) -> tuple[list[Row], list[Row]]:
    found = []
    for place in range(len(bulk)):
        row: Row = {
            "time_ms": int(bulk.time_ms[place]),
            "p": bool(bulk.first_today[place]),
            "q": bool(bulk.first_of_page[place]),
            "duration_ms": int(bulk.duration_ms[place]),
            "number_today": int(bulk.number_today[place]),
            "width_px": int(bulk.width_px[place]),
        }
        for dimension in VIEW_DIMENSIONS:
            left_out = dimension in LEFT_OUT
            code = 0 if left_out else int(bulk.codes[dimension][place])
            row[dimension.attribute] = "" if left_out else bulk.texts[dimension][code]
        found.append(row)
    events: dict[int, Row] = {}
    for place, number in enumerate(bulk.event.tolist()):
        view = int(bulk.event_view[place])
        of = found[view] if view >= 0 else None
        row = events.setdefault(
            number,
            {
                "time_ms": int(bulk.event_time_ms[place]),
                "view": of and (of["path"], of["time_ms"]),
                "properties": [],
            },
        )
        text = bulk.texts[Dimension.PROPERTY][int(bulk.property[place])]
        row["properties"].append(split_property(text))
    for row in events.values():
        row["properties"].sort()
    return in_order(found), in_order(events.values())


def together(*parts: tuple[list[Row], list[Row]]) -> tuple[list[Row], list[Row]]:
    views_there, events = zip(*parts, strict=True)
    return in_order(chain(*views_there)), in_order(chain(*events))
