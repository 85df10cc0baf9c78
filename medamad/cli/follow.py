"""`medamad follow`: count the robots, or all views, in a web server's log as it grows."""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import define, field

from medamad.admin.client import AdminConnection, NotRunning, RequestFailed, connect
from medamad.admin.followed_logs import AddLines, FindPlace, Followed
from medamad.cli.support import add_data, effective_config, on_data, print_error, print_warning
from medamad.config.lists import load_lists
from medamad.config.settings import rules
from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname
from medamad.storage.environment.owner import as_invoker, is_of_owner
from medamad.transfer.followed_lines import LineCounter, new_key
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.log_files import LogFiles

_BYTES: Final = 2 << 20
_BYTES_OF_PEOPLE: Final = 1 << 18
"""What is read at a time. What it counts fits into one request, and thousands of views do not keep
hits waiting for long."""
_LOOK_EVERY_S: Final = 1.0
_RETRY_AFTER_S: Final = 5.0
_ANSWERS_WITHIN_S: Final = 300.0
"""A request usually takes far less, but the disk may be slow or busy."""

EXAMPLES: Final = (
    (
        "medamad follow /var/log/nginx/access.log --website example.com",
        "count the robots in the log of one website",
    ),
    ("medamad follow /var/log/apache2/other_vhosts_access.log", "in a log that has host names"),
    ("medamad follow access.log --website example.com --once", "what is there, then end"),
    (
        "medamad follow access.log --website example.com --people",
        "count people, too, on a website without the tracker",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("log", type=Path, metavar="LOG", help="the log, which need not exist yet")
    parser.add_argument(
        "--website",
        metavar="HOSTNAME",
        help="the website that lines without a host name belong to; lines of other hosts are left"
        " out (default: lines belong to the website of their host name)",
    )
    parser.add_argument(
        "--once", action="store_true", help="end once all lines that are there have been counted"
    )
    counted = parser.add_mutually_exclusive_group()
    counted.add_argument("--robots", action="store_true", help="count robots alone (the default)")
    counted.add_argument(
        "--people",
        action="store_true",
        help="count the views of people, too: for websites without the tracker, which would count"
        " them a second time",
    )
    add_data(parser)
    parser.epilog = (
        "Counts what robots read; people are counted by the tracker, or with --people from the\n"
        "log. The first time, it begins with the first line that the log has; from then on where\n"
        "it stopped, also after the log was rotated, by renaming it or by emptying it\n"
        "(copytruncate). Formats are those of `medamad import`. While no daemon runs, it waits\n"
        "for one.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Follow a log until it is interrupted."""
    return on_data(arguments, lambda data_dir: _run(data_dir, arguments), by_file=True)


def _run(data_dir: Path, arguments: Namespace) -> int:
    log = Path(os.path.abspath(arguments.log))  # noqa: PTH100 - follows no link
    if is_of_owner(log, data_dir):
        raise BadRequest(
            f"{log}: expected a log outside the data directory, in which its owner may put links"
        )
    website = "" if arguments.website is None else canonical_hostname(arguments.website)
    follower = Follower(data_dir, log, website, arguments.config, has_people=arguments.people)
    if arguments.once:
        follower.follow(is_once=True)
        return 0
    while True:
        try:
            follower.follow(is_once=False)
        except (NotRunning, RequestFailed, OSError) as error:
            follower.complain(str(error))
            time.sleep(_RETRY_AFTER_S)


@define(eq=False)
class Follower:
    """Reads a log, and sends what it counts to the daemon."""

    _data_dir: Path
    _log: Path
    _website: str
    _config: Path | None
    _sleep: Callable[[float], None] = time.sleep
    has_people: bool = False
    """Whether views are counted, rather than page loads."""
    _visitor_key: bytes = field(factory=new_key, init=False)
    _counted_twice: set[str] = field(factory=set, init=False)
    """The websites of which this was said."""
    _complaint: str = field(default="", init=False)

    def complain(self, text: str) -> None:
        """Print what is wrong, once for each time that it begins."""
        if text != self._complaint:
            print_error(text)
        self._complaint = text

    def follow(self, *, is_once: bool) -> None:
        """Count lines until an error; with `is_once`, until there are none.

        Raises NotRunning, RequestFailed, ConfigError and OSError. The next call goes on where the
        daemon says that this one has come to.
        """
        counter = self._counter()
        files = LogFiles(self._log, time.monotonic)
        try:
            with connect(self._data_dir, _ANSWERS_WITHIN_S) as daemon:
                found = daemon.request(FindPlace(str(self._log)), Followed)
                self._check_website(found)
                counter.use_websites(found.websites or {})
                with as_invoker():
                    files.resume(found.files)
                    if found.is_damaged:
                        files.skip()
                if found.is_damaged:
                    print_warning(
                        f"{self._log}: the place up to which it was read is damaged in the store,"
                        " so only lines that come now are counted"
                    )
                if files.lost:
                    print_warning(
                        f"{self._log}: what was read last is not there any more, so lines may be"
                        " missing"
                    )
                self._follow(daemon, files, counter, found, is_once=is_once)
        finally:
            files.close()

    def _follow(
        self,
        daemon: AdminConnection,
        files: LogFiles,
        counter: LineCounter,
        found: Followed,
        *,
        is_once: bool,
    ) -> None:
        version, sent, known = found.version, found.files, found.known
        waiting: bytes | None = None
        """The lines that the daemon has not stored yet."""
        while True:
            with as_invoker():
                lines = files.read(_BYTES_OF_PEOPLE if self.has_people else _BYTES)
            places = files.places()
            counter.count(lines)
            # The next lines are counted while the daemon stores the last ones.
            if waiting is not None:
                answer = daemon.result(Followed)
                if answer.websites is not None:
                    # Nothing was stored, as settings have changed that decide what lines count as.
                    counter.use_websites(answer.websites)
                    counter.take()
                    counter.count(waiting)
                    counter.count(lines)
                    version, sent, known = answer.version, (), answer.known
                self._warn_of_two_counts(answer)
                self._complaint = ""
                waiting = None
            if places != sent:
                version, sent = version + 1, places
                daemon.send(
                    AddLines(
                        log=str(self._log),
                        version=version,
                        files=places,
                        counts=counter.take(),
                        known=known,
                    )
                )
                waiting = lines
            if counter.invalid:
                self.complain(f"{self._log}: some lines are not of an access log: {counter.reason}")
                counter.invalid = 0
            if not lines and waiting is None:
                if is_once:
                    return
                self._sleep(_LOOK_EVERY_S)

    def _counter(self) -> LineCounter:
        effective = effective_config(self._data_dir, self._config)
        effective.check_zone()
        config = effective.config
        target = ImportTarget(self._website, rules(config, load_lists(config)))
        return LineCounter(target, {}, visitor_key=self._visitor_key if self.has_people else None)

    def _warn_of_two_counts(self, answer: Followed) -> None:
        for hostname in answer.counted_twice:
            if hostname not in self._counted_twice:
                print_warning(
                    f"{hostname}: its pages send views themselves, so people who are also in this"
                    " log count twice; remove the tracker, or leave --people out"
                )
                self._counted_twice.add(hostname)

    def _check_website(self, found: Followed) -> None:
        if self._website and self._website not in (found.websites or {}):
            raise RequestFailed(f"--website: no website {self._website} is registered")
