"""Vacuum: find dictionary entries that nothing uses and delete them in small steps."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.access import WriterAccess
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    MergedSegment,
    Part,
)
from medamad.storage.segments.read import open_parts
from medamad.storage.segments.rollup import open_rollup

_DIMENSIONS: Final = (*VIEW_DIMENSIONS, Dimension.PROPERTY)


@frozen
class VacuumCursor:
    """How far a vacuum has come: the index of the dimension, and the next code."""

    dimension: int = 0
    code: int = 0


def remove_unused(
    partition: Partition, names: Dictionary, writing: WriterAccess, place: VacuumCursor, most: int
) -> VacuumCursor | None:
    """Delete the unused ones of the next `most` entries.

    Returns where to go on, None at the end. The codes in use are collected again each time, since
    hits are stored between two calls. Raises DamagedSegment if they cannot be read.
    """
    dimension = _DIMENSIONS[place.dimension]
    used = _used(partition, dimension, writing)
    code = names.remove(
        writing.txn, partition.website, dimension, used, begin=place.code, most=most
    )
    if code is not None:
        return VacuumCursor(place.dimension, code)
    following = place.dimension + 1
    return VacuumCursor(following) if following < len(_DIMENSIONS) else None


def _used(partition: Partition, dimension: Dimension, writing: WriterAccess) -> NDArray[np.bool_]:
    """Return which codes occur in a segment, a counter, a rollup or the memtable."""
    chunks, events = partition.memtable.publish()
    found: list[NDArray[np.integer[Any]]] = []
    for part in (*open_parts(partition.segments, {}, writing, partition.databases), *chunks):
        found += _codes_of(part, dimension)
    days = [open_rollup(segment, writing, partition.databases) for segment in partition.rollups]
    if dimension is Dimension.PROPERTY:
        found += [rows.property for rows in events]
        found += [day.event_sums().codes.astype(np.uint32) for day in days]
    else:
        of_days = [day.counters(dimension) for day in days]
        # Visits may have gone on after midnight, on pages that nobody saw on the day itself.
        of_days += [day.visits.counters(dimension) for day in days if day.visits is not None]
        found += [sums.codes.astype(np.uint32) for sums in of_days if sums is not None]
    used = np.zeros(
        max((int(codes.max()) + 1 for codes in found if len(codes)), default=0), np.bool_
    )
    for codes in found:
        used[codes] = True
    return used


def _codes_of(part: Part, dimension: Dimension) -> Iterator[NDArray[np.integer[Any]]]:
    if dimension is Dimension.PROPERTY:
        counts = part.event_counts()
        if counts is not None:
            yield counts.codes
        elif isinstance(part, MergedSegment):
            for member in part.members:
                yield from _codes_of(member, dimension)
        else:
            yield from (part.own.property, part.loose.property)
        return
    counters = part.counters(dimension)
    if counters is not None:
        yield counters.codes.astype(np.uint32)
    elif not isinstance(part, MergedSegment):
        yield part.codes(dimension)
