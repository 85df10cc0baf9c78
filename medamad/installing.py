"""The files by which systemd runs the daemon: the units and the configuration, put in place."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from medamad.config import ConfigError, load
from medamad.endpoints import OF_TCP, read_bound
from medamad.shipped import shipped_file, shipped_unit

SERVICE: Final = "medamad.service"
SOCKET: Final = "medamad.socket"
CONFIGURATION: Final = Path("/etc/medamad")
UNITS: Final = Path("/etc/systemd/system")
MAIN_FILE: Final = "medamad.toml"
EDITED: Final = (MAIN_FILE, "referrers.toml", "blocked.txt")
"""What an operator edits. spam.txt is not among them: the one that is shipped is kept current."""

_PROGRAM: Final = "/opt/medamad/bin/medamad"
"""What the shipped unit runs."""
_LISTEN: Final = "ListenStream=127.0.0.1:8080"
_HIDDEN: Final = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
"""What the unit shuts the daemon out of."""
_ELSEWHERE: Final = "install medamad elsewhere, for instance in /opt/medamad"
_OTHERS_ENTER: Final = 0o001
_ANYWHERE: Final = {"": "0.0.0.0"}  # noqa: S104 - what no interface means


class CannotInstall(Exception):
    """The service cannot be installed. `str(error)` is for the operator."""


@frozen
class Installation:
    """Where the files go. `root` stands before every path; it is not "/" for a package's files."""

    root: Path = Path("/")
    units: Path = UNITS

    def unit(self, name: str) -> Path:
        """Give the path of a unit."""
        return self._under(self.units) / name

    @property
    def configuration(self) -> Path:
        """The folder of the configuration."""
        return self._under(CONFIGURATION)

    def install(self, program: Sequence[str]) -> Iterator[str]:
        """Write what is missing of the configuration, and the units; tells what was done.

        A unit is written anew each time: what an operator changes belongs in a drop-in. Raises
        CannotInstall, ConfigError, OSError.
        """
        yield from self._install_configuration()
        yield from self._install_units(program)

    def uninstall(self) -> Iterator[str]:
        """Remove the units; tells what was done. Raises OSError."""
        for name in (SOCKET, SERVICE):
            if self.unit(name).exists():
                self.unit(name).unlink()
                yield f"removed {self.unit(name)}"

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

    def _install_units(self, program: Sequence[str]) -> Iterator[str]:
        run = " ".join(map(_quoted, program))
        texts = {SERVICE: shipped_unit(SERVICE).read_text("utf-8").replace(_PROGRAM, run)}
        addresses = listened_on(self.configuration / MAIN_FILE)
        if addresses:
            listen = "\n".join(f"ListenStream={address}" for address in addresses)
            texts[SOCKET] = shipped_unit(SOCKET).read_text("utf-8").replace(_LISTEN, listen)
        elif self.unit(SOCKET).exists():
            self.unit(SOCKET).unlink()
            yield f"removed {self.unit(SOCKET)}: no port is configured"
        for name, text in texts.items():
            self.unit(name).parent.mkdir(parents=True, exist_ok=True)
            self.unit(name).write_text(text, "utf-8")
            self.unit(name).chmod(0o644)
            yield f"wrote {self.unit(name)}"

    def _under(self, path: Path) -> Path:
        return self.root / path.relative_to("/")


def listened_on(file: Path) -> list[str]:
    """Give the ports that a configuration names, as systemd writes them. Raises ConfigError."""
    found = []
    for text in load(file).server.listen:
        if text.partition(":")[0] not in OF_TCP:
            continue
        try:
            bound = read_bound(text)
        except Exception as error:
            raise ConfigError(file, "server.listen", f"{text}: {error}") from error
        host = _ANYWHERE.get(bound.interface, bound.interface)
        found.append(f"[{host}]:{bound.port}" if ":" in host else f"{host}:{bound.port}")
    return found


def this_program() -> list[str]:
    """Give the command that runs what is running now, by its full path.

    Raises CannotInstall where the service could not reach it.
    """
    script = Path(sys.executable).parent / "medamad"
    program = [str(script)] if script.exists() else [sys.executable, "-m", "medamad"]
    for path in (Path(program[0]), Path(sys.executable).resolve(), Path(__file__)):
        check_reach(path)
    return program


def check_reach(path: Path) -> None:
    """Raise CannotInstall when the service's user could not reach a file."""
    folders = path.absolute().parents
    for folder in folders:
        if folder in _HIDDEN:
            raise CannotInstall(f"{path}: the service does not see {folder}; {_ELSEWHERE}")
    for folder in folders:
        if not folder.stat().st_mode & _OTHERS_ENTER:
            raise CannotInstall(f"{path}: other users may not enter {folder}; {_ELSEWHERE}")


def _quoted(word: str) -> str:
    """Write a word of a command as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or any(map(str.isspace, word)) else word
