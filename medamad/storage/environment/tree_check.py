"""Reads every entry of a store through LMDB in a child process.

LMDB 0.9 has no checksums on its pages and trusts what they say: reading a damaged one may end the
process by SIGSEGV, SIGBUS or SIGABRT. So a child reads it before the daemon does.
"""

import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, Signals
from typing import Any, Final, Self
from zlib import crc32

import lmdb
from attrs import define

from medamad.storage.environment.files import check_length, open_lmdb
from medamad.storage.errors import Damaged, StoreError

_DAMAGED_STATUS: Final = 3
_PRIVATE: Final = "private"
"""The argument that says that no other process has the file open."""
_NICENESS: Final = 10
_TRANSACTION_S: Final = 0.5
"""How long a transaction may last: it keeps the daemon from using freed pages again."""
_BY_DAMAGE: Final = (SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE)
_LOOK_EVERY: Final = 256
"""After so many entries the child looks at the clock."""


@define(eq=False)
class TreeCheck:
    """A child process that reads a store."""

    _process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, path: Path, *, is_private: bool = False) -> Self:
        """Start reading the store's file at `path`, beside a daemon unless it is private."""
        arguments = [str(path), *([_PRIVATE] if is_private else [])]
        return cls(
            subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", __name__, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all is read, or for so long; return whether it is."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def damage(self) -> str:
        """Return what is damaged, "" for nothing. To be called when all is read.

        Raises StoreError when the child could not read for another reason.
        """
        output, errors = self._process.communicate()
        status = self._process.returncode
        if status == 0:
            return ""
        reason = (errors.strip().splitlines() or [f"exit status {status}"])[-1]
        if status == _DAMAGED_STATUS:
            return reason
        if -status not in _BY_DAMAGE:
            raise StoreError(f"the store could not be checked: {reason}")
        tree = (output.split() or ["its first pages"])[-1]
        return f"{tree}: to read it ends the process by {Signals(-status).name}"

    def stop(self) -> None:
        """Stop reading."""
        self._process.kill()
        self._process.communicate()


def damage_of(path: Path, *, is_private: bool = False) -> str:
    """Read all of a store's file in a child; return what is damaged, "" for nothing.

    Raises StoreError when it cannot be checked.
    """
    check = TreeCheck.start(path, is_private=is_private)
    try:
        check.wait()
        return check.damage()
    finally:
        check.stop()


def read_trees(env: lmdb.Environment, path: Path) -> None:
    """Read every entry of every tree, and print the name of each tree before it is read.

    Raises Damaged, or lmdb.Error, where an entry is missing or out of order.
    """
    check_length(env, path)
    with env.begin() as txn, txn.cursor() as cursor:
        names = [bytes(name) for name in cursor.iternext(values=False)]
    parent = os.getppid()
    for name in names:
        text = name.decode("ascii", "replace")
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        try:
            _read_tree(env, env.open_db(name, create=False), parent)
        except (Damaged, lmdb.Error) as error:
            raise Damaged(f"{text}: {error}") from error


def _read_tree(env: lmdb.Environment, database: Any, parent: int) -> None:
    last, count, transactions, is_read = b"", 0, set(), False
    while not is_read:
        with (
            env.begin(buffers=True) as txn,
            txn.cursor(db=database) as cursor,
            txn.cursor(db=database) as search,
        ):
            transactions.add(txn.id())
            expected = txn.stat(database)["entries"]
            found = cursor.set_range(last) if count else cursor.first()
            if found and count and bytes(cursor.key()) == last:
                found = cursor.next()
            until = time.monotonic() + _TRANSACTION_S
            while found:
                key = bytes(cursor.key())
                if count and key <= last:
                    raise Damaged("its keys are out of order")
                # From the root: a search for a key follows the keys of the branches.
                if not search.set_key(key):
                    raise Damaged("a key is not found by a search for it")
                # Touches every page of the value.
                crc32(cursor.value())
                last = key
                count += 1
                if count % _LOOK_EVERY == 0 and time.monotonic() > until:
                    break
                found = cursor.next()
            is_read = not found
        if os.getppid() != parent:
            sys.exit("the daemon has gone")
    if len(transactions) == 1 and count != expected:
        raise Damaged(f"{count} entries were read, and there should be {expected}")


def main(path: Path, *, is_private: bool) -> int:
    """Read a store; return the exit status, and write what is damaged to standard error."""
    # The units that are installed forbid both system calls, and the check works without them.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        os.nice(_NICENESS)
    try:
        env = open_lmdb(path, 0, readonly=True, is_private=is_private)
        read_trees(env, path)
        env.close()
    except (Damaged, StoreError, lmdb.Error) as error:
        sys.stderr.write(str(error).removeprefix(f"{path}: ") + "\n")
        return _DAMAGED_STATUS
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), is_private=_PRIVATE in sys.argv[2:]))
