"""Which views of each part a question is about: the filters as codes, the period as times."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension, split_property
from medamad.stats.filters import PROPERTY_FIELDS, VIEW_FIELDS, Passing, passing, without_case
from medamad.stats.period import Period
from medamad.stats.question import Question
from medamad.store.parts import Codes, Events, Snapshot, Views
from medamad.vocabulary.sources import Sources


@frozen(eq=False)
class Chosen:
    """The chosen views of one part, as columns of equal length.

    `index` are their places in the part, None for every one of them.
    """

    part: Views
    index: NDArray[np.intp] | None = None

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """Unix milliseconds."""
        return self.part.time_ms if self.index is None else self.part.time_ms[self.index]

    @property
    def flags(self) -> NDArray[np.uint8]:
        """VISITOR and PAGE_VISITOR, or-ed."""
        return self.part.flags if self.index is None else self.part.flags[self.index]

    @property
    def duration_ms(self) -> NDArray[np.uint32]:
        """Milliseconds on the page; 0 where the view is not timed."""
        return self.part.duration_ms if self.index is None else self.part.duration_ms[self.index]

    @property
    def timed(self) -> NDArray[np.intp]:
        """The places, among these views, of those with a known duration."""
        return np.flatnonzero(self.duration_ms > 0)

    def codes(self, dimension: Dimension) -> Codes:
        """Codes of the views' texts in one of VIEW_DIMENSIONS."""
        codes = self.part.codes(dimension)
        return codes if self.index is None else codes[self.index]


@frozen(eq=False)
class ViewFilter:
    """The filters of a question as what they let pass.

    `passing` holds, for each dimension that is filtered, which codes pass; `carriers` the views
    (by sequence number) that carry a matching property, None without such a filter.
    """

    passing: Mapping[Dimension, Passing]
    carriers: NDArray[np.uint64] | None = None

    def mask(self, part: Views) -> Passing | None:
        """Give which views of a part pass, shape (n,); None when there is no filter."""
        mask: Passing | None = None
        for dimension, codes_passing in self.passing.items():
            passed = codes_passing[part.codes(dimension)]
            mask = passed if mask is None else mask & passed
        if self.carriers is not None:
            carrying = np.zeros(len(part), np.bool_)
            carrying[places(part, self.carriers)[1]] = True
            mask = carrying if mask is None else mask & carrying
        return mask

    def choose(self, parts: Iterable[Views], period: Period) -> Iterator[Chosen]:
        """Give the views that pass and lie in a period, from each part that has any in it."""
        for part in parts:
            if len(part) == 0 or _is_outside(part, period):
                continue
            mask = self.mask(part)
            if period.start_ms is not None and part.least_ms < period.start_ms:
                late = part.time_ms >= period.start_ms
                mask = late if mask is None else mask & late
            if period.end_ms is not None and part.greatest_ms > period.end_ms:
                early = part.time_ms <= period.end_ms
                mask = early if mask is None else mask & early
            yield Chosen(part, None if mask is None else np.flatnonzero(mask))


def _is_outside(part: Views, period: Period) -> bool:
    return (period.start_ms is not None and part.greatest_ms < period.start_ms) or (
        period.end_ms is not None and part.least_ms > period.end_ms
    )


def places(part: Views, sequences: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find views by their sequence numbers.

    Gives the indices into `sequences` of those that the part holds, and their places in it.
    """
    if len(part) == 0:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    known = part.sequence
    near = np.flatnonzero((sequences >= known[0]) & (sequences <= known[-1]))
    wanted = sequences[near]
    found = np.searchsorted(known, wanted)
    there = known[found] == wanted
    return near[there], found[there]


def view_filter(snapshot: Snapshot, question: Question, sources: Sources) -> ViewFilter:
    """Give all filters of a question, as far as they choose among views."""
    codes_passing = dimension_filters(snapshot, question, sources)
    if not question.names_property:
        return ViewFilter(codes_passing)
    matching = property_filter(snapshot, question)
    views = [rows.view[matching[rows.property]] for rows in snapshot.events if len(rows)]
    carriers = np.concatenate(views) if views else np.zeros(0, np.uint64)
    return ViewFilter(codes_passing, carriers)


def dimension_filters(
    snapshot: Snapshot, question: Question, sources: Sources
) -> dict[Dimension, Passing]:
    """Give which codes of each filtered dimension pass the filters on it."""
    found: dict[Dimension, Passing] = {}
    for name, field in VIEW_FIELDS.items():
        if conditions := question.conditions_on((name,)):
            # A copy: the store may learn further texts meanwhile.
            texts = list(snapshot.texts(field.dimension))
            names = [
                without_case(naming(text, sources) for text in texts) for naming in field.namings
            ]
            found[field.dimension] = passing(conditions, names)
    return found


def passes_without_view(question: Question) -> bool:
    """Say whether an event that belongs to no view passes: it has the name "" everywhere."""
    return all(
        bool(passing(question.conditions_on((name,)), [[""]] * len(field.namings))[0])
        for name, field in VIEW_FIELDS.items()
    )


def property_filter(snapshot: Snapshot, question: Question) -> Passing:
    """Give which codes of properties match every filter on their name and their value."""
    parted = [split_property(text) for text in snapshot.texts(Dimension.PROPERTY)]
    matching = np.ones(len(parted), np.bool_)
    for place, field in enumerate(PROPERTY_FIELDS):
        if conditions := question.conditions_on((field,)):
            names = without_case(pair[place] for pair in parted)
            matching &= passing(conditions, [names])
    return matching


def rows_in(events: Events, period: Period) -> Passing | None:
    """Give which rows of events lie in a period, by the events' own times; None for all."""
    mask: Passing | None = None
    if period.start_ms is not None:
        mask = events.time_ms >= period.start_ms
    if period.end_ms is not None:
        early = events.time_ms <= period.end_ms
        mask = early if mask is None else mask & early
    return mask
