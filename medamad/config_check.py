"""Reads all of a configuration, as the daemon does when it starts."""

from pathlib import Path

from medamad.config import load
from medamad.config_files import load_lists
from medamad.listening import Place, configured_places


def checked_places(file: Path) -> list[Place]:
    """Give where the daemon would listen by a configuration of which nothing is wrong.

    Raises ConfigError for what is wrong with the file, those beside it, or one that it names.
    """
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    config = load(file)
    load_lists(config)
    return configured_places(config, reactor)
