"""What commands share: their arguments, the configuration, the work on a folder of data."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import msgspec
from attrs import evolve

from medamad.config import EXIT_STATUS, Config, ConfigError, load
from medamad.config_values import Endpoints
from medamad.model.errors import Refusal
from medamad.store.errors import StoreError


def add_data(parser: ArgumentParser) -> None:
    """Add --config and --data."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration file")
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
    config = load(file)
    server = config.server
    if data is not None:
        server = msgspec.structs.replace(server, data_dir=str(data.absolute()))
    if listen:
        server = msgspec.structs.replace(server, listen=Endpoints(listen))
    return evolve(config, server=server)


def refused(error: ConfigError) -> int:
    """Say why the configuration cannot be used, and give the exit status."""
    print(f"medamad: {error}", file=sys.stderr)
    return EXIT_STATUS


def on_data(arguments: Namespace, work: Callable[[Path], int]) -> int:
    """Do a command's work on the folder of the data; gives its exit status, or says what failed."""
    try:
        config = read_config(arguments.config, arguments.data, None)
        return work(config.data_dir(os.environ))
    except ConfigError as error:
        return refused(error)
    except (Refusal, StoreError, OSError) as error:
        print(f"medamad: {error}", file=sys.stderr)
        return 1
