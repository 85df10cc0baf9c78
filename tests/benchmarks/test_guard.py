"""Which ratios the guard reports. Nothing is measured here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(code: str, *arguments: str) -> Any:
    """Return what Python code prints that imports the guard."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json, sys; from guard import *; {code}", *arguments],
        cwd=BENCHMARKS,
        check=True,
        capture_output=True,
    )
    return json.loads(done.stdout)


def test_a_ratio_that_fell_by_a_third_is_reported_the_worst_first() -> None:
    before = {"a": 3.0, "b": 3.0, "c": 3.0, "only before": 1.0}
    now = {"a": 2.0, "b": 2.1, "c": 1.0, "only now": 1.0}
    code = "print(json.dumps(fallen(*map(json.loads, sys.argv[1:]))))"
    assert run(code, json.dumps(before), json.dumps(now)) == ["c", "a"]


def test_the_better_of_two_runs_counts() -> None:
    code = "print(json.dumps(better(*map(json.loads, sys.argv[1:]))))"
    runs = ({"a": 1.0, "b": 2.0, "c": 1.0}, {"a": 2.0, "b": 1.0})
    assert run(code, *map(json.dumps, runs)) == {"a": 2.0, "b": 2.0, "c": 1.0}
