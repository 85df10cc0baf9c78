"""The keys of the configuration: types, ranges and defaults of the code, meanings of medamad.toml.

The meaning of a key is the comment above it in etc/medamad.toml.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs
import msgspec.inspect as inspected
from attrs import frozen
from msgspec import Struct

from medamad.config.schema import Config
from medamad.config.values import Endpoints, Size

EXAMPLE: Final = Path(__file__).parents[1] / "etc" / "medamad.toml"
RESTART: Final = "(restart"
_TABLE: Final = re.compile(r"\[(?P<name>[a-z_.]+)\]\Z")
_KEY: Final = re.compile(r"#(?P<name>[a-z_]+) = (?P<default>.*)\Z")
_UNITS: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"))


@frozen(kw_only=True)
class Key:
    """A key of a table; `default` is as the file writes it."""

    table: str
    name: str
    kind: str
    default: str
    meaning: str

    @property
    def needs_restart(self) -> bool:
        """Whether a change takes effect only at the next start."""
        return RESTART in self.meaning


def read_keys() -> list[Key]:
    """Return every key, in the order of the file. Raises KeyError where code and file differ."""
    meanings = dict(_meanings(EXAMPLE.read_text("utf-8").splitlines()))
    keys = {
        (table, field.encode_name): Key(
            table=table,
            name=field.encode_name,
            kind=_kind(field.type),
            default=_written(field.default),
            meaning=meanings[table, field.encode_name],
        )
        for table, struct in tables()
        for field in inspected.type_info(struct).fields  # type: ignore[attr-defined]
        if not isinstance(field.type, inspected.DictType)
    }
    return [keys[place] for place in meanings]


def tables() -> Iterator[tuple[str, type]]:
    """Return the name of each table and the struct that it is read into."""
    for name, value in attrs.asdict(Config(), recurse=False).items():
        if isinstance(value, Struct):
            yield name, type(value)


def _meanings(lines: Iterable[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """Return the comment of each key: the lines above it, back to the empty one."""
    table = ""
    comment: list[str] = []
    for line in lines:
        if found := _TABLE.match(line):
            table, comment = found["name"], []
        elif found := _KEY.match(line):
            yield (table, found["name"]), " ".join(comment)
            comment = []
        elif line.startswith("# "):
            comment.append(line.removeprefix("# ").strip())
        else:
            comment = []


def _kind(kind: Any) -> str:
    match kind:
        case inspected.BoolType():
            return "true or false"
        case inspected.IntType():
            return f"a whole number from {kind.ge:,} to {kind.le:,}"
        case inspected.LiteralType():
            return f"one of {', '.join(_written(value) for value in kind.values)}"
        case inspected.VarTupleType():
            return f"a list, each: {_kind(kind.item_type)}"
        case inspected.CustomType():
            if kind.cls is ZoneInfo:
                return 'the IANA name of a time zone, such as "Europe/Berlin"'
            text = (kind.cls.__doc__ or "").strip().removesuffix(".")
            return text[:1].lower() + text[1:]
    raise TypeError(f"{kind}: a kind of value that the manual cannot name")


def _written(value: Any) -> str:
    match value:
        case Size():
            for size, unit in _UNITS:
                if value % size == 0:
                    return f'"{value // size} {unit}"'
            return str(int(value))
        case Endpoints() if len(value) == 1:
            return json.dumps(value[0])
        case ZoneInfo():
            return json.dumps(value.key)
    return json.dumps(value)  # a tuple as a list


def page() -> str:
    """Return the page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield "# Configuration\n"
    yield (
        "The daemon reads the file that `--config` names, the service `/etc/medamad/medamad.toml`."
        " Every key may be left out. `medamad check-config FILE` reports what is wrong with a file."
        " A reload (`systemctl reload medamad`, or SIGHUP) applies changes, except to keys marked"
        " (restart). Paths are relative to the file.\n"
    )
    table = ""
    for key in read_keys():
        if key.table != table:
            table = key.table
            yield f"## [{table}]\n"
        yield f"### {key.name} {{ #{table}-{key.name} }}\n"
        yield f"{key.meaning.replace('<', '&lt;')}\n"
        yield f"- Value: {key.kind}"
        yield f"- Default: `{key.default}`\n"
        if (table, key.name) == ("retention", "after"):
            yield (
                "Both can be set for one website; what is left out there is as for all:\n\n"
                "```toml\n"
                '[retention.websites."example.com"]\nraw_days = 90\nafter = "nothing"\n```\n'
            )
