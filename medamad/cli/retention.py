"""`medamad retention`: show how long views are kept, what is stored and what would be removed."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime, tzinfo
from functools import partial
from typing import Any, Final, get_args

import msgspec
from attrs import asdict, evolve

from medamad.cli.support import (
    MAX_DAYS,
    add_data,
    counted,
    effective_config,
    format_bytes,
    on_data,
    print_error,
    print_warning,
    whole,
)
from medamad.config.lists import Lists, load_lists
from medamad.config.schema import Config
from medamad.config.settings import cluster_settings, retention, sources
from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website
from medamad.query.embedded.engine import left_out_finder
from medamad.storage.compaction.retention import Cutoff, Forecast, cutoff_of
from medamad.storage.environment.owner import as_invoker
from medamad.storage.environment.trusted_clock import doubt_warning
from medamad.storage.offline import StoreReader, open_reader
from medamad.storage.settings import After, Keep, unregistered_warning

EXAMPLES: Final = (
    ("medamad retention --data /var/lib/medamad", "what is kept of each website"),
    (
        "medamad retention --data /var/lib/medamad --dry-run --raw-days 365",
        "what would be removed if views were kept for a year",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="count the views and bytes that are past their retention",
    )
    parser.add_argument(
        "--raw-days",
        type=whole(0, MAX_DAYS),
        metavar="N",
        help="a dry run as if every website's views were kept for N days, 0 for forever",
    )
    parser.add_argument(
        "--after",
        choices=get_args(After),
        help="a dry run as if this remained of every website's days",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_data(parser)
    parser.epilog = (
        "Changes nothing: the daemon removes views, every minute, by [retention] in its\n"
        "configuration. Try another number with --raw-days N first, which is also a dry run:\n"
        "what was removed can only be restored from a backup.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Print it; the exit status is 1 if anything is damaged, which is kept whatever its age."""
    return on_data(arguments, lambda data_dir: _show(data_dir, arguments), by_file=True)


def _show(data_dir: Any, arguments: Namespace) -> int:
    effective = effective_config(data_dir, arguments.config)
    given = retention(effective.config)
    if (another := effective.another) is not None:
        print_warning(f"{arguments.config}: the daemon uses {another} instead")
    is_trial = arguments.raw_days is not None or arguments.after is not None
    now_ms = int(time.time() * 1000)
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    damaged, has_past = 0, False
    with as_invoker() if arguments.config is not None else nullcontext():
        lists = load_lists(effective.config)
    with open_reader(data_dir) as reader:
        forecast = _forecast_of(effective.config, lists, reader)
        websites = reader.websites()
        registered = {website.hostname for website in websites}
        left_ms = reader.doubt_left_ms(now_ms)
        for website in websites:
            keep = _tried(given.of(website.hostname, registered), arguments)
            is_dry_run = arguments.dry_run or is_trial
            bound = cutoff_of(keep, given.zone, now_ms)
            found = forecast(website, bound if is_dry_run else None)
            has_past |= found.due_days > 0 or _has_past(found, bound)
            for place in found.damaged:
                print_error(place)
            damaged += len(found.damaged)
            if arguments.json:
                rows.append({"hostname": website.hostname, **asdict(keep), **asdict(found)})
            else:
                rule = _rule(keep, "would be" if is_trial else "are")
                lines.append(f"{website.hostname}: {rule}")
                lines.append(_there(found, given.zone))
                lines += _due(found) if is_dry_run and bound else ()
    if arguments.json:
        sys.stdout.buffer.write(msgspec.json.encode(rows) + b"\n")
    elif lines:
        print(*lines, sep="\n")
    if has_past and left_ms:
        print_warning(doubt_warning(left_ms))
    for hostname in given.unregistered(registered):
        print_warning(unregistered_warning(hostname))
    return 1 if damaged else 0


def _forecast_of(
    config: Config, lists: Lists, reader: StoreReader
) -> Callable[[Website, Cutoff | None], Forecast]:
    """Return what forecasts for a website, in the store or in the cluster that has the hits."""
    cluster = cluster_settings(config, os.environ)
    if cluster is None:
        reader.check_is_whole()
        find_left_out = left_out_finder(sources(lists))
        return partial(reader.forecast, find_left_out=find_left_out)
    # Only with a cluster.
    from medamad.clickhouse.client import ClickHouseError  # noqa: PLC0415
    from medamad.cluster.removal import Removal  # noqa: PLC0415
    from medamad.daemon.shipping import client_of, layout_of  # noqa: PLC0415

    def forecast(website: Website, bound: Cutoff | None) -> Forecast:
        client = client_of(cluster)
        try:
            before_ms = None if bound is None else bound.before_ms
            return Removal(client, layout_of(cluster)).forecast(website.number, before_ms)
        except ClickHouseError as error:
            raise Unavailable(str(error), retry_after=0) from error
        finally:
            client.close()

    return forecast


def _has_past(found: Forecast, bound: Cutoff | None) -> bool:
    earliest_ms = found.earliest_ms
    return bound is not None and earliest_ms is not None and earliest_ms < bound.before_ms


def _tried(keep: Keep, arguments: Namespace) -> Keep:
    if arguments.raw_days is not None:
        keep = evolve(keep, raw_days=arguments.raw_days)
    return evolve(keep, after=arguments.after) if arguments.after else keep


def _rule(keep: Keep, are: str) -> str:
    if not keep.raw_days:
        return f"views {are} kept forever"
    remains = "daily totals" if keep.after == "sums" else "nothing"
    return f"views {are} kept for {counted(keep.raw_days, 'day')}, then {remains}"


def _there(found: Forecast, zone: tzinfo) -> str:
    since = ""
    if found.earliest_ms is not None:
        since = f" since {datetime.fromtimestamp(found.earliest_ms / 1000, zone).date()}"
    kept = f"  stored: {counted(found.views, 'view')}{since} ({format_bytes(found.bytes)})"
    if found.days:
        kept += (
            f", daily totals of {counted(found.days, 'day')} ({format_bytes(found.bytes_of_days)})"
        )
    return kept


def _due(found: Forecast) -> Iterator[str]:
    gone = f"{counted(found.due_views, 'view')} and {counted(found.due_events, 'event')}"
    text = f"  would be removed: {gone} ({format_bytes(found.due_bytes)})"
    if found.due_days:
        days = counted(found.due_days, "day")
        text += f", daily totals of {days} ({format_bytes(found.bytes_of_due_days)})"
    yield text
    if found.new_days:
        days = counted(found.new_days, "day")
        yield f"  would be added: daily totals of {days} ({format_bytes(found.bytes_of_new_days)})"
