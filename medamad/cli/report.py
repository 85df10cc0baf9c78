"""`medamad report`: print the report of a week or month, without a mail server."""

import re
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import ExitStack, nullcontext
from datetime import date, tzinfo
from pathlib import Path
from typing import Final

from medamad.cli.reading import reader_of
from medamad.cli.support import add_data, effective_config, on_data, print_damaged
from medamad.config.lists import load_lists
from medamad.config.schema import public_url
from medamad.config.settings import sources
from medamad.domain.accounts import LANGUAGES
from medamad.domain.errors import BadRequest
from medamad.domain.subscriptions import Every
from medamad.domain.zones import zone_named
from medamad.mail.figures import Counted, website_figures
from medamad.mail.report import Report, as_html, as_text
from medamad.mail.spans import Span
from medamad.mail.words import Words
from medamad.storage.environment.owner import as_invoker
from medamad.storage.offline import open_reader

_MONTH: Final = re.compile(r"[0-9]{4}-[0-9]{2}\Z")

_YEARS: Final = range(1970, 9999)

EXAMPLES: Final = (
    ("medamad report --website example.com", "of the last week that is over, as text"),
    (
        "medamad report --website example.com --week 2026-W47 --format html > report.html",
        "of a week, as the page of HTML that a mail has",
    ),
    (
        "medamad report --website example.com --website example.org --month 2026-10",
        "of a month, for two websites",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--website",
        action="append",
        required=True,
        metavar="HOSTNAME",
        help="the website; may be repeated",
    )
    of = parser.add_mutually_exclusive_group()
    of.add_argument(
        "--week",
        type=_day_of_week,
        metavar="WEEK",
        help="the week, such as 2026-W47, or a day in it, such as 2026-11-16"
        " (default: the last that is over)",
    )
    of.add_argument("--month", type=_day_of_month, metavar="MONTH", help="a month, such as 2026-10")
    parser.add_argument(
        "--format", choices=("text", "html"), default="text", help="the format (default: text)"
    )
    parser.add_argument(
        "--language", choices=LANGUAGES, help="the language (default: that of the account)"
    )
    parser.add_argument(
        "--timezone",
        metavar="ZONE",
        help="the time zone whose midnight begins a day, such as Europe/Berlin"
        " (default: that of the configuration)",
    )
    add_data(parser)
    parser.epilog = (
        "Writes nothing to the store and sends nothing; can run alongside a daemon.\n\n"
        f"{parser.epilog}"
    )


def _day_of_week(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("expected a week such as 2026-W47, or a day in it") from None


def _day_of_month(text: str) -> date:
    try:
        if _MONTH.match(text):
            return date.fromisoformat(f"{text}-01")
    except ValueError:
        pass
    raise ArgumentTypeError("expected a month such as 2026-10")


def run(arguments: Namespace) -> int:
    """Print a report; the exit status is 1 if damaged parts were left out."""
    return on_data(arguments, lambda data_dir: _report(data_dir, arguments), by_file=True)


def _report(data_dir: Path, arguments: Namespace) -> int:
    effective = effective_config(data_dir, arguments.config)
    config, now_ms = effective.config, int(time.time() * 1000)
    zone = zone_named(arguments.timezone) if arguments.timezone else config.events.timezone
    span = _span(arguments, now_ms // 1000, zone)
    with as_invoker() if arguments.config is not None else nullcontext():
        names = sources(load_lists(config))
    with open_reader(data_dir) as reader, ExitStack() as reading:
        counted = Counted(config.events.visits, config.events.unique != "none")
        websites = [reader.website(hostname) for hostname in dict.fromkeys(arguments.website)]
        report = Report(
            span=span,
            websites=[
                website_figures(
                    reading.enter_context(reader_of(config, reader, website, names)),
                    website.hostname,
                    span,
                    goals=reader.goals(website).goals,
                    annotations=reader.annotations(website),
                    counted=counted,
                    now_ms=now_ms,
                )
                for website in websites
            ],
            words=Words.of(arguments.language or reader.language()),
            url=public_url(effective.of_daemon()),
        )
    text = as_html(report) if arguments.format == "html" else as_text(report)
    sys.stdout.buffer.write(text.encode("utf-8"))
    return int(print_damaged(reader.damaged))


def _span(arguments: Namespace, now_s: int, zone: tzinfo) -> Span:
    """Return the week or month that is wanted. Raises BadRequest if it is not over."""
    every = Every.WEEK if arguments.month is None else Every.MONTH
    day = arguments.week or arguments.month
    if day is None:
        return Span.last_over(every, now_s, zone)
    if day.year not in _YEARS:
        raise BadRequest(f"--{every}: expected a year from {_YEARS[0]} to {_YEARS[-1]}")
    span = Span.with_day(every, day, zone)
    if span.end_s > now_s:
        raise BadRequest(f"--{every}: expected a {every} that is over")
    return span
