"""What commands share: their arguments, the configuration, the work on a folder of data."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from attrs import evolve

from medamad.commands.service_paths import ServicePaths
from medamad.config import EXIT_STATUS, Config, ConfigError, load
from medamad.config_values import Endpoints
from medamad.log_lines import complain, reason_of
from medamad.model.errors import Refusal
from medamad.operator.client import NotDone, NotRunning
from medamad.store.errors import StoreError


def add_data(parser: ArgumentParser, *, of_service: bool = True) -> None:
    """Add --config and --data; `of_service` says that `settle` does what it can about them."""
    its_own = ""
    if of_service:
        its_own = (
            "; the service's, /etc/medamad/medamad.toml, and --data /var/lib/medamad each stand"
            " for both"
        )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help=f"the configuration file{its_own}"
    )
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


def settle(arguments: Namespace, environ: Mapping[str, str]) -> Config:
    """Read the configuration of a command that is not the daemon. Raises ConfigError.

    The service finds its configuration and its data by its unit alone. Who names one of the two
    means the other as well, and `arguments` has it from then on; what is named always wins.
    """
    paths: ServicePaths = arguments.service_paths
    if arguments.config is None and arguments.data is not None:
        arguments.config = paths.config_for(arguments.data)
    elif arguments.config is not None and arguments.data is None:
        says_itself = load(arguments.config).server.data_dir or environ.get("STATE_DIRECTORY")
        arguments.data = None if says_itself else paths.data_for(arguments.config)
    return read_config(arguments.config, arguments.data, None)


def refused(error: ConfigError) -> int:
    """Say why the configuration cannot be used, and give the exit status."""
    complain(str(error), sys.stderr, os.environ)
    return EXIT_STATUS


def on_data(arguments: Namespace, work: Callable[[Path], int]) -> int:
    """Do a command's work on the folder of the data; gives its exit status, or says what failed."""
    try:
        config = settle(arguments, os.environ)
        return work(config.data_dir(os.environ))
    except ConfigError as error:
        return refused(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(reason_of(error), sys.stderr, os.environ)
        return 1
    except (Refusal, StoreError, NotRunning, NotDone) as error:
        complain(str(error), sys.stderr, os.environ)
        return 1
