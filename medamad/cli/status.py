"""`medamad status`: show the state of the daemon."""

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from medamad.admin.client import NotRunning, RequestFailed, connect
from medamad.admin.protocol import DaemonState, Status
from medamad.cli.exit_statuses import NOT_RUNNING_STATUS
from medamad.cli.support import (
    add_data,
    counted,
    format_bytes,
    named_from,
    print_error,
    read_config,
    report_config_error,
)
from medamad.config.schema import Config, ConfigError
from medamad.storage.environment.environment import is_in_use
from medamad.storage.environment.owner import as_owner
from medamad.storage.errors import StoreError

_DAY_S: Final = 86_400
_PERIODS: Final = ((_DAY_S, "d"), (3_600, "h"), (60, "min"))

EXAMPLES: Final = (
    ("medamad status", "the daemon on ./medamad-data; if there is none, the service"),
    ("medamad status --data /var/lib/medamad", "the daemon on this data directory"),
    ("medamad status --data /var/lib/medamad --json", "the same, for programs"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_data(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> int:
    """Request the state of the daemon and print it."""
    _look_for_service(arguments)
    try:
        config = read_config(arguments, os.environ)
    except ConfigError as error:
        return report_config_error(error)
    data_dir, base = config.data_dir(os.environ), Path()
    try:
        with as_owner(data_dir) as place:
            if place != data_dir:
                base = data_dir
            try:
                with connect(place) as connection:
                    state = connection.request(Status(), DaemonState)
            except NotRunning:
                if not _is_in_use(place):
                    raise
                message = f"{data_dir}: a daemon uses it but is not accepting commands yet"
                return _failed(message, 1, as_json=arguments.json)
    except NotRunning as error:
        message = named_from(base, str(error))
        return _failed(message, NOT_RUNNING_STATUS, as_json=arguments.json)
    except RequestFailed as error:
        return _failed(named_from(base, str(error)), 1, as_json=arguments.json)
    if arguments.json:
        _print_json({"running": True, **msgspec.to_builtins(state)})
    else:
        print("\n".join(lines_of(state, data_dir, int(time.time()))))
    return 1 if state.unavailable_reasons or state.backup_failure or state.damage else 0


def _look_for_service(arguments: Namespace) -> None:
    """Choose the service's configuration if nothing is named and nothing is at the usual place."""
    is_named = arguments.config is not None or arguments.data is not None
    if not is_named and not Config().data_dir(os.environ).exists():
        config = arguments.service_paths.config
        arguments.config = config if config.exists() else None


def _is_in_use(data_dir: Path) -> bool:
    with suppress(StoreError):
        return is_in_use(data_dir)
    return False


def _failed(message: str, status: int, *, as_json: bool) -> int:
    if as_json:
        # A daemon that does not respond may or may not be running.
        running = False if status == NOT_RUNNING_STATUS else None
        _print_json({"running": running, "error": message})
    else:
        print_error(message)
    return status


def _print_json(value: object) -> None:
    print(msgspec.json.encode(value).decode("utf-8"))


def lines_of(state: DaemonState, data_dir: Path, now: int) -> Iterator[str]:
    """Return the state as lines of text."""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.started))
    yield f"medamad {state.version} ({state.commit}) runs on {data_dir}"
    yield f"since        {since} ({_period(now - state.started)}), process {state.pid}"
    yield f"listening    {', '.join(state.listening)}; {state.connections:,} connections"
    yield f"websites     {state.websites:,}, {counted(state.visitors, 'page')} open now"
    refused = sum(state.refused.values())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in state.refused.items())
    period = "in 24 hours" if now - state.started >= _DAY_S else "since the start"
    yield (
        f"hits         {state.accepted:,} accepted, {refused:,} not counted {period}"
        f"{f' ({reasons})' if reasons else ''}"
    )
    yield (
        f"at present   {state.last_minute / 60:.1f} hits/s in the last full minute,"
        f" {state.waiting:,} waiting"
    )
    mean_ms = 1000 * state.commit_seconds / max(state.commits, 1)
    yield f"commits      {state.commits:,}, {mean_ms:.1f} ms each"
    yield (
        f"store        {format_bytes(state.store_bytes)} of {format_bytes(state.store_max_bytes)};"
        f" {format_bytes(state.disk_free_bytes)} of the disk are free"
    )
    if state.compaction is not None:
        failure = f"; the last one could not: {state.compaction}" if state.compaction else ""
        yield f"compaction   at the next start{failure}"
    if state.last_backup is not None:
        made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.last_backup))
        yield f"backup       {made} ({_period(now - state.last_backup)} ago)"
    if state.backup_failure:
        yield f"backups need attention: {state.backup_failure}"
    if state.cluster is not None and state.cluster.degraded:
        yield f"the cluster needs attention: {state.cluster.degraded}"
    if state.damage:
        yield f"the store is damaged: {state.damage}"
    for reason in state.unavailable_reasons:
        yield f"no hits are accepted: {reason}"
    for warning in state.warnings:
        yield f"warning: {warning}"


def _period(seconds: int) -> str:
    for length, unit in _PERIODS:
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{max(seconds, 0)} s"
