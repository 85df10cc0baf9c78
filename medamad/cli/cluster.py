"""`medamad cluster`: the ClickHouse servers of [cluster], and what was sent to them."""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from medamad.admin.client import AdminConnection, RequestFailed, connect
from medamad.admin.protocol import (
    AdminRequest,
    ClusterReport,
    DaemonState,
    LoadHits,
    ResendHits,
    Status,
)
from medamad.cli.support import (
    ProgressLine,
    add_data,
    add_json,
    on_data,
    print_error,
    read_config,
    report_config_error,
)
from medamad.clickhouse.client import ClickHouseError
from medamad.clickhouse.tables import OtherTables, create_tables
from medamad.config.schema import INSTALLED, Config, ConfigError
from medamad.config.settings import ClusterSettings, cluster_settings
from medamad.daemon.shipping import client_of, layout_of

_PATIENCE_S: Final = 120.0
"""Longer than a block takes, of whose end the daemon says."""

EXAMPLES: Final = (
    ("medamad cluster init --config /etc/medamad/medamad.toml", "make the tables, once"),
    ("medamad cluster load --data /var/lib/medamad", "move to a cluster with all hits"),
    ("medamad cluster status --data /var/lib/medamad", "how far the cluster has the hits"),
    (
        "medamad cluster resend --since 2026-11-20 --data /var/lib/medamad",
        "after servers have lost rows: all hits since then that this machine has",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    init = what.add_parser("init", help="make the database and its tables, unless they are there")
    init.set_defaults(work=_init)
    status = what.add_parser("status", help="show how far the cluster has the hits")
    add_json(status)
    status.set_defaults(work=_status)
    load = what.add_parser(
        "load", help="send the hits from before there was a cluster; goes on where it was cut off"
    )
    load.set_defaults(work=_load)
    resend = what.add_parser("resend", help="send hits again; none is there twice")
    resend.add_argument(
        "--since",
        type=_day,
        metavar="DATE",
        required=True,
        help="the day, in UTC, of the first hits, such as 2026-11-20",
    )
    resend.set_defaults(work=_resend)
    for each in (init, status, load, resend):
        add_data(each)


def run(arguments: Namespace) -> int:
    """Run the subcommand."""
    if arguments.what == "init":
        return _init(arguments)
    return on_data(arguments, partial(arguments.work, arguments))


def _day(text: str) -> int:
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise ArgumentTypeError(f"{text} is no date such as 2026-11-20") from None


def _init(arguments: Namespace) -> int:
    try:
        cluster = _settings(read_config(arguments, os.environ, by_file=True))
    except ConfigError as error:
        return report_config_error(error)
    layout = layout_of(cluster)
    try:
        for client in layout.clients(client_of(cluster)):
            with closing(client):
                create_tables(client, layout)
    except (ClickHouseError, OtherTables) as error:
        print_error(str(error))
        return 1
    print(f"The database {cluster.database} has its tables.")
    return 0


def _settings(config: Config) -> ClusterSettings:
    cluster = cluster_settings(config, os.environ)
    if cluster is None:
        raise ConfigError(config.file or INSTALLED, "cluster.urls", "no server is named")
    return cluster


def _status(arguments: Namespace, data_dir: Path) -> int:
    with connect(data_dir) as connection:
        report = _report(connection)
    if arguments.json:
        print(msgspec.json.encode(report).decode())
    else:
        print("\n".join(lines_of(report)))
    return 1 if report.degraded else 0


def _report(connection: AdminConnection) -> ClusterReport:
    report = connection.request(Status(), DaemonState).cluster
    if report is None:
        raise RequestFailed("the daemon has no [cluster] in its configuration")
    return report


def lines_of(report: ClusterReport) -> Iterator[str]:
    """Return the state as lines of text."""
    yield f"collector    {report.collector}"
    yield f"sent         {report.rows:,} rows since the start, {report.failures:,} failures"
    yield f"waiting      {report.waiting:,} rows of the log, the first for {report.lag_s:.0f} s"
    yield f"unsafe       {report.unsafe:,} rows of the log are on too few replicas"
    if report.has_earlier:
        yield "hits from before [cluster] was set are only on this machine: medamad cluster load"
    if report.degraded:
        yield f"needs attention: {report.degraded}"


def _load(_arguments: Namespace, data_dir: Path) -> int:
    return _send(data_dir, LoadHits(), "sent")


def _resend(arguments: Namespace, data_dir: Path) -> int:
    return _send(data_dir, ResendHits(arguments.since), "sent again")


def _send(data_dir: Path, request: AdminRequest, done: str) -> int:
    line = ProgressLine("rows", sys.stderr)
    with connect(data_dir, _PATIENCE_S) as connection:
        _report(connection)
        begun = time.monotonic()
        try:
            rows = connection.request(request, int, lambda progress: line.update(progress.done))
        finally:
            line.end()
    print(f"{rows:,} rows were {done} in {time.monotonic() - begun:.0f} s.")
    return 0
