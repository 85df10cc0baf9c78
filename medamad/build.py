"""Which build this is, as every answer says in X-Api-Commit."""

from functools import cache
from pathlib import Path
from typing import Final

from medamad import __version__

VERSION: Final = __version__
LICENCE: Final = "Apache-2.0"
"""As an SPDX expression, as pyproject.toml says it too."""

GENERATED: Final = Path(__file__).parent / "_build"
"""The folder of what is made while the package is built (see hatch_build.py)."""


@cache
def commit() -> str:
    """Give the short commit id of the build, or the package's version where none is known."""
    try:
        return (GENERATED / "commit.txt").read_text("ascii").strip() or VERSION
    except FileNotFoundError:
        return VERSION


def told_version() -> str:
    """Say the version, and the commit that it was built from if that is known."""
    return f"medamad {VERSION}" + ("" if commit() == VERSION else f" ({commit()})")
