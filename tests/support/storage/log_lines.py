"""What is told to the operator while a test runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twisted.logger import LogEvent, LogLevel, formatEvent, globalLogPublisher


@contextmanager
def told_in_log(least: Any = LogLevel.warn) -> Iterator[list[str]]:
    """Gather warnings and errors, or what is told from another level on."""
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_level"] >= least:
            lines.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)
    try:
        yield lines
    finally:
        globalLogPublisher.removeObserver(observe)
