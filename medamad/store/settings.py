"""What the configuration says about the store."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from attrs import field, frozen

from medamad.model.dimensions import Dimension

NEW_VALUES: Final[Mapping[Dimension, int]] = {
    Dimension.PATH: 10_000,
    Dimension.REFERRER: 2_000,
    Dimension.PROPERTY_NAME: 50,
    Dimension.PROPERTY: 1_000,
}
OTHER_NEW_VALUES: Final = 1_000
_UTC: Final = ZoneInfo("UTC")


After: TypeAlias = Literal["sums", "nothing"]
"""What remains of a day whose views are gone."""


@frozen
class Keep:
    """For how many days the views of a website are kept, 0 for ever, and what remains after."""

    raw_days: int = 0
    after: After = "sums"


@frozen(kw_only=True)
class Retention:
    """How long views are kept: those of each website by its hostname, those of all others."""

    others: Keep = Keep()
    websites: Mapping[str, Keep] = field(factory=dict)
    zone: tzinfo = _UTC
    """Whose midnights part the days."""

    def of(self, hostname: str) -> Keep:
        """Give what holds for a website."""
        return self.websites.get(hostname, self.others)


@frozen(kw_only=True)
class StoreSettings:
    """Bounds of the store. `map_size` is read when it is opened, the others at any time."""

    map_size: int = 64 << 30
    """Bytes that the file can grow to. Costs nothing until used."""
    min_free_disk: int = 512 << 20
    """Bytes of free disk below which no hits are taken."""
    new_values: Mapping[Dimension, int] = field(factory=lambda: NEW_VALUES)
    """New values of a website in a day; for PROPERTY, those of one property name."""
    other_new_values: int = OTHER_NEW_VALUES
    """The same for the dimensions that `new_values` does not name."""
    recent_beacons: int = 65_536
    """How many beacons are kept in memory; older ones are looked up on disk."""
    early_beacons: int = 10_000
    """How many beacons may wait for a load that has not come yet."""
    retention: Retention = Retention()
    """How long views are kept."""
