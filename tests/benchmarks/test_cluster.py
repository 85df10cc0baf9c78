"""The benchmark of a cluster asks both dashboards, and sends the same hits with it and without."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_dashboards_and_shipping_are_measured(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/cluster.py", "--views=2000", "--repeat=1", "--hits=100"]
    command += ["--turns=1", "--days=8", "--data", str(tmp_path), "--out", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    result = json.loads((tmp_path / "cluster.json").read_text("utf-8"))
    assert [row["name"] for row in result["dashboards"]] == [
        "14 requests of a dashboard over views",
        "14 requests of a dashboard over visits",
    ]
    alone, shipping, ratios = result["alone"], result["shipping"], result["ratios"]
    assert alone["shipped_per_second"] == 0
    # All that was stored has reached the server.
    assert 0 < shipping["shipped_per_second"] <= shipping["hits_per_second"]
    assert abs(ratios["hit_us"] - shipping["hit_us"] / alone["hit_us"]) < 0.01
    shipped = shipping["shipped_per_second"] / alone["hits_per_second"]
    assert abs(ratios["shipped"] - shipped) < 0.01
    lines = ran.stdout.splitlines()
    assert len([line for line in lines if "(target" in line]) == 4
