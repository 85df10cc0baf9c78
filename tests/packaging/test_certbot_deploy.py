import os
import subprocess
from pathlib import Path

import pytest
from attrs import frozen

HOOK = Path(__file__).parents[2] / "etc" / "certbot-deploy"
NAMES = ("privkey.pem", "cert.pem", "chain.pem")


@frozen
class Machine:
    """A folder with the script's paths, and a fake systemctl that records its calls."""

    root: Path

    def issue(self, lineage: str) -> None:
        folder = self.root / "etc/letsencrypt/live" / lineage
        folder.mkdir(parents=True)
        for name in NAMES:
            (folder / name).write_text(f"{lineage} {name}", "utf-8")

    def hand_over(self, renewed: str | None) -> None:
        environ = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}")
        if renewed is not None:
            environ["RENEWED_LINEAGE"] = f"{self.root}/etc/letsencrypt/live/{renewed}"
        script = HOOK.read_text("utf-8").replace("=/", f"={self.root}/")
        subprocess.run(["sh", "-c", script], env=environ, check=True)

    @property
    def handed_over(self) -> dict[str, str]:
        folder = self.root / "var/lib/private/medamad/tls"
        return {path.name: path.read_text("utf-8") for path in folder.glob("*")}

    @property
    def calls(self) -> str:
        calls = self.root / "calls.txt"
        return calls.read_text("utf-8") if calls.exists() else ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "var/lib/private/medamad").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/calls.txt\n', "utf-8")
    systemctl.chmod(0o755)
    machine = Machine(tmp_path)
    for lineage in ("stats.example.com", "mail.example.org"):
        machine.issue(lineage)
    return machine


@pytest.mark.parametrize("renewed", ["stats.example.com", None])
def test_the_certificate_is_deployed_on_renewal_or_by_hand(
    machine: Machine, renewed: str | None
) -> None:
    machine.hand_over(renewed)
    assert machine.handed_over == {name: f"stats.example.com {name}" for name in NAMES}
    assert machine.calls == "try-reload-or-restart medamad\n"


def test_a_certificate_of_another_service_is_ignored(machine: Machine) -> None:
    machine.hand_over("mail.example.org")
    assert (machine.handed_over, machine.calls) == ({}, "")
    machine.hand_over("stats.example.com")
    machine.hand_over("mail.example.org")
    assert machine.handed_over == {name: f"stats.example.com {name}" for name in NAMES}
    assert machine.calls == "try-reload-or-restart medamad\n"
