"""A list that notes how much of it is taken at once."""

from typing import Any


class Slices(list[Any]):
    """A list. `sizes` are those of the slices that were taken."""

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self.sizes: list[int] = []

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(place, slice):
            self.sizes.append(len(found))
        return found
