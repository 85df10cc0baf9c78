"""Looking through what is to be imported before anything is stored: what it is, what is wrong."""

import hashlib
import zlib
from array import array
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC
from gzip import BadGzipFile
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.transfer.day_rows import DayRow
from medamad.transfer.formats.registry import DAY_SOURCES, SOURCE_NAMES, SOURCES, guessed, head_of
from medamad.transfer.input_files import Mark, opened
from medamad.transfer.rows import EventRow, Refused, Row, ViewRow, said_by
from medamad.transfer.visitors import Into, LeftOut, Noted, Visits

MOST_TOLD: Final = 20
"""How many refused rows are told of, one by one."""
_CHUNK: Final = 1 << 20


@frozen
class Given:
    """A file that is to be imported, and what it is said, or seen, to be."""

    path: Path
    source: str
    into: Into = field(factory=Into, eq=False)
    mark: Mark | None = field(default=None, eq=False)
    """What it is known by when it is read again."""

    @classmethod
    def of(cls, path: Path, source: str | None, into: Into | None = None) -> "Given":
        """Return what a file is. Raises BadRequest, OSError."""
        with _sound(path) as file:
            found = source or guessed(head_of(file))
            if found is None:
                raise BadRequest(f"expected a file of {', '.join(SOURCE_NAMES)}")
            mark = Mark.of(file, grows=found in SOURCES and SOURCES[found].grows)
        return cls(path, found, into or Into(), mark)

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """Open it. Raises BadRequest naming the file."""
        return _sound(self.path, self.mark)

    def rows(self, visits: Visits | None = None) -> Iterator[Row | Refused]:
        """Read it. Raises BadRequest naming the file."""
        visits = visits or Visits(Noted(self.into.rules.zone))
        with self.opened() as file:
            yield from SOURCES[self.source].reader(file, self.into, visits)

    def day_rows(self) -> Iterator[DayRow | Refused]:
        """Read one of DAY_SOURCES. Raises BadRequest naming the file."""
        with self.opened() as file:
            yield from DAY_SOURCES[self.source].reader(file, self.into)


@contextmanager
def _sound(path: Path, mark: Mark | None = None) -> Iterator[BinaryIO]:
    """Open a file; whatever is wrong with it then is said with its name."""
    try:
        with opened(path, mark) as file:
            yield file
    except BadRequest as error:
        raise BadRequest(f"{path}: {error}") from None
    except (EOFError, zlib.error, BadGzipFile) as error:
        raise BadRequest(f"{path}: not a sound file of gzip: {error}") from None


def digest_of(files: Iterable[Given]) -> str:
    """Return what tells the contents of files from others, in whatever order they are named."""
    digests = []
    for given in files:
        hashed = hashlib.sha256()
        with given.opened() as file:
            while chunk := file.read(_CHUNK):
                hashed.update(chunk)
        digests.append(hashed.digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def numbered(files: Sequence[Given], visits: Visits) -> Iterator[tuple[Given, Row | Refused]]:
    """Return all rows, each with a number; those without one get theirs in order.

    When all is noted, without those that an earlier file has, as far as no number tells that.
    """
    repeats = visits.noted.repeats
    for place, file in enumerate(files):
        for row in file.rows(visits):
            visits.rows += 1
            if not isinstance(row, Refused):
                is_told = row.number > 0 and not row.identity
                row.number = row.number or visits.number()
                if len(files) > 1 and not is_told and repeats.is_again(place, row):
                    continue
            yield file, row


Key: TypeAlias = tuple[str, type, int]
"""Store, kind and number of a hit."""


def key_of(row: Row) -> Key:
    """Return what names a hit."""
    return row.store, type(row), row.number


@define(eq=False)
class Run:
    """The rows of an event, which follow each other in a file."""

    _file: Given | None = None
    _event: tuple[str, int] = ("", 0)

    def has(self, file: Given, row: Row | Refused) -> bool:
        """Return whether a row is one more of the event of the row before."""
        return (
            isinstance(row, EventRow)
            and file is self._file
            and (row.store, row.number) == self._event
        )

    def begins(self, file: Given, row: Row) -> bool:
        """Return whether a row is the first of a view, or of an event; go on with it."""
        if self.has(file, row):
            return False
        if isinstance(row, EventRow):
            self._file, self._event = file, (row.store, row.number)
        return True


@define
class _Numbers:
    """The numbers of the rows of one store."""

    least: int = 1 << 63
    greatest: int = 0
    views: "array[int]" = field(factory=lambda: array("Q"))
    events: "array[int]" = field(factory=lambda: array("Q"))
    """Of each run of rows of a file with the same number, it once."""

    def reach(self, number: int) -> None:
        """Note that there is a number."""
        self.least, self.greatest = min(self.least, number), max(self.greatest, number)


@define
class Survey:
    """What files hold. `refused` are the first of the rows that cannot be taken in."""

    views: int = 0
    events: int = 0
    rows: int = 0
    refused_rows: int = 0
    refused: list[tuple[str, Refused]] = field(factory=list)
    repeated: dict[Key, int] = field(factory=dict)
    """What is there more than once, and of a view the longest time on page that is said of it."""
    again: int = 0
    """How many views and events are there again."""
    noted: Noted = field(factory=lambda: Noted(UTC))
    """Whose views there are in files of other programs."""
    left_out: Counter[LeftOut] = field(factory=Counter)
    """What these have besides views and events that count."""
    _numbers: dict[str, _Numbers] = field(factory=dict)
    _run: Run = field(factory=Run)

    def add(self, file: Given, row: Row | Refused) -> None:
        """Take note of a row."""
        self.rows += 1
        if isinstance(row, Refused):
            self.refuse(file, row)
            return
        numbers = self._numbers.setdefault(row.store, _Numbers())
        numbers.reach(row.number)
        if isinstance(row, ViewRow):
            self.views += 1
            numbers.views.append(row.number)
            return
        if row.view:
            numbers.reach(row.view)
        if self._run.begins(file, row):
            self.events += 1
            numbers.events.append(row.number)

    def refuse(self, file: Given, row: Refused) -> None:
        """Take note of a row that cannot be taken in."""
        self.refused_rows += 1
        if len(self.refused) < MOST_TOLD:
            self.refused.append((str(file.path), row))

    def end(self) -> None:
        """Find out what is there more than once, when all has been seen."""
        for store, numbers in self._numbers.items():
            for kind, found in ((ViewRow, numbers.views), (EventRow, numbers.events)):
                self.repeated |= {(store, kind, number): 0 for number in _repeated(found)}
            numbers.views, numbers.events = array("Q"), array("Q")
        self.noted.decide()
        if again := self.noted.repeats.hits:
            self.left_out[LeftOut.REPEATED] += again

    @property
    def ranges(self) -> list[tuple[str, int, int]]:
        """The stores that hits are from, and their first and last number there."""
        return [
            (store, numbers.least, numbers.greatest) for store, numbers in self._numbers.items()
        ]


def survey(files: Sequence[Given]) -> Iterator[Survey]:
    """Look through files, a little with every step; the last that is given is the whole."""
    noted = Noted(files[0].into.rules.zone if files else UTC)
    found, had_agents = yield from _looked_through(files, noted)
    if had_agents == {False}:  # They were kept without.
        found, _ = yield from _looked_through(files, Noted(noted.zone, has_agents=False))
    found.end()
    if found.repeated:
        yield from _compared(files, found)
    yield found


def _looked_through(
    files: Sequence[Given], noted: Noted
) -> Generator[Survey, None, tuple[Survey, set[bool]]]:
    """Take note of all rows; give also whether requests of logs had User-Agents."""
    found = Survey(noted=noted)
    visits = Visits(noted, found.left_out)
    for place, (file, row) in enumerate(numbered(files, visits)):
        found.add(file, row)
        if place % _STEP == 0:
            yield found
    return found, visits.had_agents


_STEP: Final = 1_000


def _compared(files: Sequence[Given], found: Survey) -> Iterator[Survey]:
    """Go through files again, to part what is there again from what bears another's number."""
    run, is_first = Run(), False
    seen: set[Key] = set()
    said: set[int] = set()
    for place, (file, row) in enumerate(numbered(files, Visits(found.noted))):
        if place % _STEP == 0:
            yield found
        if isinstance(row, Refused):
            continue
        begins, key = run.begins(file, row), key_of(row)
        if key not in found.repeated:
            continue
        if begins:
            is_first = key not in seen
            seen.add(key)
        same = hash((key, said_by(row)))
        if is_first:
            said.add(same)
        elif same not in said:
            found.refuse(file, _another(row))
            continue
        else:
            found.again += begins
        if isinstance(row, ViewRow):
            found.repeated[key] = max(found.repeated[key], row.duration_ms)


def _another(row: ViewRow | EventRow) -> Refused:
    field, how = "event", "with other rows between"
    if isinstance(row, ViewRow):
        field, how = "view", "and not the same"
    return Refused(row.line, field, f"{row.number} is there more than once, {how}")


def _repeated(numbers: "array[int]") -> list[int]:
    ordered: NDArray[np.uint64] = np.sort(np.frombuffer(numbers, np.uint64))
    again: list[int] = np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist()
    return again
