"""The daemon as a service: what starts in which order, and stops in which order.

Start: configuration, store, first account, site, listening sockets, the admin socket; then
systemd is notified. Stop: the admin socket, listening sockets, requests in progress, waiting
hits, threads, store.
"""

import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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
from medamad.admin.imports import SendImport
from medamad.admin.protocol import LoadHits, Promote, ResendHits
from medamad.admin.server import AdminServer, Handlers
from medamad.config import settings
from medamad.config.lists import Lists, load_lists
from medamad.config.schema import EXIT_STATUS, Config, ConfigError
from medamad.daemon import runtime
from medamad.daemon.backup_watch import BackupWatch
from medamad.daemon.before_start import StoreWork, bring_up_to_date, compact_if_asked
from medamad.daemon.listen import CannotListen, ListenEndpoint, listen_endpoints
from medamad.daemon.logs import LogLines
from medamad.daemon.messages import reason_of
from medamad.daemon.presence import Presence
from medamad.daemon.reload import Reloading
from medamad.daemon.silence import WATCH_EVERY_S, Watch
from medamad.daemon.store_check import (
    LOOK_S,
    TreeCheckAlongside,
    check_trees,
    outage_handlers,
    what_to_do,
)
from medamad.daemon.systemd import ALIVE, READY, STOPPING, Supervisor
from medamad.daemon.thread_pool import Pool, repeat
from medamad.daemon.webhook_key import WebhookKey
from medamad.domain.errors import Conflict, Unavailable
from medamad.ingest.pipeline import Pipeline
from medamad.ingest.robot_counts import WRITE_EVERY_S, PendingRobots
from medamad.ingest.user_agent import forget_user_agents
from medamad.ingest.write_queue import WriteQueue
from medamad.lookup.languages import forget_headers
from medamad.lookup.referrers import Sources
from medamad.lookup.robots import is_listed
from medamad.mail.mailer import Mailer
from medamad.query.embedded.engine import left_out_finder
from medamad.query.engine import Engine
from medamad.query.request import Cancellation, Cancelled
from medamad.storage.compact import compaction_asked
from medamad.storage.environment.environment import take_lock
from medamad.storage.environment.folder import open_to_others
from medamad.storage.environment.owner import check_owner
from medamad.storage.errors import Damaged, DamagedStore, StoreError
from medamad.storage.migrations import is_outdated
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.web.app import make_outage_site, make_site
from medamad.web.backend import AlertWatching, Backend
from medamad.web.server.parser import forget_fields
from medamad.web.server.site import Site, drain
from medamad.web.settings import WebSettings

FAILED: Final = 1
PASSWORD_THREADS: Final = 1
QUERY_THREADS: Final = 3
QUERIES_PER_CLIENT: Final = 2
"""How many of one client run at a time, so that a thread is left for another."""
DRAIN_S: Final = 3.5
"""How long requests in progress may take at a stop, which should end within 5 seconds."""
STOP_S: Final = 4.2
"""How long a stop waits for the store in all, although at least CLOSE_S for it alone."""
CLOSE_S: Final = 0.5
REPORTS_S: Final = 20.0
"""How often it is looked for reports that are due."""
STALL_CHECK_S: Final = 1.0
"""How often to check whether the store's writer has stalled."""
TIDY_S: Final = 60.0
RETURN_S: Final = 15.0
"""How often free memory is returned to the system."""
_RETRY_AFTER_S: Final = 10


class WrongClock(Exception):
    """The system's clock is unusable. `str(error)` is for the operator."""


_REASONS: Final = (
    *(ConfigError, FirstLoginError, StoreError, CannotListen, Conflict, Unavailable),
    WrongClock,
    OSError,
)
"""Errors of a start whose message says enough without a traceback."""


@frozen
class Started:
    """What to print about a daemon that has started."""

    urls: tuple[str, ...]
    """URLs for a browser on this machine; empty if there are only unix sockets."""
    first_login: FirstLogin | None
    """The account that this start created; None if there was one already."""
    username: str
    """The account's name."""
    login_file: Path | None
    """The file with the first password, until that is changed."""


def ignore_started(_started: Started) -> None:
    """Ignore the start."""


def _load(site: Site, cancellation: Cancellation) -> None:
    """Load what requests need. In one thread: several would import parts of the same packages."""
    site.backend.engine.load(cancellation)
    site.root.load()


def ignore_loaded(_result: object) -> None:
    """Ignore that everything is in memory."""


@define(eq=False, kw_only=True)
class Daemon(Service):
    """The whole service. Calls `ended` with an exit status if it cannot start or continue."""

    _log = Logger()

    config: Config
    """The configuration at the start."""
    reactor: Any
    environ: Mapping[str, str]
    supervisor: Supervisor
    read_config: Callable[[], Config]
    """Reads the configuration again. Raises ConfigError."""
    ended: Callable[[int], None]
    started: Callable[[Started], None] = ignore_started
    loaded: Callable[[object], None] = ignore_loaded
    """Called once what the first requests need is in memory, or cannot be loaded."""
    prepare: Callable[[Backend], Awaitable[None]] | None = None
    """Runs before the daemon can be reached."""
    clock: Callable[[], float] = time.time
    drain_s: float = DRAIN_S
    tidy_s: float = TIDY_S
    look_s: float = WATCH_EVERY_S
    reports_s: float = REPORTS_S
    return_s: float = RETURN_S
    stall_check_s: float = STALL_CHECK_S
    is_abandoned: Callable[[], bool] = lambda: False
    """Called on a hangup: whether the terminal that the daemon was started on has gone."""
    log_lines: LogLines | None = None
    """The writer of the log; None if it is not ours."""
    _reloading: Reloading | None = None
    _opened: AsyncExitStack = field(factory=AsyncExitStack)
    _one_at_a_time: DeferredLock = field(factory=DeferredLock)
    _starting: "Deferred[None] | None" = None
    _has_ended: bool = False
    _stopping_since: float = 0.0

    def startService(self) -> None:
        """Begin to start; calls `started` or `ended` unless the service is stopped before that."""
        super().startService()
        self._starting = Deferred.fromCoroutine(self._serially(self._start))
        self._starting.addErrback(self._could_not_start)

    def stopService(self) -> "Deferred[None]":
        """Stop, even during the start; fires when the store is closed."""
        super().stopService()
        if self._starting is not None:
            self._starting.cancel()
        return Deferred.fromCoroutine(self._serially(self._stop))

    async def reload(self) -> None:
        """Apply the configuration file as it is now, once the start is done; see `Reloading`."""
        if self._reloading is not None:
            await self._reloading.reload()

    async def _config_warnings(self) -> list[str]:
        return [] if self._reloading is None else await self._reloading.warnings()

    def _not_reloaded(self, failure: Failure) -> None:
        self._log.failure("the configuration was not changed", failure)

    def _not_loaded(self, failure: Failure) -> None:
        if not failure.check(CancelledError, Cancelled):
            self._log.failure("the first requests will have to load what they need", failure)

    async def _serially(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._one_at_a_time:
            await step()

    async def _start(self) -> None:
        """Start everything in this order; `_opened` stops it in the reverse order."""
        if self.clock() < 0:
            raise WrongClock("the clock is before 1970: set it, then start again")
        self._reload_on_hangup()
        passwords = self._start_pool("passwords", PASSWORD_THREADS)
        for warning in self.config.warnings:
            self._log.warn("{warning}", warning=warning)
        data_dir = self.config.data_dir(self.environ)
        check_owner(data_dir)
        lists = load_lists(self.config)
        listening = listen_endpoints(self.config, self.reactor)
        web_settings = settings.web_settings(self.config, lists, data_dir)
        mail_settings = settings.mail_settings(self.config, self.environ)
        cluster = settings.cluster_settings(self.config, self.environ)
        try:
            store = await self._open_store(data_dir, passwords, web_settings.sources)
        except DamagedStore as error:
            await self._serve_outage(what_to_do(str(error), data_dir), web_settings, listening)
            return
        _check_role(store, cluster)
        queries = self._start_pool("queries", QUERY_THREADS, QUERIES_PER_CLIENT)
        accounts = Accounts(
            records=store.account,
            replace=store.replace_account,
            data_dir=data_dir,
            hashing=passwords,
            clock=self.clock,
            environ=self.environ,
        )
        first_login = await accounts.ensure_first()
        site = make_site(
            store=store,
            pipeline=self._start_pipeline(store, lists),
            accounts=accounts,
            run_query=queries,
            mailer=Mailer(mail_settings, self.reactor, self.clock, passwords),
            settings=runtime.limit_connections(web_settings, runtime.file_limit()),
            clock=self.clock,
            reactor=self.reactor,
            engine=None if cluster is None else self._engine_over(cluster, store),
        )
        if self.prepare is not None:
            await self.prepare(site.backend)
        ships = self._ship(store, site.backend)
        self._opened.push_async_callback(drain, site, self.drain_s, self.reactor)
        urls = await self._listen(site, listening)
        handlers = AdminHandlers(
            site=site,
            started=int(self.clock()),
            listening=[endpoint.text for endpoint in listening],
            url=next(filter(None, urls), ""),
            config_file=self.config.file,
            config_warnings=self._config_warnings,
            login_file=data_dir / FILE_NAME,
        )
        of_cluster, send_import = ships
        self._serve_commands(data_dir, {**handlers.handlers(send_import), **of_cluster})
        self._repeat(self.tidy_s, self._tidy(store, accounts, site))
        self._repeat(self.return_s, partial(_return_memory, store, queries))
        presence = self._watch_for_silence(data_dir, site.backend)
        self._repeat(self.reports_s, self._report_delivery(site.backend))
        backup_watch = self._watch_backups(data_dir, site.backend)
        self._send_heartbeats()
        self._reloading = Reloading(
            started_with=self.config,
            read_config=self.read_config,
            in_thread=passwords,
            reactor=self.reactor,
            supervisor=self.supervisor,
            site=site,
            endpoints=listening,
            backup_watch=backup_watch,
            environ=self.environ,
            log_lines=self.log_lines,
        )
        self.supervisor.notify(READY)
        self.started(_started(urls, first_login, store, data_dir))
        # At once, not when a request needs it: by then, another version may be installed.
        cancellation = Cancellation()
        self._opened.callback(cancellation.cancel)
        loading = queries(partial(_load, site, cancellation))
        loading.addCallback(lambda _: self._watch_alerts(data_dir, site.backend, presence))
        loading.addErrback(self._not_loaded).addBoth(self.loaded)

    @asynccontextmanager
    async def _store_work(self, data_dir: Path) -> AsyncIterator[StoreWork]:
        """Let `medamad status` say what is done to the whole store before it is opened."""
        work = StoreWork(self.supervisor)
        handlers = outage_handlers(lambda: work.text, self.config, int(self.clock()), (), data_dir)
        server = AdminServer.start(data_dir, handlers, self.reactor)
        try:
            yield work
        finally:
            await server.stop()

    async def _serve_outage(
        self, reason: str, web_settings: WebSettings, listening: Sequence[ListenEndpoint]
    ) -> None:
        """Return 503 while the store is damaged: if the daemon ended, it would be restarted."""
        data_dir = self.config.data_dir(self.environ)
        self._log.critical("no hits are taken and no statistics returned: {why}", why=reason)
        self._opened.callback(os.close, take_lock(data_dir))
        site = make_outage_site(reason, web_settings, self.clock, self.reactor)
        await self._listen(site, listening)
        texts = [endpoint.text for endpoint in listening]
        handlers = outage_handlers(lambda: reason, self.config, int(self.clock()), texts, data_dir)
        self._serve_commands(data_dir, handlers)
        self._send_heartbeats()
        self.supervisor.notify(READY, "STATUS=The store is damaged, see the log")

    def _start_pool(self, name: str, threads: int, per_client: int | None = None) -> Pool:
        pool = Pool.start(name, threads, self.reactor, per_client=per_client)
        self._opened.callback(pool.stop)
        return pool

    async def _open_store(self, data_dir: Path, in_thread: Pool, sources: Sources) -> Store:
        """Open the store; check it if the last shutdown was not clean. Raises DamagedStore."""
        check = await check_trees(data_dir, in_thread, self.supervisor)
        if check is not None:
            self._opened.callback(check.stop)
        store_settings = settings.store_settings(self.config)
        if is_outdated(data_dir) or compaction_asked(data_dir) is not None:
            async with self._store_work(data_dir) as work:
                await bring_up_to_date(data_dir, store_settings.map_size, in_thread, work)
                await compact_if_asked(data_dir, in_thread, work)
        find_left_out = left_out_finder(sources)
        store = start_store(
            data_dir,
            store_settings,
            self.reactor,
            find_left_out=find_left_out,
            is_listed_robot=is_listed,
        )
        self._opened.push_async_callback(self._close, store)
        if warning := open_to_others(data_dir):
            self._log.warn("{warning}", warning=warning)
        store.broken.addCallback(self._store_broke)
        if check is not None:
            alongside = TreeCheckAlongside(check, store, data_dir)
            await alongside.look()
            self._repeat(LOOK_S, alongside.look)
        return store

    def _engine_over(self, cluster: settings.ClusterSettings, store: Store) -> Engine:
        # Only for a cluster.
        from medamad.daemon.shipping import client_of  # noqa: PLC0415
        from medamad.query.clickhouse.engine import ClickHouseEngine  # noqa: PLC0415
        from medamad.query.exclusions import rules_of  # noqa: PLC0415

        client = client_of(cluster)
        self._opened.callback(client.close)
        return ClickHouseEngine(
            client, lambda website: rules_of(store.goals.of(website)), store.hidden_batches
        )

    def _ship(self, store: Store, backend: Backend) -> tuple[Handlers, SendImport | None]:
        """Send hits to the cluster, if there is one, and speak to its other collectors.

        Returns the handlers that this adds, and what sends imports.
        """
        cluster = settings.cluster_settings(self.config, self.environ)
        if cluster is None:
            return {}, None
        # Only with a cluster.
        from medamad.daemon import shipping as ships  # noqa: PLC0415
        from medamad.query.clickhouse.engine import ClickHouseEngine  # noqa: PLC0415

        shipping = ships.Shipping.start(store, cluster, self.reactor, self.clock)
        backend.cluster = shipping.state
        if isinstance(backend.engine, ClickHouseEngine):
            backend.engine.answered = partial(setattr, shipping.state, "unanswered")
        self._opened.callback(shipping.stop)
        self._repeat(ships.SHIP_S, shipping.ship, now=True)
        self._repeat(ships.REMOVE_S, shipping.remove)
        self._repeat(ships.SETTLE_S, shipping.settle)
        self._repeat(ships.ASK_AGAIN_S, shipping.ask_again)
        handlers: dict[Any, Any] = {ResendHits: shipping.resend, LoadHits: shipping.load}
        if cluster.collectors:
            from medamad.daemon import collectors as others  # noqa: PLC0415

            collectors = others.Collectors.start(backend, cluster, self.reactor)
            self._repeat(others.GREET_S, collectors.greet, now=True)
            self._repeat(others.PASS_ON_S, collectors.pass_on_waiting)
            self._repeat(others.TIDY_S, collectors.tidy)
            handlers[Promote] = collectors.promote
        return handlers, shipping.send_import

    def _start_pipeline(self, store: Store, lists: Lists) -> Pipeline:
        queue = WriteQueue(store.append, self.reactor, settings.queue_settings(self.config))
        self._repeat(self.stall_check_s, partial(_give_up_on_stall, store, queue))
        robots = PendingRobots(store.robots.add)
        self._opened.callback(self._write_robots, robots)
        self._repeat(WRITE_EVERY_S, robots.write)
        return Pipeline(
            store.websites,
            queue,
            robots,
            settings.rules(self.config, lists),
            self.clock,
        )

    def _write_robots(self, robots: PendingRobots) -> None:
        """Write what has been counted before the store closes, which waits for its disk, or not."""
        writing = Deferred.fromCoroutine(robots.write())
        writing.addErrback(lambda failure: self._log.failure("robots were not stored", failure))

    async def _listen(self, site: Any, listening: Sequence[ListenEndpoint]) -> list[str]:
        """Listen everywhere; return the URLs. Raises CannotListen."""
        urls = []
        for endpoint in listening:
            port = await endpoint.listen(site)
            self._opened.push_async_callback(maybeDeferred, port.stopListening)
            urls.append(endpoint.url(port))
            self._log.info("listening on {place}", place=endpoint.text)
        return urls

    def _serve_commands(self, data_dir: Path, handlers: Handlers) -> None:
        server = AdminServer.start(data_dir, handlers, self.reactor)
        self._opened.push_async_callback(server.stop)

    def _watch_for_silence(self, data_dir: Path, backend: Backend) -> Presence:
        presence = Presence.begin(data_dir, self._now_ms())
        self._opened.callback(self._record_presence, presence.end, backend.store)
        watch = Watch(backend, presence.since_ms)

        async def look() -> None:
            self._record_presence(presence.record, backend.store)
            await watch.look()
            await self._watch_alerts(data_dir, backend, presence).look()

        self._repeat(self.look_s, look)
        return presence

    def _watch_alerts(self, data_dir: Path, backend: Backend, presence: Presence) -> AlertWatching:
        """Return what looks at the alerts. It is made once the rest is loaded, or when needed."""
        if backend.alerts is None:
            from medamad.daemon.alert_watch import AlertWatch, post_by  # noqa: PLC0415 - imports much

            key = WebhookKey(settings.webhook_key_file(self.config, self.environ), data_dir)
            post = post_by(self.reactor)
            alerts = AlertWatch(backend, post, key.secret_of, presence.since_ms)
            self._opened.callback(alerts.stop)
            backend.alerts = alerts
        return backend.alerts

    def _report_delivery(self, backend: Backend) -> Callable[[], Awaitable[None]]:
        """Return what mails the reports that are due. It is made once the rest is loaded."""
        made: list[Any] = []

        async def look() -> None:
            from medamad.daemon.report_delivery import ReportDelivery  # noqa: PLC0415 - imports much

            if not made:
                made.append(ReportDelivery(backend))
            await made[0].look()

        return look

    def _watch_backups(self, data_dir: Path, backend: Backend) -> BackupWatch:
        plan = settings.backup_plan(self.config, data_dir)
        # Never stopped: a stop would wait for a folder that does not respond.
        in_thread = Pool.start("backup folder", 1, self.reactor)
        watch = BackupWatch(plan, backend.backups, in_thread, self.reactor, self.clock)
        self._repeat(self.look_s, watch.look, now=True)
        return watch

    def _send_heartbeats(self) -> None:
        if self.supervisor.beat_s is not None:
            self._repeat(self.supervisor.beat_s, self._beat)

    def _repeat(
        self, seconds: float, task: Callable[[], Awaitable[None]], *, now: bool = False
    ) -> None:
        """Repeat a task until the daemon stops."""
        self._opened.callback(repeat(seconds, task, self.reactor, now=now).stop)

    async def _stop(self) -> None:
        self._stopping_since = self.reactor.seconds()
        self.supervisor.notify(STOPPING)
        reloading, self._reloading = self._reloading, None
        if reloading is not None:
            reloading.end()
        await self._opened.aclose()
        if reloading is not None:
            self._log.info("stopped")

    async def _close(self, store: Store) -> None:
        left_s = self._stopping_since + STOP_S - self.reactor.seconds()
        # The clock may have been changed meanwhile.
        await store.close(min(max(left_s, CLOSE_S), STOP_S))

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)

    def _record_presence(self, record: Callable[[int], None], store: Store) -> None:
        """Write the time to a file, unless its disk may hang and block the reactor."""
        if not store.stall_watch.unavailable_reason:
            record(self._now_ms())

    def _tidy(self, store: Store, accounts: Accounts, site: Site) -> Callable[[], Awaitable[None]]:
        put_off = ""

        async def tidy() -> None:
            nonlocal put_off
            self._forget_browsers(site)
            try:
                now_ms = int(self.clock() * 1000)
                trusted_ms = store.clock.trusted_ms(now_ms)
                await store.clock.keep()
                await store.maintain(now_ms, trusted_ms)
                await accounts.tidy()
                put_off = ""
            except Unavailable as error:
                if str(error) != put_off:
                    self._log.warn("periodic work is postponed: {reason}", reason=str(error))
                put_off = str(error)

        return tidy

    def _forget_browsers(self, site: Site) -> None:
        """Forget what is known of browsers only to save time. Those that return cost little."""
        site.forget_heads()
        forget_fields()
        forget_user_agents()
        forget_headers()
        site.backend.pipeline.rate_limiter.forget_idle(self.clock())

    async def _beat(self) -> None:
        self.supervisor.notify(ALIVE)

    def _reload_on_hangup(self) -> None:
        before = signal.signal(
            signal.SIGHUP, lambda _number, _frame: self.reactor.callFromThread(self._hung_up)
        )
        self._opened.callback(signal.signal, signal.SIGHUP, before)

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


def _check_role(store: Store, cluster: settings.ClusterSettings | None) -> None:
    """Raise Conflict if the settings here are a copy, and no collector is named to keep it current.

    What was changed here would be lost with the next copy of these settings.
    """
    if cluster is not None and cluster.collectors:
        return
    with suppress(Damaged):
        role = store.role(1 if cluster is None else cluster.collector)
        if not role.is_primary:
            raise Conflict(
                f"cluster.collectors: expected the addresses of all collectors, since this data"
                f" directory is that of collector {role.collector}, and has a copy of the settings"
                f" of collector {role.epoch.primary}. To use it alone, make it the primary first,"
                " with medamad cluster promote"
            )


async def _give_up_on_stall(store: Store, queue: WriteQueue) -> None:
    if reason := store.stall_watch.look():
        queue.give_up(Unavailable(reason, retry_after=_RETRY_AFTER_S))


async def _return_memory(store: Store, queries: Pool) -> None:
    def give_back() -> None:
        store.evict_texts()
        runtime.return_free_memory()

    # In a thread, so that nothing waits for it; skipped if the pool is full.
    with suppress(Unavailable):
        await queries(give_back)
