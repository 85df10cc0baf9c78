import os
import shutil
import subprocess
from pathlib import Path

import pytest

from manual import roff
from medamad.cli import COMMANDS

PAGES = ("medamad.1", "medamad.toml.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man") / "pages" / "new"
    roff.write(made)
    return made


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("a-b", r"a\-b"),
        (".a", r"\&.a"),
        (r"a\b", r"a\eb"),
        ("'a' \"b\"", r"\(aqa\(aq \(dqb\(dq"),
        ("see `medamad run` for more", r"see \fBmedamad run\fR for more"),
    ],
)
def test_a_text_is_shown_as_it_is(words: str, written: str) -> None:
    assert roff.text(words) == written


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc")
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_has_nothing_to_say(folder: Path, name: str) -> None:
    ran = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", folder / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
@pytest.mark.parametrize("name", PAGES)
def test_man_shows_it_without_warnings(folder: Path, name: str) -> None:
    ran = subprocess.run(
        ["man", "--warnings", "--local-file", folder / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    if name == "medamad.1":
        for command in COMMANDS:
            assert f"medamad {command}" in ran.stdout
    else:
        assert 'map_size = "64 GiB"' in ran.stdout
