"""Messages on standard error, outside the log."""

import os
from collections.abc import Mapping
from typing import Final, TextIO

ERROR: Final = 3
WARNING: Final = 4
"""Priorities of syslog(3), which the journal reads."""


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether a stream goes to systemd's journal, by JOURNAL_STREAM (systemd.exec(5))."""
    named = environ.get("JOURNAL_STREAM", "")
    if not named:
        return False
    try:
        status = os.fstat(stream.fileno())
    except OSError:
        return False
    return named == f"{status.st_dev}:{status.st_ino}"


def reason_of(error: OSError) -> str:
    """Return the system's error message and the file name, without the error number."""
    reason = error.strerror or str(error)
    return reason if error.filename is None else f"{error.filename}: {reason}"


def complain(
    text: str, stream: TextIO, environ: Mapping[str, str], program: str = "medamad"
) -> None:
    """Print, outside the log, why a command failed."""
    _print(f"{program}: {text}", ERROR, stream, environ)


def warn(text: str, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Print, outside the log, what the user should know although the command succeeds."""
    _print(f"medamad: {text}", WARNING, stream, environ)


def _print(text: str, priority: int, stream: TextIO, environ: Mapping[str, str]) -> None:
    prefix = f"<{priority}>" if is_journal(stream, environ) else ""
    stream.write(f"{prefix}{text}\n")
