"""`medamad version`: which version this is."""

from argparse import ArgumentParser, Namespace

from medamad import __version__
from medamad.build import commit


def configure(_parser: ArgumentParser) -> None:
    """Add no arguments."""


def run(_arguments: Namespace) -> int:
    """Say the version, and the commit that it was built from if that is known."""
    known = "" if commit() == __version__ else f" ({commit()})"
    print(f"medamad {__version__}{known}")
    return 0
