"""How many files the process may have open, and how many connections that leaves room for."""

import resource
import sys
from typing import Final

from attrs import evolve
from twisted.logger import Logger

from medamad.web.settings import WebSettings

BOUNDLESS: Final = 1 << 20
"""How many are taken where the system tells of no bound: Linux then has this one (fs.nr_open)."""
OWN: Final = 100
"""How many are kept from connections that are counted: the daemon's own, those of the operator's
commands, and those of connections that go in the turn in which others come. Where few may be open,
half of them."""
_log: Final = Logger()


def allow() -> None:
    """Allow as many as the system lets this user have; shells allow 1,024 at first."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = BOUNDLESS if most == resource.RLIM_INFINITY else most
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def allowed() -> int:
    """Give how many there may be."""
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if now == resource.RLIM_INFINITY else now


def leave_room(settings: WebSettings, files: int) -> WebSettings:
    """Give settings with no more connections than so many open files have room for.

    Beyond, nobody could connect, however many only wait. The log tells where there are fewer.
    """
    room = files - min(OWN, files // 2)
    if settings.max_connections <= room:
        return settings
    _log.warn(
        "limits.max_connections: {room} in place of {configured}, as the system lets the daemon"
        " have {files} files open",
        room=room,
        configured=settings.max_connections,
        files=files,
    )
    return evolve(settings, max_connections=room)
