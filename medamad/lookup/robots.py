"""Robots: the public list of how they declare themselves, and who runs them and what for.

The names and patterns are those of crawler-user-agents. What a robot is for is in our own table,
`etc/robots.toml`, which an operator can extend; for others it follows from the tags of the list.
Only names are stored, so a change of the table also applies to what was counted before.
"""

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
from attrs import define, field, frozen

from medamad.domain.dimensions import UNKNOWN

_LIST: Final = "crawleruseragents"
LIBRARY: Final = "http-library"
"""The public list's tag for plain HTTP clients."""
MAX_NAME: Final = 60
HOSTING_NETWORK: Final = "Hosting network"
"""The name under which views from networks of hosting providers are counted, if they count apart.

It stands for all of them, and is no robot's own.
"""


class Purpose(StrEnum):
    """What a robot reads pages for."""

    SEARCH = "search"
    AI_TRAINING = "ai-training"
    AI_ANSWER = "ai-answer"
    """It reads a page at the moment when a person asks an AI."""
    PREVIEW = "preview"
    MONITORING = "monitoring"
    LIBRARY = "library"
    """A program of its user's: an HTTP client, or an automated browser."""
    UNKNOWN = "unknown"


_BY_TAG: Final = MappingProxyType(
    {
        "ai-crawler": Purpose.AI_TRAINING,
        "search-engine": Purpose.SEARCH,
        "social-preview": Purpose.PREVIEW,
        "monitoring": Purpose.MONITORING,
        LIBRARY: Purpose.LIBRARY,
        "browser-automation": Purpose.LIBRARY,
    }
)
"""The purpose that a tag stands for; the first of these tags counts."""


@frozen
class Robot:
    """Who runs a robot, "" if unknown, and what it is for."""

    operator: str = ""
    purpose: Purpose = Purpose.UNKNOWN


class Crawler(msgspec.Struct, frozen=True):
    """An entry of the public list."""

    pattern: str
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that the pattern matches, without what varies."""
        text = _ANCHORS.sub("", self.pattern)
        text = _CLASS.sub(lambda found: _capital(found[1]), text)
        text = _REST.split(_GROUP.sub(r"\1", text), maxsplit=1)[0]
        return _ESCAPE.sub(r"\1", text).strip(" /;:(")[:MAX_NAME]


_ANCHORS: Final = re.compile(r"\(\^\| \)|\(\[\^-\]\|\$\)|(?<!\\)[$^](?!-)")
_CLASS: Final = re.compile(r"\[([A-Za-z]+)\]")
_GROUP: Final = re.compile(r"(?<!\\)\((\w+)\|[^)]*\)")
_REST: Final = re.compile(r"\[|(?<!\\)\||\\[dsS]|(?: ?\\\()|\\\)")
"""What begins a part that varies, or one in parentheses."""
_ESCAPE: Final = re.compile(r"\\(.)")


def _capital(letters: str) -> str:
    return next((letter for letter in letters if letter.isupper()), letters[0])


@cache
def public_list() -> tuple[Crawler, ...]:
    """Return the public list."""
    # Not imported: the package would keep megabytes of examples in memory.
    spec = find_spec(_LIST)
    if spec is None:
        raise ModuleNotFoundError(_LIST)
    file = Path(str(spec.origin)).with_name("crawler-user-agents.json")
    return msgspec.json.decode(file.read_bytes(), type=tuple[Crawler, ...])


def is_listed(name: str) -> bool:
    """Return whether a name is in the public list, or stands for what is in no list."""
    return name in _names()


@cache
def _names() -> frozenset[str]:
    return frozenset((*(crawler.name for crawler in public_list()), HOSTING_NETWORK, UNKNOWN))


@define(eq=False)
class Robots:
    """What is known of robots by their names, in upper or lower case."""

    _table: Mapping[str, Robot] = field(factory=dict)
    """By name in lower case."""

    def of(self, name: str) -> Robot:
        """Return what is known of a robot."""
        key = name.lower()
        return self._table.get(key) or self._listed.get(key) or _NOTHING

    @cached_property
    def _listed(self) -> dict[str, Robot]:
        return {
            crawler.name.lower(): Robot(purpose=purpose)
            for crawler in public_list()
            if (purpose := _purpose_by_tags(crawler.tags)) is not Purpose.UNKNOWN
        }


_NOTHING: Final = Robot()


def _purpose_by_tags(tags: tuple[str, ...]) -> Purpose:
    return next((_BY_TAG[tag] for tag in _BY_TAG if tag in tags), Purpose.UNKNOWN)


def read_robots(text: str) -> dict[str, Robot]:
    """Return the entries of a table in TOML, by name in lower case.

    Raises ValueError naming an entry that is not such as
    `"GPTBot" = { operator = "OpenAI", purpose = "ai-training" }`.
    """
    found = {}
    for name, entry in tomllib.loads(text).items():
        try:
            given = msgspec.convert(entry, _Entry)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name}: {error}; {_EXPECTED}") from None
        found[name.lower()] = Robot(given.operator, given.purpose)
    return found


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the table."""

    purpose: Purpose
    operator: str = ""


_EXPECTED: Final = (
    'expected a line such as "GPTBot" = { operator = "OpenAI", purpose = "ai-training" }, where the'
    f" purpose is one of {', '.join(Purpose)}"
)
