import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.log_failures import LoggedFailures

from medamad.daemon.systemd import READY, Supervisor

UNITS = Path(__file__).parents[2] / "systemd"
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)


@pytest.fixture
def supervising(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(1)
        yield listening


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, Supervisor()),
        ({"WATCHDOG_USEC": "3000000"}, Supervisor()),
        ({"NOTIFY_SOCKET": "/run/n"}, Supervisor("/run/n")),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000"}, Supervisor("/run/n", 1.0)),
        (
            {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "7"},
            Supervisor("/run/n", 1.0),
        ),
        (
            {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "8"},
            Supervisor("/run/n"),
        ),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "soon"}, Supervisor("/run/n")),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "0"}, Supervisor("/run/n")),
    ],
)
def test_notify_socket_is_read_from_the_environment(
    environ: dict[str, str], wanted: Supervisor
) -> None:
    assert Supervisor.from_environ(environ, 7) == wanted


def test_notifications_are_sent(supervising: socket.socket) -> None:
    Supervisor(supervising.getsockname()).notify(READY, "STATUS=fine")
    assert supervising.recv(100) == b"READY=1\nSTATUS=fine"


def test_an_abstract_address_begins_with_an_at() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("")  # has Linux pick an abstract address
        listening.settimeout(1)
        Supervisor("@" + listening.getsockname()[1:].decode()).notify(READY)
        assert listening.recv(100) == b"READY=1"


def test_a_failing_notification_does_no_harm(
    tmp_path: Path, logged_failures: LoggedFailures
) -> None:
    Supervisor(str(tmp_path / "absent")).notify(READY)
    Supervisor().notify(READY)
    assert logged_failures.texts() == []


def test_the_socket_opens_before_its_address_exists() -> None:
    socket = (UNITS / "medamad.socket").read_text("utf-8").splitlines()
    assert "WantedBy=sockets.target medamad.service" in socket
    assert "FreeBind=yes" in socket
    service = (UNITS / "medamad.service").read_text("utf-8").splitlines()
    assert not any(line.startswith(("Wants=", "Requires=", "BindsTo=")) for line in service)


@needs_systemd
def test_the_units_are_valid(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = unit.read_text("utf-8").replace("/opt/medamad/bin/medamad", sys.executable)
        (tmp_path / unit.name).write_text(text, "utf-8")
    files = sorted(map(str, tmp_path.iterdir()))
    ran = subprocess.run(
        ["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize(
    "name", ["medamad.service", "medamad-backup.service", "medamad-follow@.service"]
)
def test_the_services_are_sandboxed(name: str) -> None:
    ran = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=true",
            "--threshold=15",
            str(UNITS / name),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-200:] + ran.stderr


def test_the_service_names_the_configuration() -> None:
    unit = (UNITS / "medamad.service").read_text("utf-8").splitlines()
    for line in (
        "Type=notify",
        "StateDirectory=medamad",
        "StateDirectoryMode=0700",
        "ConfigurationDirectory=medamad",
        "RuntimeDirectory=medamad",
        "RuntimeDirectoryMode=0755",
        "ExecReload=/bin/sh -c 'kill -HUP $$MAINPID'",
        "ExecReload=/opt/medamad/bin/medamad check-config %E/medamad/medamad.toml",
        "Restart=on-failure",
        "RestartPreventExitStatus=78",
        "SystemCallErrorNumber=EPERM",
    ):
        assert line in unit
    assert not any(line.startswith("ProcSubset=") for line in unit)


def test_the_others_run_as_the_user_of_the_daemon() -> None:
    units = [
        (UNITS / name).read_text("utf-8").splitlines()
        for name in ("medamad.service", "medamad-backup.service", "medamad-follow@.service")
    ]
    for line in ("DynamicUser=yes", "User=medamad", "StateDirectory=medamad"):
        assert all(line in unit for unit in units)


def test_the_follower_may_read_logs_and_writes_no_line_to_disk() -> None:
    unit = (UNITS / "medamad-follow@.service").read_text("utf-8").splitlines()
    for line in (
        "ExecStart=/opt/medamad/bin/medamad follow $OPTIONS --config %E/medamad/medamad.toml %f",
        "SupplementaryGroups=adm",
        "ProtectSystem=strict",
        "MemorySwapMax=0",
        "LimitCORE=0",
        "PrivateNetwork=yes",
    ):
        assert line in unit


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "medamad.service",
            (
                "StartLimitIntervalSec=5min",
                "StartLimitBurst=10",
                "MemorySwapMax=0",
                "LimitCORE=0",
            ),
        ),
        ("medamad-backup.service", ("TimeoutStartSec=2h",)),
        ("medamad-backup.timer", ("OnCalendar=*-*-* 03:30:00", "Persistent=yes")),
    ],
)
def test_the_units_have_the_documented_times_and_limits(name: str, lines: tuple[str, ...]) -> None:
    """As in docs/operating.md and docs/privacy.md."""
    unit = (UNITS / name).read_text("utf-8").splitlines()
    assert [line for line in lines if line not in unit] == []
