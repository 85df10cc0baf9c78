"""File systems of a test's own, in a mount namespace that ends with the test."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import define, field

VOLATILE_DISK = Path(__file__).with_name("volatile_disk.py")
_HOLD = "echo; exec cat"
"""What keeps a namespace: it ends once nobody can write to it any more."""
_CLONE_NEWNS: Final = 0x20000
_ENTER: Final = """
import ctypes, os
namespace = os.open({!r}, os.O_RDONLY)
if ctypes.CDLL(None, use_errno=True).setns(namespace, {}):
    raise OSError(ctypes.get_errno(), "setns")
os.close(namespace)
"""


def lack() -> str:
    """Return what there is not that file systems take, "" when all is there."""
    if os.geteuid() != 0:
        return "file systems are mounted by root alone"
    programs = [name for name in ("unshare", "nsenter", "mkfs.ext4") if not shutil.which(name)]
    if programs:
        return f"not installed: {', '.join(programs)}"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    tried = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip()


def lack_of_volatile() -> str:
    """Describe the same for a disk whose cache a power cut empties."""
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    try:
        import mfusepy  # noqa: F401, PLC0415 - it needs the library of FUSE
    except OSError as error:
        return str(error)
    return lack()


@define
class Mounts:
    """A mount namespace. `before` is Python by which a process that was forked enters it."""

    _holder: subprocess.Popen[bytes]

    @property
    def before(self) -> str:
        return _ENTER.format(f"/proc/{self._holder.pid}/ns/mnt", _CLONE_NEWNS)

    @property
    def entering(self) -> tuple[str, ...]:
        """Begin the command of a process that is started in it."""
        return "nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--"

    def seen(self, path: Path) -> Path:
        """Return the path by which those outside see what is at `path` within."""
        return Path(f"/proc/{self._holder.pid}/root") / path.relative_to("/")

    def run(self, *command: str | Path) -> None:
        done = subprocess.run(
            [*self.entering, *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def mount(self, what: Path | str, where: Path, *options: str) -> None:
        where.mkdir(parents=True, exist_ok=True)
        self.run("mount", *options, what, where)

    def unmount(self, where: Path) -> None:
        """Unmount at once, or, where a test has failed in the midst, once nobody uses it."""
        self.run("umount", "--lazy", where)

    def mount_ext4(self, where: Path, mib: int, *options: str) -> None:
        """Mount a new ext4 of so many MiB, all of them for anybody."""
        image = make_ext4(where.with_suffix(".img"), mib)
        self.mount(image, where, "-o", ",".join(("loop", *options)))

    def mount_tmpfs(self, where: Path, mib: int) -> None:
        self.mount("none", where, "-t", "tmpfs", "-o", f"size={mib}m,mode=700")


@contextmanager
def mounts() -> Iterator[Mounts]:
    """Create a mount namespace. Its processes must have ended when it is closed."""
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", _HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        yield Mounts(holder)


def make_ext4(image: Path, mib: int) -> Path:
    image.parent.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(mib << 20)
    at_once = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", at_once, image], check=True)
    return image


@define
class VolatileDisk:
    """An ext4 at `where`, on a disk whose power can be cut as often as one likes."""

    where: Path
    mounts: Mounts
    _cuts: int = field(default=0, init=False)

    @property
    def _device(self) -> Path:
        return self.where.with_suffix(".device")

    @contextmanager
    def mounted(self, mib: int) -> Iterator["VolatileDisk"]:
        image = make_ext4(self.where.with_suffix(".img"), mib)
        self._device.mkdir(parents=True)
        # It ends with its file system, or with us.
        with subprocess.Popen(
            [
                *self.mounts.entering,
                *("setpriv", "--pdeathsig", "KILL", sys.executable, VOLATILE_DISK),
                *(image, self._device),
            ]
        ) as served:
            disk = self.mounts.seen(self._device) / "disk"
            while not disk.exists():
                assert served.poll() is None
            self.mounts.mount(self._device / "disk", self.where, "-o", "loop")
            try:
                yield self
            finally:
                self.mounts.unmount(self.where)
                self.mounts.unmount(self._device)

    @contextmanager
    def after_a_cut(self, chance: float) -> Iterator[Path]:
        """Cut the power; return a path that shows the disk as it is afterwards.

        Of what was not flushed, each sector is there with that chance.
        """
        self._cuts += 1
        image = self.where.with_suffix(f".{self._cuts}.img")
        request = f"{image} {chance} {self._cuts}".encode()
        descriptor = os.open(self.mounts.seen(self._device) / "cut", os.O_WRONLY)
        os.write(descriptor, request)
        os.close(descriptor)
        again = self.where.with_suffix(f".{self._cuts}")
        self.mounts.mount(image, again, "-o", "loop")
        try:
            yield self.mounts.seen(again)
        finally:
            self.mounts.unmount(again)
            image.unlink()
