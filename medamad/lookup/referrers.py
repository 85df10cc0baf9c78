"""Referrer hosts: the names of sources, and the hosts that send referrer spam."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from medamad.build import GENERATED, shipped_file
from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname


class Sources:
    """Names by host, or by host and path: `{"google.com": "Google", "google.com/imgres": …}`.

    A name also applies to subdomains and to longer paths; the longest path goes first, then the
    longest host.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names: Final = {_key(place): name for place, name in names.items()}
        self._with_paths: Final = {place.partition("/")[0] for place in self._names if "/" in place}
        self._depth: Final = max((place.count("/") for place in self._names), default=0)

    @staticmethod
    def shipped(extra: Mapping[str, str] | None = None) -> "Sources":
        """Return the names that come with the package, overridden by `extra` from the operator."""
        return _shipped().overridden(extra) if extra else _shipped()

    def overridden(self, names: Mapping[str, str]) -> "Sources":
        """Return these names, overridden by others."""
        return Sources(_layered(self._names, names))

    def name_of(self, referrer: str) -> str:
        """Return the name of a stored referrer (host and path), or its host if it has none."""
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
    """Return the names in a text: TOML lines of `"host" = "Name"` or `"host/path" = "Name"`.

    Raises ValueError naming the place that has no name, or the line that is not TOML.
    """
    names = tomllib.loads(text)
    for place, name in names.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f'{place}: expected a line of "host" = "Name", the host in quotes')
    return names


@cache
def _shipped() -> Sources:
    path = GENERATED / "referrers.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `pip install` makes it")
    public: dict[str, str] = json.loads(path.read_text("utf-8"))
    return Sources(_layered(public, read_names(shipped_file("referrers.toml").read_text("utf-8"))))


def _layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """Return all names; a later layer wins, with `www.` or without."""
    return {_key(place): name for layer in layers for place, name in _bare_last(layer)}


def _bare_last(names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the entries with those without `www.` last, so that they win."""
    return sorted(names.items(), key=lambda entry: not entry[0].startswith("www."))


def _key(place: str) -> str:
    return place.lower().removeprefix("www.").rstrip("/")


def _and_parents(host: str) -> Iterator[str]:
    """Yield a host and its parent domains, except the top level."""
    yield host
    while "." in (host := host.partition(".")[2]):
        yield host


def _and_folders(place: str, depth: int) -> Iterator[str]:
    """Yield a host and path and its parent folders, from `depth` upwards."""
    steps = place.split("/", depth + 1)[: depth + 1]
    for length in range(len(steps), 1, -1):
        yield "/".join(steps[:length])


class SpamHosts:
    """A set of hosts. `host in spam` is true for them and their subdomains."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts: Final = frozenset(host.lower().removeprefix("www.") for host in hosts)

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and any(
            parent in self._hosts for parent in _host_and_parents(host.lower())
        )

    def __len__(self) -> int:
        return len(self._hosts)


def read_hosts(text: str) -> list[str]:
    """Return the hosts in a text, one per line; a # begins a comment.

    Raises ValueError naming the line that is not a hostname, or has no dot: it would match a whole
    top-level domain.
    """
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        if entry := line.partition("#")[0].strip():
            try:
                host = canonical_hostname(entry, f"line {number}")
            except BadRequest as error:
                raise ValueError(str(error)) from None
            if "." not in host:
                raise ValueError(f"line {number}: expected a hostname with a dot")
            hosts.append(host)
    return hosts


def _host_and_parents(host: str) -> Iterator[str]:
    while host:
        yield host
        host = host.partition(".")[2]
