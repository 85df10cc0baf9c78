"""What the configuration says about the store."""

from collections.abc import Container, Mapping
from datetime import tzinfo
from functools import reduce
from typing import Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from attrs import field, frozen

from medamad.domain.dimensions import Dimension
from medamad.storage.wal.visit_keys import VisitSettings

NEW_VALUES: Final[Mapping[Dimension, int]] = {
    Dimension.PATH: 10_000,
    Dimension.REFERRER: 2_000,
    Dimension.PROPERTY_NAME: 50,
    Dimension.PROPERTY: 1_000,
}
OTHER_NEW_VALUES: Final = 1_000
LEAST_KEPT_HOURS: Final = 50
"""How long hits stay at least once a cluster has them: a view is corrected for a day, and its visit
began a day before it at most."""
_UTC: Final = ZoneInfo("UTC")


After: TypeAlias = Literal["sums", "nothing"]
"""What remains of a day whose views have been deleted."""


@frozen
class Keep:
    """For how many days the views of a website are kept, 0 for ever, and what remains after."""

    raw_days: int = 0
    after: After = "sums"

    def or_longer(self, other: "Keep") -> "Keep":
        """Return the rule that keeps whatever one of the two keeps."""
        is_for_ever = not (self.raw_days and other.raw_days)
        return Keep(
            0 if is_for_ever else max(self.raw_days, other.raw_days),
            "sums" if "sums" in (self.after, other.after) else "nothing",
        )


@frozen(kw_only=True)
class Retention:
    """How long views are kept: of single websites by hostname, and of all others."""

    others: Keep = Keep()
    websites: Mapping[str, Keep] = field(factory=dict)
    zone: tzinfo = _UTC
    """Its midnights separate days."""

    def of(self, hostname: str, registered: Container[str]) -> Keep:
        """Return the rule of a website."""
        own = self.websites.get(hostname)
        return self.of_others(registered) if own is None else own

    def of_others(self, registered: Container[str]) -> Keep:
        """Return the rule of the websites that have no table.

        A table of an unregistered website may be meant for any of them: its name was misspelled, or
        the website was renamed. So all of them keep at least what such a table keeps.
        """
        unmatched = (self.websites[name] for name in self.unregistered(registered))
        return reduce(Keep.or_longer, unmatched, self.others)

    def unregistered(self, registered: Container[str]) -> list[str]:
        """Return the hostnames of the tables of unregistered websites."""
        return sorted(name for name in self.websites if name not in registered)


def unregistered_warning(hostname: str) -> str:
    """Return what the table of an unregistered website does, for the operator."""
    return (
        f"retention.websites.{hostname}: no website of this name is registered;"
        " websites without a table keep their views for at least as long as it says"
    )


@frozen(kw_only=True)
class StoreSettings:
    """Settings of the store. `map_size` is applied at start, the others at any time."""

    map_size: int = 64 << 30
    """Bytes that the file can grow to. Costs nothing until used."""
    min_free_disk: int = 512 << 20
    """Free bytes on the disk below which no hits are stored."""
    new_values: Mapping[Dimension, int] = field(factory=lambda: NEW_VALUES)
    """How many new values a website may have in a day; for PROPERTY, of one property name.

    A value counts once for each 256 bytes of its text.
    """
    other_new_values: int = OTHER_NEW_VALUES
    """The same for the dimensions that `new_values` does not name."""
    recent_beacons: int = 65_536
    """How many beacons are kept in memory. Older ones are looked up on disk."""
    text_bytes: int = 256 << 20
    """Bytes of memory that texts may take before unused ones are dropped."""
    early_beacons: int = 10_000
    """How many beacons may wait for a page load that has not arrived yet."""
    retention: Retention = Retention()
    """How long views are kept."""
    spool_hours: int = 0
    """How long hits stay once a cluster has them; 0 without a cluster. Applied at start."""
    visits: VisitSettings = field(factory=VisitSettings)
    """What a visit is."""
