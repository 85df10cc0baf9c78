"""Where the systemd service has its configuration and its data: one implies the other."""

import os
from pathlib import Path
from typing import Final

from attrs import frozen


@frozen
class ServicePaths:
    """The service's configuration file and data directory; tests use others."""

    config: Path = Path("/etc/medamad/medamad.toml")
    data: Path = Path("/var/lib/medamad")

    def config_for(self, data: Path) -> Path | None:
        """Return the configuration that belongs to a data directory, or None."""
        return self.config if _belongs_to(data, self.data, self.config) else None

    def data_for(self, config: Path) -> Path | None:
        """Return the data directory that belongs to a configuration, or None."""
        return self.data if _belongs_to(config, self.config, self.data) else None


SERVICE_PATHS: Final = ServicePaths()


def _belongs_to(given: Path, own: Path, other: Path) -> bool:
    """Return whether a path is the service's own, and the other one exists.

    systemd's state directory is a link into a folder that only root may read: a path that cannot be
    read counts as existing, and its reader reports the error.
    """
    return os.path.lexists(other) and os.path.realpath(given) == os.path.realpath(own)
