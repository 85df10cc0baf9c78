"""What the daemon loads for statistics once it has started."""

import subprocess
import sys


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
