"""What the daemon loads for statistics once it has started."""

import subprocess
import sys
from types import SimpleNamespace
from typing import cast

import pytest
from twisted.logger import capturedLogs, formatEvent

from medamad.query.embedded import kernel
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.embedded.loops import Loops
from medamad.query.embedded.numpy_loops import NumpyLoops
from medamad.query.request import Cancellation
from medamad.storage.store import Store

ENGINE = EmbeddedEngine(cast("Store", SimpleNamespace(websites=SimpleNamespace(all=list))))
"""The engine of a store without websites."""


def test_what_answers_statistics_is_loaded_before_the_first_request() -> None:
    program = """
import sys
from types import SimpleNamespace
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.request import Cancellation

before = "medamad.query.embedded.reader" in sys.modules
EmbeddedEngine(SimpleNamespace(websites=SimpleNamespace(all=list))).load(Cancellation())
print(before, "medamad.query.embedded.reader" in sys.modules)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.stdout.split(), ended.stderr) == (["False", "True"], "")


@pytest.mark.parametrize(
    ("loops", "lines"),
    [
        (kernel.LOOPS, []),
        (NumpyLoops(), ["statistics take longer: there are no compiled loops for this machine"]),
    ],
    ids=["compiled", "numpy"],
)
def test_the_log_says_that_there_are_no_compiled_loops(
    loops: Loops, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "LOOPS", loops)
    with capturedLogs() as logged:
        ENGINE.load(Cancellation())
    assert [formatEvent(event) for event in logged] == lines
