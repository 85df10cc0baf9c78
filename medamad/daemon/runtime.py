"""The interpreter and the process's limits: threads, garbage collector, memory, open files."""

import ctypes
import faulthandler
import gc
import resource
import sys
from contextlib import suppress
from typing import Final

from attrs import evolve
from twisted.logger import Logger

from medamad.web.settings import WebSettings

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


BOUNDLESS: Final = 1 << 20
"""How many are taken where the system tells of no bound: Linux then has this one (fs.nr_open)."""
OWN: Final = 100
"""How many are kept from connections that are counted: the daemon's own, those of the operator's
commands, and those of connections that go in the turn in which others come. Where few may be open,
half of them."""
_log: Final = Logger()


def allow() -> None:
    """Allow as many as the system lets this user have; shells allow 1,024 at first."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = BOUNDLESS if most == resource.RLIM_INFINITY else most
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def allowed() -> int:
    """Return how many there may be."""
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if now == resource.RLIM_INFINITY else now


def leave_room(settings: WebSettings, files: int) -> WebSettings:
    """Return settings with no more connections than so many open files have room for.

    Beyond, nobody could connect, however many only wait. The log tells where there are fewer.
    """
    room = files - min(OWN, files // 2)
    if settings.max_connections <= room:
        return settings
    _log.warn(
        "limits.max_connections: {room} in place of {configured}, as the system lets the daemon"
        " have {files} files open",
        room=room,
        configured=settings.max_connections,
        files=files,
    )
    return evolve(settings, max_connections=room)
