"""How the process keeps its memory: what a large question took goes back at once."""

import ctypes
import gc
from contextlib import suppress
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 20
_ARENAS: Final = 2


def return_large_blocks() -> None:
    """Have the C library give large blocks of memory back when they are freed (mallopt(3)).

    Left alone, glibc learns from the first large arrays to keep all later ones for itself. Does
    nothing where the C library has no such setting.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_ARENA_MAX, _ARENAS)


def begin() -> None:
    """Collect no garbage while the daemon starts: what is made then stays for good."""
    gc.disable()


def settle() -> None:
    """Collect garbage from now on, but spare the collector what has been made so far.

    Otherwise each full collection goes through all of it, which takes tens of milliseconds.
    """
    gc.freeze()
    gc.enable()
