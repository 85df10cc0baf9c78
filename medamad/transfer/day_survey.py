"""Days of files on their way into a website: looked through, then given in pieces, day by day."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from typing import Final

import numpy as np
from attrs import define, evolve, field

from medamad.domain.errors import BadRequest
from medamad.domain.zones import day_at
from medamad.storage.import_content import DayCounts
from medamad.storage.segments.counters import SLOT_MS
from medamad.storage.segments.snapshot import Snapshot
from medamad.transfer.day_rows import DayRow, Days
from medamad.transfer.formats.registry import DAY_SOURCES
from medamad.transfer.gather import MOST_ROWS, MOST_TEXT
from medamad.transfer.rows import Refused
from medamad.transfer.survey import Given, Survey

_STEP: Final = 1_000


@define
class DaySurvey(Survey):
    """What files hold of days."""

    days: Days = field(factory=Days)

    def add_day_row(self, file: Given, row: DayRow | Refused) -> None:
        """Take note of a row."""
        self.rows += 1
        if isinstance(row, Refused):
            self.refuse(file, row)
            return
        place = f"{file.path}: {row.place}" if row.place else str(file.path)
        before = self.days.add(row, place)
        if before is not None:
            field = f"{row.place}: date" if row.place else "date"
            self.refuse(file, Refused(row.line, field, f"{before} has that day already"))


def are_of_days(files: Sequence[Given]) -> bool:
    """Return whether files have days added up. Raises BadRequest for files that go not together."""
    sources = sorted({given.source for given in files})
    if not DAY_SOURCES.keys() & sources:
        return False
    if len(sources) > 1:
        raise BadRequest(f"FILE: expected files of one kind, got {' and '.join(sources)}")
    return True


def survey_days(files: Sequence[Given]) -> Iterator[DaySurvey]:
    """Look through files, a little with every step; the last that is given is the whole."""
    found = DaySurvey()
    for file in files:
        for row in file.day_rows():
            found.add_day_row(file, row)
            if found.rows % _STEP == 0:
                yield found
    if found.days.lacks_total:
        total = DAY_SOURCES[files[0].source].total
        raise BadRequest(f"{total}: expected that table too: it has what a day has in all")
    yield found


def days_there(snapshot: Snapshot, zone: tzinfo) -> set[int]:
    """Return the days of which a website has views, events or rollups, as numbers of local dates."""
    slots = [np.zeros(0, np.int64), *(loose.time_ms // SLOT_MS for loose in snapshot.events)]
    for part in snapshot.leaves():
        slots_of_part = snapshot.read(
            part,
            lambda part: np.unique(
                np.concatenate([part.time_ms, part.own.time_ms, part.loose.time_ms]) // SLOT_MS
            ),
        )
        if slots_of_part is not None:
            slots.append(slots_of_part)
    begins_s = (np.unique(np.concatenate(slots)) * (SLOT_MS // 1000)).tolist()
    # In historical zones, a day may begin within a slot.
    bounds_s = [(begin, begin + SLOT_MS // 1000 - 1) for begin in begins_s]
    for segment in snapshot.rollup_segments:
        if segment.header.day is not None:
            first_ms, last_ms = segment.header.day.span
            bounds_s.append((first_ms // 1000, last_ms // 1000))
    return {day_at(zone, second) for bounds in bounds_s for second in bounds}


@define(eq=False)
class DayGathering:
    """Days in pieces. What is left out is counted."""

    _found: Days
    _zone: tzinfo
    _today: int
    """A day that is not over yet, as none is that comes after it."""
    _there: AbstractSet[int]
    days: int = 0
    views: int = 0
    visitors: int = 0
    events: int = 0
    first: int = 0
    last: int = 0
    """The first and the last day that came in."""
    days_there: int = 0
    """Days of which the website has something already."""
    days_not_over: int = 0
    days_without_views: int = 0
    """Days that have no views in all, or of which that is not known, nor events."""
    rows: int = 0
    """All that were gone through."""

    def pieces(self) -> Iterator[list[DayCounts] | None]:
        """Go through the days, one with every step; gives a piece, or nothing yet."""
        piece: list[DayCounts] = []
        rows = letters = 0
        for day in self._found.in_order(self._zone):
            self.rows += day.rows
            if day.day >= self._today:
                self.days_not_over += 1
            elif day.day in self._there:
                self.days_there += 1
            elif not day.views and not day.events:
                self.days_without_views += 1
            else:
                self.days += 1
                self.views += day.views
                self.visitors += day.visitors
                self.events += day.events
                self.first, self.last = self.first if self.days > 1 else day.day, day.day
                for counts in _bounded(day.counts):
                    size = sum(map(len, counts.texts))
                    if piece and (
                        rows + len(counts.texts) > MOST_ROWS or letters + size > MOST_TEXT
                    ):
                        yield piece
                        piece, rows, letters = [], 0, 0
                    piece.append(counts)
                    rows, letters = rows + len(counts.texts), letters + size
            yield None
        if piece:
            yield piece


def _bounded(counts: Sequence[DayCounts]) -> Iterator[DayCounts]:
    """Part what would be too much for one piece."""
    for each in counts:
        begin = letters = 0
        for place, text in enumerate(each.texts):
            if place - begin == MOST_ROWS or letters + len(text) > MOST_TEXT:
                yield _some(each, begin, place)
                begin, letters = place, 0
            letters += len(text)
        yield _some(each, begin, len(each.texts))


def _some(counts: DayCounts, begin: int, end: int) -> DayCounts:
    return evolve(counts, texts=counts.texts[begin:end], sums=counts.sums[:, begin:end])
