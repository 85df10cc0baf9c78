"""Where the service has its configuration and its data: of the two, one tells the other."""

import os
from pathlib import Path
from typing import Final

from attrs import frozen


@frozen
class ServicePaths:
    """The file of the configuration and the folder of the data; tests have others."""

    config: Path = Path("/etc/medamad/medamad.toml")
    data: Path = Path("/var/lib/medamad")

    def config_for(self, data: Path) -> Path | None:
        """Give the configuration that goes with a folder of data, None where none does."""
        return self.config if _goes_with(data, self.data, self.config) else None

    def data_for(self, config: Path) -> Path | None:
        """Give the folder of data that goes with a configuration, None where none does."""
        return self.data if _goes_with(config, self.config, self.data) else None


SERVICE: Final = ServicePaths()


def _goes_with(given: Path, own: Path, other: Path) -> bool:
    """Tell whether a path is the service's own, and the other one is there.

    systemd's folder of data is a link to another, into which only root may look: what cannot be
    read is there all the same, and said to be wrong by whoever reads it.
    """
    return os.path.lexists(other) and os.path.realpath(given) == os.path.realpath(own)
