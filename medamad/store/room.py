"""Whether there is room for further hits: on the disk, and in the map of the store."""

import os
from typing import Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.model.errors import Unavailable
from medamad.store.environment import Environment, Txn
from medamad.store.lagging import Lagging

_FULL_MAP: Final = 0.8
"""The share of the map beyond which no hits are taken: deleting needs room as well."""
_RETRY_AFTER_S: Final = 30
_MIB: Final = 1 << 20
_ROOM_WITHIN: Final = 4 * _MIB
"""Freed room in the file that is enough to take hits, though the disk is nearly full."""


@frozen
class Usage:
    """Bytes of the store in use, and the bytes that it can grow to.

    In use are also freed pages that a reader keeps from being used again.
    """

    used: int
    total: int


@define(eq=False)
class Room:
    """Used by the writer thread. It is logged when refusing begins and when it ends."""

    _environment: Environment
    min_free_disk: int
    lagging: Lagging = field()
    _refuses: bool = False
    _log = Logger()

    @lagging.default
    def _none_yet(self) -> Lagging:
        return Lagging(self._environment)

    def usage(self, txn: Txn) -> Usage:
        """Give how much of the store is in use."""
        map_size = self._environment.lmdb.info()["map_size"]
        used = self._environment.used_bytes(txn)
        return Usage(used + self.lagging.kept_bytes(used, map_size), map_size)

    def free_disk(self) -> int:
        """Give the bytes of the disk that are free. Raises OSError when the folder is gone."""
        disk = os.statvfs(self._environment.path.parent)
        return disk.f_bavail * disk.f_frsize

    def check(self, txn: Txn) -> None:
        """Raise Unavailable when no hits are to be taken, OSError when the folder is gone."""
        lack = self.lack(txn)
        if lack and not self._refuses:
            self._log.warn("no hits are taken, reading goes on: {lack}", lack=lack)
        elif self._refuses and not lack:
            self._log.info("hits are taken again")
        self._refuses = bool(lack)
        if lack:
            raise Unavailable(f"no hits are taken: {lack}", retry_after=_RETRY_AFTER_S)

    def is_running_out(self, txn: Txn, process: int) -> bool:
        """Tell whether a process keeps as much from being used again as is left for hits.

        Not where there would be nothing left without it either, or an older reader keeps it too.
        Raises OSError when the folder is gone.
        """
        map_size = self._environment.lmdb.info()["map_size"]
        used = self._environment.used_bytes(txn)
        kept = self.lagging.kept_bytes(used, map_size, process)
        within = self._environment.file_bytes() - used - kept - _ROOM_WITHIN
        on_disk = max(self.free_disk() - self.min_free_disk, 0) + max(within, 0)
        left = min(on_disk, _FULL_MAP * map_size - used - kept)
        return -kept < left <= kept

    def lack(self, txn: Txn) -> str:
        """Say what there is too little of for hits to be taken, "" when there is enough."""
        free = self.free_disk()
        usage = self.usage(txn)
        within = self._environment.file_bytes() - usage.used
        if free < self.min_free_disk and within < _ROOM_WITHIN:
            return (
                f"{free // _MIB} MiB of the disk are free, "
                f"store.min_free_disk asks for {self.min_free_disk // _MIB} MiB"
            )
        if usage.used > _FULL_MAP * usage.total:
            return (
                f"{usage.used // _MIB} MiB of the {usage.total // _MIB} MiB "
                "that store.map_size allows are in use"
            )
        return ""
