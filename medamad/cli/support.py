"""What the commands share: arguments, effective configuration, progress, signals and output."""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal
from types import FrameType
from typing import Final, NoReturn, TextIO

import msgspec
from attrs import define, evolve, frozen

from medamad.accounts import first_login
from medamad.admin.client import NotDone, NotRunning, connect
from medamad.admin.protocol import SOCKET_NAME, AskConfiguration, Configuration
from medamad.config.schema import EXIT_STATUS, Config, ConfigError, load, load_data_dir
from medamad.config.values import Endpoints, Size, read_value
from medamad.daemon.install import ServicePaths
from medamad.daemon.logs import complain, reason_of, warn
from medamad.domain.errors import ApiError, BadRequest, Conflict
from medamad.storage.environment.environment import FILE_NAME, LOCK_NAME
from medamad.storage.environment.folder import PRESENCE_NAME
from medamad.storage.errors import StoreError


def add_data(parser: ArgumentParser, *, of_service: bool = True) -> None:
    """Add --config and --data; `of_service` says that `settle` does what it can about them."""
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
        help="the folder of the data, whatever the configuration says"
        " (without both: $STATE_DIRECTORY, else ./medamad-data)",
    )


def add_listen(parser: ArgumentParser) -> None:
    """Add --listen."""
    parser.add_argument(
        "--listen",
        action="append",
        metavar="ENDPOINT",
        help='where to listen, such as "tcp:8080", whatever the configuration says; may be repeated'
        " (without: port 8080, for this machine only)",
    )


def read_config(file: Path | None, data: Path | None, listen: list[str] | None) -> Config:
    """Read the configuration, with what the command line says instead. Raises ConfigError."""
    config = _on(data, load(file))
    if listen:
        server = msgspec.structs.replace(config.server, listen=Endpoints(listen))
        config = evolve(config, server=server)
    return config


def _on(data: Path | None, config: Config) -> Config:
    """Have the folder of data that is named, if one is, win."""
    if data is None:
        return config
    server = msgspec.structs.replace(config.server, data_dir=str(data.absolute()))
    return evolve(config, server=server)


def settle(arguments: Namespace, environ: Mapping[str, str], *, by_file: bool = False) -> Config:
    """Read the configuration of a command that is not the daemon. Raises ConfigError.

    The service finds its configuration and its data by its unit alone. Who names one of the two
    means the other as well, and `arguments` has it from then on; what is named always wins.

    A file that cannot be used stops only a command that goes `by_file`, or would not know on which
    folder it works; others are given where the data are and no more of the file, with a warning.
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
        warn(f"{error}; the command goes on without this file, on {where}", sys.stderr, environ)
    if arguments.config is not None and arguments.data is None:
        says_itself = config.server.data_dir or environ.get("STATE_DIRECTORY")
        arguments.data = None if says_itself else paths.data_for(arguments.config)
    return _on(arguments.data, config)


def _only_data(arguments: Namespace, error: ConfigError) -> Config:
    """Return where the data are by a file that cannot be used.

    Raises `error` where that is not known: a file of which not all can be read may have named
    another folder than the service's.
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


def refused(error: ConfigError) -> int:
    """Return why the configuration cannot be used, and give the exit status."""
    complain(str(error), sys.stderr, os.environ)
    return EXIT_STATUS


def on_data(arguments: Namespace, work: Callable[[Path], int], *, by_file: bool = False) -> int:
    """Do a command's work on the folder of the data; gives its exit status, or says what failed.

    `by_file` says that it needs all of the configuration, not the folder alone.
    """
    try:
        config = settle(arguments, os.environ, by_file=by_file)
        return work(config.data_dir(os.environ))
    except ConfigError as error:
        return refused(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(reason_of(error), sys.stderr, os.environ)
        return 1
    except (ApiError, StoreError, NotRunning, NotDone) as error:
        complain(str(error), sys.stderr, os.environ)
        return 1


_EVERY_S: Final = 0.2
_ERASE: Final = "\x1b[K"
_KIB: Final = 1024
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def tell_error(told: str) -> None:
    """Say on standard error why a command does not do what it should."""
    complain(told, sys.stderr, os.environ)


def tell_warning(told: str) -> None:
    """Say on standard error what is amiss while a command does what it should."""
    warn(told, sys.stderr, os.environ)


@define(eq=False)
class Telling:
    """Tells only where somebody looks on: nothing of it goes into a file or a pipe."""

    _what: str
    _stream: TextIO
    _now: Callable[[], float] = time.monotonic
    _told_at: float = float("-inf")
    _last: str = ""

    def tell(self, done: int, total: int = 0) -> None:
        """Return how much is done, and of how much if that is known, once in a while."""
        share = f" of {total:,} ({100 * done // total} %)" if total else ""
        self._last = f"{self._what}: {done:,}{share}"
        now = self._now()
        if self._stream.isatty() and now - self._told_at >= _EVERY_S:
            self._told_at = now
            self._stream.write(f"\r{self._last}{_ERASE}")
            self._stream.flush()

    def end(self) -> None:
        """Tell the last of it, and leave the line."""
        if self._stream.isatty():
            self._stream.write(f"\r{self._last}{_ERASE}\n")
            self._stream.flush()


def told_bytes(count: float) -> str:
    """Return a number of bytes in the unit that reads best."""
    for unit in _UNITS:
        if count < _KIB or unit == _UNITS[-1]:
            break
        count /= _KIB
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


@define(eq=False)
class Phases:
    """The same for work in several parts, each of which has a line of its own."""

    _stream: TextIO
    _what: str = ""
    _telling: Telling | None = None

    def tell(self, what: str, done: int, total: int) -> None:
        """Return how much is done of a part of the work."""
        if self._telling is None or what != self._what:
            self.end()
            self._what, self._telling = what, Telling(what, self._stream)
        self._telling.tell(done, total)

    def end(self) -> None:
        """Tell the last of it, and leave the line."""
        if self._telling is not None:
            self._telling.end()


_ENDING: Final = (SIGINT, SIGTERM, SIGHUP)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the work within as Ctrl-C does, by KeyboardInterrupt.

    A terminal that goes sends several, so the first one counts. What whoever runs us has us ignore,
    as nohup does, goes on being ignored.
    """
    before = {number: getsignal(number) for number in _ENDING}

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        end_no_more()
        raise KeyboardInterrupt

    for number, handler in before.items():
        if handler is SIG_DFL:
            signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal(number, handler)


def end_no_more() -> None:
    """Let nothing end the work that `ended_in_order` holds any more: the rest of it is short."""
    for number in _ENDING:
        signal(number, SIG_IGN)


@frozen
class Governing:
    """What a command goes by, and what the daemon does; None for the latter where none runs."""

    config: Config
    daemon: Configuration | None

    @property
    def another(self) -> str | None:
        """The file by which the daemon goes, where it is another; None where none runs."""
        if self.daemon is None or self.config.file is None:
            return None
        theirs = self.daemon.file
        if theirs is not None and os.path.realpath(theirs) == os.path.realpath(self.config.file):
            return None
        return theirs or "the defaults"

    def of_daemon(self) -> Config:
        """Return what the daemon goes by, or would if it ran. Raises ConfigError."""
        if self.another is None or self.daemon is None:
            return self.config
        return load(None if self.daemon.file is None else Path(self.daemon.file))

    def check_zone(self) -> None:
        """See that days are the same to both. Raises Conflict."""
        zone = str(self.config.events.timezone)
        if self.daemon is not None and self.daemon.timezone != zone:
            where = self.config.file or "by default it"
            raise Conflict(
                f"events.timezone: {where} says {zone}, and the daemon goes by"
                f" {self.daemon.timezone}: their days are not the same"
            )


def min_free_disk(data_dir: Path, file: Path | None) -> int:
    """Return how much stays free: by a file that can be used, else by the daemon, else by default."""
    if file is not None:
        with suppress(ConfigError):
            return load(file).store.min_free_disk
    with suppress(NotRunning, NotDone), connect(data_dir) as connection:
        told = connection.ask(AskConfiguration(), Configuration).min_free_disk
        if told is not None:
            return told
    return Config().store.min_free_disk


def governing(data_dir: Path, named: Path | None) -> Governing:
    """Read the configuration named, else that of the daemon on a folder of data if one runs there.

    Raises ConfigError; and NotDone when none is named and the daemon does not tell.
    """
    daemon = None
    try:
        with connect(data_dir) as connection:
            daemon = connection.ask(AskConfiguration(), Configuration)
    except NotRunning:
        pass
    except NotDone:
        if named is None:
            raise
    if named is None and daemon is not None and daemon.file is not None:
        named = Path(daemon.file)
    return Governing(load(named), daemon)


MAX_DAYS: Final = 36_500
_DAY_S: Final = 86_400


def add_json(parser: ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="write JSON, for programs")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"expected a whole number from {least} to {most}")
        return int(text)

    return read


def size(text: str) -> int:
    """Read bytes, as the configuration has them."""
    try:
        return read_value(Size, int(text) if text.isascii() and text.isdigit() else text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def days(text: str) -> int:
    """Read a number of days as seconds."""
    return whole(1, MAX_DAYS)(text) * _DAY_S


def day(unix_s: int | None) -> str:
    """Write a moment as its day, UTC; a dash for none."""
    return "-" if unix_s is None else datetime.fromtimestamp(unix_s, UTC).date().isoformat()


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Write rows in columns, the first one of headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


_BEGINNINGS: Final = (
    f"{Path(FILE_NAME).stem}.",
    LOCK_NAME,
    SOCKET_NAME,
    PRESENCE_NAME,
    first_login.FILE_NAME,
)
"""How their names begin, after a point perhaps: also those of what is being made or was kept."""


def refuse_own(file: Path, data_dir: Path) -> None:
    """Raise BadRequest where what is written as a file would take the place of one of our own."""
    if _is_own(file, data_dir):
        raise BadRequest(
            f"{file}: so the daemon names a file of its own, which would be lost;"
            " name another one to write into"
        )


def _is_own(file: Path, data_dir: Path) -> bool:
    store = data_dir / FILE_NAME
    if file.exists() and store.exists() and file.samefile(store):
        return True  # also where it is kept elsewhere, and a link leads there
    return any(
        named.name.removeprefix(".").startswith(_BEGINNINGS)
        and named.parent.is_dir()
        and data_dir.is_dir()
        and named.parent.samefile(data_dir)
        for named in (file, Path(os.path.realpath(file)))
    )
