import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from docutils.core import publish_string

from manual import man
from medamad.cli import COMMANDS

PAGES = ("medamad.1", "medamad.toml.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man") / "pages" / "new"
    man.write(made)
    return made


HARMLESS = "skipping paragraph macro: sp after S"
"""docutils spaces the first paragraph of a section, which formatters ignore."""


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="needs mandoc")
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_has_no_warning(folder: Path, name: str) -> None:
    ran = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", folder / name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    warnings = [line for line in ran.stdout.splitlines() if HARMLESS not in line]
    assert (warnings, ran.stderr) == ([], "")


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
@pytest.mark.parametrize("name", PAGES)
def test_man_shows_the_page_without_warnings(folder: Path, name: str) -> None:
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
        for shown in ('"tcp:8080" (IPv4)', '["https://app.example.com"]', "'", "…"):
            assert shown in ran.stdout


def test_special_characters_are_shown_unchanged() -> None:
    words = r"a-b .a a\b 'a' \"b\" *c* d_ [e]_ |f| https://g/ see `medamad run`, too"
    shown = man.text(words)
    page = publish_string(
        shown,
        writer="pseudoxml",
        settings_overrides={"halt_level": 2, "output_encoding": "unicode"},
    )
    assert "<strong>\n            medamad run\n" in page
    _, _, body = page.partition("\n")
    plain = " ".join(re.sub(r"<[^>]*>", "", body).split())
    assert plain == words.replace("`medamad run`,", "medamad run ,")
