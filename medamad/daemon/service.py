"""The daemon put together: what is started in what order, and stopped in what order.

Started: configuration, store, first account, site, sockets, the operator's socket; then systemd
hears that all is ready. Stopped: the operator's socket, sockets, requests under way, hits that
wait, threads, store.
"""

import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredLock, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.accounts.accounts import Accounts
from medamad.accounts.first_login import FILE_NAME, FirstLogin, FirstLoginError
from medamad.admin.handlers import AdminHandlers
from medamad.admin.server import Server
from medamad.config import settings
from medamad.config.lists import load_lists
from medamad.config.reload import Reloading
from medamad.config.schema import EXIT_STATUS, Config, ConfigError
from medamad.daemon import runtime
from medamad.daemon.backup_watch import BackupWatch
from medamad.daemon.listen import CannotListenThere, Place, places
from medamad.daemon.logs import LogLines, reason_of
from medamad.daemon.silence import LOOK_SECONDS, Presence, Watch
from medamad.daemon.store_check import (
    LOOK_S,
    CheckAlongside,
    check_store,
    outage_handlers,
    what_to_do,
)
from medamad.daemon.systemd import ALIVE, READY, STOPPING, Supervisor
from medamad.daemon.thread_pool import Pool, repeat
from medamad.domain.errors import Unavailable
from medamad.ingest.pipeline import Pipeline, load_tables
from medamad.ingest.rate_limit import RateLimiter
from medamad.ingest.rejections import Rejections
from medamad.ingest.write_queue import WriteQueue
from medamad.storage.environment.environment import take_lock
from medamad.storage.errors import DamagedStore, StoreError
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.web.app import make_site
from medamad.web.backend import Backend
from medamad.web.outage import make_outage_site
from medamad.web.server.site import drain
from medamad.web.settings import WebSettings

FAILED: Final = 1
PASSWORD_THREADS: Final = 1
QUERY_THREADS: Final = 3
QUERIES_PER_CLIENT: Final = 2
"""How many of one client run at a time, so that a thread is left for another."""
DRAIN_SECONDS: Final = 3.5
"""How long the answers under way may take when the daemon stops: it is to end within 5 seconds."""
STOP_SECONDS: Final = 4.2
"""How long after the begin of a stop the store is waited for, but for CLOSE_SECONDS at least."""
CLOSE_SECONDS: Final = 0.5
STANDSTILL_SECONDS: Final = 1.0
"""How often it is looked whether the store's writer stands still."""
TIDY_SECONDS: Final = 60.0
_REASONS: Final = (
    *(ConfigError, FirstLoginError, StoreError, CannotListenThere, Unavailable),
    OSError,
)
"""What a start fails by that needs no more than its own words."""
RETURN_SECONDS: Final = 15.0
"""How often the system is given back the memory that is free."""
_RETRY_AFTER_S: Final = 10


@frozen
class Started:
    """What the operator wants to know of a daemon that has started."""

    urls: tuple[str, ...]
    """Where it answers, for a browser on this machine; empty when on unix sockets alone."""
    first_login: FirstLogin | None
    """The account made by this start, None where there was one already."""
    username: str
    """The account's name."""
    login_file: Path | None
    """The file that the first password was left in, as long as it holds."""


def nothing(_started: Started) -> None:
    """Tell nobody."""


@define(eq=False, kw_only=True)
class Daemon(Service):
    """The whole service. `ended` is called with an exit status when it cannot start or go on."""

    _log = Logger()

    config: Config
    """What the daemon was started by."""
    reactor: Any
    environ: Mapping[str, str]
    supervisor: Supervisor
    read_config: Callable[[], Config]
    """Reads the configuration again. Raises ConfigError."""
    ended: Callable[[int], None]
    started: Callable[[Started], None] = nothing
    prepare: Callable[[Backend], Awaitable[None]] | None = None
    """What is done before the daemon can be reached."""
    clock: Callable[[], float] = time.time
    drain_s: float = DRAIN_SECONDS
    tidy_s: float = TIDY_SECONDS
    look_s: float = LOOK_SECONDS
    return_s: float = RETURN_SECONDS
    standstill_s: float = STANDSTILL_SECONDS
    is_abandoned: Callable[[], bool] = lambda: False
    """Tells, on a hangup, whether the terminal that the daemon was started on is gone."""
    log_lines: LogLines | None = None
    """What writes the log, None where that is not ours."""
    _reloading: Reloading | None = None
    _open: AsyncExitStack = field(factory=AsyncExitStack)
    _one_at_a_time: DeferredLock = field(factory=DeferredLock)
    _starting: "Deferred[None] | None" = None
    _has_ended: bool = False
    _stopping_since: float = 0.0

    def startService(self) -> None:
        """Begin to start; `started` or `ended` tells how it went, unless it is stopped before."""
        super().startService()
        self._starting = Deferred.fromCoroutine(self._one_after_another(self._start))
        self._starting.addErrback(self._could_not_start)

    def stopService(self) -> "Deferred[None]":
        """Stop, also in the midst of the start; fires when the store is closed."""
        super().stopService()
        if self._starting is not None:
            self._starting.cancel()
        return Deferred.fromCoroutine(self._one_after_another(self._stop))

    async def reload(self) -> None:
        """Go by what the configuration says now, once the start is done; see `Reloading`."""
        if self._reloading is not None:
            await self._reloading.reload()

    def _not_reloaded(self, failure: Failure) -> None:
        self._log.failure("the configuration was not changed", failure)

    def _tables_not_loaded(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._log.failure("hits will have to load their tables", failure)

    async def _one_after_another(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._one_at_a_time:
            await step()

    async def _start(self) -> None:
        opened = self._open
        self._reload_on_hangup()
        passwords = Pool.start("passwords", PASSWORD_THREADS, self.reactor)
        opened.callback(passwords.stop)
        # Meanwhile: opening the store mostly waits for the disk.
        passwords(load_tables).addErrback(self._tables_not_loaded)
        data_dir = self.config.data_dir(self.environ)
        for warning in self.config.warnings:
            self._log.warn("{warning}", warning=warning)
        lists = load_lists(self.config)
        listening = places(self.config, self.reactor)
        try:
            store = await self._open_store(data_dir, passwords)
        except DamagedStore as error:
            web_settings = settings.web_settings(self.config, lists, data_dir)
            await self._serve_outage(what_to_do(str(error), data_dir), web_settings, listening)
            return
        queries = Pool.start("queries", QUERY_THREADS, self.reactor, per_client=QUERIES_PER_CLIENT)
        opened.callback(queries.stop)
        accounts = Accounts(
            records=store.account,
            replace=store.replace_account,
            data_dir=data_dir,
            hashing=passwords,
            clock=self.clock,
            environ=self.environ,
        )
        first_login = await accounts.ensure_first()
        queue = WriteQueue(store.append, self.reactor, settings.queue_settings(self.config))
        giving_up = partial(_give_up_on_standstill, store, queue)
        opened.callback(repeat(self.standstill_s, giving_up, self.reactor).stop)
        pipeline = Pipeline(
            store.websites,
            queue,
            Rejections(),
            RateLimiter(self.config.limits.hits_per_minute),
            settings.rules(self.config, lists),
            self.clock,
        )
        site = make_site(
            store=store,
            pipeline=pipeline,
            accounts=accounts,
            run_query=queries,
            settings=runtime.leave_room(
                settings.web_settings(self.config, lists, data_dir), runtime.allowed()
            ),
            clock=self.clock,
            reactor=self.reactor,
        )
        if self.prepare is not None:
            await self.prepare(site.backend)
        opened.push_async_callback(drain, site, self.drain_s, self.reactor)
        urls = []
        for place in listening:
            port = await place.listen(site)
            opened.push_async_callback(maybeDeferred, port.stopListening)
            urls.append(place.url(port))
            self._log.info("listening on {place}", place=place.text)
        handlers = AdminHandlers(
            site=site,
            started=int(self.clock()),
            listening=[place.text for place in listening],
            config_file=self.config.file,
            login_file=data_dir / FILE_NAME,
        )
        commands = Server.start(data_dir, handlers.handlers(), self.reactor)
        opened.push_async_callback(commands.stop)
        opened.callback(repeat(self.tidy_s, self._tidy(store, accounts), self.reactor).stop)
        returning = repeat(self.return_s, partial(_return_memory, store, queries), self.reactor)
        opened.callback(returning.stop)
        presence = Presence.begin(data_dir, self._now_ms())
        opened.callback(self._note, presence.end, store)
        watch = Watch(site.backend, presence.since_ms)
        looking = self._looking(watch, presence, store)
        opened.callback(repeat(self.look_s, looking, self.reactor).stop)
        backup_watch = BackupWatch(
            settings.backup_plan(self.config, data_dir),
            site.backend.backups,
            self.reactor,
            self.clock,
        )
        await backup_watch.look()
        opened.callback(repeat(self.look_s, backup_watch.look, self.reactor).stop)
        if self.supervisor.beat_s is not None:
            opened.callback(repeat(self.supervisor.beat_s, self._beat, self.reactor).stop)
        self._reloading = Reloading(
            started_with=self.config,
            read_config=self.read_config,
            in_thread=passwords,
            reactor=self.reactor,
            supervisor=self.supervisor,
            site=site,
            places=listening,
            backup_watch=backup_watch,
            log_lines=self.log_lines,
        )
        self.supervisor.tell(READY)
        self.started(_started(urls, first_login, store, data_dir))

    async def _open_store(self, data_dir: Path, in_thread: Pool) -> Store:
        """Open the store, checked if the last shutdown was not clean. Raises DamagedStore."""
        opened = self._open
        check = await check_store(data_dir, in_thread, self.supervisor)
        if check is not None:
            opened.callback(check.stop)
        store = start_store(data_dir, settings.store_settings(self.config), self.reactor)
        opened.push_async_callback(self._close, store)
        store.broken.addCallback(self._store_broke)
        if check is not None:
            alongside = CheckAlongside(check, store, data_dir)
            opened.callback(repeat(LOOK_S, alongside.look, self.reactor).stop)
        return store

    async def _serve_outage(
        self, reason: str, web_settings: WebSettings, listening: Sequence[Place]
    ) -> None:
        """Answer 503 while the store is damaged: to end would only have us started again."""
        opened, data_dir = self._open, self.config.data_dir(self.environ)
        self._log.critical("no hits are taken and no statistics returned: {why}", why=reason)
        opened.callback(os.close, take_lock(data_dir))
        site = make_outage_site(reason, web_settings, self.clock, self.reactor)
        for place in listening:
            port = await place.listen(site)
            opened.push_async_callback(maybeDeferred, port.stopListening)
            self._log.info("listening on {place}", place=place.text)
        texts = [place.text for place in listening]
        handlers = outage_handlers(reason, self.config, int(self.clock()), texts, data_dir)
        commands = Server.start(data_dir, handlers, self.reactor)
        opened.push_async_callback(commands.stop)
        if self.supervisor.beat_s is not None:
            opened.callback(repeat(self.supervisor.beat_s, self._beat, self.reactor).stop)
        self.supervisor.tell(READY, "STATUS=The store is damaged, see the log")

    async def _stop(self) -> None:
        self._stopping_since = self.reactor.seconds()
        self.supervisor.tell(STOPPING)
        reloading, self._reloading = self._reloading, None
        if reloading is not None:
            reloading.end()
        await self._open.aclose()
        if reloading is not None:
            self._log.info("stopped")

    async def _close(self, store: Store) -> None:
        left_s = self._stopping_since + STOP_SECONDS - self.reactor.seconds()
        # That clock may be set meanwhile.
        await store.close(min(max(left_s, CLOSE_SECONDS), STOP_SECONDS))

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)

    def _looking(
        self, watch: Watch, presence: Presence, store: Store
    ) -> Callable[[], Awaitable[None]]:
        async def look() -> None:
            self._note(presence.note, store)
            await watch.look()

        return look

    def _note(self, note: Callable[[int], None], store: Store) -> None:
        """Note the time in a file, unless its disk may not answer: everybody would wait for it."""
        if not store.stall_watch.unavailable_reason:
            note(self._now_ms())

    def _tidy(self, store: Store, accounts: Accounts) -> Callable[[], Awaitable[None]]:
        async def tidy() -> None:
            try:
                now_ms = int(self.clock() * 1000)
                trusted_ms = store.clock.trusted_ms(now_ms)
                await store.clock.keep()
                await store.tidy(now_ms, trusted_ms)
                await accounts.tidy()
            except Unavailable as error:
                self._log.warn("put off: {reason}", reason=str(error))

        return tidy

    async def _beat(self) -> None:
        self.supervisor.tell(ALIVE)

    def _reload_on_hangup(self) -> None:
        before = signal.signal(
            signal.SIGHUP, lambda _number, _frame: self.reactor.callFromThread(self._hung_up)
        )
        self._open.callback(signal.signal, signal.SIGHUP, before)

    def _hung_up(self) -> None:
        if self.is_abandoned():
            self._end(0)
        else:
            Deferred.fromCoroutine(self.reload()).addErrback(self._not_reloaded)

    def _could_not_start(self, failure: Failure) -> None:
        if failure.check(CancelledError) and not self.running:
            return
        status = FAILED
        if failure.check(ConfigError, FirstLoginError):
            status = EXIT_STATUS
        error = failure.value
        if isinstance(error, _REASONS):
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            self._log.critical("not started: {reason}", reason=reason)
        else:
            self._log.failure("not started", failure)
        self._end(status)

    def _store_broke(self, reason: str) -> None:
        self._log.critical("the store cannot continue: {reason}", reason=reason)
        self._end(FAILED)

    def _end(self, status: int) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.ended(status)


def _started(
    urls: Sequence[str], first_login: FirstLogin | None, store: Store, data_dir: Path
) -> Started:
    account = store.account.read()
    file = data_dir / FILE_NAME
    return Started(
        urls=tuple(filter(None, urls)),
        first_login=first_login,
        username="" if account is None else account.username,
        login_file=file if file.exists() else None,
    )


async def _give_up_on_standstill(store: Store, queue: WriteQueue) -> None:
    if reason := store.stall_watch.look():
        queue.give_up(Unavailable(reason, retry_after=_RETRY_AFTER_S))


async def _return_memory(store: Store, queries: Pool) -> None:
    def give_back() -> None:
        store.evict_texts()
        runtime.return_free_memory()

    # In a thread, so that nobody waits for it; if many queries are waiting, this is skipped.
    with suppress(Unavailable):
        await queries(give_back)
