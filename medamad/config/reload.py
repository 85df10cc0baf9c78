"""Reload: read the whole configuration again and apply what may change while the daemon runs."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import Factory, define, field
from twisted.internet.defer import CancelledError, DeferredLock
from twisted.logger import Logger

from medamad.config.lists import load_lists
from medamad.config.package_settings import Replaceable, needing_restart
from medamad.config.schema import Config, ConfigError, load
from medamad.config.truncation import Said
from medamad.daemon import runtime
from medamad.daemon.backup_schedule import Schedule
from medamad.daemon.listen import Place, configured_places, renew
from medamad.daemon.logs import LogLines
from medamad.daemon.systemd import READY, RELOADING, Supervisor
from medamad.daemon.thread_pool import Pool
from medamad.domain.errors import Unavailable
from medamad.web.server.site import Site


@define(eq=False, kw_only=True)
class Reloading:
    """Has a daemon go by what its configuration says now, from its start to its stop."""

    begun_by: Config
    """What the daemon was started by."""
    said: Said
    read_config: Callable[[], Config]
    """Reads the configuration again. Raises ConfigError."""
    in_thread: Pool
    """Where it is read, as its lists may be long."""
    reactor: Any
    supervisor: Supervisor
    site: Site
    places: Sequence[Place]
    schedule: Schedule
    log_lines: LogLines | None
    """What writes the log, None where that is not ours."""
    _goes_by: Config = Factory(lambda self: self.begun_by, takes_self=True)
    """What was last read and not refused."""
    _is_over: bool = False
    _one_at_a_time: DeferredLock = field(factory=DeferredLock)
    _log = Logger()

    def end(self) -> None:
        """Apply nothing any more: the daemon stops."""
        self._is_over = True

    async def reload(self) -> None:
        """Go by what the configuration says now; if it is bad, go on by the old one.

        Each certificate is read again all the same: whoever has renewed one cannot know what else
        is wrong.
        While one reload waits for another to end, further ones are left out: that one will read
        all that there is by then.
        """
        if self._one_at_a_time.waiting:
            return
        async with self._one_at_a_time:
            if not self._is_over:
                await self._reload()

    async def _reload(self) -> None:
        self.supervisor.tell(RELOADING, f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        told = ""
        try:
            read = await self._read()
            if self._is_over:
                return
            configured_places(read.config, self.reactor)
            self._apply(read)
        except ConfigError as error:
            told = str(error)
            self._log.error("the configuration stays as it was: {error}", error=told)
        except Exception as error:  # noqa: BLE001 - whatever it is, the daemon goes on
            # A stop gives up what is under way in threads.
            if not (self._is_over and isinstance(error, CancelledError)):
                self._log.failure("the configuration stays as it was")
        else:
            self._log.info("the configuration was read again")
        finally:
            if not self._is_over:
                for refused in map(str, renew(self.places, self._goes_by)):
                    # That of a certificate may be why the configuration stays.
                    if refused != told:
                        self._log.error("a certificate stays as it was: {error}", error=refused)
                self.supervisor.tell(READY)

    async def _read(self) -> Replaceable:
        def read() -> Replaceable:
            data_dir = self.site.backend.settings.data_dir
            read = Replaceable.read(self.read_config(), data_dir)
            self.said.check(read.config, read.lists)
            return read

        try:
            return await self.in_thread(read)
        except Unavailable:
            # However many strangers try passwords, the operator is heard.
            return read()

    def _apply(self, read: Replaceable) -> None:
        self._goes_by = read.config
        backend = self.site.backend
        self.said.take(read.config, read.lists)
        late = needing_restart(self.begun_by, read.config)
        pipeline = backend.pipeline
        pipeline.rules = read.rules
        pipeline.rates.per_minute = read.rules.hits_per_minute
        pipeline.queue.settings = read.queue
        backend.store.apply(read.store)
        backend.settings = runtime.leave_room(read.web, runtime.allowed())
        self.schedule.go_by(read.backups)
        if self.log_lines is not None:
            self.log_lines.style = read.log_style
        if late:
            self._log.warn("to take effect at the next start: {keys}", keys=", ".join(late))


def checked_places(file: Path) -> list[Place]:
    """Return where the daemon would listen by a configuration of which nothing is wrong.

    Raises ConfigError for what is wrong with the file, those beside it, or one that it names.
    """
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    config = load(file)
    load_lists(config)
    return configured_places(config, reactor)
