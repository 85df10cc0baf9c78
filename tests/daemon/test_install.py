import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medamad.build import shipped_file, shipped_unit
from medamad.config.schema import ConfigError
from medamad.daemon.install import (
    ALL_UNITS,
    PACKAGED,
    PORTS,
    CannotInstall,
    Installation,
    check_reach,
    listened_on,
    this_program,
)

POSTRM = Path(__file__).parents[2] / "packaging/debian/medamad.postrm"
PROGRAM = ["/opt/medamad/bin/medamad"]


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_missing_files_are_written(installation: Installation, tmp_path: Path) -> None:
    written = [line.removeprefix(f"wrote {tmp_path}") for line in installation.install(PROGRAM)]
    assert written == [
        "/etc/medamad/medamad.toml",
        "/etc/medamad/referrers.toml",
        "/etc/medamad/blocked.txt",
        "/etc/systemd/system/medamad.service",
        "/etc/systemd/system/medamad-backup.service",
        "/etc/systemd/system/medamad-backup.timer",
        "/etc/systemd/system/medamad-follow@.service",
        "/etc/systemd/system/medamad.socket",
    ]
    for name in ALL_UNITS:
        assert installation.unit(name).read_text("utf-8") == shipped_unit(name).read_text("utf-8")
    for file in installation.configuration.iterdir():
        assert file.read_bytes() == shipped_file(file.name).read_bytes()


def test_edited_files_are_left_alone(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    edited = installation.configuration / "blocked.txt"
    edited.write_text("192.0.2.1\n", "utf-8")
    assert f"left {edited} as it is" in list(installation.install(PROGRAM))
    assert edited.read_text("utf-8") == "192.0.2.1\n"


def test_units_run_the_installing_program(installation: Installation) -> None:
    list(installation.install(["/srv/a b/bin/python", "-m", "medamad"]))
    lines = installation.unit("medamad.service").read_text("utf-8").splitlines()
    run = 'ExecStart="/srv/a b/bin/python" -m medamad run --config %E/medamad/medamad.toml'
    assert run in lines
    backup = installation.unit("medamad-backup.service").read_text("utf-8")
    assert 'ExecStart="/srv/a b/bin/python" -m medamad backup --rotate --config ' in backup


def test_the_socket_follows_the_configuration(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    file = installation.configuration / "medamad.toml"
    file.write_text('[server]\nlisten = ["tcp:80", "tcp6:80:interface=\\\\:\\\\:1"]\n', "utf-8")
    list(installation.install(PROGRAM))
    lines = installation.unit("medamad.socket").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("ListenStream=")] == [
        "ListenStream=0.0.0.0:80",
        "ListenStream=[::1]:80",
    ]


def test_without_a_port_there_is_no_socket(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    file = installation.configuration / "medamad.toml"
    file.write_text('[server]\nlisten = "unix:/run/medamad/s"\n', "utf-8")
    socket = installation.unit("medamad.socket")
    assert f"removed {socket}: no port is configured" in list(installation.install(PROGRAM))
    assert not socket.exists()


@pytest.fixture
def packaged(tmp_path: Path) -> Installation:
    """Return an installation next to the units of a package."""
    list(Installation(tmp_path, PACKAGED).install(PROGRAM))
    return Installation(tmp_path)


def configure_to_listen(installation: Installation, value: str) -> None:
    file = installation.configuration / "medamad.toml"
    file.write_text(f"[server]\nlisten = {value}\n", "utf-8")


def test_a_package_keeps_its_units(packaged: Installation, tmp_path: Path) -> None:
    configure_to_listen(packaged, '["tcp:80", "tcp:8081:interface=127.0.0.1"]')
    written = [line for line in packaged.install(PROGRAM) if line.startswith("wrote ")]
    drop_in = tmp_path / "etc/systemd/system/medamad.socket.d/ports.conf"
    assert written == [f"wrote {drop_in}"]
    assert drop_in.read_text("utf-8") == (
        "# Written by `medamad service install`.\n"
        "[Socket]\nListenStream=\nListenStream=0.0.0.0:80\nListenStream=127.0.0.1:8081\n"
    )
    assert packaged.names == ["medamad.socket", "medamad.service"]
    assert not packaged.unit("medamad.service").exists()
    configure_to_listen(packaged, '"tcp:8080:interface=127.0.0.1"')
    assert f"removed {drop_in}" in list(packaged.install(PROGRAM))
    assert not drop_in.exists()


def test_units_that_hide_those_of_a_package_are_removed(packaged: Installation) -> None:
    unit, masked = packaged.unit("medamad.service"), packaged.unit("medamad.socket")
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]", "utf-8")
    masked.symlink_to("/dev/null")
    assert f"removed {unit}: it hid the package's" in list(packaged.install(PROGRAM))
    assert not unit.exists()
    assert masked.is_symlink()
    assert packaged.names == ["medamad.service"]


def test_a_package_without_a_port_has_its_socket_masked(packaged: Installation) -> None:
    configure_to_listen(packaged, '"unix:/run/medamad/s"')
    notes = list(packaged.install(PROGRAM))
    assert "no port is configured: systemctl mask --now medamad.socket" in notes


def test_the_service_of_a_package_is_left_alone(packaged: Installation) -> None:
    with pytest.raises(CannotInstall, match="belongs to a package; `apt-get remove medamad`"):
        list(packaged.install(["/srv/medamad/bin/medamad"]))
    with pytest.raises(CannotInstall, match="belongs to a package; `apt-get remove medamad`"):
        list(packaged.uninstall())
    assert packaged.packaged


def test_a_symlinked_unit_is_not_followed(installation: Installation, tmp_path: Path) -> None:
    """A package that was removed, not purged, leaves its units masked by links to /dev/null."""
    null = tmp_path / "null"
    null.write_text("", "utf-8")
    unit = installation.unit("medamad.service")
    unit.parent.mkdir(parents=True)
    unit.symlink_to(null)
    list(installation.install(PROGRAM))
    assert null.read_text("utf-8") == ""
    assert unit.read_text("utf-8") == shipped_unit("medamad.service").read_text("utf-8")


def test_changed_ports_are_reported(installation: Installation) -> None:
    assert installation.ports == []
    list(installation.install(PROGRAM))
    assert installation.ports == ["ListenStream=127.0.0.1:8080"]
    configure_to_listen(installation, '"tcp:80"')
    list(installation.install(PROGRAM))
    assert installation.ports == ["ListenStream=0.0.0.0:80"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("medamad.toml", "[server]\nlisten = 'tcp:x'\n"),
        ("medamad.toml", "[server]\nlisten = 'unix:/run/medamad/s:mode=9'\n"),
        ("medamad.toml", "[server]\nlisten = []\n"),
        ("medamad.toml", "[\n"),
        ("blocked.txt", "198.51.100.7/24\n"),
        ("spam.txt", "dotless\n"),
        ("referrers.toml", "=\n"),
    ],
)
def test_an_invalid_configuration_writes_no_units(
    installation: Installation, name: str, text: str
) -> None:
    installation.configuration.mkdir(parents=True)
    (installation.configuration / name).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=f"{installation.configuration}/{name}: "):
        list(installation.install(PROGRAM))
    assert not installation.unit("medamad.service").exists()


def test_by_default_it_listens_on_localhost(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text("", "utf-8")
    assert listened_on(file) == ["ListenStream=127.0.0.1:8080"]


@pytest.mark.parametrize(
    ("listen", "lines"),
    [
        ('"tcp6:80"', ["[::]:80"]),
        ('["tcp:80", "tcp6:80"]', ["0.0.0.0:80", "[::]:80", None]),
        ('["tcp6:80", "tcp:80:interface=127.0.0.1"]', ["[::]:80", "127.0.0.1:80", None]),
        (
            '["tcp:80", "tcp:80:interface=\\\\:\\\\:", "tcp6:81"]',
            ["0.0.0.0:80", "[::]:80", "[::]:81", "0.0.0.0:81", None],
        ),
        ('["tcp:80", "tcp6:81"]', ["0.0.0.0:80", "[::]:81"]),
        ('"tcp:80:interface=localhost"', ["127.0.0.1:80"]),
    ],
)
def test_the_lines_of_the_socket(
    installation: Installation, listen: str, lines: list[str | None]
) -> None:
    """None: each socket of IPv6 is for IPv6 alone."""
    list(installation.install(PROGRAM))
    configure_to_listen(installation, listen)
    assert listened_on(installation.configuration / "medamad.toml") == [
        "BindIPv6Only=ipv6-only" if line is None else f"ListenStream={line}" for line in lines
    ]


def test_an_unresolvable_name_is_reported(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    configure_to_listen(installation, '"tcp:80:interface=a.invalid"')
    with pytest.raises(ConfigError, match=r"server\.listen: tcp:80:interface=a\.invalid: "):
        list(installation.install(PROGRAM))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_a_dual_stack_socket_is_valid(
    installation: Installation,
) -> None:
    list(installation.install([sys.executable]))
    configure_to_listen(installation, '["tcp:80:interface=localhost", "tcp6:80"]')
    list(installation.install([sys.executable]))
    files = [str(installation.unit(name)) for name in ALL_UNITS]
    ran = subprocess.run(
        ["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_uninstalling_keeps_the_configuration(installation: Installation) -> None:
    list(installation.install(PROGRAM))
    units = [installation.unit(name) for name in ALL_UNITS]
    assert list(installation.uninstall()) == [f"removed {unit}" for unit in units]
    assert not any(unit.exists() for unit in units)
    assert (installation.configuration / "medamad.toml").exists()
    assert list(installation.uninstall()) == []


@pytest.mark.parametrize("folder", ["/home/ada/medamad", "/root/venv/bin", "/tmp/m"])  # noqa: S108
def test_paths_hidden_from_the_service_are_rejected(folder: str) -> None:
    with pytest.raises(CannotInstall, match=r"cannot see .*; install medamad elsewhere"):
        check_reach(Path(folder) / "medamad")


def test_leftover_drop_ins_of_a_package_are_removed(packaged: Installation, tmp_path: Path) -> None:
    """A package that was removed, not purged, leaves the drop-in of its socket."""
    configure_to_listen(packaged, '"tcp:8081"')
    list(packaged.install(PROGRAM))
    ports = packaged.unit(PORTS)
    left = ports.read_text("utf-8")
    assert f"grep -qsxF '{left.splitlines()[0]}'" in POSTRM.read_text("utf-8")
    list(Installation(tmp_path, PACKAGED).uninstall())
    configure_to_listen(packaged, '"tcp:8082"')
    assert f"removed {ports}: it belonged to a package" in list(packaged.install(PROGRAM))
    assert packaged.ports == ["ListenStream=0.0.0.0:8082"]
    ports.write_text(left, "utf-8")
    assert f"removed {ports}: it belonged to a package" in list(packaged.uninstall())
    assert packaged.ports == []


@pytest.mark.parametrize("listen", ['"tcp:8080:interface=127.0.0.1"', '"tcp:81"'])
@pytest.mark.parametrize("kind", ["installation", "packaged"])
@pytest.mark.parametrize(
    "own",
    [b"[Socket]\nListenStream=\nListenStream=127.0.0.1:8081\n", b"# f\xfcr\n[Socket]\nMark=7\n"],
)
def test_drop_ins_of_the_operator_are_kept(
    request: pytest.FixtureRequest, kind: str, own: bytes, listen: str
) -> None:
    installation: Installation = request.getfixturevalue(kind)
    list(installation.install(PROGRAM))
    configure_to_listen(installation, listen)
    ports = installation.unit(PORTS)
    ports.parent.mkdir(parents=True)
    ports.write_bytes(own)
    left = f"left {ports} as it is"
    if b"8081" in own:
        left += ": its ports override the configuration"
    elif installation.packaged:
        left += ": it names no port; rename it to have the ports of the configuration written there"
    assert left in list(installation.install(PROGRAM))
    assert ("ListenStream=127.0.0.1:8081" in installation.ports) == (b"8081" in own)
    if not installation.packaged:
        assert left in list(installation.uninstall())
    assert ports.read_bytes() == own


@pytest.mark.skipif(not os.access("/opt", os.W_OK), reason="/opt cannot be written")
def test_inaccessible_paths_are_rejected() -> None:
    shut = Path(f"/opt/shut-{os.getpid()}")
    shut.mkdir(mode=0o700)
    try:
        with pytest.raises(CannotInstall, match=f"other users may not enter {shut}"):
            check_reach(shut / "medamad")
    finally:
        shut.rmdir()


def test_this_program_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []
    monkeypatch.setattr("medamad.daemon.install.check_reach", seen.append)
    program = this_program()
    assert Path(program[0]).is_absolute()
    assert Path(sys.executable).resolve() in seen
