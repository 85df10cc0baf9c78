"""Snapshots made out of the oracle's dicts, and the questions put to them as the web does."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from stats.asked import TEXTS, Pairs
from stats.oracle import Entry, pairs_of

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension, property_text
from medamad.stats import dimensions, pages, properties, summary, times
from medamad.stats.filters import conditions_of
from medamad.stats.period import period_of
from medamad.stats.question import Question
from medamad.store.parts import PAGE_VISITOR, VISITOR, Codes, Events, Snapshot
from medamad.vocabulary.sources import Sources

SOURCES = Sources({"google.com": "Google", "google.de": "Google", "t.co": "Twitter"})


@frozen(eq=False)
class Part:
    """A run of views as columns."""

    time_ms: NDArray[np.int64]
    sequence: NDArray[np.uint64]
    flags: NDArray[np.uint8]
    duration_ms: NDArray[np.uint32]
    number_today: NDArray[np.uint16]
    width_px: NDArray[np.uint16]
    columns: dict[Dimension, Codes]

    @property
    def least_ms(self) -> int:
        return int(self.time_ms.min())

    @property
    def greatest_ms(self) -> int:
        return int(self.time_ms.max())

    def codes(self, dimension: Dimension) -> Codes:
        return self.columns[dimension]

    def __len__(self) -> int:
        return len(self.time_ms)


class Names:
    """Texts by code, learned in the order in which they come."""

    def __init__(self) -> None:
        self.texts: dict[Dimension, list[str]] = {
            dimension: ["never seen"] for dimension in Dimension
        }

    def code(self, dimension: Dimension, text: str) -> int:
        texts = self.texts[dimension]
        if text not in texts:
            texts.append(text)
        return texts.index(text)


def cut(entries: Sequence[Any], cuts: Iterable[int]) -> list[Sequence[Any]]:
    """Cut a list into pieces at some places; none is empty."""
    bounds = [0, *sorted(place for place in cuts if place < len(entries)), len(entries)]
    return [entries[low:high] for low, high in pairwise(bounds) if high > low]


def snapshot_of(
    views: Sequence[Entry], events: Sequence[Entry], cuts: Iterable[int] = ()
) -> Snapshot:
    """Make a snapshot; the ids of the views are ascending whole numbers from 1."""
    names = Names()
    cuts = tuple(cuts)
    return Snapshot(
        parts=[_part(piece, names) for piece in cut(views, cuts)],
        events=[_events(piece, names) for piece in cut(list(enumerate(events, 1)), cuts)],
        texts=names.texts.__getitem__,
    )


def _part(views: Sequence[Entry], names: Names) -> Part:
    def column(value_of: Callable[[Entry], int], dtype: type[np.generic]) -> NDArray[Any]:
        found = np.array([value_of(view) for view in views], dtype)
        found.flags.writeable = False
        return found

    def codes(dimension: Dimension) -> Codes:
        key = dimension.attribute
        return column(
            lambda view: names.code(dimension, view.get(key, "") if key in TEXTS else ""),
            np.uint32,
        )

    return Part(
        time_ms=column(lambda view: view["time_ms"], np.int64),
        sequence=column(lambda view: view["id"], np.uint64),
        flags=column(
            lambda view: VISITOR * view["p"] | PAGE_VISITOR * view["q"],
            np.uint8,
        ),
        duration_ms=column(lambda view: view["duration_ms"], np.uint32),
        number_today=column(lambda _: 0, np.uint16),
        width_px=column(lambda _: 0, np.uint16),
        columns={dimension: codes(dimension) for dimension in VIEW_DIMENSIONS},
    )


def _events(events: Sequence[tuple[int, Entry]], names: Names) -> Events:
    rows = [
        (
            number,
            event["time_ms"],
            event["view"] or 0,
            names.code(Dimension.PROPERTY, property_text(*pair)),
        )
        for number, event in events
        for pair in pairs_of(event)
    ]
    event, time_ms, view, prop = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Events(
        event=np.array(event, np.uint64),
        time_ms=np.array(time_ms, np.int64),
        view=np.array(view, np.uint64),
        property=np.array(prop, np.uint32),
    )


COLUMNS = {
    "sources": dimensions.SOURCES,
    "mediums": dimensions.MEDIUMS,
    "campaigns": dimensions.CAMPAIGNS,
    "terms": dimensions.TERMS,
    "contents": dimensions.CONTENTS,
    "browsers": dimensions.BROWSERS,
    "os": dimensions.SYSTEMS,
    "devices": dimensions.DEVICES,
    "countries": dimensions.COUNTRIES,
}

ENDPOINTS = ("summary", "pages", "time", "referrers", *COLUMNS, "languages", "properties")


def question_of(query: Pairs) -> Question:
    """Read the common parameters of a query."""
    given = dict(query)
    return Question(
        period=period_of(given.get("start"), given.get("end")),
        conditions=conditions_of(query),
        summary=given.get("summary") == "true",
        limit=int(given["limit"]) if "limit" in given else None,
        offset=int(given.get("offset", "0")),
    )


def answer(snapshot: Snapshot, endpoint: str, query: Pairs, *, now_ms: int = 0) -> Any:
    """Put a question to a snapshot."""
    given, question = dict(query), question_of(query)
    if endpoint == "summary":
        return summary.report(
            snapshot,
            question,
            SOURCES,
            now_ms=now_ms,
            with_previous=given.get("previous") == "true",
            interval=given.get("interval"),
            timezone=given.get("timezone"),
        )
    if endpoint in ("pages", "time", "properties"):
        module = {"pages": pages, "time": times, "properties": properties}[endpoint]
        return module.report(snapshot, question, SOURCES)
    if endpoint == "referrers":
        grouped = given.get("grouped") != "false"
        column = dimensions.SOURCES_OF_REFERRERS if grouped else dimensions.REFERRERS
    elif endpoint == "languages":
        column = dimensions.LOCALES if given.get("locale") == "true" else dimensions.LANGUAGES
    else:
        column = COLUMNS[endpoint]
    return dimensions.report(snapshot, question, SOURCES, column)
