import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.boot.machine import Machine, make_root, own_suite
from support.distributions import released


@pytest.fixture(scope="package")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the package of a release, and the same package as an upgrade."""
    out = tmp_path_factory.mktemp("packages")
    release = released(tmp_path_factory.getbasetemp())
    assert release.ran.returncode == 0, release.ran.stderr
    (package,) = release.out.glob("*.deb")
    first = Path(shutil.copyfile(package, out / "first.deb"))
    return first, upgrade(first, out)


def upgrade(package: Path, out: Path) -> Path:
    """Make the next revision of a package, which differs only in that."""
    second = Path(shutil.copyfile(package, out / "second.deb"))
    about, packed = out / "about", out / "control.tar.zst"
    subprocess.run(["dpkg-deb", "--control", package, about], check=True)
    control = (about / "control").read_text("utf-8")
    version = re.compile(r"^(Version: .*-)1(?=~)", re.MULTILINE)
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
    for package in packages:
        package.rename(root / "root" / package.name)
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
