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
"""The longest time that the reactor waits for the interpreter lock after releasing it."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 20
_KEPT_FREE_BYTES: Final = 8 << 20
_ARENAS: Final = 2


def begin() -> None:
    """Prepare the interpreter for the start of the daemon; `freeze_heap` follows."""
    # So that the reactor, a thread with little to do, waits less for a busy one.
    sys.setswitchinterval(_SWITCH_S)
    gc.disable()
    _return_large_blocks()
    if sys.__stderr__ is not None:
        # A disk error under the memory-mapped file kills the process: leave a traceback then.
        faulthandler.enable(sys.__stderr__)


def freeze_heap() -> None:
    """Enable garbage collection, except of the objects made so far.

    Most of those live as long as the process, and scanning them takes tens of milliseconds.
    """
    gc.freeze()
    gc.enable()


def return_free_memory() -> None:
    """Return free memory to the system (malloc_trim(3)).

    By default the C library keeps the most that was ever needed at one time, by a query or a flush.
    Takes a millisecond or two in any thread. Does nothing if the C library has no such call.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _return_large_blocks() -> None:
    """Make the C library return large blocks to the system when they are freed (mallopt(3)).

    By default glibc raises its threshold after the first large arrays and keeps later ones. But of
    the free memory that smaller blocks leave, it returns all but 128 kB at once: an array of half a
    megabyte would then take longer to allocate than to fill, as the system clears its pages. Does
    nothing if the C library has no such settings.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_FREE_BYTES)
        library.mallopt(_M_ARENA_MAX, _ARENAS)


DEFAULT_FILE_LIMIT: Final = 1 << 20
"""The limit to set where the system has none: the default of Linux (fs.nr_open)."""
RESERVED_FILES: Final = 100
"""How many files are reserved for other uses than HTTP connections: the daemon's own files, the
operator's commands, and connections that close while others open. If few may be open, half."""
_log: Final = Logger()


def raise_file_limit() -> None:
    """Raise the limit of open files as far as the system permits; shells start with 1,024."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DEFAULT_FILE_LIMIT if most == resource.RLIM_INFINITY else most
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def file_limit() -> int:
    """Return the limit of open files."""
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if now == resource.RLIM_INFINITY else now


def limit_connections(settings: WebSettings, files: int) -> WebSettings:
    """Return settings with at most as many connections as `files` open files permit.

    Beyond that no client could connect, even if other connections are idle. A reduction is logged.
    """
    room = files - min(RESERVED_FILES, files // 2)
    if settings.max_connections <= room:
        return settings
    _log.warn(
        "limits.max_connections: {room} instead of {configured}, because the system allows the"
        " daemon {files} open files",
        room=room,
        configured=settings.max_connections,
        files=files,
    )
    return evolve(settings, max_connections=room)
