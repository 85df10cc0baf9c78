"""What a question sees of a website: one immutable snapshot, a sequence of parts.

A part is a run of views as columns; the tail in memory is made of such parts, and so is whatever
holds sealed views. A question is put to each part in turn and adds the answers up.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension

Codes: TypeAlias = NDArray[np.uint32]

VISITOR = np.uint8(1)
"""Flag of a view that was the visitor's first of the day (`p`)."""
PAGE_VISITOR = np.uint8(2)
"""Flag of a view that was the visitor's first of the page (`q`)."""


class Views(Protocol):
    """A part: n views as columns of equal length, in the order of their sequence numbers.

    None of the arrays may be written to. Times need not ascend: a clock can be set back.
    """

    @property
    def least_ms(self) -> int:
        """The earliest time in the part, in Unix milliseconds."""

    @property
    def greatest_ms(self) -> int:
        """The latest time in the part, in Unix milliseconds."""

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """Shape (n,): Unix milliseconds."""

    @property
    def sequence(self) -> NDArray[np.uint64]:
        """Shape (n,), strictly ascending: the number by which events name their view."""

    @property
    def flags(self) -> NDArray[np.uint8]:
        """Shape (n,): VISITOR and PAGE_VISITOR, or-ed."""

    @property
    def duration_ms(self) -> NDArray[np.uint32]:
        """Shape (n,): milliseconds on the page; 0 where the view is not timed."""

    @property
    def number_today(self) -> NDArray[np.uint16]:
        """Shape (n,): the visitor's how-manieth view of the day; 0 where unknown."""

    @property
    def width_px(self) -> NDArray[np.uint16]:
        """Shape (n,): width of the window; 0 where unknown."""

    def codes(self, dimension: Dimension) -> Codes:
        """Shape (n,): the code of each view's text in one of VIEW_DIMENSIONS."""

    def __len__(self) -> int:
        """Give n."""


@frozen(eq=False)
class Events:
    """The properties of events, as columns: one row for each property of each event.

    Shape (m,) each. Rows of one event share `event`. `view` is the sequence number of the view
    that the event belongs to, 0 for none. `property` is a code of `Dimension.PROPERTY`.
    """

    event: NDArray[np.uint64]
    time_ms: NDArray[np.int64]
    view: NDArray[np.uint64]
    property: Codes

    def __len__(self) -> int:
        return len(self.event)


class Texts(Protocol):
    """The texts behind the codes of a website: `texts(dimension)[code]`."""

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Give the texts of a dimension, at least up to the greatest code of the snapshot."""


@frozen(eq=False)
class Snapshot:
    """All that one question sees of one website. Never changes while the question runs."""

    parts: Sequence[Views]
    events: Sequence[Events]
    texts: Texts


def no_texts(_dimension: Dimension, /) -> Sequence[str]:
    """Texts of a website that has no hit."""
    return ()


EMPTY = Snapshot(parts=(), events=(), texts=no_texts)
