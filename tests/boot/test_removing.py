"""Upgrades and removals; continues from test_ports.py."""

import tarfile
from pathlib import Path

from support.boot.machine import EDITED, NEEDED, Machine

from medamad.storage.environment.meta import FORMAT

FORMAT_10 = Path(__file__).parents[1] / "formats/10.tar.xz"
OF_LIVE = 3
"""The views that live.example has there."""

pytestmark = NEEDED


def test_an_upgrade_keeps_configuration_data_and_connections(machine: Machine) -> None:
    before, pid = machine.ask("views"), machine.shown("MainPID")
    with machine.load() as answered:
        machine.run("dpkg", "--force-unsafe-io", "--install", "/root/second.deb")
    assert set(answered) == {"204"}
    assert machine.shown("MainPID") != pid
    assert machine.ask("views") == before + answered["204"]
    assert 'script_name = "pulse.js"' in machine.run("cat", EDITED)


def test_an_upgrade_brings_the_store_of_an_earlier_build_up_to_date(machine: Machine) -> None:
    units, data, kept = (
        ("medamad.socket", "medamad.service"),
        "/var/lib/private/medamad",
        "/root/kept",
    )
    machine.run("systemctl", "stop", *units)
    machine.run("cp", "--archive", data, kept)
    with tarfile.open(FORMAT_10) as archive:
        archive.extractall(machine.root / "root/earlier", filter="data")
    machine.run("rm", f"{data}/store.mdb-lock")
    machine.run("cp", "/root/earlier/store/store.mdb", data)
    with machine.load("live.example") as answered:
        machine.run("dpkg", "--force-unsafe-io", "--install", "/root/second.deb")
        machine.run("systemctl", "start", *units)
    assert f"the store has format {FORMAT} now" in machine.journal()
    exported = machine.run(
        "medamad", "export", "live.example", "--format", "ndjson", "--data", data
    )
    assert len(exported.splitlines()) == OF_LIVE + answered.pop("204") > OF_LIVE
    # Nobody has listened before.
    assert set(answered) <= {"ConnectionRefusedError"}
    machine.run("systemctl", "stop", *units)
    machine.run("rm", "-r", data)
    machine.run("mv", kept, data)
    machine.run("systemctl", "start", *units)


def test_an_aborted_removal_starts_the_service_again(machine: Machine) -> None:
    by_dpkg = ("env", "DPKG_MAINTSCRIPT_PACKAGE=medamad", "sh")
    machine.run(*by_dpkg, "/var/lib/dpkg/info/medamad.prerm", "remove")
    assert machine.shown("ActiveState") == "inactive"
    machine.run(*by_dpkg, "/var/lib/dpkg/info/medamad.postinst", "abort-remove")
    assert machine.shown("ActiveState") == "active"
    assert machine.shown("ActiveState", "medamad.socket") == "active"


def test_a_removal_leaves_configuration_and_data(machine: Machine) -> None:
    views, timer = machine.ask("views"), "medamad-backup.timer"
    machine.run("systemctl", "enable", "--now", timer)
    machine.run("dpkg", "--force-unsafe-io", "--remove", "medamad")
    assert machine.shown("LoadState") in ("not-found", "masked")
    assert machine.shown("ActiveState", timer) == "inactive"
    assert machine.run("ls", EDITED)
    machine.run("dpkg", "--force-unsafe-io", "--install", "/root/second.deb")
    machine.until_active()
    for unit in ("medamad.socket", timer):
        assert machine.shown("ActiveState", unit) == "active"
    assert machine.ask("views") == views
    # For the next test: quicker than unpacking the package once more.
    machine.run("cp", "--archive", "--link", "/usr/lib/medamad", "/root/unpacked")
    machine.run("dpkg", "--force-unsafe-io", "--purge", "medamad")
    assert machine.run("ls", "-A", "/etc/medamad", fails=True) == ""
    assert machine.run("ls", "-d", "/opt/medamad", "/usr/lib/medamad", fails=True) == ""
    assert machine.run("find", "/etc/systemd", "-name", "medamad.socket*") == ""
    assert machine.run("find", "/etc/systemd", "-type", "l", "-name", "medamad*") == ""
    assert machine.run("ls", "/var/lib/private/medamad/store.mdb")


def test_the_command_installs_the_service_too(machine: Machine) -> None:
    machine.run("mv", "/root/unpacked", "/usr/lib/medamad")
    program = "/usr/lib/medamad/bin/medamad"
    output = machine.run(program, "service", "install", "--now")
    assert f"wrote {EDITED}" in output
    assert machine.shown("ActiveState") == "active"
    assert machine.ask("hit") == 204
    views = machine.ask("views")
    machine.run("sed", "-i", 's/^#listen = .*/listen = "tcp:9090"/', EDITED)
    assert f"left {EDITED} as it is" in machine.run(program, "service", "install")
    socket = machine.root / "etc/systemd/system/medamad.socket"
    assert "ListenStream=0.0.0.0:9090\n" in socket.read_text("utf-8")
    machine.run("sed", "-i", 's/^listen = .*/listen = "tcp:8080"/', EDITED)
    machine.run("systemctl", "disable", "--now", "medamad.socket")
    machine.run("systemctl", "restart", "medamad")
    assert machine.ask("hit") == 204
    assert machine.shown("ActiveState", "medamad.socket") == "inactive"
    machine.run(program, "service", "install", "--now")
    assert machine.shown("ActiveState", "medamad.socket") == "active"
    assert machine.ask("views") == views + 1
    output = machine.run(program, "service", "uninstall")
    assert "/var/lib/medamad" in output
    assert machine.shown("LoadState") == "not-found"
    assert machine.run("ls", EDITED, "/var/lib/private/medamad/store.mdb")
