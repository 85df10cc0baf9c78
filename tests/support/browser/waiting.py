"""What comes sooner or later."""

import time
from collections.abc import Callable
from typing import TypeVar

from support.daemon import PATIENCE_S

T = TypeVar("T")


def comes(read: Callable[[], T], wanted: T) -> None:
    """Wait until what is read is what is wanted."""
    deadline = time.monotonic() + PATIENCE_S
    while (seen := read()) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert seen == wanted, f"{seen} instead of {wanted}"
