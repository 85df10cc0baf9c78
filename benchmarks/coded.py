"""Texts as numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def coded(values: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.unsignedinteger]]:
    """Return the different texts among values, and each value's index into them."""
    texts, codes = np.unique(np.array(values, dtype=np.dtypes.StringDType()), return_inverse=True)
    return tuple(texts.tolist()), codes.astype(np.min_scalar_type(max(len(texts) - 1, 0)))
