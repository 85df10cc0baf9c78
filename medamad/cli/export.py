"""`medamad export`: export the views, the events or the statistics of a website."""

import json
import os
import re
import shutil
import stat
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, date, datetime, tzinfo
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import BinaryIO, Final

from medamad.cli.reading import reader_of
from medamad.cli.support import (
    STANDARD_OUTPUT,
    ProgressLine,
    add_data,
    counted,
    effective_config,
    from_data,
    on_data,
    print_damaged,
    print_error,
    print_warning,
    reject_own_file,
)
from medamad.config.lists import load_lists
from medamad.config.schema import Config
from medamad.config.settings import sources
from medamad.domain.errors import BadRequest
from medamad.domain.exported_settings import exported_exclusions
from medamad.domain.instants import day_as_text
from medamad.domain.websites import Website
from medamad.domain.zones import start_of_day
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.period import Period, parse_period
from medamad.query.reader import Reader
from medamad.query.request import Gap, Gaps
from medamad.storage.environment.owner import as_invoker
from medamad.storage.offline import StoreReader, defined_for, open_reader
from medamad.storage.segments.damage import WAYS_OUT
from medamad.transfer.export import FORMAT_NAMES, WHAT, ExportRequest, ExportSource, Source

_EXCLUSIONS: Final = "exclusions"
_MODE: Final = 0o600
_EPOCH: Final = date(1970, 1, 1)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")

EXAMPLES: Final = (
    ("medamad export example.com --output views.csv", "all views, as CSV"),
    (
        "medamad export example.com --what events --format ndjson",
        "all events, each a line of JSON",
    ),
    (
        "medamad export example.com --what statistics --start 2026-01-01 --end 2026-01-31",
        "totals, days and lists of the dashboard of these days, as CSV",
    ),
    (
        "medamad export example.com --what exclusions --output exclusions.json",
        "the rules that leave something out of its figures",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("hostname", metavar="HOSTNAME", help="the website")
    parser.add_argument(
        "--what",
        choices=(*WHAT, _EXCLUSIONS),
        default="views",
        help="what to export (default: views)",
    )
    parser.add_argument(
        "--format", choices=FORMAT_NAMES, help="the format (default: csv; exclusions are JSON)"
    )
    for name, where in (("start", "begins"), ("end", "ends")):
        parser.add_argument(
            f"--{name}",
            type=_moment,
            metavar="TIME",
            help=f"where the period {where}: a day such as 2026-01-31, or a time such as"
            " 2026-01-31T18:00:00Z",
        )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=STANDARD_OUTPUT,
        metavar="FILE",
        help="the file to write; - for standard output (default: -)",
    )
    add_data(parser)
    parser.set_defaults(misused=parser.error)
    parser.epilog = (
        "Writes nothing to the store, and can run alongside a daemon; meanwhile the daemon cannot\n"
        "reuse freed space, so its file may grow. Output for a pipe first goes to a temporary\n"
        "file (in $TMPDIR, default: /tmp), since the reader may be slow. `medamad import`\n"
        "imports views and events exactly as they were, and exclusions, so that figures are the\n"
        "same. Views and events are all there, whatever exclusions leave out of figures.\n\n"
        f"{parser.epilog}"
    )


def _moment(text: str) -> str:
    """Check that a day or a time can be parsed; return it unchanged."""
    try:
        parse_period(_instant(text, UTC), None)
    except BadRequest as error:
        raise ArgumentTypeError(
            f"{str(error).partition(': ')[2]}, or a day such as 2024-01-31"
        ) from None
    return text


def _instant(text: str | None, zone: tzinfo, *, is_end: bool = False) -> str | None:
    """Return a day's first or last second as an RFC 3339 date-time; other texts as they are."""
    if text is None or not _DAY.match(text):
        return text
    try:
        number = (date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        return text
    second = start_of_day(zone, number + 1) - 1 if is_end else start_of_day(zone, number)
    return datetime.fromtimestamp(second, UTC).isoformat()


def run(arguments: Namespace) -> int:
    """Export a website; the exit status is 1 if damaged parts were left out."""
    work = _export
    if arguments.what == _EXCLUSIONS:
        for name in ("format", "start", "end"):
            if getattr(arguments, name) is not None:
                arguments.misused(f"--{name}: not expected with --what {_EXCLUSIONS}")
        work = _export_exclusions
    return on_data(arguments, lambda data_dir: work(data_dir, arguments), by_file=True)


def _export_exclusions(data_dir: Path, arguments: Namespace) -> int:
    exported = exported_exclusions(defined_for(data_dir, arguments.hostname).definitions)
    with _output(_target(data_dir, arguments), data_dir) as (file, place), _naming(place):
        file.write(f"{json.dumps(exported, indent=1)}\n".encode())
    return 0


def _target(data_dir: Path, arguments: Namespace) -> Path:
    """Return the file to write. Raises BadRequest for one of the store."""
    output = from_data(arguments, arguments.output)
    if output != STANDARD_OUTPUT:
        with as_invoker():
            reject_own_file(output, data_dir)
    return output


def _export(data_dir: Path, arguments: Namespace) -> int:
    config = effective_config(data_dir, arguments.config).config
    zone = config.events.timezone
    request = ExportRequest(
        what=arguments.what,
        format=arguments.format or FORMAT_NAMES[0],
        period=parse_period(
            _instant(arguments.start, zone), _instant(arguments.end, zone, is_end=True)
        ),
    )
    if arguments.output == STANDARD_OUTPUT and request.format == "parquet" and sys.stdout.isatty():
        raise BadRequest("--output: expected a file: Parquet cannot be printed on a terminal")
    output = _target(data_dir, arguments)
    with as_invoker() if arguments.config is not None else nullcontext():
        lists = load_lists(config)
    with (
        _output(output, data_dir) as (file, place),
        _naming(str(data_dir)),
        open_reader(data_dir) as reader,
        ExitStack() as stack,
    ):
        website = reader.website(arguments.hostname)
        exported = _source_of(
            config,
            reader,
            website,
            stack.enter_context(reader_of(config, reader, website, sources(lists))),
            request.period,
        )
        progress = ProgressLine(f"{website.hostname}: {request.what}", sys.stderr)
        gaps_of: dict[str, Gaps] = {}
        for written in request.encoded(exported, int(time.time() * 1000)):
            with _naming(place):
                file.write(written.data)
            gaps_of.update(written.gaps)
            progress.update(written.done, written.total)
    progress.end()
    is_damaged = print_damaged(reader.damaged)
    for what in _without(gaps_of, _BY_ROLLUPS):
        print_warning(f"{what}, because only daily totals are kept")
    for what in _without(gaps_of, _BY_VISITS):
        print_warning(f"{what}, of which they are unknown")
    for what in _without(gaps_of, _BY_DAMAGE):
        print_error(f"{what}, of which damaged data is left out; {WAYS_OUT}")
    return 1 if is_damaged or any(gaps.days(Gap.DAMAGED) for gaps in gaps_of.values()) else 0


def _source_of(
    config: Config, store: StoreReader, website: Website, reader: Reader, period: Period
) -> Source:
    """Return what is exported: what the store has, or the cluster."""
    zone, has_visits = config.events.timezone, config.events.visits
    origins = store.origins(website)
    if isinstance(reader, EmbeddedReader):
        return ExportSource(
            snapshot=reader.snapshot,
            origins=origins,
            sources=reader.sources,
            period=period,
            zone=zone,
            has_visits=has_visits,
            rules=reader.rules,
        )
    # Only with a cluster.
    from medamad.query.clickhouse.reader import ClickHouseReader  # noqa: PLC0415
    from medamad.transfer.cluster_export import ClusterSource  # noqa: PLC0415

    assert isinstance(reader, ClickHouseReader)  # noqa: S101 - there is no other
    return ClusterSource(
        reader=reader, origins=origins, period=period, zone=zone, has_visits=has_visits
    )


_BY_ROLLUPS: Final = (
    (Gap.FIGURES, "without"),
    (Gap.INTERVAL, "the series is without"),
    (Gap.DURATIONS, "times are without"),
    (Gap.BOUNCES, "bounce rates are without"),
    (Gap.EXCLUSIONS, "exclusions do not apply to"),
)
_BY_VISITS: Final = ((Gap.VISITS, "visits are without"),)
_BY_DAMAGE: Final = ((Gap.DAMAGED, "incomplete for"),)


def _without(gaps_of: Mapping[str, Gaps], kinds: Iterable[tuple[Gap, str]]) -> Iterator[str]:
    """Return a sentence for each gap; tables or reports with the same days share one."""
    for gap, incomplete in kinds:
        names: dict[tuple[int, ...], list[str]] = {}
        for name, gaps in gaps_of.items():
            if missing := gaps.days(gap):
                names.setdefault(tuple(missing), []).append(name)
        for days, tables in names.items():
            bounds = f"from {day_as_text(days[0])} to {day_as_text(days[-1])}"
            yield f"{', '.join(tables)}: {incomplete} {counted(len(days), 'day')} {bounds}"


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Add a place to an OSError that names none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, place) from error


@contextmanager
def _output(file: Path, data_dir: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Return the file to write, and its name for errors."""
    target = "standard output" if file == STANDARD_OUTPUT else str(file)
    with _naming(target), _opened(file, target, data_dir) as opened:
        yield opened


@contextmanager
def _opened(whole: Path, place: str, data_dir: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Return the same as `_output`; the file gets its name only once it is complete."""
    if whole == STANDARD_OUTPUT:
        with _at_full_speed(sys.stdout.buffer, place) as taking:
            yield taking
        sys.stdout.buffer.flush()
        return
    rights = partial(as_invoker, whole, data_dir)
    with rights():
        target = whole.open("wb") if whole.exists() and not whole.is_file() else None
    if target is not None:
        with target, _at_full_speed(target, place) as taking:
            yield taking
        return
    part = whole.with_name(f".{whole.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with rights():
            descriptor = os.open(part, flags, _MODE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, place) from error
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - only the owner may read it
            yield file, place
        with rights():
            part.replace(whole)
    finally:
        with rights(), suppress(FileNotFoundError):
            part.unlink()


@contextmanager
def _at_full_speed(target: BinaryIO, place: str) -> Iterator[tuple[BinaryIO, str]]:
    """Return a file that can be written at full speed, and its name for errors.

    A pipe may be slow, or stall for hours, and must not keep the store's transaction open: a
    temporary file takes the output first. `place` is the name of the target.
    """
    if stat.S_ISREG(os.fstat(target.fileno()).st_mode):
        yield target, place
        return
    with _naming("temporary files"):
        folder = gettempdir()
    with _naming(folder), TemporaryFile() as whole:
        yield whole, folder
        whole.seek(0)
        with _naming(place):
            shutil.copyfileobj(whole, target)
