"""Reload: read the whole configuration again and apply what may change while the daemon runs."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import Factory, define, field
from twisted.internet.defer import CancelledError, DeferredLock
from twisted.logger import Logger

from medamad.config.lists import load_lists
from medamad.config.schema import Config, ConfigError, load, raise_all
from medamad.config.settings import (
    Replaceable,
    cluster_settings,
    mail_settings,
    needing_restart,
)
from medamad.daemon import runtime
from medamad.daemon.backup_watch import BackupWatch
from medamad.daemon.listen import ListenEndpoint, configured_endpoints, renew
from medamad.daemon.logs import LogLines
from medamad.daemon.systemd import READY, RELOADING, Supervisor
from medamad.daemon.thread_pool import Pool
from medamad.domain.errors import Unavailable
from medamad.web.server.site import Site


@define(eq=False, kw_only=True)
class Reloading:
    """Applies a changed configuration to a running daemon."""

    started_with: Config
    """The configuration that the daemon was started with."""
    read_config: Callable[[], Config]
    """Reads the configuration again. Raises ConfigError."""
    in_thread: Pool
    """The threads in which the configuration is read, since its lists may be long."""
    reactor: Any
    supervisor: Supervisor
    site: Site
    endpoints: Sequence[ListenEndpoint]
    backup_watch: BackupWatch
    environ: Mapping[str, str]
    log_lines: LogLines | None
    """The writer of the log; None where it is not ours."""
    _current: Config = Factory(lambda self: self.started_with, takes_self=True)
    """The configuration in effect."""
    _is_stopping: bool = False
    _lock: DeferredLock = field(factory=DeferredLock)
    _log = Logger()

    def end(self) -> None:
        """Ignore further reloads: the daemon is stopping."""
        self._is_stopping = True

    async def warnings(self) -> list[str]:
        """Return the warnings of the configuration in use, and why the files are not in use."""
        found = list(self._current.warnings)
        try:
            configured_endpoints((await self._read()).config, self.reactor)
        except ConfigError as error:
            found.append(f"the configuration on disk is not in use: {error}")
        return found

    async def reload(self) -> None:
        """Read and apply the configuration; if it is invalid, keep the old one.

        Certificates are read again in any case: a renewal must not depend on the rest of the file.
        While one reload waits for another to finish, further ones are skipped: the one that waits
        will read everything that was written by then.
        """
        if self._lock.waiting:
            return
        async with self._lock:
            if not self._is_stopping:
                await self._reload()

    async def _reload(self) -> None:
        self.supervisor.notify(RELOADING, f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        reported = ""
        try:
            read = await self._read()
            if self._is_stopping:
                return
            configured_endpoints(read.config, self.reactor)
            self._apply(read)
        except ConfigError as error:
            reported = str(error)
            self._log.error("the configuration was not changed: {error}", error=reported)
        except Exception as error:  # noqa: BLE001 - the daemon continues after any error
            # A stop cancels the work of threads.
            if not (self._is_stopping and isinstance(error, CancelledError)):
                self._log.failure("the configuration was not changed")
        else:
            self._log.info("the configuration was reloaded")
        finally:
            if not self._is_stopping:
                for refused in map(str, renew(self.endpoints, self._current)):
                    # A certificate may be the reason that the configuration was rejected.
                    if refused != reported:
                        self._log.error("a certificate was not replaced: {error}", error=refused)
                self.supervisor.notify(READY)

    async def _read(self) -> Replaceable:
        def read() -> Replaceable:
            data_dir = self.site.backend.settings.data_dir
            return Replaceable.read(self.read_config(), data_dir, self.environ)

        try:
            return await self.in_thread(read)
        except Unavailable:
            # The pool is full of password attempts: the operator does not wait for them.
            return read()

    def _apply(self, read: Replaceable) -> None:
        self._current = read.config
        backend = self.site.backend
        late = needing_restart(self.started_with, read.config)
        pipeline = backend.pipeline
        pipeline.rules = read.rules
        pipeline.queue.settings = read.queue
        backend.store.apply(read.store)
        backend.settings = runtime.limit_connections(read.web, runtime.file_limit())
        self.backup_watch.follow(read.backups)
        backend.mailer.settings = read.mail
        if self.log_lines is not None:
            self.log_lines.style = read.log
        for warning in read.config.warnings:
            self._log.warn("{warning}", warning=warning)
        if late:
            self._log.warn("takes effect at the next start: {keys}", keys=", ".join(late))


def checked_endpoints(file: Path) -> list[ListenEndpoint]:
    """Return where the daemon would listen, after checking the whole configuration.

    Raises ConfigError for a fault in the file, the lists beside it, or a file that it names.
    """
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    config = load(file)
    endpoints: list[ListenEndpoint] = []
    errors: list[ConfigError] = []
    try:
        load_lists(config)
    except ConfigError as error:
        errors.append(error)
    # A credential is there for the service alone.
    if config.mail.password_file or not config.mail.user:
        try:
            mail_settings(config, os.environ)
        except ConfigError as error:
            errors.append(error)
    try:
        cluster_settings(config, os.environ)
    except ConfigError as error:
        errors.append(error)
    try:
        endpoints = configured_endpoints(config, reactor)
    except ConfigError as error:
        errors += (error, *error.others)
    raise_all(errors)
    return endpoints
