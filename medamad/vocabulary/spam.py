"""Hosts that send visits only to be seen in statistics (referrer spam)."""

from collections.abc import Iterable, Iterator
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


def _and_parents(host: str) -> Iterator[str]:
    while host:
        yield host
        host = host.partition(".")[2]
