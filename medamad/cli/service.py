"""`medamad service`: install the daemon as a systemd service, or remove it."""

import os
import shutil
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from medamad.cli.support import print_error, report_config_error
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
    "deletes both permanently."
)
EXAMPLES: Final = (
    ("medamad service install --now", "as root: install and start it"),
    ("medamad service uninstall", "as root: remove it, but not its data and configuration"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser(
        "install",
        help="write the units and the missing files of /etc/medamad",
        description="Write the units and the missing files of /etc/medamad. Run it again after a"
        " change of [server] listen, which the socket unit follows. If the configuration is"
        " invalid, no unit is touched and nothing is restarted. Put your own changes of the units"
        " into drop-ins (systemctl edit medamad). The backup timer is installed but not enabled.",
    )
    install.add_argument(
        "--now",
        action="store_true",
        help="also start it now and at every boot; restart it if it runs",
    )
    actions.add_parser(
        "uninstall",
        help="stop the service and remove the units",
        description="Stop the service and remove its units. Configuration and data are kept.",
    )


def run(arguments: Namespace) -> int:
    """Install or remove the service."""
    try:
        if os.geteuid() != 0:
            raise CannotInstall("only root may install services: try sudo")
        if arguments.action == "install":
            _install(now=arguments.now)
        else:
            _uninstall()
    except ConfigError as error:
        return report_config_error(error)
    except (CannotInstall, OSError) as error:
        print_error(str(error))
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
            print(f"Now run: systemctl {' '.join(step)}")
    print(f"For a backup every night, run `systemctl enable --now {BACKUP_TIMER}`")
    if now:
        print("Running; `systemctl status medamad` shows its state")
        print("First login: see /var/lib/medamad/first-login.txt")


def steps(units: Sequence[str], *, moved: bool) -> Iterator[tuple[str, ...]]:
    """Return the systemctl commands that apply the units, now and at every boot."""
    if moved:
        # systemd changes the ports of a socket only while it is stopped.
        yield ("stop", SOCKET, SERVICE)
    yield ("enable", *units)
    # A running service keeps the unit that it was started with.
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
