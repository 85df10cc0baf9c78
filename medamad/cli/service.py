"""`medamad service`: installs the daemon as a service of systemd, and removes it."""

import os
import shutil
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from medamad.cli.support import refused, tell_error
from medamad.config.schema import ConfigError
from medamad.daemon.install import (
    BACKUP_TIMER,
    SERVICE,
    SOCKET,
    CannotInstall,
    Installation,
    this_program,
)

_LEFT: Final = (
    "The configuration is left in /etc/medamad and the data in /var/lib/medamad:\n"
    "  rm -r /etc/medamad /var/lib/medamad /var/lib/private/medamad\n"
    "deletes both for ever."
)
EXAMPLES: Final = (
    ("medamad service install --now", "as root: installs and starts it"),
    ("medamad service uninstall", "as root: removes it, without its data and configuration"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser(
        "install",
        help="write the units and what is missing of /etc/medamad",
        description="Write the units, and the files of /etc/medamad that are not there yet. After"
        " a change of [server] listen, again: the socket unit goes by it. By a configuration that"
        " the daemon cannot use, it touches no unit and restarts nothing. What you change of the"
        " units belongs in drop-ins (systemctl edit medamad).",
    )
    install.add_argument(
        "--now",
        action="store_true",
        help="start it at once and at every boot, too; restarts it where it runs",
    )
    actions.add_parser(
        "uninstall",
        help="stop the service and remove the units",
        description="Stop the service and remove its units. Configuration and data are left.",
    )


def run(arguments: Namespace) -> int:
    """Install or remove the service."""
    try:
        if os.geteuid() != 0:
            raise CannotInstall("only root may install services: try it with sudo")
        if arguments.action == "install":
            _install(now=arguments.now)
        else:
            _uninstall()
    except ConfigError as error:
        return refused(error)
    except (CannotInstall, OSError) as error:
        tell_error(str(error))
        return 1
    return 0


def _install(*, now: bool) -> None:
    program = this_program()
    installation = Installation()
    ports = installation.ports
    _print(installation.install(program))
    _systemctl("daemon-reload")
    for step in steps(installation.names, moved=bool(ports) and installation.ports != ports):
        if now:
            _systemctl(*step)
        else:
            print(f"To be done: systemctl {' '.join(step)}")
    print(f"For a backup every night, run `systemctl enable --now {BACKUP_TIMER}`")
    if now:
        print("It runs: systemctl status medamad")
        print("The first login: /var/lib/medamad/first-login.txt")


def steps(units: Sequence[str], *, moved: bool) -> Iterator[tuple[str, ...]]:
    """Return what systemctl is to do for the service to run by its files, now and at every boot."""
    if moved:
        # systemd gives a socket other ports only while it is stopped.
        yield ("stop", SOCKET, SERVICE)
    yield ("enable", *units)
    # One that runs already goes on by what it was started with.
    yield ("restart", SERVICE)


def _uninstall() -> None:
    installation = Installation()
    if not installation.packaged:
        names = installation.names
        if installation.unit(BACKUP_TIMER).exists():
            names.append(BACKUP_TIMER)
        for name in names:
            _systemctl("disable", "--now", name)
    _print(installation.uninstall())
    _systemctl("daemon-reload")
    print(_LEFT)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _systemctl(*arguments: str) -> None:
    program = shutil.which("systemctl")
    if program is None:
        raise CannotInstall("systemctl: there is no systemd here")
    ran = subprocess.run([program, *arguments], check=False)  # noqa: S603 - as the operator asks
    if ran.returncode != 0:
        raise CannotInstall(f"systemctl {' '.join(arguments)}: failed ({ran.returncode})")
