"""The lists that an operator edits beside the configuration: referrers, robots, spam, networks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from attrs import frozen

from medamad.build import shipped_file
from medamad.config.schema import INSTALLED, TOO_DEEP, Config, ConfigError
from medamad.ingest.networks import Networks, read_networks
from medamad.lookup.referrers import read_hosts, read_names
from medamad.lookup.robots import Robots, read_robots
from medamad.lookup.systems import networks_of_systems, read_systems

T = TypeVar("T")

REFERRERS: Final = "referrers.toml"
SPAM: Final = "spam.txt"
BLOCKED: Final = "blocked.txt"
ROBOTS: Final = "robots.toml"
_DATABASE: Final = ".mmdb"


@frozen
class Lists:
    """The contents of the files."""

    referrer_names: dict[str, str]
    """The operator's names by host, or by host and path; empty without a file of their own."""
    spam_hosts: Sequence[str]
    blocked: Networks
    hosting: Networks
    """The networks of hosting providers; none without a file."""
    robots: Robots
    """The shipped table, with the operator's entries instead of some."""


def load_lists(config: Config, shipped: Callable[[str], Path] = shipped_file) -> Lists:
    """Read the files that the configuration names, or that lie beside it, or that are shipped.

    Raises ConfigError.
    """
    names = _operators(config, config.events.referrers, REFERRERS)
    robots = _operators(config, config.events.robots, ROBOTS)
    try:
        spam = _operators(config, config.events.spam, SPAM) or shipped(SPAM)
        blocked = _operators(config, config.events.blocked, BLOCKED) or shipped(BLOCKED)
        known_robots = shipped(ROBOTS)
    except FileNotFoundError as error:
        raise ConfigError(INSTALLED, "", str(error)) from None
    return Lists(
        referrer_names={} if names is None else _read(config, "referrers", names, read_names),
        spam_hosts=_read(config, "spam", spam, read_hosts),
        blocked=_read(config, "blocked", blocked, _networks),
        hosting=_hosting_networks(config),
        robots=Robots(
            _read(config, "robots", known_robots, read_robots)
            | ({} if robots is None else _read(config, "robots", robots, read_robots))
        ),
    )


def _hosting_networks(config: Config) -> Networks:
    """Read the list of networks, or the ASN file and the list of systems. Raises ConfigError."""
    named, systems = config.events.hosting_networks, config.events.hosting_systems
    is_database = named.endswith(_DATABASE)
    if is_database != bool(systems):
        raise ConfigError(
            config.file or INSTALLED,
            "events.hosting_systems",
            f"expected the AS numbers of hosting providers if hosting_networks is a {_DATABASE}"
            " file, and only then",
        )
    if not named:
        return Networks()
    file = config.path(named)
    if not is_database:
        return _read(config, "hosting_networks", file, _networks)
    wanted = _read(config, "hosting_systems", config.path(systems), read_systems)
    return _parsed(
        config, "hosting_networks", file, lambda: Networks(networks_of_systems(file, wanted))
    )


def _networks(text: str) -> Networks:
    return Networks(read_networks(text))


def _operators(config: Config, named: str, usual: str) -> Path | None:
    """Return the operator's own file: the one named, or the one beside the configuration."""
    if named:
        return config.path(named)
    if config.file is not None and (beside := config.file.parent / usual).exists():
        return beside
    return None


def _read(config: Config, key: str, file: Path, parse: Callable[[str], T]) -> T:
    """Read a text, which a key of [events] names unless it is another. Raises ConfigError."""
    return _parsed(config, key, file, lambda: parse(file.read_text("utf-8")))


def _parsed(config: Config, key: str, file: Path, parse: Callable[[], T]) -> T:
    """Parse a file, which a key of [events] names unless it is another. Raises ConfigError."""
    try:
        return parse()
    except OSError as error:
        reason = error.strerror or str(error)
        if config.file is not None and getattr(config.events, key):
            raise ConfigError(config.file, f"events.{key}", f"{file}: {reason}") from None
        raise ConfigError(file, "", reason) from None
    except UnicodeDecodeError:
        raise ConfigError(file, "", "expected UTF-8") from None
    except RecursionError:
        raise ConfigError(file, "", TOO_DEEP) from None
    except ValueError as error:
        raise ConfigError(file, "", str(error)) from None
