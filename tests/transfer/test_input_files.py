"""A file that is read more than once must be the same each time."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from medamad.domain.errors import BadRequest
from medamad.storage.import_batches import Origins, Span
from medamad.transfer.import_context import ImportTarget, ReadContext, VisitorIndex
from medamad.transfer.import_rows import ExistingHits, RowGatherer
from medamad.transfer.import_survey import ImportFile, digest_of, number_rows, survey_rows
from medamad.transfer.rows import ViewRow

REPLACED = "the file changed while it was being read; import it again"


def log(day: int, lines: int) -> bytes:
    line = f'192.0.2.1 - - [{day:02}/Feb/2026:10:00:00 +0000] "GET /{day} HTTP/1.1" 200 9 "-" '
    return (line + '"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"\n').encode() * lines


def csv(day: int, lines: int) -> bytes:
    return b"time,path\n" + f"2026-02-{day:02}T00:00:00Z,/{day}\n".encode() * lines


Change = Callable[[Path, bytes], object]


def rename(path: Path, content: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    os.utime(other, ns=(1, 1))
    other.rename(path)


def truncate(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))


def named(path: Path) -> list[ImportFile]:
    return [ImportFile.of(path, None, ImportTarget("example.com"))]


def read(files: list[ImportFile]) -> list[str]:
    *_, found = survey_rows(files)
    rows = number_rows(files, ReadContext(found.index))
    return [row.path for _, row in rows if isinstance(row, ViewRow)]


@pytest.mark.parametrize("change", [rename, truncate])
@pytest.mark.parametrize("lines", [0, 5, 90, 100, 200])
@pytest.mark.parametrize("form", [log, csv])
def test_a_replaced_file_is_rejected(
    tmp_path: Path, form: Callable[[int, int], bytes], lines: int, change: Change
) -> None:
    """For example, a log that is rotated by moving or by truncating it."""
    path = tmp_path / "file"
    path.write_bytes(form(1, 100))
    files = named(path)
    assert read(files) == ["/1"] * 100
    change(path, form(2, lines))
    for again in (digest_of, read):
        with pytest.raises(BadRequest, match=f"{path}: {REPLACED}"):
            again(files)  # type: ignore[operator] # both take files


@pytest.mark.parametrize("lines", [0, 900, 2_000])
def test_a_file_emptied_while_open_is_rejected(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(log(1, 1_000))
    rows = number_rows(named(path), ReadContext(survey_of(path)))
    next(rows)
    truncate(path, log(2, lines))
    with pytest.raises(BadRequest, match=f"{path}: {REPLACED}"):
        list(rows)


def test_a_file_with_more_rows_in_the_second_pass_is_rejected(tmp_path: Path) -> None:
    """For example, a log of the same size with shorter lines."""
    path, later = tmp_path / "access.log", tmp_path / "later.log"
    path.write_bytes(log(1, 5))
    later.write_bytes(log(1, 6))
    *_, found = survey_rows(named(path))
    nothing = np.zeros(0, np.uint64)
    known = ExistingHits(Origins("here"), nothing, nothing)
    spans = [Span(store, first, last, 1) for store, first, last in found.ranges]
    with pytest.raises(BadRequest, match="a file changed while it was being read"):
        list(RowGatherer(known, found, spans).gather(named(later)))


def survey_of(path: Path) -> VisitorIndex:
    *_, found = survey_rows(named(path))
    return found.index


def test_a_file_moved_while_open_is_read(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(log(1, 1_000))
    rows = number_rows(named(path), ReadContext(survey_of(path)))
    next(rows)
    rename(path, log(2, 5))
    assert len(list(rows)) == 999


def test_a_compressed_file_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "access.log.gz"
    path.write_bytes(gzip.compress(log(1, 9)))
    files = named(path)
    assert read(files) == ["/1"] * 9
    with path.open("ab") as file:
        file.write(gzip.compress(log(2, 9)))
    with pytest.raises(BadRequest, match=f"{path}: {REPLACED}"):
        read(files)
    assert len(read(named(path))) == 18
