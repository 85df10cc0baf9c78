"""`medamad version`: which version this is."""

import json
from argparse import ArgumentParser, Namespace
from typing import Final

from medamad import __version__
from medamad.build import commit
from medamad.commands.writing import add_json

EXAMPLES: Final = (
    ("medamad version", "for people"),
    ("medamad version --json", "for programs"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Say the version, and the commit that it was built from if that is known."""
    if arguments.json:
        print(json.dumps({"version": __version__, "commit": commit()}))
        return 0
    known = "" if commit() == __version__ else f" ({commit()})"
    print(f"medamad {__version__}{known}")
    return 0
