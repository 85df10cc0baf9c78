"""What other programs give that has days added up, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from medamad.moves.day_rows import DayReader
from medamad.moves.goatcounter_days import is_goatcounter_days, read_goatcounter_days
from medamad.moves.plausible import is_plausible, read_plausible


@frozen
class DaySource:
    """What can be imported day by day. `is_it` tells it by the head of a file.

    `total` is the table of what a day has in all.
    """

    reader: DayReader
    is_it: Callable[[bytes], bool]
    total: str


DAY_SOURCES: Final[Mapping[str, DaySource]] = MappingProxyType(
    {
        "plausible": DaySource(read_plausible, is_plausible, "imported_visitors"),
        "goatcounter-json": DaySource(read_goatcounter_days, is_goatcounter_days, "hit_stats"),
    }
)
