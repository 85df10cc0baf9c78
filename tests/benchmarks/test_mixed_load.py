"""The benchmark of hits and statistics at once measures each alone, too."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_hits_and_statistics_are_measured_together_and_alone(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/mixed_load.py", "--views=2000", "--rate=200"]
    command += ["--seconds=1.5", "--rounds=3", "--data", str(tmp_path), "--out", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in ran.stdout.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert rows[0][1:] == ["times", "p50 ms", "p95 ms", "p99 ms", "worst ms"]
    assert {title: times for title, times, *_ in rows if title.startswith("hit,")} == {
        "hit, while statistics are asked": "300",
        "hit, while none are asked": "99",
    }
    result = json.loads((tmp_path / "both.json").read_text("utf-8"))
    for name in ("hits", "statistics"):
        ratio = result[name]["p99_ms"] / result[f"{name}_alone"]["p99_ms"]
        assert abs(result["ratios"][name] - ratio) < 0.01
    assert len(result["loads"]) == 4
