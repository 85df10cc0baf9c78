"""`medamad cluster`: the ClickHouse servers of [cluster], and what was sent to them."""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from medamad.admin.client import AdminConnection, RequestFailed, connect
from medamad.admin.protocol import (
    AdminRequest,
    ClusterReport,
    DaemonState,
    LoadHits,
    Promote,
    ResendHits,
    Status,
)
from medamad.cli.support import (
    ProgressLine,
    add_data,
    add_json,
    on_data,
    print_error,
    print_warning,
    read_config,
    report_config_error,
)
from medamad.clickhouse.client import ClickHouseError
from medamad.clickhouse.tables import (
    NumberTaken,
    OtherTables,
    check_tables,
    claim_number,
    count_servers,
    create_tables,
)
from medamad.cluster.peers import GREETED, Greeting, NotSent, Peer
from medamad.config.schema import INSTALLED, Config, ConfigError
from medamad.config.settings import ClusterSettings, cluster_settings
from medamad.daemon.shipping import client_of, layout_of
from medamad.storage.shared_settings import Epoch, Role, SharedSettings, join_cluster

_PATIENCE_S: Final = 120.0
"""Longer than a block takes, of whose end the daemon says."""

EXAMPLES: Final = (
    ("medamad cluster init --config /etc/medamad/medamad.toml", "make the tables, once"),
    (
        "medamad cluster join --config /etc/medamad/medamad.toml",
        "on the machine of a further collector, before its first start",
    ),
    ("medamad cluster load --data /var/lib/medamad", "move to a cluster with all hits"),
    ("medamad cluster status --data /var/lib/medamad", "how far the cluster has the hits"),
    (
        "medamad cluster promote --data /var/lib/medamad",
        "on the collector whose settings and logins are to count from now on",
    ),
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
    join = what.add_parser("join", help="make an empty data directory that of a further collector")
    join.set_defaults(work=_join)
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
    promote = what.add_parser(
        "promote", help="make this collector the primary, such as when that is lost"
    )
    promote.set_defaults(work=_promote)
    for each in (init, join, status, load, resend, promote):
        add_data(each)


def run(arguments: Namespace) -> int:
    """Run the subcommand."""
    if arguments.what == "init":
        return _init(arguments)
    if arguments.what == "join":
        return on_data(arguments, partial(_join, arguments), by_file=True)
    return on_data(arguments, partial(arguments.work, arguments))


def _day(text: str) -> int:
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise ArgumentTypeError(f"{text} is no date such as 2026-11-20") from None


def _init(arguments: Namespace) -> int:
    try:
        config = read_config(arguments, os.environ, by_file=True)
        cluster = _settings(config)
        _check_servers(config, cluster)
        layout = layout_of(cluster)
        for client in layout.clients(client_of(cluster)):
            with closing(client):
                create_tables(client, layout)
    except ConfigError as error:
        return report_config_error(error)
    except (ClickHouseError, OtherTables) as error:
        print_error(str(error))
        return 1
    print(f"The database {cluster.database} has its tables.")
    return 0


def _check_servers(config: Config, cluster: ClusterSettings) -> None:
    """Raise ConfigError if the servers define no such cluster, or if not all of them are named.

    A server without the cluster's definition would get only some of the tables. Only servers that
    are not reached by ON CLUSTER have to be named. Raises ClickHouseError.
    """
    layout = layout_of(cluster)
    if not layout.cluster:
        return
    with closing(client_of(cluster)) as client:
        count = count_servers(client, layout)
    if not count:
        reason = f"the servers define no cluster {layout.cluster}"
        raise ConfigError(config.file or INSTALLED, "cluster.name", reason)
    if not layout.is_on_cluster and count > len(cluster.urls):
        reason = f"expected all {count} servers of {layout.cluster}, got {len(cluster.urls)}"
        raise ConfigError(config.file or INSTALLED, "cluster.urls", reason)


def _join(arguments: Namespace, data_dir: Path) -> int:
    config = read_config(arguments, os.environ, by_file=True)
    cluster = _settings(config)
    own = cluster.collector
    if not cluster.collectors.keys() - {own}:
        raise ConfigError(
            config.file or INSTALLED, "cluster.collectors", "no other collector is named"
        )
    try:
        epoch, settings = _ask_primary(cluster)
        client = client_of(cluster)
        check_tables(client, layout_of(cluster))
        claim = partial(claim_number, client, own, first=epoch.cluster)
        join_cluster(data_dir, config.store.map_size, settings, Role(own, epoch), claim)
        client.close()
    except (NotSent, ClickHouseError, OtherTables, NumberTaken) as error:
        print_error(str(error))
        return 1
    print(
        f"{arguments.base / data_dir} is that of collector {own} now; the primary is collector"
        f" {epoch.primary}. Start the daemon."
    )
    return 0


def _ask_primary(cluster: ClusterSettings) -> tuple[Epoch, SharedSettings]:
    """Return the settings of the primary, and its epoch. Raises NotSent."""
    greeting, found, failures = Greeting(cluster.collector, Epoch(), b""), [], []
    for number, url in cluster.collectors.items():
        if number != cluster.collector:
            peer = Peer(number=number, url=url, secret=cluster.secret, ca_file=cluster.ca_file)
            try:
                found.append(peer.ask(greeting, GREETED))
            except NotSent as error:
                failures.append(f"collector {number} cannot be reached: {error}")
    epoch = max((each.epoch for each in found), key=attrgetter("rank"), default=Epoch())
    if epoch.primary == cluster.collector:
        raise NotSent(
            f"cluster.collector: {epoch.primary} is the number of the primary; choose one that no"
            " collector has ever had"
        )
    for each in found:
        if each.collector == epoch.primary and each.settings is not None:
            return epoch, each.settings
    raise NotSent("; ".join(failures) or f"collector {epoch.primary}, the primary, is not named")


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
    role = ""
    if report.others:
        is_primary = report.primary == report.collector
        role = ", the primary" if is_primary else f"; the primary is {report.primary}"
    yield f"collector    {report.collector}{role}"
    for number, failure in report.others.items():
        yield f"collector {number:<2} {failure or 'can be reached'}"
    yield f"sent         {report.rows:,} rows since the start, {report.failures:,} failures"
    yield f"waiting      {report.waiting:,} rows of the log, the first for {report.lag_s:.0f} s"
    yield f"unsafe       {report.unsafe:,} rows of the log are on too few replicas"
    if report.others:
        yield f"passed on    {report.passed_on:,} hits to other collectors since the start"
        yield f"              {report.to_pass_on:,} wait for one that may have their view"
    if report.is_scattered:
        yield (
            "more than one hit in a hundred is passed on to the collector of its visitor: let the"
            " proxy keep each address on one collector"
        )
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


def _promote(_arguments: Namespace, data_dir: Path) -> int:
    with connect(data_dir, _PATIENCE_S) as connection:
        report = _report(connection)
        if not report.others:
            raise RequestFailed("there is no other collector: [cluster.collectors] names none")
        warning = connection.request(Promote(), str)
    print(f"Collector {report.collector} is the primary now.")
    if warning:
        print_warning(warning)
    return 0
