"""What the commands share: arguments, effective configuration, progress and output."""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from attrs import define, frozen

from medamad.accounts import first_login
from medamad.admin.client import NotRunning, RequestFailed, connect
from medamad.admin.protocol import SOCKET_NAME, Configuration, GetConfiguration, ReportDamage
from medamad.config.schema import EXIT_STATUS, Config, ConfigError, load, load_data_dir, public_url
from medamad.config.values import Size, read_value
from medamad.daemon.messages import complain, reason_of, warn
from medamad.daemon.service_paths import ServicePaths
from medamad.domain.errors import ApiError, BadRequest, Conflict
from medamad.storage.environment.environment import FILE_NAME, LOCK_NAME
from medamad.storage.environment.folder import PRESENCE_NAME
from medamad.storage.environment.owner import as_invoker, as_owner
from medamad.storage.environment.tree_check import DamagedValue
from medamad.storage.errors import StoreError
from medamad.storage.wal.named_visitors import FILE_NAME as KEYS_NAME

STANDARD_OUTPUT: Final = Path("-")
"""In place of a file to write."""


def add_data(parser: ArgumentParser, *, of_service: bool = True) -> None:
    """Add --config and --data; `of_service` mentions that `settle` fills in the missing one."""
    its_own = ""
    if of_service:
        its_own = (
            "; the service's, /etc/medamad/medamad.toml, and --data /var/lib/medamad each stand"
            " for both"
        )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help=f"the configuration file{its_own}"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the data directory; overrides the configuration"
        " (default: $STATE_DIRECTORY, else ./medamad-data)",
    )


def add_listen(parser: ArgumentParser) -> None:
    """Add --listen."""
    parser.add_argument(
        "--listen",
        action="append",
        metavar="ENDPOINT",
        help="where to listen: a port, which is for this machine only, an address with a port such"
        " as 0.0.0.0:8080, or an endpoint of Twisted; overrides the configuration; may be repeated"
        " (default: 8080)",
    )


def read_config(
    arguments: Namespace, environ: Mapping[str, str], *, by_file: bool = False
) -> Config:
    """Read the configuration of a command other than the daemon. Raises ConfigError.

    If the user names only the service's configuration or only its data directory, the other is
    implied, and added to `arguments`; what is named always wins.

    An invalid file stops a command only if it needs the whole file (`by_file`) or the data
    directory is unknown without it; others get only the data directory from it, with a warning.
    """
    paths: ServicePaths = arguments.service_paths
    if arguments.config is None and arguments.data is not None:
        arguments.config = paths.config_for(arguments.data)
    try:
        config = load(arguments.config)
    except ConfigError as error:
        if by_file:
            raise
        config = _only_data(arguments, error)
        where = arguments.data or config.server.data_dir or paths.data_for(arguments.config)
        warn(f"{error}; continuing without this file, on {where}", sys.stderr, environ)
    if arguments.config is not None and arguments.data is None:
        says_itself = config.server.data_dir or environ.get("STATE_DIRECTORY")
        arguments.data = None if says_itself else paths.data_for(arguments.config)
    return config.with_overrides(arguments.data)


def _only_data(arguments: Namespace, error: ConfigError) -> Config:
    """Return a configuration with only the data directory of a file that is invalid.

    Raises `error` if that is unknown: the part that cannot be read may name another directory than
    the service's.
    """
    paths: ServicePaths = arguments.service_paths
    if arguments.data is not None:
        return Config(file=arguments.config.absolute())
    try:
        config = load_data_dir(arguments.config)
    except ConfigError:
        raise error from None
    if not config.server.data_dir and paths.data_for(arguments.config) is None:
        raise error
    return config


def report_config_error(error: ConfigError) -> int:
    """Print all that is wrong with the configuration; return the exit status."""
    for each in (error, *error.others):
        complain(str(each), sys.stderr, os.environ)
    return EXIT_STATUS


def on_data(arguments: Namespace, work: Callable[[Path], int], *, by_file: bool = False) -> int:
    """Run a command on the data directory; print errors; return its exit status.

    If root runs it, it has the rights of the directory's owner. `by_file`: the command needs the
    whole configuration, not only the data directory. `arguments.base` is added: the folder that the
    paths given to `work` begin in, to name them by.
    """
    arguments.base = base = Path()
    try:
        config = read_config(arguments, os.environ, by_file=by_file)
        data_dir, folder = config.data_dir(os.environ), Path.cwd()
        with as_owner(data_dir) as place:
            if place != data_dir:
                arguments.base = base = folder / data_dir
                _make_absolute(folder, arguments)
            return work(place)
    except ConfigError as error:
        return report_config_error(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error.filename, str):
            error.filename = str(base / error.filename)
        complain(reason_of(error), sys.stderr, os.environ)
        return 1
    except ApiError as error:
        complain(str(error), sys.stderr, os.environ)
        return 1
    except (StoreError, NotRunning, RequestFailed) as error:
        complain(named_from(base, str(error)), sys.stderr, os.environ)
        return 1


def named_from(base: Path, text: str) -> str:
    """Return an error that may begin with a path, with that path from the root."""
    if base == Path() or text.startswith("/"):
        return text
    return f"{base}: {text.removeprefix('.: ')}"


def _make_absolute(folder: Path, arguments: Namespace) -> None:
    """Let the paths that the user has named hold when the working directory changes."""
    for name, value in vars(arguments).items():
        if isinstance(value, Path) and value not in (STANDARD_OUTPUT, arguments.base):
            setattr(arguments, name, folder / value)
        elif isinstance(value, list) and all(isinstance(each, Path) for each in value):
            setattr(arguments, name, [folder / each for each in value])


def from_data(arguments: Namespace, path: Path) -> Path:
    """Return a path that the data directory's owner can follow if it leads into the directory."""
    if arguments.base != Path():
        for base in (arguments.base, arguments.base.resolve()):
            if path.is_relative_to(base):
                return path.relative_to(base)
    return path


_EVERY_S: Final = 0.2
_ERASE: Final = "\x1b[K"
_KIB: Final = 1024
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def print_error(text: str) -> None:
    """Print on standard error why a command failed."""
    complain(text, sys.stderr, os.environ)


def print_warning(text: str) -> None:
    """Print on standard error what the user should know although the command succeeds."""
    warn(text, sys.stderr, os.environ)


@define(eq=False)
class ProgressLine:
    """A progress line on a terminal; nothing is written to a file or a pipe."""

    _what: str
    _stream: TextIO
    _now: Callable[[], float] = time.monotonic
    _shown_at: float = float("-inf")
    _last: str = ""

    def update(self, done: int, total: int = 0) -> None:
        """Show how much is done, and of how much if known; at most every 0.2 seconds."""
        share = f" of {total:,} ({100 * done // total} %)" if total else ""
        self._last = f"{self._what}: {done:,}{share}"
        now = self._now()
        if self._stream.isatty() and now - self._shown_at >= _EVERY_S:
            self._shown_at = now
            self._stream.write(f"\r{self._last}{_ERASE}")
            self._stream.flush()

    def end(self) -> None:
        """Show the final state and end the line."""
        if self._stream.isatty():
            self._stream.write(f"\r{self._last}{_ERASE}\n")
            self._stream.flush()


def format_bytes(count: float) -> str:
    """Return a number of bytes in the unit that reads best."""
    for unit in _UNITS:
        if count < _KIB or unit == _UNITS[-1]:
            break
        count /= _KIB
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


@define(eq=False)
class ProgressPhases:
    """Progress of work in several phases, with a line for each."""

    _stream: TextIO
    _what: str = ""
    _line: ProgressLine | None = None

    def update(self, what: str, done: int, total: int) -> None:
        """Show how much of a phase is done."""
        if self._line is None or what != self._what:
            self.end()
            self._what, self._line = what, ProgressLine(what, self._stream)
        self._line.update(done, total)

    def end(self) -> None:
        """Show the final state and end the line."""
        if self._line is not None:
            self._line.end()


@frozen
class EffectiveConfig:
    """The configuration of a command, and of the running daemon; None if none runs."""

    config: Config
    daemon: Configuration | None

    @property
    def another(self) -> str | None:
        """The daemon's configuration file if it is another one; None if not, or if none runs."""
        if self.daemon is None or self.config.file is None:
            return None
        theirs = self.daemon.file
        if theirs is not None and os.path.realpath(theirs) == os.path.realpath(self.config.file):
            return None
        return theirs or "the defaults"

    def of_daemon(self) -> Config:
        """Return the configuration that the daemon uses or would use. Raises ConfigError."""
        if self.another is None or self.daemon is None:
            return self.config
        # What says that it is the daemon may be another program of its user.
        return load(None if self.daemon.file is None else Path(self.daemon.file))

    def public_url(self) -> str:
        """Return the address of the dashboard: the public one if that is configured.

        Else that of this machine, and "" if the daemon listens on a unix socket alone.
        """
        config = self.of_daemon()
        if url := public_url(config):
            return url
        server = config.server
        if server.hostnames:
            url = f"https://{server.hostnames[0]}"
        elif self.daemon is not None:
            url = self.daemon.url
        else:
            kind, _, port = server.listen[0].partition(":")
            scheme = {"tcp": "http", "tcp6": "http", "ssl": "https"}.get(kind)
            url = f"{scheme}://localhost:{port.partition(':')[0]}" if scheme else ""
        return url + server.base_path

    def check_zone(self) -> None:
        """Raise Conflict if command and daemon disagree on when days begin."""
        zone = str(self.config.events.timezone)
        if self.daemon is not None and self.daemon.timezone != zone:
            where = self.config.file or "by default it"
            raise Conflict(
                f"events.timezone: {where} says {zone}, and the daemon uses"
                f" {self.daemon.timezone}: their days differ"
            )


def load_named(file: Path | None) -> Config:
    """Return the configuration that the user has named. Raises ConfigError."""
    with as_invoker():
        return load(file)


def min_free_disk(data_dir: Path, file: Path | None) -> int:
    """Return how much disk to leave free, by a valid file, else the daemon, else the default."""
    if file is not None:
        with suppress(ConfigError):
            return load_named(file).store.min_free_disk
    with suppress(NotRunning, RequestFailed), connect(data_dir) as connection:
        reported = connection.request(GetConfiguration(), Configuration).min_free_disk
        if reported is not None:
            return reported
    return Config().store.min_free_disk


def print_damaged(places: Sequence[str]) -> bool:
    """Print what was left out as damaged; return whether there is any."""
    for place in dict.fromkeys(places):
        print_error(f"a damaged segment is left out: {place}")
    return bool(places)


def report_damage(data_dir: Path, values: Iterable[DamagedValue]) -> None:
    """Report damaged values to the daemon, if one is running."""
    found = tuple((value.database, value.key) for value in values)
    with suppress(NotRunning, RequestFailed), connect(data_dir) as connection:
        connection.request(ReportDamage(found), type(None))


def effective_config(data_dir: Path, named: Path | None) -> EffectiveConfig:
    """Read the named configuration, else that of the daemon running on the data directory.

    The daemon's is read with the rights of the directory's owner.

    Raises ConfigError; RequestFailed if none is named and the daemon does not respond.
    """
    daemon = None
    try:
        with connect(data_dir) as connection:
            daemon = connection.request(GetConfiguration(), Configuration)
    except NotRunning:
        pass
    except RequestFailed:
        if named is None:
            raise
    if named is not None:
        return EffectiveConfig(load_named(named), daemon)
    theirs = None if daemon is None or daemon.file is None else Path(daemon.file)
    return EffectiveConfig(load(theirs), daemon)


MAX_DAYS: Final = 36_500
_DAY_S: Final = 86_400


def add_json(parser: ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"expected a whole number from {least} to {most}")
        return int(text)

    return read


def size(text: str) -> int:
    """Parse a size in bytes, as in the configuration."""
    try:
        return read_value(Size, int(text) if text.isascii() and text.isdigit() else text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def days(text: str) -> int:
    """Parse a number of days; return seconds."""
    return whole(1, MAX_DAYS)(text) * _DAY_S


def day(unix_s: int | None) -> str:
    """Return the UTC date of a moment; a dash for none."""
    return "-" if unix_s is None else datetime.fromtimestamp(unix_s, UTC).date().isoformat()


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns; the first row has the headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


_BEGINNINGS: Final = (
    f"{Path(FILE_NAME).stem}.",
    LOCK_NAME,
    SOCKET_NAME,
    PRESENCE_NAME,
    KEYS_NAME,
    first_login.FILE_NAME,
)
"""How the names of the daemon's files begin, after an optional dot."""


def reject_own_file(file: Path, data_dir: Path) -> None:
    """Raise BadRequest if writing `file` would overwrite one of the daemon's own files."""
    if _is_own(file, data_dir):
        raise BadRequest(
            f"{file}: this name belongs to one of the daemon's own files, which would be lost;"
            " choose another name"
        )


def _is_own(file: Path, data_dir: Path) -> bool:
    store = data_dir / FILE_NAME
    if file.exists() and store.exists() and file.samefile(store):
        return True  # even if it is a link to another place
    return any(
        named.name.removeprefix(".").startswith(_BEGINNINGS)
        and named.parent.is_dir()
        and data_dir.is_dir()
        and named.parent.samefile(data_dir)
        for named in (file, Path(os.path.realpath(file)))
    )
