"""`medamad compare`: what changed since a moment, against the same hours of earlier weeks."""

import json
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from medamad.cli.reading import reader_of
from medamad.cli.support import (
    add_data,
    add_json,
    counted,
    effective_config,
    on_data,
    print_damaged,
    print_error,
    print_table,
)
from medamad.config.lists import load_lists
from medamad.config.settings import sources
from medamad.domain.errors import BadRequest
from medamad.domain.instants import second_of
from medamad.query.comparison import (
    USUAL,
    ComparisonOptions,
    comparison,
    parse_metrics,
    parse_share,
)
from medamad.query.request import Query
from medamad.storage.environment.owner import as_invoker
from medamad.storage.offline import open_reader, value_of
from medamad.storage.website_values import ALL_ANNOTATIONS, GOALS_AND_FUNNELS

EXAMPLES: Final = (
    (
        "medamad compare --website example.com --annotation deploy --worse-than 20%",
        "since the latest annotation that begins with this word",
    ),
    (
        (
            "medamad compare --website example.com --since 2026-01-31T18:00:00Z"
            " --metric Order,not-found,time"
        ),
        "a goal, pages not found, and the median time on a page",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--website", metavar="HOSTNAME", required=True, help="the website")
    since = parser.add_mutually_exclusive_group(required=True)
    since.add_argument(
        "--since",
        metavar="TIME",
        help="a time in the last seven days such as 2026-01-31T18:00:00Z, or a day such as"
        " 2026-01-31",
    )
    since.add_argument(
        "--annotation",
        metavar="NAME",
        help="the latest annotation whose text is this, or begins with it as a word",
    )
    parser.add_argument(
        "--metric",
        metavar="NAMES",
        help=f"some of {', '.join(metric.name for metric in USUAL)} and the names of goals,"
        " separated by commas (default: all)",
    )
    parser.add_argument(
        "--worse-than",
        type=_share,
        metavar="SHARE",
        help="fail if a metric is worse by more than this, such as 20%%, and not by chance",
    )
    add_json(parser)
    add_data(parser)
    parser.epilog = (
        "Compares with the mean of the same hours of up to eight earlier weeks. More bounces and\n"
        "pages not found are worse, and less of everything else. What chance explains is about as\n"
        "before; that cannot be said of bounces and the time, and takes four earlier weeks.\n\n"
        f"{parser.epilog}"
    )


def _share(text: str) -> float:
    try:
        return parse_share(text, "--worse-than")
    except BadRequest as error:
        raise ArgumentTypeError(str(error).partition(": ")[2]) from None


def run(arguments: Namespace) -> int:
    """Print what changed; the exit status is 1 if a metric is worse than stated."""
    return on_data(arguments, lambda data_dir: _compare(data_dir, arguments), by_file=True)


def _compare(data_dir: Path, arguments: Namespace) -> int:
    config = effective_config(data_dir, arguments.config).config
    zone, now = config.events.timezone, time.time()
    if arguments.since is not None:
        since_s = second_of(arguments.since, "--since", zone)
    else:
        annotations = value_of(data_dir, ALL_ANNOTATIONS, arguments.website)
        since_s = annotations.latest(arguments.annotation, now, zone).start_s(zone)
    options = ComparisonOptions(
        since_ms=since_s * 1000,
        now_ms=int(now * 1000),
        metrics=parse_metrics(
            arguments.metric,
            value_of(data_dir, GOALS_AND_FUNNELS, arguments.website),
            keeps_visits=config.events.visits,
            has_visitors=config.events.unique != "none",
        ),
        worse_than=arguments.worse_than,
    )
    with as_invoker() if arguments.config is not None else nullcontext():
        lists = load_lists(config)
    with open_reader(data_dir) as reader:
        website = reader.website(arguments.website)
        with reader_of(config, reader, website, sources(lists)) as engine:
            found = comparison(engine, Query(), options=options).content
    is_damaged = print_damaged(reader.damaged)
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
    worse = [row["metric"] for row in found["metrics"] if row.get("is_worse")]
    if worse:
        sys.stdout.flush()
        print_error(f"worse by more than {100 * arguments.worse_than:.4g}%: {', '.join(worse)}")
    return 1 if worse or is_damaged else 0


def _print(found: dict[str, Any]) -> None:
    weeks = counted(found["earlier_weeks"], "earlier week")
    print(f"From {found['since']} to {found['until']}, and the mean of {weeks}:")
    rows: list[tuple[str, ...]] = [("METRIC", "NOW", "BEFORE", "CHANGE", "")]
    rows += [
        (
            row["metric"],
            _figure(row["metric"], row["now"]),
            _figure(row["metric"], row["before"]),
            "-" if row["change"] is None else f"{row['change']:+.0%}",
            _said(row),
        )
        for row in found["metrics"]
    ]
    print_table(rows)


def _figure(metric: str, figure: float | None) -> str:
    if figure is None:
        return "-"
    if metric == "bounces":
        return f"{figure:.0%}"
    return f"{figure / 1000:.1f} s" if metric == "time" else f"{round(figure, 1):,}"


def _said(row: dict[str, Any]) -> str:
    if row.get("is_worse"):
        return "worse"
    if row["by_chance"] is None:
        return ""
    return "about as before" if row["by_chance"] else "changed"
