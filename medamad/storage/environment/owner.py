"""Whose rights a command has that root runs: those of the data directory's owner.

What the service's user puts there, such as a link in place of a file, can then lead a command only
where that user may go. The kernel checks it at every call, so no call has to be careful. Only the
files that root has named elsewhere, the configuration among them, are opened with root's rights.
"""

import os
import pwd
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from medamad.storage.errors import StoreError


@contextmanager
def as_owner(folder: Path) -> Iterator[Path]:
    """Drop root's rights for those of a folder's owner; return the path to reach it by.

    That is "." if the owner may not pass through the folders above, as in those of systemd's
    dynamic users: the folder is then the working directory. Nothing changes for other users, for a
    folder of root's, and for one that does not exist.
    """
    if os.geteuid() != 0 or not folder.is_dir():
        yield folder
        return
    with ExitStack() as undone:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        undone.callback(os.close, opened)
        owner = os.fstat(opened)
        if owner.st_uid == 0:
            yield folder
            return
        undone.callback(os.setgroups, os.getgroups())
        os.setgroups([])
        undone.enter_context(_effective(owner.st_uid, owner.st_gid))
        if not _leads_to(folder, owner):
            before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            undone.callback(os.close, before)
            undone.callback(os.fchdir, before)
            os.fchdir(opened)
            folder = Path()
        yield folder


@contextmanager
def as_invoker(file: Path | None = None, owned: Path | None = None) -> Iterator[None]:
    """Have the rights of the user who runs the command, for what this user has named.

    Not for a `file` in the folder `owned` or below it, by its name or by where its name leads.
    """
    is_inside = file is not None and owned is not None and is_of_owner(file, owned)
    if os.geteuid() == os.getuid() or is_inside:
        yield
        return
    with _effective(os.getuid(), os.getgid()):
        yield


def is_of_owner(file: Path, owned: Path) -> bool:
    """Return whether a file is to be opened with the rights that `as_owner` took for a folder."""
    return os.geteuid() != os.getuid() and _is_below(file, owned)


def drop_to(uid: int, gid: int) -> None:
    """Give up root's rights for good, if this process has them."""
    if os.geteuid() == 0 != uid:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def check_owner(folder: Path) -> None:
    """Raise StoreError if root is to run the daemon in the folder of another user."""
    if os.geteuid() != 0 or not folder.is_dir() or (uid := folder.stat().st_uid) == 0:
        return
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"#{uid}"
    raise StoreError(
        f"{folder}: it belongs to another user, and the daemon does not run there as root;"
        f" run it as that user (sudo -u {shlex.quote(name)} medamad run ...)"
    )


def _is_below(file: Path, folder: Path) -> bool:
    named = Path(os.path.abspath(file)).is_relative_to(os.path.abspath(folder))  # noqa: PTH100 - links stay
    return named or Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


@contextmanager
def _effective(uid: int, gid: int) -> Iterator[None]:
    """Change the effective user and group, those of all threads."""
    before = os.geteuid(), os.getegid()
    _switch(uid, gid)
    try:
        yield
    finally:
        _switch(*before)


def _switch(uid: int, gid: int) -> None:
    # Only root may change the group.
    os.seteuid(os.getuid())
    os.setegid(gid)
    os.seteuid(uid)


def _leads_to(folder: Path, there: os.stat_result) -> bool:
    """Return whether a path leads to a folder for this user."""
    try:
        return os.path.samestat(folder.stat(), there)
    except OSError:
        return False
