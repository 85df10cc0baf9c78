import json
import os
from io import StringIO
from pathlib import Path

import pytest
from twisted.logger import Logger, LogLevel
from twisted.python.failure import Failure

from medamad.config.schema import LogSection
from medamad.daemon.logs import LogLines
from medamad.daemon.messages import is_journal

PLAIN = LogSection()


def written(
    level: LogLevel, namespace: str, *, for_journal: bool = True, style: LogSection = PLAIN
) -> str:
    stream = StringIO()
    observer = LogLines(stream, for_journal=for_journal, style=style)
    Logger(namespace, observer=observer).emit(level, "what {happened}", happened="happened")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("level", "namespace", "wanted"),
    [
        (LogLevel.info, "medamad.service", "<6>[medamad.service#info] what happened\n"),
        (LogLevel.warn, "medamad.service", "<4>[medamad.service#warn] what happened\n"),
        (LogLevel.critical, "medamad", "<2>[medamad#critical] what happened\n"),
        (LogLevel.debug, "medamad.service", ""),
        (LogLevel.info, "twisted.web", ""),
        (LogLevel.info, "medamadder", ""),
        (LogLevel.error, "twisted.web", "<3>[twisted.web#error] what happened\n"),
    ],
)
def test_lines_for_the_journal(level: LogLevel, namespace: str, wanted: str) -> None:
    assert written(level, namespace) == wanted


def test_lines_for_a_terminal_begin_with_the_time() -> None:
    line = written(LogLevel.info, "medamad.service", for_journal=False)
    assert line[:2] == "20"
    assert line.endswith(" [medamad.service#info] what happened\n")


def test_each_line_of_a_traceback_has_a_priority() -> None:
    stream = StringIO()
    logger = Logger("medamad", observer=LogLines(stream, for_journal=True))
    logger.failure("it broke", Failure(ValueError("so it did")))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "<2>[medamad#critical] it broke"
    assert lines[-1].endswith("builtins.ValueError: so it did")
    assert all(line.startswith("<2>") for line in lines)


@pytest.mark.parametrize("for_journal", [False, True])
def test_line_breaks_are_escaped(for_journal: bool) -> None:
    stream = StringIO()
    logger = Logger("medamad", observer=LogLines(stream, for_journal=for_journal))
    forged = "x\n<2>[medamad#critical] forged\r\x1b[2J\x85y\u2028z\x7f"
    logger.info("a name: {name}", name=forged)
    logger.failure("it broke", Failure(ValueError(forged)))
    prefixes = ("<6>[medamad#info]", "<6>  ", "<2>[medamad#critical] it", "<2>  ")
    lines = stream.getvalue().splitlines()
    assert len(lines) == stream.getvalue().count("\n")
    for line in lines:
        assert line.isprintable() or line.replace("\t", "").isprintable()
        assert line.startswith(prefixes) if for_journal else line[:2] in ("20", "  ")
    assert lines[1].endswith(r"  <2>[medamad#critical] forged\x0d\x1b[2J\x85y\u2028z\x7f")


@pytest.mark.parametrize(
    ("least", "namespace", "wanted"),
    [
        ("debug", "medamad", ["debug", "info", "warn", "error", "critical"]),
        ("info", "medamad", ["info", "warn", "error", "critical"]),
        ("warning", "medamad", ["warn", "error", "critical"]),
        ("error", "medamad", ["error", "critical"]),
        ("debug", "twisted", ["warn", "error", "critical"]),
        ("warning", "twisted", ["warn", "error", "critical"]),
        ("error", "twisted", ["error", "critical"]),
    ],
)
def test_a_level_filters_what_is_below(least: str, namespace: str, wanted: list[str]) -> None:
    style = LogSection(level=least)
    levels = [level for level in LogLevel.iterconstants() if written(level, namespace, style=style)]
    assert [level.name for level in levels] == wanted


@pytest.mark.parametrize("for_journal", [False, True])
def test_as_json_each_event_is_one_line(for_journal: bool) -> None:
    stream = StringIO()
    lines = LogLines(stream, for_journal=for_journal, style=LogSection(format="json"))
    logger = Logger("medamad.web", observer=lines)
    logger.emit(
        LogLevel.warn,
        "{count} of {name}: {path}, {error}, {call()}",
        count=3,
        name="x\n<2>y",
        path=Path("/p"),
        error=ValueError("e"),
        call=lambda: True,
        unlogged="is left out",
    )
    logger.failure("it broke", Failure(ValueError("so it did")))
    logger.info("")
    first, second = stream.getvalue().splitlines()
    if for_journal:
        assert (first[:3], second[:3]) == ("<4>", "<2>")
        first, second = first[3:], second[3:]
    logged = json.loads(first)
    assert logged.pop("time").endswith("Z")
    assert logged == {
        "level": "warning",
        "source": "medamad.web",
        "message": "3 of x\n<2>y: /p, e, True",
        "fields": {"count": 3, "name": "x\n<2>y", "path": "/p", "error": "e", "call": True},
    }
    assert first.isprintable()
    broke = json.loads(second)
    assert (broke["level"], broke["message"]) == ("critical", "it broke")
    assert broke["traceback"].rstrip().endswith("builtins.ValueError: so it did")
    assert "fields" not in broke


@pytest.mark.parametrize("for_journal", [False, True])
def test_lost_lines_are_reported_in_each_style(for_journal: bool) -> None:
    lost = "7 events are missing here: they could not be written to the log"
    lines = LogLines(StringIO(), for_journal, LogSection(level="error"))
    line = lines.format_lost(7)
    assert line.startswith("<3>[" if for_journal else "20")
    assert line.endswith(f"[medamad.daemon.logs#error] {lost}\n")
    lines.style = LogSection(format="json")
    logged = json.loads(lines.format_lost(7).removeprefix("<3>"))
    assert (logged["level"], logged["message"], logged["fields"]) == ("error", lost, {"count": 7})


def test_the_style_can_be_changed() -> None:
    stream = StringIO()
    lines = LogLines(stream, for_journal=True)
    logger = Logger("medamad", observer=lines)
    logger.info("one")
    lines.style = LogSection(format="json", level="error")
    logger.info("two")
    logger.error("three")
    first, second = stream.getvalue().splitlines()
    assert first == "<6>[medamad#info] one"
    assert json.loads(second.removeprefix("<3>"))["message"] == "three"


def test_the_journal_is_recognised_by_its_stream(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w") as journal, (tmp_path / "file").open("w") as file:
        status = os.fstat(journal.fileno())
        environ = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert is_journal(journal, environ)
        assert not is_journal(file, environ), "standard error was led elsewhere"
        assert not is_journal(journal, {})
        assert not is_journal(journal, {"JOURNAL_STREAM": "1:2"})
    assert not is_journal(StringIO(), environ)
