"""The progress of commands on a terminal."""

from io import StringIO

import pytest

from medamad.cli.support import ProgressLine, ProgressPhases


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """Return what stood on each line, one after the other."""
        shown = self.getvalue().replace("\x1b[K", "")
        return [line for each in shown.split("\n") for line in each.split("\r") if line]


@pytest.mark.parametrize(
    ("done", "shown"),
    [
        ((35_001, 60_000), "rows: 35,001 of 60,000 (58 %)"),
        ((35_001,), "rows: 35,001"),
        ((0, 0), "rows: 0"),
    ],
)
def test_a_known_total_is_shown(done: tuple[int, ...], shown: str) -> None:
    terminal = Terminal()
    progress = ProgressLine("rows", terminal)
    progress.update(*done)
    progress.end()
    assert terminal.lines() == [shown, shown]


def test_progress_is_shown_periodically_and_at_the_end() -> None:
    terminal = Terminal()
    moments = iter([0.0, 0.1, 0.3, 0.4])
    progress = ProgressLine("rows", terminal, lambda: next(moments))
    for done in range(4):
        progress.update(done)
    progress.end()
    assert terminal.lines() == ["rows: 0", "rows: 2", "rows: 3"]


def test_each_step_has_its_own_line() -> None:
    terminal = Terminal()
    phases = ProgressPhases(terminal)
    phases.update("copied", 1, 2)
    phases.update("checked", 2, 2)
    phases.end()
    assert terminal.getvalue().count("\n") == 2
    assert dict.fromkeys(terminal.lines()) == dict.fromkeys(
        ["copied: 1 of 2 (50 %)", "checked: 2 of 2 (100 %)"]
    )


def test_progress_is_not_written_to_files() -> None:
    file = StringIO()
    progress = ProgressLine("rows", file)
    progress.update(1, 2)
    progress.end()
    assert not file.getvalue()
