"""The tracker as it is delivered."""

import json
import re
from pathlib import Path

import pytest

import medamad

BUILT = Path(medamad.__file__).parent / "_build" / "frontend"
SCRIPTS = sorted((BUILT / "scripts").glob("*.js"))


def test_every_set_of_features_has_a_script_beside_the_opt_out() -> None:
    assert len(SCRIPTS) == 2**7 + 1


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_stores_nothing_but_the_exclusion(script: Path) -> None:
    code = script.read_text("utf-8")
    assert not re.search("cookie|sessionStorage|indexedDB", code)
    # The mark is read and written, and the opt-out finds out, too, whether that is possible.
    marks = re.findall(r"localStorage\b(\.\w+)?", code)
    assert set(marks) == {".medamad"}
    assert set(re.findall(r"\.(medamad)\b", code)) == {"medamad"}


@pytest.mark.parametrize(
    "script", [each for each in SCRIPTS if each.stem != "opt-out"], ids=lambda path: path.stem
)
def test_the_path_of_events_is_named_once(script: Path) -> None:
    assert script.read_text("utf-8").count("event/") == 1


@pytest.mark.parametrize("folder", ["", "named/"])
def test_the_default_script_is_small(folder: str) -> None:
    assert (BUILT / "scripts" / f"{folder}default.js.gz").stat().st_size <= 950


def test_the_sizes_are_those_of_the_files() -> None:
    sizes = json.loads((BUILT / "sizes.json").read_text("utf-8"))
    for script in SCRIPTS:
        assert sizes["scripts"][script.stem]["plain"] == script.stat().st_size
        assert sizes["scripts"][script.stem]["gzip"] == Path(f"{script}.gz").stat().st_size
