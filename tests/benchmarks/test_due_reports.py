"""The benchmark of reports that are due at once mails each of them, and measures hits meanwhile."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_hits_are_measured_alone_and_while_reports_are_mailed(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/due_reports.py", "--websites=3", "--views=60"]
    command += ["--rate=100", "--seconds=1", "--out", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "3 reports were mailed in " in ran.stdout
    result = json.loads((tmp_path / "due_reports.json").read_text("utf-8"))
    assert result["alone"]["times"] == 100
    # None of those that were sent while the daemon had yet to look, for up to a minute.
    most = 100 * (result["mailed_s"] + 0.1)
    assert 0 < result["while reports are mailed"]["times"] <= most
