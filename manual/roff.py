"""The manual pages medamad(1) and medamad.toml(5): `python -m manual.roff FOLDER` writes them.

They are written in the macros of man(7).
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from manual.commands import Argument, Command, read_commands
from manual.keys import read_keys
from medamad import __version__

ENVIRONMENT: Final = (
    Argument("MEDAMAD_USERNAME, MEDAMAD_PASSWORD", "the first name and password of the account"),
    Argument("STATE_DIRECTORY", "the folder of the data where no other is named; set by systemd"),
    Argument(
        "CREDENTIALS_DIRECTORY",
        "where systemd puts the credentials medamad.username and medamad.password",
    ),
)
FILES: Final = (
    Argument("/etc/medamad/medamad.toml", "the configuration of the service"),
    Argument("/var/lib/medamad", "the data of the service"),
    Argument("first-login.txt", "in the folder of the data: the first name and password"),
)
_WIDTH: Final = 78
_LONG_WORD: Final = 40
_TICKS: Final = re.compile(r"`([^`]*)`")


def write(folder: Path) -> None:
    """Write both pages into a folder, which is made where there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("medamad.1", _commands()), ("medamad.toml.5", _configuration())):
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


def text(words: str) -> str:
    r"""Write a text so that roff shows it as it is, in short lines; what is in `ticks` bold."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    escaped = escaped.replace("'", "\\(aq").replace("…", "...")
    breakable = " ".join(_breakable(word) for word in escaped.split())
    bold = _TICKS.sub(r"\\fB\1\\fR", breakable)
    lines = textwrap.wrap(bold, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in lines)


def _breakable(word: str) -> str:
    return word.replace(":", ":\\:") if len(word) > _LONG_WORD else word


def _head(name: str, section: int, purpose: str) -> Iterator[str]:
    day = datetime.now(UTC).date()
    yield f'.TH {name.upper()} {section} {day} "medamad {__version__}"'
    yield ".ad l"
    yield ".SH NAME"
    yield f"{text(name)} \\- {text(purpose)}"


def _commands() -> Iterator[str]:
    yield from _head("medamad", 1, "self-hosted web analytics without cookies")
    yield ".SH SYNOPSIS"
    yield ".B medamad"
    yield ".I COMMAND"
    yield "[ARGUMENT ...]"
    yield ".SH DESCRIPTION"
    yield text("medamad counts the visits of websites. It is one daemon and one folder of data.")
    yield ".SH COMMANDS"
    for command in read_commands():
        yield f".SS medamad {text(command.name)}"
        yield text(command.purpose)
        yield from _called(command)
        for each in command.below:
            yield ".P"
            yield f".B medamad {text(each.name)}"
            yield ".P"
            yield text(each.purpose)
            yield from _called(each)
        if command.notes:
            yield ".P"
            yield text(command.notes)
        yield ".P"
        yield "Examples:"
        for line, purpose in command.examples:
            yield from _paragraph(line, purpose)
        yield ".P"
        yield "Exit status:"
        for status, meaning in command.statuses.items():
            yield from _paragraph(str(status), meaning)
    for title, arguments in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)):
        yield f".SH {title}"
        for argument in arguments:
            yield from _paragraph(argument.written, argument.meaning)
    yield ".SH SEE ALSO"
    yield ".BR medamad.toml (5)"


def _called(command: Command) -> Iterator[str]:
    yield ".P"
    yield text(command.usage)
    for argument in command.arguments:
        yield from _paragraph(argument.written, argument.meaning)


def _paragraph(tag: str, words: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {text(tag).replace(chr(10), ' ')}"
    yield text(words)


def _configuration() -> Iterator[str]:
    yield from _head("medamad.toml", 5, "configuration of medamad")
    yield ".SH DESCRIPTION"
    yield text(
        "A file of TOML, in UTF-8. Every key may be left out. `medamad check-config FILE` says"
        " what is wrong with it; SIGHUP (`systemctl reload medamad`) has the daemon read it"
        " again. Keys marked (restart) take effect at the next start. Paths are relative to the"
        " file."
    )
    table = ""
    for key in read_keys():
        if key.table != table:
            table = key.table
            yield f".SH [{text(table)}]"
        yield from _paragraph(f"{key.name} = {key.default}", key.meaning)
        yield ".IP"
        yield text(f"Value: {key.kind}.")
    yield ".SH SEE ALSO"
    yield ".BR medamad (1)"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
