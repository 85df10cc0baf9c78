"""`medamad privacy`: print how many visits are alone in what is stored of their browsers."""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from attrs import asdict

from medamad.cli.support import (
    add_data,
    counted,
    effective_config,
    on_data,
    print_damaged,
    whole,
)
from medamad.domain.zones import day_at, start_of_day
from medamad.query.embedded.uniqueness import Uniqueness, count_alone
from medamad.query.period import Period
from medamad.query.request import Cancellation
from medamad.storage.offline import open_reader

EXAMPLES: Final = (
    ("medamad privacy --data /var/lib/medamad", "of the visits of the last 30 days"),
    ("medamad privacy --data /var/lib/medamad --days 1 example.com", "of yesterday's, of one"),
)

_DAYS: Final = 30
_MAX_DAYS: Final = 366
_NAMES: Final = {
    "browser": "browser and version",
    "os": "system and version",
    "device": "device",
    "country": "country",
    "language": "language",
    "width_class": "width of the window",
    "host": "host",
    "since": "last visit",
    "hosting": "hosting network",
}
"""The columns of `medamad.query.embedded.uniqueness`, as they are printed."""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "website", nargs="*", metavar="HOSTNAME", help="the websites (default: all)"
    )
    parser.add_argument(
        "--days",
        type=whole(1, _MAX_DAYS),
        default=_DAYS,
        metavar="N",
        help=f"the visits that began in the last N whole days (default: {_DAYS})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_data(parser)
    parser.epilog = (
        "A visit is alone if no other visit of the website that began on the same day has\n"
        "the same browser, system, device, country, language, width of the window, host, time\n"
        "of the last visit and kind of network, as far as these are stored. What a column\n"
        "adds is how many more visits are alone because it is stored. Changes nothing; can\n"
        "run alongside a daemon, but not on one that sends its hits to a cluster.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Print the figures; the exit status is 1 if damaged parts were left out."""
    return on_data(arguments, lambda data_dir: _show(data_dir, arguments), by_file=True)


def _show(data_dir: Path, arguments: Namespace) -> int:
    zone = effective_config(data_dir, arguments.config).config.events.timezone
    today = day_at(zone, int(time.time()))
    begin_s, end_s = (start_of_day(zone, day) for day in (today - arguments.days, today))
    period = Period(begin_s * 1000, end_s * 1000 - 1)
    rows: list[tuple[str, Uniqueness]] = []
    with open_reader(data_dir) as reader:
        reader.check_is_whole()
        wanted = dict.fromkeys(arguments.website)
        websites = [reader.website(name) for name in wanted] if wanted else reader.websites()
        for website in websites:
            snapshot = reader.sound_snapshot(website)
            rows.append((website.hostname, count_alone(snapshot, period, zone, Cancellation())))
    if arguments.json:
        found = [{"hostname": hostname, **asdict(alone)} for hostname, alone in rows]
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        for hostname, alone in rows:
            print(*_lines(hostname, alone), sep="\n")
    return int(print_damaged(reader.damaged))


def _lines(hostname: str, found: Uniqueness) -> Iterator[str]:
    yield f"{hostname}: {counted(found.visits, 'visit')}"
    if not found.visits:
        return
    yield f"  alone on their day: {_share(found.alone, found.visits)}"
    added = {name: found.alone - without for name, without in found.without.items()}
    for name, more in sorted(added.items(), key=lambda item: -item[1]):
        yield f"    {_NAMES[name]} adds {_share(more, found.visits)}"


def _share(some: int, visits: int) -> str:
    return f"{some:,} ({some / visits:.1%})"
