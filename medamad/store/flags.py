"""What is noted of a view in one byte: whose it is, and whether it is timed or a bounce."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

VISITOR: Final = np.uint8(1)
"""The view was the visitor's first of the day (`p`)."""
PAGE_VISITOR: Final = np.uint8(2)
"""The view was the visitor's first of the page (`q`)."""
TIMED: Final = np.uint8(4)
"""It is known how long the view lasted."""
BOUNCED: Final = np.uint8(8)
"""It is known, and was no longer than BOUNCE_MS."""

BOUNCE_MS: Final = 5_000
FLAG_BITS: Final = 4
"""How many flags there are."""

_OF_VISIT: Final = np.uint8(VISITOR | PAGE_VISITOR)


def timed_flags(
    flags: NDArray[np.uint8], duration_ms: NDArray[np.unsignedinteger[Any]]
) -> NDArray[np.uint8]:
    """Give the flags of views that last so long: TIMED and BOUNCED are set anew."""
    timed = flags & _OF_VISIT
    timed |= (duration_ms > 0) * TIMED
    timed |= ((duration_ms > 0) & (duration_ms <= BOUNCE_MS)) * BOUNCED
    return timed
