"""What the log looks like: lines on standard error, for a terminal or for systemd's journal."""

from collections.abc import Mapping
from typing import Any, Final, TextIO

from twisted.logger import LogEvent, LogLevel, eventAsText, globalLogBeginner

_PRIORITIES: Final = {
    LogLevel.debug: 7,
    LogLevel.info: 6,
    LogLevel.warn: 4,
    LogLevel.error: 3,
    LogLevel.critical: 2,
}
"""Of syslog(3), by which the journal knows a line's importance."""

_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
} | {code: f"\\u{code:04x}" for code in (0x2028, 0x2029)}
"""What could move a terminal's cursor or begin a line, and what is written in its place."""

_LEAST_OF_OURS: Final = 6
_LEAST_OF_LIBRARIES: Final = 4


class LogLines:
    """Writes events as lines: our own from info on, those of libraries from warn on.

    A traceback becomes further lines below its event's, indented, as does whatever follows a line
    end in a field: no text can pass for a line of its own.
    """

    def __init__(self, stream: TextIO, *, for_journal: bool) -> None:
        self._stream = stream
        self._for_journal = for_journal

    def __call__(self, event: LogEvent) -> None:
        """Write an event."""
        priority = _PRIORITIES.get(event.get("log_level", LogLevel.info), _LEAST_OF_OURS)
        namespace = str(event.get("log_namespace", ""))
        is_ours = namespace.partition(".")[0] == "medamad"
        if priority > (_LEAST_OF_OURS if is_ours else _LEAST_OF_LIBRARIES):
            return
        text = eventAsText(event, includeTimestamp=not self._for_journal)
        prefix = f"<{priority}>" if self._for_journal else ""
        lines = text.translate(_CONTROLS).rstrip("\n").replace("\n", f"\n{prefix}  ")
        if lines:
            self._stream.write(f"{prefix}{lines}\n")
            self._stream.flush()


def begin_log(stream: TextIO, environ: Mapping[str, str]) -> None:
    """Begin to log to `stream`."""
    lines: Any = LogLines(stream, for_journal="JOURNAL_STREAM" in environ)
    globalLogBeginner.beginLoggingTo([lines], redirectStandardIO=False)
