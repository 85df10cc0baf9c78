"""`medamad status`: what state the daemon is in."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from medamad.commands.configured import add_data, read_config, refused
from medamad.config import ConfigError
from medamad.operator.client import NotDone, NotRunning, connect
from medamad.operator.status import State, Status

NOT_RUNNING_STATUS: Final = 3
"""As the LSB has it for init scripts."""

_STATUSES: Final = """\
exit status:
  0   the daemon runs and takes hits
  1   it runs and takes none, or does not answer
  3   it does not run
  64  called in a way that is not understood
  78  the configuration cannot be used
"""
_KIB: Final = 1024
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_PERIODS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_data(parser)
    parser.add_argument("--json", action="store_true", help="say it as a JSON object")
    parser.epilog = _STATUSES


def run(arguments: Namespace) -> int:
    """Ask the daemon and tell."""
    try:
        config = read_config(arguments.config, arguments.data, None)
    except ConfigError as error:
        return refused(error)
    data_dir = config.data_dir(os.environ)
    try:
        with connect(data_dir) as connection:
            state = connection.ask(Status(), State)
    except (NotRunning, NotDone) as error:
        return _failed(error, as_json=arguments.json)
    if arguments.json:
        _print_json({"running": True, **msgspec.structs.asdict(state)})
    else:
        print("\n".join(_lines(state, data_dir, int(time.time()))))
    return 1 if state.lacks else 0


def _failed(error: NotRunning | NotDone, *, as_json: bool) -> int:
    is_running = isinstance(error, NotDone)
    if as_json:
        _print_json({"running": is_running, "error": str(error)})
    else:
        print(f"medamad: {error}", file=sys.stderr)
    return 1 if is_running else NOT_RUNNING_STATUS


def _print_json(value: object) -> None:
    print(msgspec.json.encode(value).decode("utf-8"))


def _lines(state: State, data_dir: Path, now: int) -> Iterator[str]:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.started))
    yield f"medamad {state.version} ({state.commit}) runs on {data_dir}"
    yield f"since        {since} ({_period(now - state.started)}), process {state.pid}"
    yield f"listening    {', '.join(state.listening)}; {state.connections:,} connections"
    yield f"websites     {state.websites:,}, {state.visitors:,} visitors now"
    refused = sum(state.refused.values())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in state.refused.items())
    yield (
        f"hits         {state.accepted:,} accepted, {refused:,} refused in 24 hours"
        f"{f' ({reasons})' if reasons else ''}"
    )
    yield (
        f"at present   {state.last_minute / 60:.1f} hits/s in the last minute,"
        f" {state.waiting:,} waiting"
    )
    mean_ms = 1000 * state.commit_seconds / max(state.commits, 1)
    yield f"commits      {state.commits:,}, {mean_ms:.1f} ms each"
    yield (
        f"store        {_size(state.store_bytes)} of {_size(state.store_max_bytes)};"
        f" {_size(state.disk_free_bytes)} of the disk are free"
    )
    for lack in state.lacks:
        yield f"no hits are taken: {lack}"
    for warning in state.warnings:
        yield f"warning: {warning}"


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < _KIB or unit == _UNITS[-1]:
            break
        count /= _KIB
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def _period(seconds: int) -> str:
    for length, unit in _PERIODS:
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{max(seconds, 0)} s"
