"""The first pass of an import: what the files contain, and which rows are wrong."""

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
from medamad.transfer.import_context import ImportTarget, ReadContext, SkipReason, VisitorIndex
from medamad.transfer.input_files import FileFingerprint, open_input
from medamad.transfer.registry import (
    DAY_SOURCES,
    ROW_SOURCES,
    SOURCE_NAMES,
    detect_source,
    read_first_lines,
)
from medamad.transfer.rows import (
    NUL,
    DayRow,
    EventRow,
    HitRow,
    RejectedRow,
    ViewRow,
    field_with_nul,
    row_content,
)

MAX_REPORTED: Final = 20
"""How many rejected rows are reported individually."""
_HASHED_BYTES: Final = 1 << 20
_STEP_ROWS: Final = 1_000


@frozen
class ImportFile:
    """A file to import, and its source: either stated or detected."""

    path: Path
    source: str
    target: ImportTarget = field(factory=ImportTarget, eq=False)
    fingerprint: FileFingerprint | None = field(default=None, eq=False)
    """Checked whenever the file is read again."""

    @classmethod
    def of(cls, path: Path, source: str | None, target: ImportTarget | None = None) -> "ImportFile":
        """Return a file, detecting its source if None is stated. Raises BadRequest or OSError."""
        with _open_named(path) as file:
            source = source or detect_source(read_first_lines(file))
            if source is None:
                raise BadRequest(f"unknown format; expected one of {', '.join(SOURCE_NAMES)}")
            grows = source in ROW_SOURCES and ROW_SOURCES[source].grows
            fingerprint = FileFingerprint.of(file, grows=grows)
        return cls(path, source, target or ImportTarget(), fingerprint)

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open the file. Raises BadRequest with its name."""
        return _open_named(self.path, self.fingerprint)

    def rows(self, context: ReadContext | None = None) -> Iterator[HitRow | RejectedRow]:
        """Yield the rows. Raises BadRequest with the name of the file."""
        context = context or ReadContext(VisitorIndex(self.target.rules.zone))
        with self.open() as file:
            yield from ROW_SOURCES[self.source].reader(file, self.target, context)

    def day_rows(self) -> Iterator[DayRow | RejectedRow]:
        """Yield the rows of one of DAY_SOURCES. Raises BadRequest with the name of the file."""
        with self.open() as file:
            yield from DAY_SOURCES[self.source].reader(file, self.target)


@contextmanager
def _open_named(path: Path, fingerprint: FileFingerprint | None = None) -> Iterator[BinaryIO]:
    """Open a file so that every error has its name."""
    try:
        with open_input(path, fingerprint) as file:
            yield file
    except BadRequest as error:
        raise BadRequest(f"{path}: {error}") from None
    except (EOFError, zlib.error, BadGzipFile) as error:
        raise BadRequest(f"{path}: not a valid gzip file: {error}") from None


def digest_of(files: Iterable[ImportFile]) -> str:
    """Return a hash of the contents of files, which does not depend on their order."""
    digests = []
    for import_file in files:
        file_hash = hashlib.sha256()
        with import_file.open() as file:
            while data := file.read(_HASHED_BYTES):
                file_hash.update(data)
        digests.append(file_hash.digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def number_rows(
    files: Sequence[ImportFile], context: ReadContext
) -> Iterator[tuple[ImportFile, HitRow | RejectedRow]]:
    """Yield all rows of all files, numbering those without a number.

    After the first pass, leave out the duplicates of hits that no number identifies, and number
    the views that were recorded by their times.
    """
    duplicates = context.index.duplicates
    for place, file in enumerate(files):
        for row in file.rows(context):
            context.rows += 1
            if not isinstance(row, RejectedRow):
                if name := field_with_nul(row):
                    yield file, RejectedRow(row.line, name, NUL)
                    continue
                has_own_number = row.number > 0 and not row.identity
                row.number = row.number or context.next_number()
                if len(files) > 1 and not has_own_number and duplicates.check(place, row):
                    continue
                if isinstance(row, ViewRow) and not row.store:
                    row.number = context.index.number_by_time(row.number)
            yield file, row


HitKey: TypeAlias = tuple[str, type, int]
"""The store, kind and number of a hit."""


def hit_key(row: HitRow) -> HitKey:
    """Return the key that identifies a row's hit."""
    return row.store, type(row), row.number


@define(eq=False)
class CurrentEvent:
    """Groups the adjacent rows of an event."""

    _file: ImportFile | None = None
    _event: tuple[str, int] = ("", 0)

    def includes(self, file: ImportFile, row: HitRow | RejectedRow) -> bool:
        """Return whether a row belongs to the same event as the row before it."""
        return (
            isinstance(row, EventRow)
            and file is self._file
            and (row.store, row.number) == self._event
        )

    def starts_hit(self, file: ImportFile, row: HitRow) -> bool:
        """Return whether a row starts a new hit, and remember the event it belongs to."""
        if self.includes(file, row):
            return False
        if isinstance(row, EventRow):
            self._file, self._event = file, (row.store, row.number)
        return True


@define
class _StoreNumbers:
    """The numbers of the hits that come from one store."""

    least: int = 1 << 63
    greatest: int = 0
    views: "array[int]" = field(factory=lambda: array("Q"))
    events: "array[int]" = field(factory=lambda: array("Q"))
    """One number for each group of adjacent rows that share it."""

    def include(self, number: int) -> None:
        """Extend the range to a number."""
        self.least, self.greatest = min(self.least, number), max(self.greatest, number)


@define
class Survey:
    """What the files contain."""

    views: int = 0
    events: int = 0
    rows: int = 0
    rejected_rows: int = 0
    rejected: list[tuple[str, RejectedRow]] = field(factory=list)
    """The first rejected rows, each with the name of its file."""
    repeated: dict[HitKey, int] = field(factory=dict)
    """Numbers that occur more than once; for a view, with its longest time on page."""
    repetitions: int = 0
    """How many views and events repeat an earlier one with the same number."""
    index: VisitorIndex = field(factory=lambda: VisitorIndex(UTC))
    skipped: Counter[SkipReason] = field(factory=Counter)
    _numbers: dict[str, _StoreNumbers] = field(factory=dict)
    _event: CurrentEvent = field(factory=CurrentEvent)

    def add(self, file: ImportFile, row: HitRow | RejectedRow) -> None:
        """Count a row."""
        self.rows += 1
        if isinstance(row, RejectedRow):
            self.reject(file, row)
            return
        numbers = self._numbers.setdefault(row.store, _StoreNumbers())
        numbers.include(row.number)
        if isinstance(row, ViewRow):
            self.views += 1
            numbers.views.append(row.number)
            if row.visit:
                numbers.include(row.visit)
            return
        if row.view:
            numbers.include(row.view)
        if self._event.starts_hit(file, row):
            self.events += 1
            numbers.events.append(row.number)

    def reject(self, file: ImportFile, row: RejectedRow) -> None:
        """Count a row that cannot be imported."""
        self.rejected_rows += 1
        if len(self.rejected) < MAX_REPORTED:
            self.rejected.append((str(file.path), row))

    def finish(self) -> None:
        """Find repeated numbers and duplicate hits, once all rows are counted."""
        for store, numbers in self._numbers.items():
            for kind, found in ((ViewRow, numbers.views), (EventRow, numbers.events)):
                self.repeated |= {(store, kind, number): 0 for number in _repeated(found)}
            numbers.views, numbers.events = array("Q"), array("Q")
        self.index.finish()
        if duplicates := self.index.duplicates.duplicates:
            self.skipped[SkipReason.REPEATED] += duplicates

    @property
    def ranges(self) -> list[tuple[str, int, int]]:
        """The stores that hits come from, with their first and last number."""
        return [
            (store, numbers.least, numbers.greatest) for store, numbers in self._numbers.items()
        ]


def survey_rows(files: Sequence[ImportFile]) -> Iterator[Survey]:
    """Read the files, yielding the survey so far after every step; the last one is complete."""
    index = VisitorIndex(files[0].target.rules.zone if files else UTC)
    survey, had_agents = yield from _read_all(files, index)
    if had_agents == {False}:  # The logs were written without User-Agents.
        survey, _ = yield from _read_all(files, VisitorIndex(index.zone, has_agents=False))
    survey.finish()
    if survey.repeated:
        yield from _compare_repeated(files, survey)
    yield survey


def _read_all(
    files: Sequence[ImportFile], index: VisitorIndex
) -> Generator[Survey, None, tuple[Survey, set[bool]]]:
    """Count all rows; return the survey, and whether logged requests had User-Agents."""
    survey = Survey(index=index)
    context = ReadContext(index, survey.skipped)
    for place, (file, row) in enumerate(number_rows(files, context)):
        survey.add(file, row)
        if place % _STEP_ROWS == 0:
            yield survey
    return survey, context.had_agents


def _compare_repeated(files: Sequence[ImportFile], survey: Survey) -> Iterator[Survey]:
    """Read the files again to find different hits with the same number among the repetitions."""
    event, is_first = CurrentEvent(), False
    seen: set[HitKey] = set()
    contents: set[int] = set()
    for place, (file, row) in enumerate(number_rows(files, ReadContext(survey.index))):
        if place % _STEP_ROWS == 0:
            yield survey
        if isinstance(row, RejectedRow):
            continue
        starts_hit, key = event.starts_hit(file, row), hit_key(row)
        if key not in survey.repeated:
            continue
        if starts_hit:
            is_first = key not in seen
            seen.add(key)
        content = hash((key, row_content(row)))
        if is_first:
            contents.add(content)
        elif content not in contents:
            survey.reject(file, _conflicting(row))
            continue
        else:
            survey.repetitions += starts_hit
        if isinstance(row, ViewRow):
            survey.repeated[key] = max(survey.repeated[key], row.duration_ms)


def _conflicting(row: HitRow) -> RejectedRow:
    if isinstance(row, ViewRow):
        reason = f"{row.number} occurs more than once, with different values"
        return RejectedRow(row.line, "view", reason)
    reason = f"{row.number} occurs more than once, with other rows in between"
    return RejectedRow(row.line, "event", reason)


def _repeated(numbers: "array[int]") -> list[int]:
    ordered: NDArray[np.uint64] = np.sort(np.frombuffer(numbers, np.uint64))
    repeated: list[int] = np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist()
    return repeated
