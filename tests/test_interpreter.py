import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("soft", "hard", "then"), [(256, 1_024, 1_024), (1_024, 1_024, 1_024), (64, 300, 300)]
)
def test_a_daemon_may_have_as_many_files_open_as_the_system_lets_it(
    soft: int, hard: int, then: int
) -> None:
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from medamad import interpreter
interpreter.begin()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    told = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert told.split() == [str(then), str(hard)]
