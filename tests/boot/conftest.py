import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.boot.machine import Machine, make_root, own_suite

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the package, and the same package as an upgrade."""
    out = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "packaging/deb.py", "--out", str(out)]
    # So that pip does not fetch what the wheel is built with, which is here already. 0 means none.
    environ = os.environ | {"PIP_NO_BUILD_ISOLATION": "0"}
    built = subprocess.run(
        build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environ
    )
    first = Path(built.stdout.strip())
    return first, upgrade(first, out)


def upgrade(package: Path, out: Path) -> Path:
    """Make the next revision of a package, which differs only in that."""
    second = Path(shutil.copyfile(package, out / "second.deb"))
    about, packed = out / "about", out / "control.tar.zst"
    subprocess.run(["dpkg-deb", "--control", package, about], check=True)
    control = (about / "control").read_text("utf-8")
    version = re.compile(r"^(Version: .*-)1$", re.MULTILINE)
    (about / "control").write_text(version.sub(r"\g<1>2", control), "utf-8")
    subprocess.run(["tar", "--zstd", "-cf", packed, "-C", about, "."], check=True)
    subprocess.run(["ar", "r", second, packed], check=True)
    return second


@pytest.fixture(scope="package")
def machine(
    tmp_path_factory: pytest.TempPathFactory, packages: tuple[Path, Path]
) -> Iterator[Machine]:
    root = tmp_path_factory.mktemp("machine") / "root"
    make_root(root, own_suite())
    for package, name in zip(packages, ("first.deb", "second.deb"), strict=True):
        package.rename(root / "root" / name)
    machine = Machine(root)
    machine.boot()
    yield machine
    if machine.is_up:
        machine.shut_down()
    subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


@pytest.fixture(autouse=True)
def _reset_start_limit(request: pytest.FixtureRequest) -> None:
    """The tests together exceed systemd's limit on starts in five minutes."""
    if "machine" in request.fixturenames:
        request.getfixturevalue("machine").run("systemctl", "reset-failed")
