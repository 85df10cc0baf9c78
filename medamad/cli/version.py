"""`medamad version`: show the version."""

import json
from argparse import ArgumentParser, Namespace
from typing import Final

from medamad import __version__
from medamad.build import commit, version_text
from medamad.cli.support import add_json

EXAMPLES: Final = (
    ("medamad version", "as text"),
    ("medamad version --json", "as JSON, for programs"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Print the version."""
    if arguments.json:
        print(json.dumps({"version": __version__, "commit": commit()}))
        return 0
    print(version_text())
    return 0
