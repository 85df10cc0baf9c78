"""`medamad check-config`: read a configuration as the daemon would."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from medamad.cli.support import print_warning, report_config_error
from medamad.config.schema import ConfigError, load
from medamad.daemon.reload import checked_endpoints

EXAMPLES: Final = (("medamad check-config /etc/medamad/medamad.toml", "before a reload"),)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the configuration file")


def run(arguments: Namespace) -> int:
    """Read the file and the lists beside it."""
    try:
        config = load(arguments.file)
        checked_endpoints(arguments.file)
    except ConfigError as error:
        return report_config_error(error)
    for warning in config.warnings:
        print_warning(warning)
    print(f"{arguments.file}: no problems found")
    return 0
