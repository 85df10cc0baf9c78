import os
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


def test_memory_that_lies_free_between_what_is_in_use_is_given_back() -> None:
    script = """
import os
from measuring import anonymous_bytes
from medamad import interpreter
interpreter.begin()
blocks = [b"." * 100_000 for _ in range(1_000)]
kept = blocks[::20]
before = anonymous_bytes(os.getpid())
del blocks
freed = anonymous_bytes(os.getpid())
interpreter.return_free_memory()
print(before, freed, anonymous_bytes(os.getpid()))
"""
    told = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    before, freed, after = map(int, told.split())
    # The C library by itself keeps what does not lie at the end.
    assert before - freed < 10_000_000
    assert before - after > 80_000_000
