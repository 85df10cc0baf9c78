"""What is known of the backups that the daemon makes by itself."""

from attrs import define


@define
class Backups:
    """Kept up to date by whoever makes them. `made` is when the newest was, in Unix seconds."""

    made: int | None = None
    failures: int = 0
    """Since the start of the daemon."""
    failure: str = ""
    """Why the last attempt failed; "" when it did not."""
