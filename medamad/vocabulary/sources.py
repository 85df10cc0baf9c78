"""Sources of visits: what people call the place that a referrer belongs to."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final, Self

from medamad.build import GENERATED
from medamad.shipped import shipped_file


class Sources:
    """Names by host, or by host and path: `{"google.com": "Google", "google.com/imgres": …}`.

    A name holds for the hosts below its own and for the paths below its own; the most exact
    path goes first, then the most exact host.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names: Final = {_key(place): name for place, name in names.items()}
        self._with_paths: Final = {place.partition("/")[0] for place in self._names if "/" in place}
        self._depth: Final = max((place.count("/") for place in self._names), default=0)

    @classmethod
    def shipped(cls, extra: Mapping[str, str] | None = None) -> Self:
        """Make the names that come with the package; those in `extra`, the operator's, win."""
        path = GENERATED / "referrers.json"
        if not path.exists():
            raise FileNotFoundError(f"{path} is made by `pip install`, which has not been run here")
        public: dict[str, str] = json.loads(path.read_text("utf-8"))
        ours = read_names(shipped_file("referrers.toml").read_text("utf-8"))
        return cls(_layered(public, ours, extra or {}))

    def name_of(self, referrer: str) -> str:
        """Give the name of a stored referrer (host and path), or its host if it has none."""
        host, _, path = referrer.partition("/")
        for parent in _and_parents(host):
            if parent in self._with_paths:
                for place in _and_folders(f"{parent}/{path.lower()}", self._depth):
                    if name := self._names.get(place):
                        return name
            if name := self._names.get(parent):
                return name
        return host


def read_names(text: str) -> dict[str, str]:
    """Read names: TOML lines of `"host" = "Name"` or `"host/path" = "Name"`.

    Raises ValueError naming the place that has no name, or the line that is no TOML.
    """
    names = tomllib.loads(text)
    for place, name in names.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f'{place}: expected a line of "host" = "Name", the host in quotes')
    return names


def _layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """Lay the names over one another: a later layer wins, `www.` or not."""
    return {_key(place): name for layer in layers for place, name in _bare_last(layer)}


def _bare_last(names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Put the entries without `www.` last, so that they win over those with it."""
    return sorted(names.items(), key=lambda entry: not entry[0].startswith("www."))


def _key(place: str) -> str:
    return place.lower().removeprefix("www.").rstrip("/")


def _and_parents(host: str) -> Iterator[str]:
    """Give a host and what it lies below, without the bare top level."""
    yield host
    while "." in (host := host.partition(".")[2]):
        yield host


def _and_folders(place: str, depth: int) -> Iterator[str]:
    """Give the folders a host and path lies in, down to `depth`, the deepest first."""
    steps = place.split("/", depth + 1)[: depth + 1]
    for length in range(len(steps), 1, -1):
        yield "/".join(steps[:length])
