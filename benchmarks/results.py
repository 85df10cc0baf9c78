"""Saving results: one JSON file for each benchmark."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

OUT = Path("build/benchmarks")
_PLACES = ("--data", "--out")


def keep(folder: Path, name: str, result: Mapping[str, Any]) -> None:
    """Save a result."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))


def kept(folder: Path, name: str) -> dict[str, Any] | None:
    """Return a saved result, or None."""
    file = folder / f"{name}.json"
    found: dict[str, Any] | None = msgspec.json.decode(file.read_bytes()) if file.exists() else None
    return found


def comparisons(folder: Path) -> list[dict[str, Any]]:
    """Return the results of all comparisons, fewest views first."""
    found = [msgspec.json.decode(file.read_bytes()) for file in folder.glob("compare-*.json")]
    return sorted(found, key=lambda result: result["views"])


def command() -> str:
    """Return the command line of this run, without folders."""
    shown = [f"benchmarks/{Path(sys.argv[0]).name}"]
    arguments = iter(sys.argv[1:])
    for argument in arguments:
        if argument in _PLACES:
            next(arguments)
        elif argument.partition("=")[0] not in _PLACES:
            shown.append(argument)
    return shlex.join(["python", *shown])
