"""Referrer hosts: the names of sources, and the hosts that send referrer spam."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Self

from medamad.build import GENERATED, shipped_file
from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname


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
    """Return a host and what it lies below, without the bare top level."""
    yield host
    while "." in (host := host.partition(".")[2]):
        yield host


def _and_folders(place: str, depth: int) -> Iterator[str]:
    """Return the folders a host and path lies in, down to `depth`, the deepest first."""
    steps = place.split("/", depth + 1)[: depth + 1]
    for length in range(len(steps), 1, -1):
        yield "/".join(steps[:length])


class SpamHosts:
    """A set of hosts. `host in spam` holds for each of them and for whatever lies below one."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts: Final = frozenset(host.lower().removeprefix("www.") for host in hosts)

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and any(
            parent in self._hosts for parent in _host_and_parents(host.lower())
        )

    def __len__(self) -> int:
        return len(self._hosts)


def read_hosts(text: str) -> list[str]:
    """Read hosts, one a line, blank lines and what follows a # left out.

    Raises ValueError naming the line that holds no hostname, or one without a dot: it would stand
    for all that lies below a top level.
    """
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        if entry := line.partition("#")[0].strip():
            try:
                host = canonical_hostname(entry, f"line {number}")
            except BadRequest as refusal:
                raise ValueError(str(refusal)) from None
            if "." not in host:
                raise ValueError(f"line {number}: expected a hostname with a dot")
            hosts.append(host)
    return hosts


def _host_and_parents(host: str) -> Iterator[str]:
    while host:
        yield host
        host = host.partition(".")[2]
