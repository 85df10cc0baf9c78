import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BY_PIP = """
import runpy, sys
sys.modules["uv"] = None
runpy.run_path("packaging/deb.py", run_name="__main__")
"""
"""Builds the package as without uv; the tests in tests/boot build theirs with it if it is here."""


@pytest.fixture(scope="module")
def deb() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deb", ROOT / "packaging" / "deb.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("extras", "wanted"),
    [
        ([], "/w/medamad-1.whl"),
        (["duckdb"], "/w/medamad-1.whl[duckdb]"),
        (["duckdb", "parquet"], "/w/medamad-1.whl[duckdb,parquet]"),
    ],
)
def test_a_package_can_include_extras(deb: ModuleType, extras: list[str], wanted: str) -> None:
    assert deb.requirement(Path("/w/medamad-1.whl"), extras) == wanted


def test_its_extras_are_those_of_the_project(deb: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(deb.EXTRAS) <= set(project["optional-dependencies"])


def test_an_unknown_extra_is_rejected(
    deb: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["deb.py", "--extra", "excel"])
    with pytest.raises(SystemExit):
        deb.main()
    assert "invalid choice: 'excel'" in capsys.readouterr().err


def test_building_prints_only_the_path(deb: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    deb.run(sys.executable, "-c", "print('building package')")
    assert capfd.readouterr() == ("", "building package\n")


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("lintian") and shutil.which("dh")), reason="lintian or debhelper is missing"
)
def test_lintian_finds_nothing(tmp_path: Path) -> None:
    build = [sys.executable, "-c", BY_PIP, "--out", str(tmp_path)]
    built = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    lintian = ["lintian", "--allow-root", built.stdout.strip()]
    found = subprocess.run(lintian, capture_output=True, text=True, check=False)
    assert (found.stdout, found.returncode) == ("", 0)
