"""What each command's exit status means: the one table, for the help, the manual and the tests."""

from typing import Final

USAGE_STATUS: Final = 64
"""What the program ends with when it is called wrongly (EX_USAGE of sysexits.h)."""
INTERRUPTED_STATUS: Final = 130
"""As a shell has it for a program that SIGINT has ended; ours for SIGTERM and SIGHUP too."""
UNREAD_STATUS: Final = 141
"""As a shell has it for a program that SIGPIPE has ended."""
NOT_RUNNING_STATUS: Final = 3
"""As the LSB has it for init scripts."""

_FAILED: Final = "it did not, and the reason is on standard error"
_USAGE: Final = "called in a way that is not understood"
_CONFIG: Final = "the configuration cannot be used"
_INTERRUPTED: Final = "interrupted by Ctrl-C, or told to end (SIGTERM, SIGHUP)"
_UNREAD: Final = "whoever reads its output went away"

USUAL: Final = {
    0: "all went well",
    1: _FAILED,
    64: _USAGE,
    78: _CONFIG,
    130: _INTERRUPTED,
    141: _UNREAD,
}
"""The statuses of a command that does not stand below."""

_OF_A_DAEMON: Final = {
    0: "it was told to stop, and has stopped",
    1: "it could not start or go on, and the reason is in the log",
    64: _USAGE,
    78: _CONFIG,
}
_OF_TEXTS: Final = {0: "all went well", 1: _FAILED, 64: _USAGE, 141: _UNREAD}
_OWN: Final = {
    "run": _OF_A_DAEMON,
    "demo": _OF_A_DAEMON,
    "status": {
        0: "the daemon runs and takes hits",
        1: "it runs but takes no hits, its backups are too old, or it cannot be asked",
        NOT_RUNNING_STATUS: "it does not run",
        64: _USAGE,
        78: _CONFIG,
        130: _INTERRUPTED,
        141: _UNREAD,
    },
    "check": {
        **USUAL,
        0: "nothing is wrong with the store",
        1: "something is, as standard error says, or it cannot be read",
    },
    "check-config": {
        0: "the daemon can use it",
        64: _USAGE,
        78: "it cannot, and the reason is on standard error",
        130: _INTERRUPTED,
        141: _UNREAD,
    },
    "export": {
        **USUAL,
        1: "it did not, or a part is damaged and left out, as standard error says",
    },
    "retention": {
        **USUAL,
        1: "it did not, or a part is damaged, as standard error says",
    },
    "completion": _OF_TEXTS,
    "version": _OF_TEXTS,
}


def statuses(command: str) -> dict[int, str]:
    """Return the exit statuses of a command and what they mean; those of most for ""."""
    return _OWN.get(command, USUAL)
