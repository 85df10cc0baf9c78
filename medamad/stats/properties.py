"""The statistic of properties: events by the names, or the values, that they carry."""

import numpy as np
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension, split_property
from medamad.stats.question import Question
from medamad.stats.rows import Columns, Row, fractions, page, records
from medamad.stats.selecting import (
    ViewFilter,
    dimension_filters,
    passes_without_view,
    places,
    property_filter,
    rows_in,
)
from medamad.store.parts import Codes, Events, Snapshot
from medamad.vocabulary.sources import Sources


def report(snapshot: Snapshot, question: Question, sources: Sources) -> list[Row]:
    """Give a row for every property name or, with a filter on it, every name and value.

    Name (and value), the events that carry it and their share of those that carry any: most
    events first. An event counts by its own time; the filters on views look at its view.
    """
    by_value = bool(question.conditions_on(("prop_name",)))
    event, codes = _chosen_rows(snapshot, question, sources)
    labels, label_of = _labels(snapshot, codes, by_value)
    counts, total = _events_with(event, label_of[codes], len(labels))
    numbers, shown = page(np.arange(len(labels)), (counts,), labels.__getitem__, question.rows)
    columns: Columns = {"name": [split_property(text)[0] for text in shown]}
    if by_value:
        columns["value"] = [split_property(text)[1] for text in shown]
    events = counts[numbers]
    shares = fractions(events, np.array(total))
    return records({**columns, "events": events, "events_percentage": shares})


def _chosen_rows(
    snapshot: Snapshot, question: Question, sources: Sources
) -> tuple[NDArray[np.uint64], Codes]:
    """Give the rows that are asked about: the number of the event, the code of the property."""
    selection = ViewFilter(dimension_filters(snapshot, question, sources))
    without_view = passes_without_view(question)
    matching = property_filter(snapshot, question) if question.names_property else None
    numbers, codes = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)]
    for rows in snapshot.events:
        mask = rows_in(rows, question.period)
        if matching is not None:
            matched = matching[rows.property]
            mask = matched if mask is None else mask & matched
        if selection.passing:
            passed = _views_pass(rows, snapshot, selection, without_view)
            mask = passed if mask is None else mask & passed
        numbers.append(rows.event if mask is None else rows.event[mask])
        codes.append(rows.property if mask is None else rows.property[mask])
    return np.concatenate(numbers), np.concatenate(codes)


def _views_pass(
    rows: Events, snapshot: Snapshot, selection: ViewFilter, without_view: bool
) -> NDArray[np.bool_]:
    """Give which rows are of a view that passes; `without_view` for those of no view."""
    passed = np.full(len(rows), without_view)
    for part in snapshot.parts:
        of_part, place = places(part, rows.view)
        if len(of_part) and (mask := selection.mask(part)) is not None:
            passed[of_part] = mask[place]
    return passed


def _labels(
    snapshot: Snapshot, codes: Codes, by_value: bool
) -> tuple[list[str], NDArray[np.int64]]:
    """Give the rows' labels, and the number of the label of each code that occurs.

    A label is a name, or a property's whole text, which sorts by name and then by value.
    """
    texts = snapshot.texts(Dimension.PROPERTY)
    occurring = np.flatnonzero(np.bincount(codes)).tolist()
    labels: dict[str, int] = {}
    label_of = np.zeros(max(occurring, default=-1) + 1, np.int64)
    for code in occurring:
        label = texts[code] if by_value else split_property(texts[code])[0]
        label_of[code] = labels.setdefault(label, len(labels))
    return list(labels), label_of


def _events_with(
    event: NDArray[np.uint64], label: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], int]:
    """Count the different events with each of `size` labels, and those with any."""
    if not len(event):
        return np.zeros(size, np.int64), 0
    begins = event[1:] != event[:-1]
    if np.all(event[1:] >= event[:-1]):
        number = np.concatenate((np.zeros(1, np.int64), np.cumsum(begins)))
    else:
        number = np.unique(event, return_inverse=True)[1]
    # An event may carry a label twice, as the value that stands for those past a bound.
    carried = number * size + label
    carried.sort()
    once = np.flatnonzero(np.diff(carried, prepend=-1))
    return np.bincount(carried[once] % size, minlength=size), int(number.max()) + 1
