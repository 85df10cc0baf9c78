"""The tracker as it is delivered."""

import gzip
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "medamad" / "frontend" / "tracker" / "script.js"


def test_it_is_small() -> None:
    assert len(gzip.compress(SCRIPT.read_bytes(), mtime=0)) < 1_500


@pytest.mark.parametrize("word", ["cookie", "localStorage", "sessionStorage", "indexedDB"])
def test_it_keeps_nothing_of_its_own(word: str) -> None:
    code = re.sub(r"^\s*//.*$", "", SCRIPT.read_text(), flags=re.MULTILINE)
    assert word not in code
