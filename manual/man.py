"""The manual pages medamad(1) and medamad.toml(5): `python -m manual.man FOLDER` writes them.

They are written in reStructuredText, which docutils turns into roff.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from docutils.core import publish_string

from manual.commands import Argument, Command, read_commands
from manual.keys import read_keys
from medamad import __version__

ENVIRONMENT: Final = (
    Argument("MEDAMAD_USERNAME, MEDAMAD_PASSWORD", "the first name and password of the account"),
    Argument("STATE_DIRECTORY", "the data directory where no other is named; set by systemd"),
    Argument(
        "CREDENTIALS_DIRECTORY",
        "where systemd puts the credentials medamad.username and medamad.password",
    ),
)
FILES: Final = (
    Argument("/etc/medamad/medamad.toml", "the configuration of the service"),
    Argument("/var/lib/medamad", "the data of the service"),
    Argument("first-login.txt", "in the data directory: the first name and password"),
)
_SPECIAL: Final = re.compile(r"([\\*`|_\[\]:@])")
_TITLE_LINE: Final = re.compile(r"^\.TH .*\n", re.MULTILINE)
_TICKS: Final = re.compile(r"`([^`]*)`")


def write(folder: Path) -> None:
    """Write both pages into a folder, which is made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("medamad.1", _commands()), ("medamad.toml.5", _configuration())):
        source = "\n".join(lines) + "\n"
        settings = {"halt_level": 2, "output_encoding": "unicode", "_disable_config": True}
        page = publish_string(source, writer="manpage", settings_overrides=settings)
        # Justified text would leave wide gaps between the long words of commands and keys.
        left_aligned = _TITLE_LINE.sub(r"\g<0>.ad l\n", page)
        (folder / name).write_text(left_aligned, "utf-8")


def text(words: str) -> str:
    """Return words as reStructuredText that shows them unchanged, with `ticks` in bold."""
    parts = _TICKS.split(" ".join(words.split()))
    return "".join(
        f"**{_escaped(part)}**\\ " if number % 2 else _escaped(part)
        for number, part in enumerate(parts)
    )


def _escaped(words: str) -> str:
    return _SPECIAL.sub(r"\\\1", words)


def _title(name: str, section: int, purpose: str) -> Iterator[str]:
    yield from _heading(name, "=")
    yield from _heading(purpose, "-")
    yield f":Manual section: {section}"
    yield f":Date: {datetime.now(UTC).date()}"
    yield f":Version: medamad {__version__}"
    yield ""


def _heading(words: str, line: str) -> Iterator[str]:
    escaped = _escaped(words)
    yield escaped
    yield line * len(escaped)
    yield ""


def _commands() -> Iterator[str]:
    yield from _title("medamad", 1, "self-hosted web analytics without cookies")
    yield from _heading("SYNOPSIS", "~")
    yield "**medamad** *COMMAND* [ARGUMENT ...]\n"
    yield from _heading("DESCRIPTION", "~")
    yield "medamad counts the visits of websites. It is one daemon and one data directory.\n"
    yield from _heading("COMMANDS", "~")
    for command in read_commands():
        yield from _heading(f"medamad {command.name}", "^")
        yield f"{text(command.purpose)}\n"
        yield from _usage(command)
        for below in command.below:
            yield f"**medamad {below.name}**\n"
            yield f"{text(below.purpose)}\n"
            yield from _usage(below)
        if command.notes:
            yield f"{text(command.notes)}\n"
        yield "Examples:\n"
        yield from _definitions(Argument(line, purpose) for line, purpose in command.examples)
        yield "Exit status:\n"
        yield from _definitions(
            Argument(str(status), meaning) for status, meaning in command.statuses.items()
        )
    for title, arguments in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)):
        yield from _heading(title, "~")
        yield from _definitions(arguments)
    yield from _heading("SEE ALSO", "~")
    yield "**medamad.toml**\\ (5)"


def _usage(command: Command) -> Iterator[str]:
    yield f"{text(command.usage)}\n"
    yield from _definitions(command.arguments)


def _definitions(arguments: Iterable[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield f"**{_escaped(argument.written)}**"
        yield f"    {text(argument.meaning)}\n"


def _configuration() -> Iterator[str]:
    yield from _title("medamad.toml", 5, "configuration of medamad")
    yield from _heading("DESCRIPTION", "~")
    yield text(
        "A TOML file in UTF-8. Every key may be left out. `medamad check-config FILE` reports what"
        " is wrong with it; SIGHUP (`systemctl reload medamad`) makes the daemon read it again."
        " Keys marked (restart) take effect at the next start. Paths are relative to the file."
    )
    yield ""
    table = ""
    for key in read_keys():
        if key.table != table:
            table = key.table
            yield from _heading(f"[{table}]", "~")
        yield f"**{_escaped(f'{key.name} = {key.default}')}**"
        yield f"    {text(key.meaning)}\n"
        yield f"    Value: {text(key.kind)}.\n"
    yield from _heading("SEE ALSO", "~")
    yield "**medamad**\\ (1)"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
