"""How the process is set: its threads, its garbage collector, its memory."""

import ctypes
import faulthandler
import gc
import sys
from contextlib import suppress
from typing import Final

_SWITCH_S: Final = 0.00002
"""Every call of the system by which the reactor lets the others run costs it this at most."""
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 20
_ARENAS: Final = 2


def begin() -> None:
    """Set it for a daemon that is about to start; to be followed by `settle`."""
    # A thread with little to do, which the reactor is, waits less for one with much.
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()
    _return_large_blocks()
    if sys.__stderr__ is not None:
        # A disk that fails below the mapped file ends the process: then at least it is said.
        faulthandler.enable(sys.__stderr__)


def settle() -> None:
    """Collect garbage from now on, but spare the collector what was made by now.

    Most of that stays for good, and to go through it takes tens of milliseconds each time.
    """
    gc.freeze()
    gc.enable()


def return_free_memory() -> None:
    """Have the C library give back what lies free between what is in use (malloc_trim(3)).

    Left alone it keeps the most that was ever needed at once: by a question, by sealing a block.
    Takes a millisecond or two in any thread. Does nothing where the C library has no such call.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _return_large_blocks() -> None:
    """Have the C library give large blocks of memory back when they are freed (mallopt(3)).

    Left alone, glibc learns from the first large arrays to keep all later ones for itself. Does
    nothing where the C library has no such setting.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_ARENA_MAX, _ARENAS)
