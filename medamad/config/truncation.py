"""Files of the configuration that seem to have been cut while they were written.

A file that ends amid a line is refused whenever it is read. One that was cut between two lines
shows only beside what it said before, so on a reload: there it is refused once, and taken at the
next.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import define, field

from medamad.config.schema import Config, ConfigError

_KEY: Final = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_SETTING: Final = re.compile(rf"^[ \t]*{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*[ \t]*=", re.MULTILINE)
"""How a line begins that sets something."""
_IF_MEANT: Final = "as if it had been cut; if that is meant, reload once more"


@define(eq=False)
class Said:
    """What the files said that the daemon goes by."""

    _main: str
    _lists: Mapping[Path, str]
    _seen: dict[Path, str] = field(factory=dict)
    """What they said at the last reload, whether that was taken or seemed to be cut."""

    def check(self, config: Config, lists: Mapping[Path, str]) -> None:
        """Raise ConfigError where files lack the end of what they said, for the first time."""
        if doubts := list(self._doubts(config, lists)):
            file, key, reason = doubts[0]
            others = {str(other): None for other, *_ in doubts[1:] if other != file}
            further = f"; the same holds of {', '.join(others)}" if others else ""
            raise ConfigError(file, key, f"{reason}, {_IF_MEANT}{further}")

    def _doubts(self, config: Config, lists: Mapping[Path, str]) -> Iterator[tuple[Path, str, str]]:
        """Return what seems to be cut: the file, the setting or "", and why."""
        if config.file is not None and self._is_new(config.file, config.text):
            lost = _last_settings(self._main) - set(_settings(tomllib.loads(config.text)))
            for name in sorted(lost):
                yield config.file, ".".join(name), "it came last before and is missing"
        for file, text in lists.items():
            if self._is_new(file, text) and _lacks_entries(text, self._lists.get(file, "")):
                yield file, "", "it ends where it went on before"

    def take(self, config: Config, lists: Mapping[Path, str]) -> None:
        """Go by what the files say now."""
        self._main, self._lists = config.text, lists

    def _is_new(self, file: Path, text: str) -> bool:
        is_new = self._seen.get(file) != text
        self._seen[file] = text
        return is_new


def _last_settings(text: str) -> set[tuple[str, ...]]:
    """Name what the last line that sets anything sets: what a cut at the end of a line loses."""
    names = set(_settings(tomllib.loads(text)))
    for setting in reversed(list(_SETTING.finditer(text))):
        # What looks so amid a text of several lines begins none, and nothing can be read up to it.
        with suppress(tomllib.TOMLDecodeError):
            if lost := names - set(_settings(tomllib.loads(text[: setting.start()]))):
                return lost
    return set()


def _settings(table: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Name the settings of a table and of those in it."""
    for key, value in table.items():
        if isinstance(value, dict):
            for below in _settings(value):
                yield key, *below
        else:
            yield (key,)


def _lacks_entries(text: str, before: str) -> bool:
    """Return whether the lines, but for comments, are no more than how those before began."""
    lines, lines_before = _entries(text), _entries(before)
    return all(line == next(lines_before, None) for line in lines) and any(lines_before)


def _entries(text: str) -> Iterator[str]:
    stripped = (line.partition("#")[0].strip() for line in text.splitlines())
    return filter(None, stripped)
