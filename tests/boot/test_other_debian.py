"""The service on the other supported Debian release, installed with pip."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.boot.machine import (
    EDITED,
    NEEDED,
    SUITES,
    Machine,
    make_root,
    own_suite,
    steps_to_a_backup_folder,
)

ROOT = Path(__file__).parents[2]
OTHERS = {suite: version for version, suite in SUITES.items() if version != sys.version_info[:2]}

pytestmark = [*NEEDED, pytest.mark.slow]


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    assert request.param != own_suite()
    root = tmp_path / "root"
    make_root(root, request.param)
    install(root, ".".join(map(str, OTHERS[request.param])))
    machine = Machine(root)
    machine.boot()
    yield machine
    if machine.is_up:
        machine.shut_down()
    subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


def install(root: Path, python: str) -> None:
    """Install medamad into a folder for the Python of that Debian release."""
    pip = (sys.executable, "-m", "pip", "--quiet")
    wheels = root / "root/wheels"
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(wheels), str(ROOT)], check=True)
    (wheel,) = wheels.iterdir()
    libraries = root / "usr/lib/python3/dist-packages"
    kind = ("--python-version", python, "--only-binary", ":all:")
    subprocess.run([*pip, "install", "--target", str(libraries), *kind, str(wheel)], check=True)
    program = root / "usr/bin/medamad"
    program.write_text('#!/bin/sh\nexec python3 -m medamad "$@"\n', "utf-8")
    program.chmod(0o755)


def test_backups_work_with_a_folder_made_as_documented(other: Machine) -> None:
    other.run("medamad", "service", "install", "--now")
    assert other.ask("add") == 201
    assert other.ask("hit") == 204
    configuration = other.root / EDITED.lstrip("/")
    text = configuration.read_text("utf-8")
    configuration.write_text(text.replace("[backup]", '[backup]\nfolder = "/mnt/backups"'), "utf-8")
    other.run("sh", "-ec", steps_to_a_backup_folder())
    other.run("systemctl", "start", "medamad-backup")
    (name,) = other.run("ls", "/mnt/backups").split()
    assert name.endswith(".mdb.zst")
    other.run("systemctl", "restart", "medamad")
    other.until(lambda: "backup  " in other.run("medamad", "status"), other.journal)

    other.run("systemctl", "stop", "medamad.socket", "medamad.service")
    other.run("medamad", "restore", f"/mnt/backups/{name}", "--data", "/var/lib/medamad")
    other.run("systemctl", "start", "medamad")
    assert other.ask("hit") == 204
