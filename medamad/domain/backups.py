"""Backups that the daemon makes by itself: what is to be done, what was, and what is known."""

import msgspec
from attrs import define


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done in the folder of the backups. Times are in Unix seconds."""

    folder: str
    now: float
    due: float
    """When the newest was to be made: none is made where there is one since."""
    trusted: float
    """Up to when backups count: those of a time to come push out none."""
    keep: int


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What there is in the folder after that."""

    newest: int
    """When it was made, in Unix seconds."""
    made: str = ""
    """The file that was made; "" where none was due."""
    stays: str = ""
    """Why one that is more than enough could not be removed; "" where none stays."""


@define
class Backups:
    """Kept up to date by whoever makes them. `made` is when the newest was, in Unix seconds."""

    made: int | None = None
    failures: int = 0
    """Since the start of the daemon."""
    failure: str = ""
    """Why the last attempt failed; "" when it did not."""
