"""Install the daemon as a systemd service: units and configuration."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from medamad.build import shipped_file, shipped_unit
from medamad.config.schema import ConfigError
from medamad.daemon.listen import KEY
from medamad.daemon.reload import checked_endpoints
from medamad.web.server.endpoints import EVERYWHERE, EVERYWHERE_IPV6, ListenAddress, ports_of_both

SERVICE: Final = "medamad.service"
SOCKET: Final = "medamad.socket"
BACKUP_SERVICE: Final = "medamad-backup.service"
BACKUP_TIMER: Final = "medamad-backup.timer"
FOLLOW_SERVICE: Final = "medamad-follow@.service"
ALL_UNITS: Final = (SOCKET, SERVICE, BACKUP_TIMER, BACKUP_SERVICE, FOLLOW_SERVICE)
CONFIGURATION: Final = Path("/etc/medamad")
UNITS: Final = Path("/etc/systemd/system")
PACKAGED: Final = Path("/usr/lib/systemd/system")
"""The units of a Debian package."""
PORTS: Final = f"{SOCKET}.d/ports.conf"
"""The drop-in that gives a package's socket the ports of the configuration."""
MAIN_FILE: Final = "medamad.toml"
EDITED: Final = (MAIN_FILE, "referrers.toml", "blocked.txt")
"""The files that an operator edits. Not spam.txt: the shipped list is kept current."""

_PROGRAM: Final = "/opt/medamad/bin/medamad"
"""The program in the shipped units."""
_WRITTEN: Final = "# Written by `medamad service install`."
"""Marks our drop-in, in case the operator writes one of the same name."""
_OPERATORS: Final = ": its ports override the configuration"
_IN_THE_WAY: Final = (
    ": it names no port; rename it to have the ports of the configuration written there"
)
"""For an operator's drop-in with the name that a package's socket needs."""
_LEFT: Final = ": it belonged to a package"
"""Why a drop-in goes that a package left unless it was purged: it would override the unit."""
_LISTEN: Final = "ListenStream=127.0.0.1:8080"
_HIDDEN: Final = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
"""The folders that the unit hides from the daemon."""
_ELSEWHERE: Final = "install medamad elsewhere, for instance in /opt/medamad"
_OF_PACKAGE: Final = "this service belongs to a package; `apt-get remove medamad` removes it"
_OTHERS_ENTER: Final = 0o001


class CannotInstall(Exception):
    """The service cannot be installed. `str(error)` is for the operator."""


@frozen
class Installation:
    """Where the files go. `root` prefixes every path; it is not "/" when a package is built."""

    root: Path = Path("/")
    units: Path = UNITS

    def unit(self, name: str) -> Path:
        """Return the path of a unit."""
        return self._under(self.units) / name

    @property
    def configuration(self) -> Path:
        """The folder of the configuration."""
        return self._under(CONFIGURATION)

    @property
    def packaged(self) -> bool:
        """Whether the units belong to a package."""
        return self.units != PACKAGED and (self._under(PACKAGED) / SERVICE).exists()

    @property
    def names(self) -> list[str]:
        """The units to enable: those that are installed and not masked.

        The timer of the backups, and logs to follow, are the operator's choice.
        """
        found = {name: self._read(name) for name in (SOCKET, SERVICE)}
        return [name for name, path in found.items() if path.is_file()]

    @property
    def ports(self) -> list[str]:
        """The ports that systemd opens, as lines of its files."""
        return _listen_streams(self._read(SOCKET)) + _listen_streams(self.unit(PORTS))

    def install(self, program: Sequence[str]) -> Iterator[str]:
        """Write the missing files of the configuration, and the units; yield what was done.

        Units are written every time: an operator's changes belong in drop-ins. A package's units
        are left alone, and its socket gets the ports by a drop-in, unless the operator wrote one of
        that name. If the configuration is invalid, no unit is touched. Raises CannotInstall,
        ConfigError, OSError.
        """
        run = " ".join(map(_quoted, program))
        if self.packaged:
            unit = self._under(PACKAGED) / SERVICE
            if f"ExecStart={run} run " not in unit.read_text("utf-8"):
                raise CannotInstall(f"{unit}: {_OF_PACKAGE}")
        yield from self._install_configuration()
        listen = listened_on(self.configuration / MAIN_FILE)
        if self.packaged:
            yield from self._install_ports(listen)
        else:
            yield from self._install_units(run, listen)

    def uninstall(self) -> Iterator[str]:
        """Remove the units; yield what was done. Raises CannotInstall, OSError."""
        if self.packaged:
            raise CannotInstall(f"{self._under(PACKAGED) / SERVICE}: {_OF_PACKAGE}")
        for name in ALL_UNITS:
            yield from self._remove(name)
        yield from self._remove_ports(_LEFT)

    def _install_configuration(self) -> Iterator[str]:
        folder = self.configuration
        folder.mkdir(parents=True, exist_ok=True)
        for name in EDITED:
            if (folder / name).exists():
                yield f"left {folder / name} as it is"
            else:
                shutil.copyfile(shipped_file(name), folder / name)
                (folder / name).chmod(0o644)
                yield f"wrote {folder / name}"

    def _install_units(self, run: str, listen: Sequence[str]) -> Iterator[str]:
        texts = {
            name: shipped_unit(name).read_text("utf-8").replace(_PROGRAM, run)
            for name in (SERVICE, BACKUP_SERVICE, BACKUP_TIMER, FOLLOW_SERVICE)
        }
        if listen:
            unit = shipped_unit(SOCKET).read_text("utf-8")
            texts[SOCKET] = unit.replace(_LISTEN, "\n".join(listen))
        else:
            yield from self._remove(SOCKET, ": no port is configured")
        yield from self._remove_ports(_LEFT)
        for name, text in texts.items():
            yield self._write(self.unit(name), text)

    def _install_ports(self, listen: Sequence[str]) -> Iterator[str]:
        for name in ALL_UNITS:
            if not self.unit(name).is_symlink():
                yield from self._remove(name, ": it hid the package's")
        if not listen:
            yield f"no port is configured: systemctl mask --now {SOCKET}"
        if listen and list(listen) != [_LISTEN] and not self._ports_are_the_operators:
            # The empty line clears the ports of the package.
            text = "\n".join([_WRITTEN, "[Socket]", "ListenStream=", *listen, ""])
            yield self._write(self.unit(PORTS), text)
        else:
            yield from self._remove_ports()

    def _remove_ports(self, reason: str = "") -> Iterator[str]:
        if self._ports_are_the_operators:
            in_the_way = _IN_THE_WAY if self.packaged else ""
            why = _OPERATORS if _listen_streams(self.unit(PORTS)) else in_the_way
            yield f"left {self.unit(PORTS)} as it is{why}"
        else:
            yield from self._remove(PORTS, reason)

    @property
    def _ports_are_the_operators(self) -> bool:
        ports = self.unit(PORTS)
        return ports.exists() and _WRITTEN not in _lines(ports)

    def _write(self, path: Path, text: str) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # a masked unit is a link to /dev/null
        path.write_text(text, "utf-8")
        path.chmod(0o644)
        return f"wrote {path}"

    def _remove(self, name: str, reason: str = "") -> Iterator[str]:
        unit = self.unit(name)
        if unit.exists():
            unit.unlink()
            yield f"removed {unit}{reason}"

    def _read(self, name: str) -> Path:
        """Return the file of a unit that is in effect."""
        unit = self.unit(name)
        return unit if unit.exists() else self._under(PACKAGED) / name

    def _under(self, path: Path) -> Path:
        return self.root / path.relative_to("/")


def listened_on(file: Path) -> list[str]:
    """Return the ports of a configuration as lines of a socket unit.

    Raises ConfigError for any fault that would keep the daemon from starting.
    """
    addresses = []
    for place in checked_endpoints(file):
        if place.address.port is None:
            continue
        try:
            addresses.append(place.address.numeric())
        except (OSError, ValueError) as error:
            raise ConfigError(file, KEY, f"{place.text}: {error}") from error
    lines = [_stream(address) for address in addresses]
    if of_both := ports_of_both(addresses):
        # The setting is for all sockets of the unit: IPv6 sockets that took IPv4 get a twin.
        lines += [
            _stream(ListenAddress(EVERYWHERE, address.port))
            for address in addresses
            if address.host == EVERYWHERE_IPV6 and address.port not in of_both
        ]
        lines.append("BindIPv6Only=ipv6-only")
    return lines


def _lines(unit: Path) -> list[str]:
    """Return the lines of a unit or drop-in, whatever its encoding."""
    return unit.read_text("utf-8", "replace").splitlines() if unit.is_file() else []


def _listen_streams(unit: Path) -> list[str]:
    return [line for line in _lines(unit) if line.startswith("ListenStream=")]


def _stream(address: ListenAddress) -> str:
    return f"ListenStream={address}"


def this_program() -> list[str]:
    """Return the command that runs this program, with its full path.

    Raises CannotInstall if the service's user could not run it.
    """
    script = Path(sys.executable).parent / "medamad"
    program = [str(script)] if script.exists() else [sys.executable, "-m", "medamad"]
    for path in (Path(program[0]), Path(sys.executable).resolve(), Path(__file__)):
        check_reach(path)
    return program


def check_reach(path: Path) -> None:
    """Raise CannotInstall if the service's user could not reach a file."""
    folders = path.absolute().parents
    for folder in folders:
        if folder in _HIDDEN:
            raise CannotInstall(f"{path}: the service cannot see {folder}; {_ELSEWHERE}")
    for folder in folders:
        if not folder.stat().st_mode & _OTHERS_ENTER:
            raise CannotInstall(f"{path}: other users may not enter {folder}; {_ELSEWHERE}")


def _quoted(word: str) -> str:
    """Quote a word of a command for systemd."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or any(map(str.isspace, word)) else word
