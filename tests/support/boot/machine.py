"""A Debian machine of its own: a root file system, booted by the real systemd in a container."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from attrs import define

SUITES: Final = {(3, 11): "bookworm", (3, 13): "trixie"}
"""The Debian whose python3 is of the version that the package is built by."""
PACKAGES: Final = "systemd,systemd-sysv,python3,libstdc++6,init-system-helpers,passwd"
HERE: Final = Path(__file__).parent
EDITED: Final = "/etc/medamad/medamad.toml"
RESTED: Final = ("running", "degraded")
"""What systemd says once it has started everything; degraded when a unit of Debian's failed."""

_BOOT: Final = """
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec systemd-nspawn --quiet --register=no --keep-unit --private-network --console=pipe \
  --directory="$1" --boot
"""


def missing() -> str:
    """Return what keeps a machine from being made here; "" when nothing does."""
    if os.geteuid() != 0:
        return "only root can boot a container"
    if sys.version_info[:2] not in SUITES:
        return "no Debian has this Python"
    programs = ("mmdebstrap", "systemd-nspawn", "nsenter", "dh")
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "file systems cannot be mounted here"


def own_suite() -> str:
    """Return the Debian whose Python is this one."""
    return SUITES[sys.version_info[:2]]


def make_root(root: Path, suite: str) -> None:
    """Fill a folder with a small Debian."""
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}"),
            # Without it, init-system-helpers brings the package usrmerge, and with it all of Perl.
            "--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr",
            *(suite, str(root)),
        ],
        check=True,
    )


NEEDED: Final = [
    pytest.mark.boot,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
    pytest.mark.timeout(900),
]
"""The marks of all tests that boot one."""


@define
class Machine:
    """A machine that can be booted, asked to run programs, and rebooted."""

    root: Path
    _container: "subprocess.Popen[bytes] | None" = None
    _init: int = 0

    def boot(self) -> None:
        """Boot it, and wait until systemd has started everything."""
        with (self.root.parent / "console.txt").open("ab") as console:
            self._container = subprocess.Popen(
                ["unshare", "-m", "bash", "-ec", _BOOT, "-", str(self.root)],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
        self.until(self._is_up, lambda: "the machine does not come up", 120)
        self.until(
            lambda: self.run("systemctl", "is-system-running", fails=True) in RESTED,
            lambda: self.run("systemctl", "list-jobs", "--no-pager", fails=True),
            240,
        )

    def _is_up(self) -> bool:
        assert self._container is not None
        assert self._container.poll() is None, (self.root.parent / "console.txt").read_text("utf-8")
        for child in psutil.Process(self._container.pid).children():
            with suppress(psutil.Error):
                if child.name() == "systemd":
                    self._init = child.pid
                    return bool(self.run("systemctl", "is-system-running", fails=True))
        return False

    def shut_down(self) -> None:
        """Shut it down in order."""
        self.run("systemctl", "poweroff", fails=True)
        self._end()

    def cut_power(self) -> None:
        """End every process at once."""
        os.kill(self._init, signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        assert self._container is not None
        container, self._container = self._container, None
        container.wait(120)

    @property
    def is_up(self) -> bool:
        """Whether it was booted and has not ended."""
        return self._container is not None

    def inside(self, *command: str) -> list[str]:
        """Return the command line that runs a command in the machine."""
        return [
            "nsenter",
            "-t",
            str(self._init),
            "-m",
            "-u",
            "-i",
            "-n",
            "-p",
            "-C",
            "--",
            *command,
        ]

    def run(self, *command: str, fails: bool = False) -> str:
        """Run a command in the machine and give what it prints; it has to succeed."""
        ran = subprocess.run(
            self.inside(*command), capture_output=True, text=True, check=False, timeout=240
        )
        assert fails or ran.returncode == 0, (
            f"{command}\n{ran.stdout}{ran.stderr}\n{self.journal()}"
        )
        return ran.stdout.strip()

    def journal(self) -> str:
        """Return the log of the service."""
        command = self.inside("journalctl", "-u", "medamad", "--no-pager", "-n", "40")
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def shown(self, name: str, unit: str = "medamad.service") -> str:
        """Return a property of a unit, such as ActiveState."""
        return self.run("systemctl", "show", "--value", "-p", name, unit)

    def until_active(self) -> None:
        """Wait for the service to run."""
        self.until(lambda: self.shown("ActiveState") == "active", self.journal)

    def until(
        self, holds: Callable[[], bool], describe: Callable[[], str], seconds: float = 60
    ) -> None:
        """Wait for something to hold; `describe` returns the message if it does not."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, describe()
            time.sleep(0.1)

    def ask(self, *arguments: str) -> Any:
        """Send the service a request from within; return its response."""
        return json.loads(self.run("python3", "-c", INSIDE, *arguments))

    @contextmanager
    def load(self, hostname: str = "example.com") -> Iterator[dict[str, int]]:
        """Send hits continuously; the number of each status is filled in at the end."""
        answered: dict[str, int] = {}
        sending = subprocess.Popen(
            self.inside("python3", "-c", INSIDE, "load", hostname),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert sending.stdout is not None
        try:
            assert sending.stdout.readline() == "answered\n"
            yield answered
        finally:
            printed, _ = sending.communicate("", timeout=60)
        counted: Mapping[str, int] = json.loads(printed)
        answered.update(counted)


INSIDE: Final = (HERE / "client.py").read_text("utf-8")
"""What runs in the machine, by its own Python."""


def steps_to_a_backup_folder() -> str:
    """Return the commands of the documentation that make the folder /mnt/backups."""
    page = (HERE.parents[2] / "docs/operating.md").read_text("utf-8")
    steps = next(block for block in page.split("```") if "ReadWritePaths=/mnt/backups" in block)
    return steps.removeprefix("sh")


def asking(path: str, port: int = 8080) -> str:
    """Return a program that asks the service and prints the status of the answer."""
    return (
        "import urllib.request as r;"
        f"print(r.urlopen('http://127.0.0.1:{port}{path}', timeout=30).status)"
    )
