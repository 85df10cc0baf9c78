"""The package on a machine that really boots; each test takes it as the one before has left it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import Machine, make_root, missing

ROOT = Path(__file__).parents[2]
EDITED = "/etc/medamad/medamad.toml"
OVERRIDE = "/etc/systemd/system/medamad.service.d/test.conf"

pytestmark = [
    pytest.mark.boot,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give the package, and the same again as an upgrade."""
    out = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "packaging/deb.py", "--out", str(out), "--upgrade"]
    subprocess.run(build, cwd=ROOT, check=True)
    first, second = sorted(out.iterdir())
    return first, second


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory, packages: tuple[Path, Path]
) -> Iterator[Machine]:
    root = tmp_path_factory.mktemp("machine") / "root"
    make_root(root)
    for package, name in zip(packages, ("first.deb", "second.deb"), strict=True):
        package.rename(root / "root" / name)
    machine = Machine(root)
    machine.boot()
    yield machine
    if machine.is_up:
        machine.shut_down()
    subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


@pytest.fixture(autouse=True)
def _starts_are_counted_anew(machine: Machine) -> None:
    """The tests together start the service more often than systemd lets it in five minutes."""
    machine.run("systemctl", "reset-failed")


def until_active(machine: Machine) -> None:
    machine.until(lambda: machine.shown("ActiveState") == "active", machine.journal)


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
    assert machine.run("medamad", "check", "--data", "/var/lib/medamad")


def test_it_runs_as_nobody_else_and_keeps_its_data_to_itself(machine: Machine) -> None:
    pid = machine.shown("MainPID")
    uid = machine.run("stat", "--format=%u", f"/proc/{pid}")
    assert int(uid) >= 61184  # of the range of DynamicUser
    modes = machine.run("stat", "--format=%a %u", "/var/lib/private/medamad")
    assert modes == f"700 {uid}"


def test_systemd_finds_no_fault(machine: Machine) -> None:
    units = [machine.shown("FragmentPath", f"medamad.{kind}") for kind in ("service", "socket")]
    ran = subprocess.run(
        machine.inside("systemd-analyze", "verify", *units),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("", 0)
    machine.run("systemd-analyze", "security", "--threshold=15", "medamad.service")


def test_a_reload_applies_the_configuration(machine: Machine) -> None:
    pid = machine.shown("MainPID")
    machine.run("sed", "-i", 's/^#script_name = .*/script_name = "pulse.js"/', EDITED)
    machine.run("systemctl", "reload", "medamad")
    assert machine.shown("MainPID") == pid
    assert machine.run("python3", "-c", asking("/pulse.js")) == "200"
    with machine.load() as answered:
        for _ in range(3):
            machine.run("systemctl", "reload", "medamad")
    assert set(answered) == {"204"}


def asking(path: str, port: int = 8080) -> str:
    return (
        "import urllib.request as r;"
        f"print(r.urlopen('http://127.0.0.1:{port}{path}', timeout=30).status)"
    )


def test_a_restart_loses_no_connection(machine: Machine) -> None:
    before = machine.ask("views")
    with machine.load() as answered:
        for _ in range(2):
            machine.run("systemctl", "restart", "medamad")
    assert set(answered) == {"204"}
    assert machine.ask("views") == before + answered["204"]


def signalled(machine: Machine, pid: str, name: str) -> None:
    machine.run("sh", "-c", f"kill -{name} {pid}")


def test_a_killed_daemon_is_started_again(machine: Machine) -> None:
    before, pid = machine.ask("views"), machine.shown("MainPID")
    signalled(machine, pid, "KILL")
    machine.until(lambda: machine.shown("MainPID") not in ("0", pid), machine.journal)
    until_active(machine)
    assert machine.ask("hit") == 204
    assert machine.ask("views") == before + 1


def test_a_daemon_that_hangs_is_started_again(machine: Machine) -> None:
    override(machine, "[Service]", "WatchdogSec=2s")
    machine.run("systemctl", "restart", "medamad")
    pid = machine.shown("MainPID")
    signalled(machine, pid, "STOP")
    machine.until(lambda: machine.shown("MainPID") not in ("0", pid), machine.journal)
    until_active(machine)
    assert "watchdog" in machine.journal().lower()
    assert machine.ask("hit") == 204
    override(machine)


def override(machine: Machine, *lines: str) -> None:
    """Change the unit by a drop-in, or by none."""
    path = machine.root / OVERRIDE.lstrip("/")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), "utf-8")
    machine.run("systemctl", "daemon-reload")


def test_without_a_configuration_it_is_not_started_again_and_again(machine: Machine) -> None:
    machine.run("mv", EDITED, f"{EDITED}.away")
    machine.run("systemctl", "restart", "medamad", fails=True)
    machine.until(lambda: machine.shown("ActiveState") == "failed", machine.journal)
    assert machine.shown("ExecMainStatus") == "78"
    restarts = machine.shown("NRestarts")
    machine.run("sleep", "4")
    assert machine.shown("NRestarts") == restarts == "0"
    assert "No such file or directory" in machine.journal()
    machine.run("mv", f"{EDITED}.away", EDITED)
    machine.run("systemctl", "start", "medamad")
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("hit") == 204


def test_visits_do_not_start_what_has_no_configuration_again_and_again(machine: Machine) -> None:
    machine.run("mv", EDITED, f"{EDITED}.away")
    with machine.load() as answered:
        machine.run("systemctl", "restart", "medamad", fails=True)
        machine.until(lambda: machine.shown("ActiveState") == "failed", machine.journal)
        machine.until(
            lambda: machine.shown("ActiveState", "medamad.socket") == "inactive", machine.journal
        )
        tried = machine.shown("InvocationID")
        machine.run("sleep", "4")
        assert machine.shown("InvocationID") == tried
        machine.run("mv", f"{EDITED}.away", EDITED)
        machine.run("systemctl", "start", "medamad")
    assert answered["204"] > 0
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("hit") == 204


def test_ports_change_by_the_steps_that_are_printed(machine: Machine) -> None:
    machine.run("sed", "-i", 's/^#listen = .*/listen = "tcp:9090"/', EDITED)
    printed = machine.run("medamad", "service", "install").splitlines()
    steps = [line.partition(": ")[2] for line in printed if ": systemctl " in line]
    assert [step.split()[1] for step in steps] == ["stop", "enable", "restart"]
    for step in steps:
        machine.run(*step.split())
    assert machine.run("python3", "-c", asking("/pulse.js", 9090)) == "200"
    assert machine.shown("Listen", "medamad.socket") == "0.0.0.0:9090 (Stream)"
    for unit in ("medamad.service", "medamad.socket"):
        assert machine.shown("FragmentPath", unit).endswith(f"/lib/systemd/system/{unit}")
    machine.run("sed", "-i", 's/^listen = .*/listen = "tcp:8080"/', EDITED)
    machine.run("medamad", "service", "install", "--now")
    assert machine.shown("Listen", "medamad.socket") == "0.0.0.0:8080 (Stream)"
    assert machine.ask("hit") == 204


PING = b"GET /api/event/ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def pinging(family: str, address: object) -> tuple[str, ...]:
    """Give a command by which somebody who is not root asks; it prints the answer's first line."""
    connect = f"s = k.socket(k.{family}); s.settimeout(60); s.connect({address!r});"
    asked = f"s.sendall({PING!r}); print(s.makefile().readline())"
    return (
        *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
        *("python3", "-c", f"import socket as k; {connect} {asked}"),
    )


def test_it_listens_on_both_families_and_on_a_unix_socket(machine: Machine) -> None:
    listen(machine, '["tcp:8080", "tcp6:8080", "unix:/run/medamad/http.sock"]')
    for _ in range(2):
        for family, address in (
            ("AF_INET", ("127.0.0.1", 8080)),
            ("AF_INET6", ("::1", 8080)),
            ("AF_UNIX", "/run/medamad/http.sock"),
        ):
            assert machine.run(*pinging(family, address)) == "HTTP/1.1 200 OK"
        machine.run("systemctl", "restart", "medamad")
    assert machine.shown("Listen", "medamad.socket") == (
        "0.0.0.0:8080 (Stream)\n[::]:8080 (Stream)"
    )
    listen(machine, '"tcp:8080"')
    assert machine.ask("hit") == 204


def listen(machine: Machine, places: str) -> None:
    machine.run("sed", "-i", f"s|^#*listen = .*|listen = {places}|", EDITED)
    machine.run("medamad", "service", "install", "--now")


def test_a_place_that_is_no_port_is_opened_at_once_too(machine: Machine) -> None:
    ping = pinging("AF_UNIX", "/run/medamad/other.sock")
    listen(machine, '"tcp:8080"')
    listen(machine, '["tcp:8080", "unix:/run/medamad/other.sock"]')
    assert machine.run(*ping) == "HTTP/1.1 200 OK"
    listen(machine, '"tcp:8080"')
    assert machine.ask("hit") == 204


GIVE_ADDRESS = (
    "import socket as k, struct as s, fcntl;"
    "address = s.pack('HH4s8x', k.AF_INET, 0, k.inet_aton('192.0.2.7'));"
    "fcntl.ioctl(k.socket(), 0x8916, s.pack('16s16s8x', b'lo:1', address))"  # SIOCSIFADDR
)


def test_an_address_may_come_after_the_service(machine: Machine) -> None:
    listen(machine, '"tcp:8080:interface=192.0.2.7"')
    assert machine.shown("ActiveState") == "active"
    machine.run("python3", "-c", GIVE_ADDRESS)
    assert machine.run(*pinging("AF_INET", ("192.0.2.7", 8080))) == "HTTP/1.1 200 OK"
    listen(machine, '"tcp:8080"')
    assert machine.ask("hit") == 204


def test_a_certificate_is_handed_over(machine: Machine) -> None:
    lineage = machine.root / "etc/letsencrypt/live/stats.example.com"
    lineage.mkdir(parents=True)
    for name in ("privkey", "cert", "chain"):
        (lineage / f"{name}.pem").write_text(name, "utf-8")
    hook = (ROOT / "etc/certbot-deploy").read_text("utf-8")
    owner = machine.run("stat", "--format=%u:%g", f"/proc/{machine.shown('MainPID')}")
    for act in ("stop", "start"):
        machine.run("systemctl", act, "medamad.socket", "medamad.service")
        machine.run("sh", "-c", hook)
        for name in ("privkey", "cert", "chain"):
            path = f"/var/lib/private/medamad/tls/{name}.pem"
            assert machine.run("stat", "--format=%u:%g %a", path) == f"{owner} 400"
            assert machine.run("cat", path) == name
    assert machine.shown("ActiveState") == "active"


def test_backups_go_to_a_folder_made_as_the_page_says(machine: Machine) -> None:
    page = (ROOT / "docs/operating.md").read_text("utf-8")
    steps = next(block for block in page.split("```") if "/mnt/backups" in block)
    configuration = machine.root / EDITED.lstrip("/")
    before = configuration.read_text("utf-8")
    backup = '[backup]\nat = "00:00"\nfolder = "/mnt/backups"'
    configuration.write_text(before.replace("[backup]", backup), "utf-8")
    machine.run("sh", "-ec", steps.removeprefix("sh"))
    machine.until(
        lambda: machine.run("ls", "/mnt/backups").endswith(".mdb.zst"), machine.journal, 180
    )
    configuration.write_text(before, "utf-8")
    machine.run("systemctl", "reload", "medamad")


def test_it_comes_back_with_the_machine(machine: Machine) -> None:
    before = machine.ask("views")
    machine.shut_down()
    machine.boot()
    assert machine.shown("ActiveState") == "active"
    assert machine.ask("views") == before
    machine.cut_power()
    machine.boot()
    assert machine.ask("views") == before


def test_what_it_has_can_leave_and_come_back(machine: Machine) -> None:
    """By root, beside the service, which runs as somebody else."""
    data = ("--data", "/var/lib/medamad")
    before, login = machine.ask("views"), "/var/lib/medamad/first-login.txt"
    machine.run("medamad", "backup", *data, "/root/backup.zst")
    machine.run("medamad", "export", *data, "--output", "/root/views.csv", "example.com")
    assert machine.ask("add", "twin.example") == 201
    import_ = ("medamad", "import", *data, "--json")
    came = json.loads(machine.run(*import_, "--website", "twin.example", "/root/views.csv"))
    assert (came["number"], came["views"]) == (1, before)
    assert json.loads(machine.run("medamad", "status", *data, "--json"))["websites"] == 2
    assert machine.run(*import_, "--list") != "[]"
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


def test_an_upgrade_keeps_configuration_data_and_connections(machine: Machine) -> None:
    before, pid = machine.ask("views"), machine.shown("MainPID")
    with machine.load() as answered:
        machine.run("dpkg", "--force-unsafe-io", "--install", "/root/second.deb")
    assert set(answered) == {"204"}
    assert machine.shown("MainPID") != pid
    assert machine.ask("views") == before + answered["204"]
    assert 'script_name = "pulse.js"' in machine.run("cat", EDITED)


def test_a_removal_that_is_given_up_starts_it_again(machine: Machine) -> None:
    by_dpkg = ("env", "DPKG_MAINTSCRIPT_PACKAGE=medamad", "sh")
    machine.run(*by_dpkg, "/var/lib/dpkg/info/medamad.prerm", "remove")
    assert machine.shown("ActiveState") == "inactive"
    machine.run(*by_dpkg, "/var/lib/dpkg/info/medamad.postinst", "abort-remove")
    assert machine.shown("ActiveState") == "active"
    assert machine.shown("ActiveState", "medamad.socket") == "active"


def test_what_is_removed_leaves_configuration_and_data(machine: Machine) -> None:
    views = machine.ask("views")
    machine.run("dpkg", "--force-unsafe-io", "--remove", "medamad")
    assert machine.shown("LoadState") in ("not-found", "masked")
    assert machine.run("ls", EDITED)
    machine.run("dpkg", "--force-unsafe-io", "--install", "/root/second.deb")
    until_active(machine)
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("views") == views
    machine.run("dpkg", "--force-unsafe-io", "--purge", "medamad")
    assert machine.run("ls", "-A", "/etc/medamad", fails=True) == ""
    assert machine.run("ls", "/opt", fails=True) == ""
    assert machine.run("find", "/etc/systemd", "-name", "medamad.socket*") == ""
    assert machine.run("ls", "/var/lib/private/medamad/store.mdb")


def test_the_command_installs_the_service_too(machine: Machine) -> None:
    machine.run("dpkg-deb", "-x", "/root/second.deb", "/root/unpacked")
    machine.run("mkdir", "-p", "/opt")
    machine.run("mv", "/root/unpacked/opt/medamad", "/opt/medamad")
    program = "/opt/medamad/bin/medamad"
    said = machine.run(program, "service", "install", "--now")
    assert f"wrote {EDITED}" in said
    assert machine.shown("ActiveState") == "active"
    assert machine.ask("hit") == 204
    views = machine.ask("views")
    machine.run("sed", "-i", 's/^#listen = .*/listen = "tcp:9090"/', EDITED)
    assert f"left {EDITED} as it is" in machine.run(program, "service", "install")
    socket = machine.root / "etc/systemd/system/medamad.socket"
    assert "ListenStream=0.0.0.0:9090\n" in socket.read_text("utf-8")
    machine.run("sed", "-i", 's/^listen = .*/listen = "tcp:8080"/', EDITED)
    machine.run(program, "service", "install", "--now")
    assert machine.ask("views") == views
    machine.run("systemctl", "disable", "--now", "medamad.socket")
    machine.run("systemctl", "restart", "medamad")
    assert machine.ask("hit") == 204
    assert machine.shown("ActiveState", "medamad.socket") == "inactive"
    machine.run(program, "service", "install", "--now")
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("views") == views + 1
    said = machine.run(program, "service", "uninstall")
    assert "/var/lib/medamad" in said
    assert machine.shown("LoadState") == "not-found"
    assert machine.run("ls", EDITED, "/var/lib/private/medamad/store.mdb")
