"""The content of an import as columns: views with dictionary codes, and rollups of whole days."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import groupby
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.domain.errors import NotFound
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.environment import Txn
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.segments.counters import SUMS, VIEWS, Counters, merge
from medamad.storage.segments.day_visits import VisitsContent
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    EventSums,
)
from medamad.storage.segments.rollup import NO_EVENT_SUMS, RollupContent

_NOTHING = Counters(np.zeros(0, np.uint32), (np.zeros(0, np.uint32),) * SUMS)


class Counted(Enum):
    """What figures of a day count."""

    VIEWS = "views"
    VISITS = "visits"
    """The visits whose first view has a text."""
    PAGES = "pages"
    """The visits that saw a page after their first."""
    EXITS = "exits"
    """The visits that ended on a page."""


@frozen(eq=False)
class DayCounts:
    """What is known of a day by the texts of one dimension; several of one add up.

    `span` is the first and the last millisecond of the day. Without a dimension it is of all
    views or visits, and the one text is "". `sums` have a column for each text. Those of views are
    in the order VIEWS to DURATION_MS, shape (SUMS, number of texts); for Dimension.PROPERTY the
    first of them are the events that carry it. Other sums have shape (VISIT_SUMS, number of texts).
    """

    day: int
    span: tuple[int, int]
    dimension: Dimension | None
    texts: Sequence[str]
    sums: NDArray[np.int64]
    counted: Counted = Counted.VIEWS


def texts_by_dimension(counts: Iterable[DayCounts]) -> dict[Dimension, list[str]]:
    """Return the texts of each dimension once, in the order in which they come."""
    found: dict[Dimension, dict[str, None]] = {}
    for each in counts:
        if each.dimension is not None:
            found.setdefault(each.dimension, {}).update(dict.fromkeys(each.texts))
    return {dimension: list(texts) for dimension, texts in found.items()}


@frozen(eq=False)
class ImportedRollup:
    """An imported rollup: all counts of a day, and the codes of their texts."""

    counts: Sequence[DayCounts]
    codes: Mapping[Dimension, Mapping[str, int]]
    import_batch: int

    @property
    def span(self) -> tuple[int, int]:
        """Its first and last millisecond."""
        return self.counts[0].span

    def content(self) -> RollupContent:
        """Add the counts up, which takes a while. For the writer thread."""
        sums = self._added(of_visits=False)
        return RollupContent(
            day=self.counts[0].day,
            span=self.span,
            total=sums.get(None, _NOTHING),
            by_dimension={
                dimension: sums[dimension] for dimension in VIEW_DIMENSIONS if dimension in sums
            },
            durations=None,
            events=self._events(sums.get(Dimension.PROPERTY)),
            import_batch=self.import_batch,
            visits=self._visits(),
        )

    def _added(self, *, of_visits: bool) -> dict[Dimension | None, Counters]:
        found: dict[Dimension | None, list[Counters]] = {}
        for each in self.counts:
            if (each.counted is not Counted.VIEWS) is of_visits:
                codes = [self._code(each.dimension, text) for text in each.texts]
                counters = Counters(np.array(codes, np.uint32), tuple(each.sums))
                found.setdefault(each.dimension, []).append(counters)
        # Merging puts the codes in order too.
        return {dimension: merge(parts) for dimension, parts in found.items()}

    def _visits(self) -> VisitsContent | None:
        sums = self._added(of_visits=True)
        if None not in sums:
            return None
        known = {each.counted for each in self.counts}
        return VisitsContent(
            time_bounds=self.span,
            total=sums[None],
            by_dimension={
                dimension: sums[dimension] for dimension in VIEW_DIMENSIONS if dimension in sums
            },
            has_pages=Counted.PAGES in known,
            has_exits=Counted.EXITS in known,
        )

    def _code(self, dimension: Dimension | None, text: str) -> int:
        return 0 if dimension is None else self.codes[dimension][text]

    def _events(self, counters: Counters | None) -> EventSums:
        """Count by name too. An event carries one property."""
        if counters is None:
            return NO_EVENT_SUMS
        text_of = {
            self._code(each.dimension, text): text
            for each in self.counts
            if each.dimension is Dimension.PROPERTY
            for text in each.texts
        }
        first: dict[str, int] = {}
        events_of: dict[int, int] = {}
        events = counters.sums[VIEWS]
        for code, number in zip(counters.codes.tolist(), events.tolist(), strict=True):
            named = first.setdefault(split_property(text_of[code])[0], code)
            events_of[named] = events_of.get(named, 0) + number
        return EventSums(
            codes=counters.codes,
            events=events,
            names=np.array(list(events_of), np.uint32),
            events_of_names=np.array(list(events_of.values()), np.int64),
            total=int(events.sum()),
            has_distinct_names=True,
        )


def group_by_day(
    counts: Iterable[DayCounts], codes: Mapping[Dimension, Mapping[str, int]], batch: int
) -> list[ImportedRollup]:
    """Group counts, which are in order of days, into the rollups of days."""
    return [
        ImportedRollup(list(of_day), codes, batch)
        for _, of_day in groupby(counts, lambda each: each.day)
    ]


CodesByDimension = dict[Dimension, NDArray[np.integer[Any]]]

_STEP_NAMES: Final = 1_000


@frozen(eq=False)
class TextEncoder:
    """Encodes texts in short steps of the writer. No vacuum may run meanwhile."""

    _submit: Submit
    _names: Dictionary
    has_website: Callable[[int], bool]
    _check_space: Callable[[Txn], None]

    async def codes(
        self, partition: Partition, texts: Iterable[tuple[Dimension, Sequence[str]]], time_ms: int
    ) -> CodesByDimension:
        """Return the store's codes of the texts of some dimensions, in their order.

        Raises NotFound when the website is deleted, Unavailable where hits would be refused.
        """
        codes: CodesByDimension = {}
        for dimension, known in texts:
            pieces = [
                await self._submit(
                    partial(
                        self._code_some, partition, dimension, known[at : at + _STEP_NAMES], time_ms
                    )
                )
                for at in range(0, len(known), _STEP_NAMES)
            ]
            codes[dimension] = np.array([code for piece in pieces for code in piece], np.uint32)
        return codes

    def _code_some(
        self,
        partition: Partition,
        dimension: Dimension,
        texts: Sequence[str],
        time_ms: int,
        txn: Transaction,
    ) -> list[int]:
        if partition.is_deleted or not self.has_website(partition.website):
            raise NotFound("hostname: the website has been deleted")
        self._check_space(txn.lmdb)
        encoder = self._names.encoder(txn.lmdb, time_ms)
        txn.after_commit(encoder.committed)
        return [encoder.any_code(partition.website, dimension, text) for text in texts]
