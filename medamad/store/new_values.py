"""How many values are new on a day, which is bounded."""

from typing import Final, Self

from attrs import define, field

from medamad.model.dimensions import Dimension, split_property

_USUAL_BYTES: Final = 256
"""So many bytes of a text count as one value: what is bounded is bytes."""


@define(eq=False)
class NewValues:
    """The new values of a website and dimension on a day. A long one counts as several."""

    in_all: int = 0
    by_name: dict[str, int] = field(factory=dict)
    """Of properties, by the property's name."""

    def add(self, dimension: Dimension, text: bytes) -> None:
        """Count a value."""
        values = 1 + max(0, len(text) - 1) // _USUAL_BYTES
        self.in_all += values
        if dimension is Dimension.PROPERTY:
            name, _ = split_property(text.decode("utf-8", "replace"))
            self.by_name[name] = self.by_name.get(name, 0) + values

    def add_all(self, more: Self) -> None:
        """Count what was counted there."""
        self.in_all += more.in_all
        for name, values in more.by_name.items():
            self.by_name[name] = self.by_name.get(name, 0) + values
