"""How much traffic is wanted."""

from typing import Final

from attrs import frozen

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000


@frozen(kw_only=True)
class Plan:
    """How much traffic is wanted: `views` of them over the `days` that end at `until_ms`.

    The last `tail` views, or all if there are fewer, come as batches of their own.
    """

    until_ms: int
    views: int
    days: int = 90
    tail: int = 100_000
    paths: int = 5_000
    steepness: float = 1.0
    seed: int = 1

    @property
    def since_ms(self) -> int:
        """When the first day begins."""
        return self.until_ms - self.days * DAY_MS

    @property
    def before_tail(self) -> int:
        """How many views come before the tail."""
        return max(self.views - self.tail, 0)
