"""Wheels and source distributions, built of a copy of the checkout."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).parents[2]
LEFT_OUT: Final = (".*", "*.egg-info", "__pycache__", "dist", "node_modules", "tests")
"""What a copy of the checkout has not."""


@frozen
class Built:
    """A copy of the checkout in which both were built, also the front end."""

    sources: Path
    out: Path
    commit: str


def build(folder: Path, out: Path, *arguments: str, **environ: str) -> None:
    """Build a folder's wheel and source distribution, or what the arguments say."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(out), *arguments],
        cwd=folder,
        env=os.environ | environ,
        check=True,
        capture_output=True,
    )
