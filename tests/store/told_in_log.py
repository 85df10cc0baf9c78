"""What is told to the operator while a test runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from twisted.logger import LogEvent, LogLevel, formatEvent, globalLogPublisher


@contextmanager
def told_in_log() -> Iterator[list[str]]:
    """Gather warnings and errors."""
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_level"] in (LogLevel.warn, LogLevel.error, LogLevel.critical):
            lines.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)
    try:
        yield lines
    finally:
        globalLogPublisher.removeObserver(observe)
