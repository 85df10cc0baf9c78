"""`medamad check-config`: reads a configuration as the daemon would."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from medamad.commands.configured import refused
from medamad.config import ConfigError, load
from medamad.config_files import load_lists
from medamad.listening import configured_places

EXAMPLES: Final = (("medamad check-config /etc/medamad/medamad.toml", "before a reload"),)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the configuration file")


def run(arguments: Namespace) -> int:
    """Read the file and those beside it."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    try:
        config = load(arguments.file)
        load_lists(config)
        configured_places(config, reactor)
    except ConfigError as error:
        return refused(error)
    print(f"{arguments.file}: nothing is wrong with it")
    return 0
