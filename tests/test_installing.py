import os
import sys
from pathlib import Path

import pytest

from medamad.config import ConfigError
from medamad.installing import (
    CannotInstall,
    Installation,
    check_reach,
    listened_on,
    this_program,
)
from medamad.shipped import shipped_file, shipped_unit

PROGRAM = ["/opt/medamad/bin/medamad"]


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_what_is_missing_is_written(installation: Installation, tmp_path: Path) -> None:
    written = [line.removeprefix(f"wrote {tmp_path}") for line in installation.install(PROGRAM)]
    assert written == [
        "/etc/medamad/medamad.toml",
        "/etc/medamad/referrers.toml",
        "/etc/medamad/blocked.txt",
        "/etc/systemd/system/medamad.service",
        "/etc/systemd/system/medamad.socket",
    ]
    for name in ("medamad.service", "medamad.socket"):
        assert installation.unit(name).read_text("utf-8") == shipped_unit(name).read_text("utf-8")
    for file in installation.configuration.iterdir():
        assert file.read_bytes() == shipped_file(file.name).read_bytes()


def test_what_the_operator_has_edited_is_left(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    edited = installation.configuration / "blocked.txt"
    edited.write_text("192.0.2.1\n", "utf-8")
    assert f"left {edited} as it is" in list(installation.install(PROGRAM))
    assert edited.read_text("utf-8") == "192.0.2.1\n"


def test_units_run_what_installs_them(installation: Installation) -> None:
    list(installation.install(["/srv/a b/bin/python", "-m", "medamad"]))
    lines = installation.unit("medamad.service").read_text("utf-8").splitlines()
    run = 'ExecStart="/srv/a b/bin/python" -m medamad run --config %E/medamad/medamad.toml'
    assert run in lines


def test_the_socket_goes_by_the_configuration(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    file = installation.configuration / "medamad.toml"
    file.write_text('[server]\nlisten = ["tcp:80", "tcp6:80:interface=\\\\:\\\\:1"]', "utf-8")
    list(installation.install(PROGRAM))
    lines = installation.unit("medamad.socket").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("ListenStream=")] == [
        "ListenStream=0.0.0.0:80",
        "ListenStream=[::1]:80",
    ]


def test_without_a_port_there_is_no_socket(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    file = installation.configuration / "medamad.toml"
    file.write_text('[server]\nlisten = "unix:/run/medamad/s"', "utf-8")
    socket = installation.unit("medamad.socket")
    assert f"removed {socket}: no port is configured" in list(installation.install(PROGRAM))
    assert not socket.exists()


@pytest.mark.parametrize("text", ["[server]\nlisten = 'tcp:x'", "[server]\nlisten = 1", "["])
def test_a_configuration_that_is_wrong_is_told(installation: Installation, text: str) -> None:
    installation.configuration.mkdir(parents=True)
    (installation.configuration / "medamad.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError):
        list(installation.install(PROGRAM))
    assert not installation.unit("medamad.service").exists()


def test_the_default_is_this_machine_alone(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text("", "utf-8")
    assert listened_on(file) == ["127.0.0.1:8080"]


def test_removing_leaves_the_configuration(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    units = [installation.unit(name) for name in ("medamad.socket", "medamad.service")]
    assert list(installation.uninstall()) == [f"removed {unit}" for unit in units]
    assert not any(unit.exists() for unit in units)
    assert (installation.configuration / "medamad.toml").exists()
    assert list(installation.uninstall()) == []


@pytest.mark.parametrize("folder", ["/home/ada/medamad", "/root/venv/bin", "/tmp/m"])  # noqa: S108
def test_what_the_service_does_not_see_is_refused(folder: str) -> None:
    with pytest.raises(CannotInstall, match=r"does not see .*; install medamad elsewhere"):
        check_reach(Path(folder) / "medamad")


@pytest.mark.skipif(not os.access("/opt", os.W_OK), reason="/opt cannot be written")
def test_what_others_may_not_enter_is_refused() -> None:
    shut = Path(f"/opt/shut-{os.getpid()}")
    shut.mkdir(mode=0o700)
    try:
        with pytest.raises(CannotInstall, match=f"other users may not enter {shut}"):
            check_reach(shut / "medamad")
    finally:
        shut.rmdir()


def test_this_program_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []
    monkeypatch.setattr("medamad.installing.check_reach", seen.append)
    program = this_program()
    assert Path(program[0]).is_absolute()
    assert Path(sys.executable).resolve() in seen
