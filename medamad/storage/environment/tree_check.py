"""Reads every entry of a store through LMDB in a child process, and verifies checksums of values.

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
from attrs import define, frozen

from medamad.storage.environment.files import check_length, open_lmdb
from medamad.storage.environment.owner import as_invoker, drop_to
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
_MAX_REPORTED: Final = 200
"""The most damaged values that the child prints, since nobody reads the pipe until it ends."""
_CRC_BYTES: Final = 4
_CRC_FIRST: Final = frozenset(
    {"segments", "counters", "headers", "websites", "import_batches", "robots"}
)
"""The databases whose values begin with a checksum over the key and the rest."""
_CRC_LAST: Final = frozenset({"wal", "corrections"})
"""Those whose values end with it."""


@frozen
class DamagedValue:
    """A value whose checksum does not match."""

    database: str
    key: bytes

    @property
    def website(self) -> int:
        """The number of the website that it belongs to."""
        return int.from_bytes(self.key[:4], "big")

    @property
    def segment(self) -> int:
        """The number of the segment that it is a column or counter of; 0 for any other value."""
        is_of_segment = self.database in ("segments", "counters")
        return int.from_bytes(self.key[12:16], "big") if is_of_segment else 0

    @property
    def place(self) -> str:
        """What is damaged."""
        reason = "its checksum does not match"
        if self.segment:
            what = "column" if self.database == "segments" else "counter"
            place = f"website {self.website}, segment {self.segment}, {what} {self.key[-1]}"
            return f"{place}: {reason}"
        return f"{self.database} {self.key.hex()}: {reason}"


def is_sound(database: str, key: bytes, value: memoryview) -> bool:
    """Return whether the checksum of a value matches; True for a value that has none."""
    if database in _CRC_FIRST:
        if database == "headers" and not any(key[4:]):  # a watermark, which is read at each start
            return True
        crc, rest = value[:_CRC_BYTES], value[_CRC_BYTES:]
    elif database in _CRC_LAST:
        crc, rest = value[-_CRC_BYTES:], value[:-_CRC_BYTES]
    else:
        crc32(value)  # touches every page of it
        return True
    return crc32(rest, crc32(key)).to_bytes(_CRC_BYTES, "little") == crc


@define(eq=False)
class TreeCheck:
    """A child process that reads a store."""

    _process: "subprocess.Popen[str]"
    _written: tuple[str, str] | None = None

    @classmethod
    def start(cls, path: Path, *, is_private: bool = False) -> Self:
        """Start reading the store's file at `path`, beside a daemon unless it is private."""
        rights = [str(os.geteuid()), str(os.getegid())]
        arguments = [str(path), *rights, *([_PRIVATE] if is_private else [])]
        # Root's installation may be out of the owner's reach: the child gives root's rights up.
        with as_invoker():
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", __name__, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        return cls(process)

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
        output, errors = self._output()
        status = self._process.returncode
        if status == 0:
            return ""
        reason = (errors.strip().splitlines() or [f"exit status {status}"])[-1]
        if status == _DAMAGED_STATUS:
            return reason
        if -status not in _BY_DAMAGE:
            raise StoreError(f"the store could not be checked: {reason}")
        trees = [line for line in output.splitlines() if " " not in line]
        tree = (trees or ["its first pages"])[-1]
        return f"{tree}: to read it ends the process by {Signals(-status).name}"

    def damaged_values(self) -> list[DamagedValue]:
        """Return the values whose checksum does not match, at most one for each segment.

        To be called when all is read.
        """
        lines = [line.split() for line in self._output()[0].splitlines()]
        return [DamagedValue(line[0], bytes.fromhex(line[1])) for line in lines if len(line) > 1]

    def _output(self) -> tuple[str, str]:
        if self._written is None:
            self._written = self._process.communicate()
        return self._written

    def stop(self) -> None:
        """Stop reading."""
        self._process.kill()
        self._output()


def read_store(path: Path, *, is_private: bool = False) -> TreeCheck:
    """Read all of a store's file in a child; return the check, which has finished."""
    check = TreeCheck.start(path, is_private=is_private)
    try:
        check.wait()
    finally:
        check.stop()
    return check


def damage_of(path: Path, *, is_private: bool = False) -> str:
    """Read all of a store's file in a child; return what is wrong with its trees, "" for nothing.

    Raises StoreError when it cannot be checked.
    """
    return read_store(path, is_private=is_private).damage()


def read_trees(env: lmdb.Environment, path: Path) -> None:
    """Read every entry of every tree, and print the name of each tree before it is read.

    Print the name and the key in hexadecimal of values whose checksum does not match.

    Raises Damaged, or lmdb.Error, where an entry is missing or out of order.
    """
    check_length(env, path)
    with env.begin() as txn, txn.cursor() as cursor:
        names = [bytes(name) for name in cursor.iternext(values=False)]
    parent, reported = os.getppid(), set[bytes]()
    for name in names:
        text = name.decode("ascii", "replace")
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        try:
            _read_tree(env, env.open_db(name, create=False), text, parent, reported)
        except (Damaged, lmdb.Error) as error:
            raise Damaged(f"{text}: {error}") from error


def _read_tree(
    env: lmdb.Environment, database: Any, name: str, parent: int, reported: set[bytes]
) -> None:
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
                if not is_sound(name, key, cursor.value()):
                    _report(name, key, reported)
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


def _report(name: str, key: bytes, reported: set[bytes]) -> None:
    """Print a damaged value, unless one of its segment was printed already."""
    subject = key[:-1] if name in ("segments", "counters") else name.encode() + key
    if subject not in reported and len(reported) < _MAX_REPORTED:
        reported.add(subject)
        sys.stdout.write(f"{name} {key.hex()}\n")


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
    drop_to(int(sys.argv[2]), int(sys.argv[3]))
    sys.exit(main(Path(sys.argv[1]), is_private=_PRIVATE in sys.argv[4:]))
