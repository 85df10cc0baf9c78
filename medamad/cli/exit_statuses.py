"""The exit statuses of each command, in one table for the help, the manual and the tests."""

from typing import Final

USAGE_STATUS: Final = 64
"""The status for wrong usage (EX_USAGE of sysexits.h)."""
INTERRUPTED_STATUS: Final = 130
"""As a shell reports a program that SIGINT ended; also used for SIGTERM and SIGHUP."""
UNREAD_STATUS: Final = 141
"""As a shell reports a program that SIGPIPE ended."""
NOT_RUNNING_STATUS: Final = 3
"""As the LSB defines it for init scripts."""

_FAILED: Final = "it failed; the reason is on standard error"
_USAGE: Final = "wrong usage"
_CONFIG: Final = "the configuration cannot be used"
_INTERRUPTED: Final = "interrupted by Ctrl-C, SIGTERM or SIGHUP"
_UNREAD: Final = "the reader of its output has exited"

USUAL: Final = {
    0: "success",
    1: _FAILED,
    64: _USAGE,
    78: _CONFIG,
    130: _INTERRUPTED,
    141: _UNREAD,
}
"""The statuses of a command that is not listed below."""

_OF_A_DAEMON: Final = {
    0: "it was stopped",
    1: "it could not start or continue; the reason is in the log",
    64: _USAGE,
    78: _CONFIG,
}
_OF_TEXTS: Final = {0: "success", 1: _FAILED, 64: _USAGE, 141: _UNREAD}
_OWN: Final = {
    "run": _OF_A_DAEMON,
    "demo": _OF_A_DAEMON,
    "status": {
        0: "the daemon runs and accepts hits",
        1: "it runs but accepts no hits, its backups are too old, its store is damaged, or it is"
        " not responding",
        NOT_RUNNING_STATUS: "it does not run",
        64: _USAGE,
        78: _CONFIG,
        130: _INTERRUPTED,
        141: _UNREAD,
    },
    "check": {
        **USUAL,
        0: "the store is undamaged",
        1: "it is damaged, as described on standard error, or cannot be read",
    },
    "check-config": {
        0: "it is valid",
        64: _USAGE,
        78: "it is invalid; the reason is on standard error",
        130: _INTERRUPTED,
        141: _UNREAD,
    },
    "export": {
        **USUAL,
        1: "it failed, or left out a damaged part, as described on standard error",
    },
    "report": {
        **USUAL,
        1: "it failed, or left out a damaged part, as described on standard error",
    },
    "follow": {
        **USUAL,
        0: "with --once: all lines have been counted",
        1: "with --once: it failed; the reason is on standard error",
    },
    "privacy": {
        **USUAL,
        1: "it failed, or left out a damaged part, as described on standard error",
    },
    "retention": {
        **USUAL,
        1: "it failed, or a part is damaged, as described on standard error",
    },
    "compare": {
        **USUAL,
        0: "no metric is worse than stated",
        1: "a metric is worse, it failed, or a damaged part is left out, as described on standard"
        " error",
    },
    "completion": _OF_TEXTS,
    "version": _OF_TEXTS,
}


def statuses(command: str) -> dict[int, str]:
    """Return the exit statuses of a command and their meanings; the usual ones for ""."""
    return _OWN.get(command, USUAL)
