"""What commands share: their arguments, the configuration, the work on a folder of data."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from attrs import evolve

from medamad.commands.service_paths import ServicePaths
from medamad.config import EXIT_STATUS, Config, ConfigError, load, load_data_dir
from medamad.config_values import Endpoints
from medamad.log_lines import complain, reason_of, warn
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
    config = _on(data, load(file))
    if listen:
        server = msgspec.structs.replace(config.server, listen=Endpoints(listen))
        config = evolve(config, server=server)
    return config


def _on(data: Path | None, config: Config) -> Config:
    """Have the folder of data that is named, if one is, win."""
    if data is None:
        return config
    server = msgspec.structs.replace(config.server, data_dir=str(data.absolute()))
    return evolve(config, server=server)


def settle(arguments: Namespace, environ: Mapping[str, str], *, by_file: bool = False) -> Config:
    """Read the configuration of a command that is not the daemon. Raises ConfigError.

    The service finds its configuration and its data by its unit alone. Who names one of the two
    means the other as well, and `arguments` has it from then on; what is named always wins.

    A file that cannot be used stops only a command that goes `by_file`, or would not know on which
    folder it works; others are given where the data are and no more of the file, with a warning.
    """
    paths: ServicePaths = arguments.service_paths
    if arguments.config is None and arguments.data is not None:
        arguments.config = paths.config_for(arguments.data)
    try:
        config = load(arguments.config)
    except ConfigError as error:
        if by_file:
            raise
        config = _only_data(arguments, error)
        where = arguments.data or config.server.data_dir or paths.data_for(arguments.config)
        warn(f"{error}; the command goes on without this file, on {where}", sys.stderr, environ)
    if arguments.config is not None and arguments.data is None:
        says_itself = config.server.data_dir or environ.get("STATE_DIRECTORY")
        arguments.data = None if says_itself else paths.data_for(arguments.config)
    return _on(arguments.data, config)


def _only_data(arguments: Namespace, error: ConfigError) -> Config:
    """Give where the data are by a file that cannot be used.

    Raises `error` where that is not known: a file of which not all can be read may have named
    another folder than the service's.
    """
    paths: ServicePaths = arguments.service_paths
    if arguments.data is not None:
        return Config(file=arguments.config.absolute())
    try:
        config = load_data_dir(arguments.config)
    except ConfigError:
        raise error from None
    if not config.server.data_dir and paths.data_for(arguments.config) is None:
        raise error
    return config


def refused(error: ConfigError) -> int:
    """Say why the configuration cannot be used, and give the exit status."""
    complain(str(error), sys.stderr, os.environ)
    return EXIT_STATUS


def on_data(arguments: Namespace, work: Callable[[Path], int], *, by_file: bool = False) -> int:
    """Do a command's work on the folder of the data; gives its exit status, or says what failed.

    `by_file` says that it needs all of the configuration, not the folder alone.
    """
    try:
        config = settle(arguments, os.environ, by_file=by_file)
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
