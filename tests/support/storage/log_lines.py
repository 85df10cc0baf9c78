"""The log of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twisted.logger import LogEvent, LogLevel, formatEvent, globalLogPublisher


@contextmanager
def logged_warnings(least: Any = LogLevel.warn) -> Iterator[list[str]]:
    """Collect log lines, of warnings and errors or from another level on."""
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_level"] >= least:
            lines.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)
    try:
        yield lines
    finally:
        globalLogPublisher.removeObserver(observe)
