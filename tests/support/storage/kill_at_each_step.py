"""Kills a piece of work at each of its steps, one after another, until it comes to its end.

    python kill_at_each_step.py backup DIRECTORY FILE
    python kill_at_each_step.py restore DIRECTORY FILE
    python kill_at_each_step.py compact DIRECTORY
    python kill_at_each_step.py migrate DIRECTORY

A step is whenever it tells how far it is. After each kill the store has to be whole.
Writes the steps at which the work was killed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

from medamad.storage.backup import BackupProgress, read_note, unpacked
from medamad.storage.compact import compact
from medamad.storage.environment import tree_check
from medamad.storage.environment.environment import FILE_NAME
from medamad.storage.migrations import migrate_store
from medamad.storage.offline import make_backup
from medamad.storage.restore import restore


def killed(*arguments: object, every: int = 1) -> set[str]:
    """Kill the work at each of its steps, or at some of each kind; return the kinds of steps."""
    done = subprocess.run(
        [sys.executable, __file__, str(every), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {step.rpartition(" ")[0] for step in done.stdout.splitlines()}


def is_killed(work: Callable[[BackupProgress], object], log: Path, every: int) -> bool:
    """Work until a step that `log` has not yet, some more if it has its kind; add them, and die."""
    child = os.fork()
    if child == 0:
        known = log.read_text().splitlines()
        last = len(known) + every

        def report(what: str, done: int, _total: int) -> None:
            step = f"{what} {done}"
            if step not in known:
                is_first = not any(before.startswith(f"{what} ") for before in known)
                known.append(step)
                log.write_text("\n".join(known))
                if is_first or len(known) == last:
                    os.kill(os.getpid(), signal.SIGKILL)

        work(report)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)


def is_whole(directory: Path) -> bool:
    """Read a store as its check does, but in a process that is forked: there are many kills."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(tree_check.main(directory / FILE_NAME, is_private=False))
    _, status = os.waitpid(child, 0)
    return status == 0


def main() -> None:
    every, what, directory = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    file = Path(*sys.argv[4:])

    def work(progress: BackupProgress) -> None:
        if what == "backup":
            make_backup(directory, file, progress, 0)
        elif what == "compact":
            compact(directory, progress)
        elif what == "migrate":
            migrate_store(directory, 256 << 20, progress)
        else:
            restore(file, directory, progress)

    with NamedTemporaryFile() as log:
        while is_killed(work, Path(log.name), every):
            assert is_whole(directory)
            if what == "backup" and file.exists():
                with file.open("rb") as backup:
                    for _ in unpacked(backup, read_note(backup)):
                        pass
        sys.stdout.write(Path(log.name).read_text())


if __name__ == "__main__":
    main()
