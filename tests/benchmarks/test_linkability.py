"""How well visits can be linked is what docs/privacy.md says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def table(text: str) -> dict[str, dict[str, str]]:
    """Return the cells of the table by row and column."""
    lines = [line for line in text.partition("| from |")[2].splitlines() if line.startswith("|")]
    heads = text.partition("| from |")[2].splitlines()[0].strip(" |").split(" | ")
    rows = [line.strip("| ").split(" | ") for line in lines[1:]]
    return {name: dict(zip(heads, shares, strict=True)) for name, *shares in rows}


@pytest.mark.parametrize(
    "views_per_day", [("500",), pytest.param(("5000", "20000"), marks=pytest.mark.slow)]
)
def test_the_documented_shares_are_those_of_the_demonstration(
    views_per_day: tuple[str, ...],
) -> None:
    command = [sys.executable, "benchmarks/linkability.py", "--views-per-day", *views_per_day]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = table(ran.stdout)
    text = (ROOT / "docs" / "privacy.md").read_text("utf-8")
    _, _, rest = text.partition("## What links views")
    documented = table(rest.partition("\n## ")[0])
    assert list(found) == list(documented)
    assert len(found) > 10
    for name, shares in found.items():
        assert len(shares) == 2 * len(views_per_day)
        assert shares.items() <= documented[name].items(), name
