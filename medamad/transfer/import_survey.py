"""The first pass of an import: what the files contain, and which rows are wrong."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC
from gzip import BadGzipFile
from pathlib import Path
from typing import BinaryIO, Final

from attrs import define, field, frozen

from medamad.domain.errors import BadRequest
from medamad.domain.exported_settings import are_exported_exclusions
from medamad.storage.request_totals import RequestCounts
from medamad.transfer.import_context import (
    ImportTarget,
    ReadContext,
    SkipReason,
    Verdict,
    VisitorIndex,
)
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
    HitRow,
    RejectedRow,
    ViewRow,
    field_with_nul,
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


def exclusions_in(path: Path) -> bytes | None:
    """Return a file of exported exclusions, None for other files. Raises BadRequest or OSError."""
    with _open_named(path) as file:
        head = read_first_lines(file)
        return head + file.read() if are_exported_exclusions(head) else None


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

    After the first pass, leave out repeated hits, and number the views that were recorded by their
    times.
    """
    index = context.index
    for place, file in enumerate(files):
        for row in file.rows(context):
            context.rows += 1
            if isinstance(row, RejectedRow):
                yield file, row
                continue
            if name := field_with_nul(row):
                yield file, RejectedRow(row.line, name, NUL)
                continue
            is_numbered = row.number > 0 and not row.identity
            # Within one file of another program nothing is repeated, and no number given twice.
            may_repeat = len(files) > 1 or is_numbered or not row.number
            row.number = row.number or context.next_number()
            context.count_hit(place, row)
            if not index.is_finished:
                if may_repeat:
                    index.hits.record(context.hits, place, row, is_numbered=is_numbered)
            else:
                verdict = index.hits.verdict(context.hits)
                if verdict == Verdict.REPEATED:
                    continue
                if verdict == Verdict.CONFLICTS:
                    yield file, _conflicting(row)
                    continue
            if isinstance(row, ViewRow) and not row.store:
                row.number = index.number_by_time(row.number)
            yield file, row


def _conflicting(row: HitRow) -> RejectedRow:
    if isinstance(row, ViewRow):
        reason = f"{row.number} occurs more than once, with different values"
        return RejectedRow(row.line, "view", reason)
    reason = f"{row.number} occurs more than once, with other rows in between"
    return RejectedRow(row.line, "event", reason)


@define
class Survey:
    """What the files contain."""

    views: int = 0
    rows: int = 0
    rejected_rows: int = 0
    rejected: list[tuple[str, RejectedRow]] = field(factory=list)
    """The first rejected rows, each with the name of its file."""
    index: VisitorIndex = field(factory=lambda: VisitorIndex(UTC))
    skipped: Counter[SkipReason] = field(factory=Counter)
    robots: Mapping[int, RequestCounts] = field(factory=dict)
    """The pages that robots read, by day."""
    _ranges: dict[str, tuple[int, int]] = field(factory=dict)
    """The first and the last number of the hits of each store."""

    def add(self, file: ImportFile, row: HitRow | RejectedRow) -> None:
        """Count a row."""
        self.rows += 1
        if isinstance(row, RejectedRow):
            self.reject(file, row)
            return
        self.views += isinstance(row, ViewRow)
        number, other = row.number, row.visit if isinstance(row, ViewRow) else row.view
        first, last = self._ranges.get(row.store, (1 << 63, 0))
        if not first <= number <= last or (other and not first <= other <= last):
            other = other or number
            self._ranges[row.store] = min(first, number, other), max(last, number, other)

    def reject(self, file: ImportFile, row: RejectedRow) -> None:
        """Count a row that cannot be imported."""
        self.rejected_rows += 1
        if len(self.rejected) < MAX_REPORTED:
            self.rejected.append((str(file.path), row))

    @property
    def ranges(self) -> list[tuple[str, int, int]]:
        """The stores that hits come from, with their first and last number."""
        return [(store, first, last) for store, (first, last) in self._ranges.items()]


def survey_rows(files: Sequence[ImportFile]) -> Iterator[Survey]:
    """Read the files, yielding the survey so far after every step; the last one is complete."""
    index = VisitorIndex(files[0].target.rules.zone if files else UTC)
    survey, had_agents = yield from _read_all(files, index)
    if had_agents == {False}:  # The logs were written without User-Agents.
        survey, _ = yield from _read_all(files, VisitorIndex(index.zone, has_agents=False))
    survey.index.finish()
    if repeated := len(survey.index.hits.repeated):
        survey.skipped[SkipReason.REPEATED] += repeated
    if survey.index.hits.conflicts:
        survey.rejected_rows, survey.rejected = 0, []
        for place, (file, row) in enumerate(number_rows(files, ReadContext(survey.index))):
            if isinstance(row, RejectedRow):
                survey.reject(file, row)
            if place % _STEP_ROWS == 0:
                yield survey
    yield survey


def _read_all(
    files: Sequence[ImportFile], index: VisitorIndex
) -> Generator[Survey, None, tuple[Survey, set[bool]]]:
    """Count all rows; return the survey, and whether logged requests had User-Agents."""
    survey = Survey(index=index)
    context = ReadContext(index, survey.skipped)
    survey.robots = context.robots
    for place, (file, row) in enumerate(number_rows(files, context)):
        survey.add(file, row)
        if place % _STEP_ROWS == 0:
            yield survey
    return survey, context.had_agents
