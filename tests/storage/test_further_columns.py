"""A further column of views is a line in `dimensions`, and a field of `StoredView`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import medamad
from medamad.domain import dimensions, hits

_PACKAGE = Path(medamad.__file__).parent
_LINES = {
    dimensions.__name__: {
        "class ViewNumber": "    SCROLLED = (36, 2)",
        "class ViewFlag": "    PRINTED = 32",
    },
    hits.__name__: {
        "class StoredView": "    scrolled: int = 0\n    printed: bool = False",
    },
}
_PROGRAM = Path(__file__).parents[1] / "support" / "storage" / "store_and_export.py"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder with the package as it is with a further number and a further flag."""
    left_out = shutil.ignore_patterns("frontend", "__pycache__")
    copy = shutil.copytree(_PACKAGE, tmp_path / "sources" / "medamad", ignore=left_out)
    for module, added in _LINES.items():
        path = copy.joinpath(*module.split(".")[1:]).with_suffix(".py")
        text = path.read_text("utf-8")
        for name, lines in added.items():
            # After the docstring of the class.
            begin = text.index('"""\n\n', text.index(name)) + len('"""\n\n')
            text = f"{text[:begin]}{lines}\n{text[begin:]}"
        path.write_text(text, "utf-8")
    return copy.parent


def test_it_is_logged_flushed_exported_and_parsed(package: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, _PROGRAM, tmp_path / "data"],
        env=os.environ | {"PYTHONPATH": str(package)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout == "0 False; 300 True; 600 False; \n" * 3
