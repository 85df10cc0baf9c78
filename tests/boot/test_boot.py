"""The package on a machine that really boots; each test continues from the one before."""

import json
import subprocess
from pathlib import Path

import pytest
from support.boot.machine import EDITED, NEEDED, Machine, asking, steps_to_a_backup_folder

ROOT = Path(__file__).parents[2]
OVERRIDE = "/etc/systemd/system/medamad.service.d/test.conf"

UNITS = ("medamad.service", "medamad.socket", "medamad-backup.service", "medamad-backup.timer")

pytestmark = NEEDED


def test_the_package_installs_a_service_that_counts(machine: Machine) -> None:
    machine.run("dpkg", "--force-unsafe-io", "--install", "/root/first.deb")
    assert machine.shown("ActiveState") == "active"
    assert machine.run("systemctl", "is-enabled", "medamad.service", "medamad.socket") == (
        "enabled\nenabled"
    )
    assert machine.ask("add") == 201
    assert machine.ask("hit") == 204
    assert machine.ask("views") == 1
    assert machine.run("medamad", "version")
    assert machine.run("find", "/usr/lib/medamad", "-name", "tests") == ""


def test_the_service_has_its_own_user_and_private_data(machine: Machine) -> None:
    pid = machine.shown("MainPID")
    uid = machine.run("stat", "--format=%u", f"/proc/{pid}")
    assert int(uid) >= 61184  # of the range of DynamicUser
    modes = machine.run("stat", "--format=%a %u", "/var/lib/private/medamad")
    assert modes == f"700 {uid}"


def test_systemd_analyze_finds_no_problem(machine: Machine) -> None:
    units = [machine.shown("FragmentPath", unit) for unit in UNITS]
    ran = subprocess.run(
        machine.inside("systemd-analyze", "verify", *units),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("", 0)
    for unit in ("medamad.service", "medamad-backup.service"):
        machine.run("systemd-analyze", "security", "--threshold=15", unit)


def test_a_reload_applies_the_configuration(machine: Machine) -> None:
    pid = machine.shown("MainPID")
    machine.run("sed", "-i", 's/^#script_name = .*/script_name = "pulse.js"/', EDITED)
    machine.run("systemctl", "reload", "medamad")
    assert machine.shown("MainPID") == pid
    # The command returns once the daemon has applied the reload.
    ask = ("python3", "-c", asking("/pulse.js"))
    machine.until(lambda: machine.run(*ask, fails=True) == "200", machine.journal)
    with machine.load() as answered:
        for _ in range(2):
            machine.run("systemctl", "reload", "medamad")
    assert set(answered) == {"204"}


def test_a_reload_of_an_invalid_file_fails(machine: Machine) -> None:
    pid = machine.shown("MainPID")
    configuration = machine.root / EDITED.lstrip("/")
    before = configuration.read_text("utf-8")
    configuration.write_text(f"banana = 1\n{before}", "utf-8")
    machine.run("sh", "-c", "! systemctl reload medamad")
    warning = f"warning: the configuration on disk is not in use: {EDITED}: banana: unknown key"
    assert warning in machine.run("medamad", "status")
    configuration.write_text(before, "utf-8")
    machine.run("systemctl", "reload", "medamad")
    assert warning not in machine.run("medamad", "status")
    assert machine.shown("MainPID") == pid


def test_a_restart_loses_no_connection(machine: Machine) -> None:
    before = machine.ask("views")
    with machine.load() as answered:
        machine.run("systemctl", "restart", "medamad")
    assert set(answered) == {"204"}
    assert machine.ask("views") == before + answered["204"]


def signalled(machine: Machine, pid: str, name: str) -> None:
    machine.run("sh", "-c", f"kill -{name} {pid}")


def test_a_killed_daemon_is_restarted(machine: Machine) -> None:
    override(machine, "[Service]", "WatchdogSec=10s")  # for the next test
    before, pid = machine.ask("views"), machine.shown("MainPID")
    signalled(machine, pid, "KILL")
    machine.until(lambda: machine.shown("MainPID") not in ("0", pid), machine.journal)
    machine.until_active()
    assert machine.ask("hit") == 204
    assert machine.ask("views") == before + 1


def test_a_hanging_daemon_is_restarted(machine: Machine) -> None:
    assert machine.shown("WatchdogUSec") == "10s"
    pid = machine.shown("MainPID")
    signalled(machine, pid, "STOP")
    machine.until(lambda: machine.shown("MainPID") not in ("0", pid), machine.journal)
    machine.until_active()
    assert "watchdog" in machine.journal().lower()
    assert machine.ask("hit") == 204
    override(machine)


def override(machine: Machine, *lines: str) -> None:
    """Install a drop-in for the unit, or remove it."""
    path = machine.root / OVERRIDE.lstrip("/")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), "utf-8")
    machine.run("systemctl", "daemon-reload")


def test_without_a_configuration_neither_systemd_nor_a_connection_restarts_it(
    machine: Machine,
) -> None:
    machine.run("mv", EDITED, f"{EDITED}.away")
    with machine.load() as answered:
        machine.run("systemctl", "restart", "medamad", fails=True)
        machine.until(lambda: machine.shown("ActiveState") == "failed", machine.journal)
        machine.until(
            lambda: machine.shown("ActiveState", "medamad.socket") == "inactive", machine.journal
        )
        assert machine.shown("ExecMainStatus") == "78"
        tried = machine.shown("InvocationID")
        machine.run("sleep", "4")
        assert machine.shown("InvocationID") == tried
        assert machine.shown("NRestarts") == "0"
        assert "No such file or directory" in machine.journal()
        machine.run("mv", f"{EDITED}.away", EDITED)
        machine.run("systemctl", "start", "medamad")
    assert answered["204"] > 0
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("hit") == 204


def test_the_timer_is_installed_but_not_enabled(machine: Machine) -> None:
    assert machine.run("systemctl", "is-enabled", "medamad-backup.timer", fails=True) == "disabled"


@pytest.mark.parametrize("is_running", [True, False])
def test_the_backup_service_backs_up_the_daemons_store(
    machine: Machine, *, is_running: bool
) -> None:
    folder = "/var/lib/private/medamad/backups"
    machine.run("rm", "-rf", folder)
    if not is_running:
        machine.run("systemctl", "stop", "medamad.socket", "medamad.service")
    machine.run("systemctl", "start", "medamad-backup")
    (name,) = machine.run("ls", folder).split()
    owner = machine.run("stat", "--format=%u", "/var/lib/private/medamad")
    assert machine.run("stat", "--format=%a %u", f"{folder}/{name}") == f"600 {owner}"
    machine.run("medamad", "restore", f"{folder}/{name}", "--data", f"/root/restored-{is_running}")
    machine.run("systemctl", "start", "medamad")
    assert machine.ask("hit") == 204


def test_backups_work_with_a_folder_made_as_documented(machine: Machine) -> None:
    configuration = machine.root / EDITED.lstrip("/")
    before = configuration.read_text("utf-8")
    backup = '[backup]\nat = "00:00"\nfolder = "/mnt/backups"'
    configuration.write_text(before.replace("[backup]", backup), "utf-8")
    machine.run("systemctl", "restart", "medamad")
    assert "medamad-backup.timer" in machine.journal()
    status = ("medamad", "status")
    machine.until(
        lambda: "no backup was found" in machine.run(*status, fails=True), machine.journal
    )
    machine.run("sh", "-ec", steps_to_a_backup_folder())
    assert machine.shown("ActiveState", "medamad-backup.timer") == "active"
    machine.run("systemctl", "start", "medamad-backup")
    assert machine.run("ls", "/mnt/backups").endswith(".mdb.zst")
    machine.run("systemctl", "restart", "medamad")
    machine.until(lambda: "backup  " in machine.run(*status), machine.journal)
    configuration.write_text(before, "utf-8")
    machine.run("systemctl", "disable", "--now", "medamad-backup.timer")


def test_the_service_starts_after_a_reboot(machine: Machine) -> None:
    before = machine.ask("views")
    machine.shut_down()
    machine.boot()
    assert machine.shown("ActiveState") == "active"
    assert machine.ask("views") == before
    machine.cut_power()
    machine.boot()
    assert machine.ask("views") == before


def test_data_can_be_exported_and_imported(machine: Machine) -> None:
    """Run by root while the service runs as another user."""
    data = ("--data", "/var/lib/medamad")
    before, login = machine.ask("views"), "/var/lib/medamad/first-login.txt"
    machine.run("medamad", "backup", *data, "/root/backup.zst")
    machine.run("medamad", "export", *data, "--output", "/root/views.csv", "example.com")
    assert machine.ask("add", "twin.example") == 201
    import_ = ("medamad", "import", *data, "--json")
    came = json.loads(machine.run(*import_, "--website", "twin.example", "/root/views.csv"))
    assert (came["number"], came["views"]) == (1, before)
    assert json.loads(machine.run("medamad", "status", *data, "--json"))["websites"] == 2
    machine.run(*import_, "--undo", "1")
    assert machine.run(*import_, "--list") == "[]"
    assert machine.ask("hit") == 204
    machine.run("cp", login, "/root/login.txt")
    machine.run("systemctl", "stop", "medamad.socket", "medamad.service")
    machine.run("medamad", "restore", *data, "/root/backup.zst")
    # The account is that of the backup, and with it the password.
    machine.run("cp", "--no-preserve=mode", "/root/login.txt", login)
    machine.run("systemctl", "start", "medamad")
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("views") == before
    assert machine.ask("hit") == 204
    assert machine.run("medamad", "check", *data)
