import os
import subprocess
import sys


def test_free_memory_is_returned_to_the_system() -> None:
    script = """
import os
from support.abuse.process_usage import anonymous_bytes
from medamad.daemon import runtime as interpreter
interpreter.begin()
blocks = [b"." * 100_000 for _ in range(1_000)]
kept = blocks[::20]
before = anonymous_bytes(os.getpid())
del blocks
freed = anonymous_bytes(os.getpid())
interpreter.return_free_memory()
print(before, freed, anonymous_bytes(os.getpid()))
"""
    output = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    before, freed, after = map(int, output.split())
    # The C library by itself keeps what does not lie at the end.
    assert before - freed < 10_000_000
    assert before - after > 80_000_000
