from io import StringIO

import pytest
from twisted.logger import Logger, LogLevel
from twisted.python.failure import Failure

from medamad.log_lines import LogLines


def written(level: LogLevel, namespace: str, *, for_journal: bool = True) -> str:
    stream = StringIO()
    observer = LogLines(stream, for_journal=for_journal)
    Logger(namespace, observer=observer).emit(level, "what {happened}", happened="was said")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("level", "namespace", "wanted"),
    [
        (LogLevel.info, "medamad.service", "<6>[medamad.service#info] what was said\n"),
        (LogLevel.warn, "medamad.service", "<4>[medamad.service#warn] what was said\n"),
        (LogLevel.critical, "medamad", "<2>[medamad#critical] what was said\n"),
        (LogLevel.debug, "medamad.service", ""),
        (LogLevel.info, "twisted.web", ""),
        (LogLevel.info, "medamadder", ""),
        (LogLevel.error, "twisted.web", "<3>[twisted.web#error] what was said\n"),
    ],
)
def test_lines_for_the_journal(level: LogLevel, namespace: str, wanted: str) -> None:
    assert written(level, namespace) == wanted


def test_lines_for_a_terminal_begin_with_the_time() -> None:
    line = written(LogLevel.info, "medamad.service", for_journal=False)
    assert line[:2] == "20"
    assert line.endswith(" [medamad.service#info] what was said\n")


def test_each_line_of_a_traceback_has_its_importance() -> None:
    stream = StringIO()
    logger = Logger("medamad", observer=LogLines(stream, for_journal=True))
    logger.failure("it broke", Failure(ValueError("so it did")))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "<2>[medamad#critical] it broke"
    assert lines[-1].endswith("builtins.ValueError: so it did")
    assert all(line.startswith("<2>") for line in lines)


@pytest.mark.parametrize("for_journal", [False, True])
def test_no_text_passes_for_a_line_of_its_own(for_journal: bool) -> None:
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
