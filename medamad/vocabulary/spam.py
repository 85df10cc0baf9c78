"""Hosts that send visits only to be seen in statistics (referrer spam)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from medamad.model.errors import BadRequest
from medamad.model.websites import canonical_hostname


class SpamHosts:
    """A set of hosts. `host in spam` holds for each of them and for whatever lies below one."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts: Final = frozenset(host.lower().removeprefix("www.") for host in hosts)

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and any(
            parent in self._hosts for parent in _and_parents(host.lower())
        )

    def __len__(self) -> int:
        return len(self._hosts)


def read_hosts(path: Path) -> list[str]:
    """Read a file of hosts, one a line, blank lines and what follows a # left out.

    Raises ValueError naming the line that holds no hostname, OSError.
    """
    hosts = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if text := line.partition("#")[0].strip():
            try:
                hosts.append(canonical_hostname(text, f"line {number}"))
            except BadRequest as refusal:
                raise ValueError(str(refusal)) from None
    return hosts


def _and_parents(host: str) -> Iterator[str]:
    while host:
        yield host
        host = host.partition(".")[2]
