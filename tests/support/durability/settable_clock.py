"""A clock that can be set, in a daemon that was forked."""

import gc
import signal
import time
from pathlib import Path


def use(file: Path) -> None:
    """Make the process read the time of day from a clock that is set by what a file says.

    Each of its lines sets the clock by so many seconds, ahead or back; they are read now and on
    SIGUSR1.
    Whoever has imported the function that reads the clock gets that time, too.
    """
    true_time = time.time
    ahead_s = 0.0

    def read(*_: object) -> None:
        nonlocal ahead_s
        ahead_s = sum(map(float, file.read_text("ascii").split()))

    def moved() -> float:
        return true_time() + ahead_s

    read()
    signal.signal(signal.SIGUSR1, read)
    # What is frozen is not found.
    gc.unfreeze()
    for names in gc.get_referrers(true_time):
        if isinstance(names, dict):
            names.update({name: moved for name, known in names.items() if known is true_time})
