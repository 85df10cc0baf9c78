"""What the daemon knows about the backups that a timer makes."""

from attrs import define


@define
class BackupState:
    """The backups in the configured folder, as last read."""

    newest: int | None = None
    """When the newest backup was made, in Unix seconds; None where there is none."""
    failure: str = ""
    """Why the backups need attention: too old, missing or unreadable; "" if they are fine."""
    failures: int = 0
    """How often `failure` has changed from "" since the daemon started."""
