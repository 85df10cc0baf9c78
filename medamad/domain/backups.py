"""Backups that a timer makes: what is configured, and what the daemon knows of them."""

from pathlib import Path

from attrs import define, frozen


@frozen
class BackupPlan:
    """Where backups are and how old the newest may be."""

    folder: Path
    max_age_s: int
    """0 for no limit."""
    is_expected: bool
    """Whether a folder without a backup is a failure."""


@define
class BackupState:
    """The backups in the configured folder, as last read."""

    newest: int | None = None
    """When the newest backup was made, in Unix seconds; None where there is none."""
    failure: str = ""
    """Why the backups need attention: too old, missing or unreadable; "" if they are fine."""
    failures: int = 0
    """How often `failure` has changed from "" since the daemon started."""
