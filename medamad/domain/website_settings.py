"""The settings of a website, which go before those of the configuration."""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any, Final, Self

import msgspec
from attrs import asdict, evolve, frozen

from medamad.domain.errors import BadRequest, Conflict
from medamad.domain.hits import BotRule, HostingRule
from medamad.domain.redaction import REST, SEGMENT, Redaction

MAX_NETWORKS: Final = 500
MAX_ENTRIES: Final = 100
"""The most entries of any other list of a website."""
MAX_ENTRY: Final = 512
"""Characters of an entry."""
MAX_SIZE: Final = 16_000
"""Bytes of all settings in JSON: they stay in memory, and fit into the body of a request."""
_COUNTRY: Final = re.compile(r"[A-Z]{2}\Z")
_ENDS_NAME: Final = re.compile("[&=#]")
"""What ends the name of a parameter in a URL."""


@frozen
class WebsiteSettings:
    """The settings of a website. None stands for what the configuration says."""

    bots: BotRule | None = None
    hosting: HostingRule | None = None
    respect_gpc: bool | None = None
    blocked_networks: tuple[str, ...] = ()
    """In addition to those of the configuration."""
    blocked_countries: tuple[str, ...] = ()
    """ISO 3166 codes of countries whose hits are ignored."""
    allowed_hosts: tuple[str, ...] = ()
    """The hosts whose pages may send hits, with their subdomains; if empty, as configured."""
    excluded_paths: tuple[str, ...] = ()
    """Patterns of the paths of pages whose hits are ignored, as `medamad.domain.paths` has them."""
    redacted_paths: tuple[str, ...] = ()
    """Patterns such as `/reset/*`; see `medamad.domain.redaction`."""
    redact_uuids: bool = False
    redact_hexadecimal: bool = False
    redact_emails: bool = False
    kept_parameters: tuple[str, ...] = ()
    """The parameters of a query string that are stored with the path."""

    @property
    def redaction(self) -> Redaction:
        """What is never stored of the paths of pages."""
        return Redaction.of(
            self.redacted_paths,
            uuids=self.redact_uuids,
            hexadecimal=self.redact_hexadecimal,
            emails=self.redact_emails,
        )

    def with_changes(self, changes: Mapping[str, Any]) -> Self:
        """Return the settings with some changed. Raises BadRequest naming the one that is wrong."""
        lists = {
            name: tuple(dict.fromkeys(value))
            for name, value in changes.items()
            if isinstance(value, list | tuple)
        }
        members: dict[str, Any] = {**changes, **lists}
        changed = evolve(self, **members)
        for name in _LISTS:
            _check_list(name, getattr(changed, name))
        for text in changed.blocked_networks:
            _check_network(text)
        if not all(map(_COUNTRY.match, changed.blocked_countries)):
            raise BadRequest("blocked_countries: expected ISO 3166 codes such as DE")
        for pattern in changed.excluded_paths:
            _check_path("excluded_paths", pattern)
        for pattern in changed.redacted_paths:
            _check_redacted(pattern)
        if any(_ENDS_NAME.search(name) for name in changed.kept_parameters):
            raise BadRequest("kept_parameters: expected names of parameters, without &, = and #")
        if len(msgspec.json.encode(changed)) > MAX_SIZE:
            raise BadRequest(f"settings: expected at most {MAX_SIZE:,} bytes of JSON in all")
        return changed

    @property
    def made(self) -> dict[str, Any]:
        """The settings that differ from those of a website that none have been made for."""
        defaults = asdict(DEFAULTS)
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def with_those_of(self, other: Self) -> Self:
        """Return the settings with those added that were made for another website.

        Lists get the entries that they lack. Raises Conflict for a choice that is made already, and
        is different, and BadRequest.
        """
        changes: dict[str, Any] = {}
        for name, value in other.made.items():
            there = self.made.get(name)
            if there is None or name in _LISTS:
                changes[name] = (*(there or ()), *value) if name in _LISTS else value
            elif there != value:
                raise Conflict(f"{name}: it is there already, and is different")
        return self.with_changes(changes)


_LISTS: Final = (
    *("blocked_networks", "blocked_countries", "allowed_hosts", "excluded_paths"),
    *("redacted_paths", "kept_parameters"),
)

DEFAULTS: Final = WebsiteSettings()
"""The settings of a website that none have been made for."""
FOR_NEW_WEBSITES: Final = WebsiteSettings(
    redact_uuids=True, redact_hexadecimal=True, redact_emails=True
)
"""The settings of a website that is added. Earlier ones have everything as it was."""


def _check_list(name: str, entries: Iterable[str]) -> None:
    known = tuple(entries)
    most = MAX_NETWORKS if name == "blocked_networks" else MAX_ENTRIES
    if len(known) > most:
        raise BadRequest(f"{name}: expected at most {most:,} entries")
    if not all(each.strip() == each and 0 < len(each) <= MAX_ENTRY for each in known):
        raise BadRequest(f"{name}: expected texts of 1 to {MAX_ENTRY} characters")
    if not all(map(str.isprintable, known)):
        raise BadRequest(f"{name}: expected texts without control characters")


def _check_network(text: str) -> None:
    try:
        ip_network(text)
    except ValueError as error:
        raise BadRequest(f"blocked_networks: {error}") from None


def _check_path(name: str, pattern: str) -> None:
    if not pattern.startswith("/"):
        raise BadRequest(f"{name}: expected paths that begin with a slash")


def _check_redacted(pattern: str) -> None:
    _check_path("redacted_paths", pattern)
    segments = [each for each in pattern.split("/") if each]
    if not any("*" in each for each in segments):
        raise BadRequest("redacted_paths: expected a * for each segment to replace")
    if any("*" in each and each not in (SEGMENT, REST) for each in segments):
        raise BadRequest("redacted_paths: expected each * to be a whole segment")
    if REST in segments[:-1]:
        raise BadRequest("redacted_paths: expected ** at the end alone")
