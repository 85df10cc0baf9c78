"""Which configuration a folder of data goes by: the one that is named, else that of its daemon."""

import os
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from medamad.config import Config, ConfigError, load
from medamad.model.errors import Conflict
from medamad.operator.client import NotDone, NotRunning, connect
from medamad.operator.status import AskConfiguration, Configuration


@frozen
class Governing:
    """What a command goes by, and what the daemon does; None for the latter where none runs."""

    config: Config
    daemon: Configuration | None

    @property
    def another(self) -> str | None:
        """The file by which the daemon goes, where it is another; None where none runs."""
        if self.daemon is None or self.config.file is None:
            return None
        theirs = self.daemon.file
        if theirs is not None and os.path.realpath(theirs) == os.path.realpath(self.config.file):
            return None
        return theirs or "the defaults"

    def of_daemon(self) -> Config:
        """Give what the daemon goes by, or would if it ran. Raises ConfigError."""
        if self.another is None or self.daemon is None:
            return self.config
        return load(None if self.daemon.file is None else Path(self.daemon.file))

    def check_zone(self) -> None:
        """See that days are the same to both. Raises Conflict."""
        zone = str(self.config.events.timezone)
        if self.daemon is not None and self.daemon.timezone != zone:
            where = self.config.file or "by default it"
            raise Conflict(
                f"events.timezone: {where} says {zone}, and the daemon goes by"
                f" {self.daemon.timezone}: their days are not the same"
            )


def min_free_disk(data_dir: Path, file: Path | None) -> int:
    """Give how much stays free: by a file that can be used, else by the daemon, else by default."""
    if file is not None:
        with suppress(ConfigError):
            return load(file).store.min_free_disk
    with suppress(NotRunning, NotDone), connect(data_dir) as connection:
        told = connection.ask(AskConfiguration(), Configuration).min_free_disk
        if told is not None:
            return told
    return Config().store.min_free_disk


def governing(data_dir: Path, named: Path | None) -> Governing:
    """Read the configuration named, else that of the daemon on a folder of data if one runs there.

    Raises ConfigError; and NotDone when none is named and the daemon does not tell.
    """
    daemon = None
    try:
        with connect(data_dir) as connection:
            daemon = connection.ask(AskConfiguration(), Configuration)
    except NotRunning:
        pass
    except NotDone:
        if named is None:
            raise
    if named is None and daemon is not None and daemon.file is not None:
        named = Path(daemon.file)
    return Governing(load(named), daemon)
