"""How much traffic to generate."""

from typing import Final

from attrs import frozen

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000


@frozen(kw_only=True)
class Plan:
    """How much traffic to generate: `views` views over the `days` days that end at `until_ms`.

    The last `memtable` views, or all if there are fewer, come as batches of their own.
    """

    until_ms: int
    views: int
    days: int = 90
    memtable: int = 100_000
    paths: int = 5_000
    steepness: float = 1.0
    seed: int = 1

    @property
    def since_ms(self) -> int:
        """When the first day begins."""
        return self.until_ms - self.days * DAY_MS

    @property
    def before_memtable(self) -> int:
        """How many views come before the memtable."""
        return max(self.views - self.memtable, 0)
