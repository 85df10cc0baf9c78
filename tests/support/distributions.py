"""Wheels, source distributions and releases, built of a copy of the checkout."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from attrs import frozen

from medamad import __version__

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


@frozen
class Release:
    """A copy of the checkout as a commit of its own, and what a release of it printed."""

    copy: Path
    ran: "subprocess.CompletedProcess[str]"

    @property
    def out(self) -> Path:
        """The folder with what was built."""
        return self.copy / "dist" / __version__


@cache
def released(folder: Path) -> Release:
    """Build a release in a folder, without the Debian package where that cannot be built.

    It is built once, for the tests of packaging and those that boot a machine.
    """
    copy = folder / "release" / "medamad"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copyfile(ROOT / ".gitignore", copy / ".gitignore")
    commit(copy)
    return Release(copy, release(copy, __version__, *([] if shutil.which("dh") else ["python"])))


def release(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the script of a folder."""
    return subprocess.run(
        [sys.executable, "packaging/release", *arguments],
        cwd=folder,
        # So that pip does not fetch what the wheel is built with, which is here already.
        env=os.environ | {"PIP_NO_BUILD_ISOLATION": "0"} | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def commit(folder: Path) -> None:
    """Make a repository of a folder."""
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=Release it")


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
