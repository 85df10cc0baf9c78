"""A daemon whose clock can be set: by what is appended to the file named first, in seconds.

Called with that file, and then as `medamad` is. Each line sets the clock by so many seconds, ahead
or back; On SIGUSR1 they are read. Every program that reads the time of day gets that time.
"""

import signal
import sys
import time
from pathlib import Path

_true_time = time.time
_file = Path(sys.argv[1])
_ahead_s = 0.0


def _set(*_: object) -> None:
    global _ahead_s  # noqa: PLW0603 - there is one clock
    _ahead_s = sum(map(float, _file.read_text("ascii").split()))


if __name__ == "__main__":
    time.time = lambda: _true_time() + _ahead_s
    signal.signal(signal.SIGUSR1, _set)
    from medamad.cli import main  # after the clock, which Twisted takes for its own

    sys.exit(main(sys.argv[2:]))
