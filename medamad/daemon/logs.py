"""The log: lines on standard error, for a terminal or systemd's journal."""

import atexit
import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final, Protocol, TextIO

from attrs import define, field
from twisted.logger import (
    LogEvent,
    LogLevel,
    eventAsText,
    extractField,
    formatEvent,
    globalLogBeginner,
)
from twisted.python.failure import Failure

from medamad.config.schema import LogSection
from medamad.daemon.log_thread import LogThread
from medamad.daemon.messages import ERROR, WARNING, is_journal

_PRIORITIES: Final = {
    LogLevel.debug: 7,
    LogLevel.info: 6,
    LogLevel.warn: WARNING,
    LogLevel.error: ERROR,
    LogLevel.critical: 2,
}
"""The priorities of syslog(3), which the journal reads."""
_NAMES: Final = {7: "debug", 6: "info", WARNING: "warning", ERROR: "error", 2: "critical"}
_PRIORITIES_BY_NAME: Final = {name: priority for priority, name in _NAMES.items()}

_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
} | {code: f"\\u{code:04x}" for code in (0x2028, 0x2029)}
"""Characters that could move a terminal's cursor or start a line, and their replacements."""

_USUAL: Final = 6
_LEAST_OF_LIBRARIES: Final = WARNING


class LogSink(Protocol):
    """A sink of log lines."""

    def write(self, text: str, /) -> object:
        """Write the lines of an event."""


@define(eq=False)
class LogLines:
    """Writes events as lines: ours from the configured level, those of libraries from warnings.

    In text format, a traceback and whatever follows a line end in a field are indented below the
    first line, so that no field can forge a line. In JSON format, each event is one line.
    `style` may be replaced at any time.
    """

    _to: LogSink
    for_journal: bool
    style: LogSection = field(factory=LogSection)

    def __call__(self, event: LogEvent) -> None:
        """Write an event."""
        priority = _PRIORITIES.get(event.get("log_level", LogLevel.info), _USUAL)
        namespace = str(event.get("log_namespace", ""))
        is_ours = namespace.partition(".")[0] == "medamad"
        least = _PRIORITIES_BY_NAME[self.style.level]
        if priority > (least if is_ours else min(least, _LEAST_OF_LIBRARIES)):
            return
        lines = self._lines(event, priority, namespace)
        if lines:
            self._to.write(lines)

    def format_lost(self, count: int) -> str:
        """Return the lines that report events missing from the log, whatever the level."""
        event: LogEvent = {
            "log_format": "{count} events are missing here: they could not be written to the log",
            "log_level": LogLevel.error,
            "log_namespace": __name__,
            "log_time": time.time(),
            "count": count,
        }
        return self._lines(event, _PRIORITIES[LogLevel.error], __name__)

    def _lines(self, event: LogEvent, priority: int, namespace: str) -> str:
        prefix = f"<{priority}>" if self.for_journal else ""
        if self.style.format == "json":
            lines = _as_json(event, _NAMES[priority], namespace)
        else:
            text = eventAsText(event, includeTimestamp=not self.for_journal)
            lines = text.translate(_CONTROLS).rstrip("\n").replace("\n", f"\n{prefix}  ")
        return f"{prefix}{lines}\n" if lines else ""


def begin_log(stream: TextIO, environ: Mapping[str, str], style: LogSection) -> LogLines:
    """Start logging to the file of `stream`, until the interpreter exits."""
    thread = LogThread(stream.fileno(), stream.encoding)
    lines = LogLines(thread, is_journal(stream, environ), style)
    thread.start(lines.format_lost)
    atexit.register(thread.end)
    observer: Any = lines
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)
    return lines


def _as_json(event: LogEvent, level: str, namespace: str) -> str:
    """Return an event as a line of JSON with the fields of its message; "" if it is empty."""
    message = formatEvent(event)
    failure = event.get("log_failure")
    if not message and failure is None:
        return ""
    time = datetime.fromtimestamp(float(event.get("log_time", 0)), UTC)
    line: dict[str, object] = {
        "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level,
        "source": namespace,
        "message": message,
    }
    fields = dict(_fields(event))
    if fields:
        line["fields"] = fields
    if isinstance(failure, Failure):
        line["traceback"] = failure.getTraceback()
    return json.dumps(line)


def _fields(event: LogEvent) -> Iterator[tuple[str, object]]:
    for _, name, _, _ in Formatter().parse(str(event.get("log_format") or "")):
        if name:
            value = extractField(name, event)
            is_plain = value is None or isinstance(value, str | int | float)
            yield name.removesuffix("()"), value if is_plain else str(value)
