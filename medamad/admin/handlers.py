"""The handlers of the admin socket's requests."""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import Final

from attrs import frozen

from medamad.admin.followed_logs import AddLines, FindPlace, FollowHandlers
from medamad.admin.import_requests import ImportDays, ImportRobots, ImportRows
from medamad.admin.imports import (
    BeginImport,
    FinishImport,
    HoldImport,
    ImportFailed,
    ImportHandlers,
    SendImport,
    UndoImport,
    uncancelled,
)
from medamad.admin.protocol import (
    ClusterReport,
    Configuration,
    DaemonState,
    GetConfiguration,
    ImportSettings,
    Progress,
    ReportDamage,
    SendTestMail,
    Status,
)
from medamad.admin.server import Handlers, ReportProgress
from medamad.build import VERSION
from medamad.domain.accounts import Settings
from medamad.domain.errors import BadRequest
from medamad.domain.exported_settings import Imported
from medamad.domain.websites import canonical_hostname
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.reader import Reader
from medamad.query.request import Cancellation
from medamad.storage.compact import compaction_asked
from medamad.storage.dictionary.limits import limit_warning
from medamad.storage.environment.folder import open_to_others
from medamad.storage.environment.tree_check import DamagedValue
from medamad.storage.environment.trusted_clock import doubt_warning
from medamad.storage.settings import unregistered_warning
from medamad.web.server.site import Site

_STRAYED_SHARE: Final = 0.01
_STRAYED: Final = 100
"""How many hits may stray, and which share of all, before the proxy is to blame."""
_FULL: Final = 0.7
"""The share of the store's maximum size above which there is a warning."""


@frozen(kw_only=True)
class AdminHandlers:
    """Handles requests, in the reactor's thread."""

    site: Site
    started: int
    """When the daemon began to accept requests, in Unix seconds."""
    listening: Sequence[str]
    url: str
    """Where a browser on this machine reaches the daemon; "" for nowhere."""
    config_file: Path | None
    config_warnings: Callable[[], Awaitable[Sequence[str]]]
    """Returns what is wrong with the configuration."""
    login_file: Path
    """The file with the first password until that is changed."""

    def handlers(self, send_import: SendImport | None = None) -> Handlers:
        """Return the handler of each kind of request."""
        backend = self.site.backend
        imports = ImportHandlers(
            backend.store,
            backend.clock,
            failures=backend.import_failures,
            send=send_import,
            check_is_primary=backend.check_is_primary,
        )
        follow = FollowHandlers(backend.store, backend.pipeline, backend.clock)
        return {
            Status: self.status,
            GetConfiguration: self.configuration,
            ReportDamage: self.add_damage,
            SendTestMail: self.send_test_mail,
            ImportSettings: self.import_settings,
            BeginImport: imports.begin,
            HoldImport: imports.hold,
            ImportRows: imports.rows,
            ImportDays: imports.days,
            ImportRobots: imports.robots,
            FinishImport: imports.finish,
            UndoImport: imports.undo,
            FindPlace: follow.find,
            AddLines: follow.add,
            ImportFailed: imports.failed,
        }

    async def configuration(
        self, _request: GetConfiguration, _report: ReportProgress
    ) -> Configuration:
        """Return what the commands need of the daemon's configuration."""
        file = self.config_file
        return Configuration(
            file=None if file is None else str(file),
            timezone=str(self.site.backend.pipeline.rules.zone),
            min_free_disk=int(self.site.backend.store.settings.min_free_disk),
            url=self.url,
        )

    async def add_damage(self, request: ReportDamage, _report: ReportProgress) -> None:
        """Leave what a command found to be damaged out of results."""
        self.site.backend.store.add_damage(starmap(DamagedValue, request.values))

    async def send_test_mail(self, request: SendTestMail, report: ReportProgress) -> None:
        """Send a test mail, in the account's language."""
        report(Progress(text="waiting for the mail server"))
        account = self.site.backend.store.account.read()
        language = (Settings() if account is None else account.settings).language
        await self.site.backend.mailer.send_test(request.address, language)

    async def import_settings(self, request: ImportSettings, _report: ReportProgress) -> Imported:
        """Add settings to those of a website. Raises what `Store.import_settings` does."""
        backend, name = self.site.backend, canonical_hostname(request.hostname)
        website = backend.store.websites.by_hostname(name)
        if website is None:
            raise BadRequest(f"hostname: no website {name} is registered")
        backend.pipeline.rules.check_own(request.settings.settings.respect_gpc)
        now = int(backend.clock())
        imported: Imported = await uncancelled(
            backend.store.import_settings(website, request.settings, now)
        )
        return imported

    async def status(self, _request: Status, _report: ReportProgress) -> DaemonState:
        """Return the state of the daemon."""
        backend = self.site.backend
        pipeline, store, now = backend.pipeline, backend.store, backend.clock()
        websites, figures = store.websites.all(), store.figures()
        now_ms = int(now * 1000)
        # Of this collector alone: the cluster may not answer, or slowly.
        engine, sources = EmbeddedEngine(store), backend.settings.sources

        def open_pages(reader: Reader) -> int:
            return reader.open_pages(now_ms)

        visitors = await backend.run_query(
            lambda: sum(
                engine.read(website, sources, Cancellation(), open_pages) for website in websites
            )
        )
        return DaemonState(
            version=VERSION,
            commit=backend.settings.commit,
            pid=os.getpid(),
            started=self.started,
            listening=tuple(self.listening),
            connections=len(self.site.connections),
            websites=len(websites),
            visitors=visitors,
            accepted=pipeline.accepted.last_day(now),
            refused={
                uncounted.reason: uncounted.hits for uncounted in pipeline.uncounted.of_all(now)
            },
            last_minute=pipeline.accepted.last_minute(now),
            waiting=len(pipeline.queue),
            commits=len(store.commits),
            commit_seconds=store.commits.total_s,
            store_bytes=figures.used_bytes,
            store_max_bytes=figures.map_bytes,
            disk_free_bytes=figures.free_disk_bytes,
            last_backup=backend.backups.newest,
            compaction=compaction_asked(backend.settings.data_dir),
            backup_failure=backend.backups.failure,
            damage=store.damage,
            unavailable_reasons=tuple(self.site.unavailable_reasons()),
            cluster=self._cluster(),
            warnings=(
                *await self.config_warnings(),
                *self._warnings(figures.used_bytes, figures.map_bytes),
            ),
        )

    def _cluster(self) -> ClusterReport | None:
        backend = self.site.backend
        state, spool, now = backend.cluster, backend.store.spool, backend.clock()
        if state is None or spool is None:
            return None
        return ClusterReport(
            collector=state.collector,
            waiting=state.waiting,
            lag_s=state.lag_s(now),
            unsafe=state.unsafe,
            degraded=state.degraded_because(),
            rows=state.rows,
            failures=state.failures,
            primary=state.primary,
            passed_on=state.passed_on,
            to_pass_on=state.to_pass_on,
            is_scattered=state.strayed
            > _STRAYED_SHARE * backend.pipeline.accepted.total + _STRAYED,
            others={number: other.failure for number, other in state.others.items()},
            has_earlier=spool.marks.since > 0 or bool(backend.store.partitions.days_with_rollups()),
        )

    def _limit_warnings(self) -> Iterator[str]:
        backend = self.site.backend
        limits = backend.store.limits_reached(int(backend.clock() * 1000))
        for website in backend.store.websites.all():
            for dimension in limits.get(website.number, ()):
                yield limit_warning(website.hostname, dimension)

    def _warnings(self, used_bytes: int, max_bytes: int) -> Iterator[str]:
        if used_bytes > _FULL * max_bytes:
            yield f"the store has reached {used_bytes / max_bytes:.0%} of its maximum size"
        for website in self.site.backend.store.websites.all():
            if website.number in self.site.backend.quiet:
                yield f"{website.hostname} has gone quiet: it usually has visits at these hours"
        yield from self._limit_warnings()
        for hostname in self.site.backend.store.unregistered_tables():
            yield unregistered_warning(hostname)
        backend = self.site.backend
        if left_ms := backend.store.retention_waits_ms(int(backend.clock() * 1000)):
            yield doubt_warning(left_ms)
        if warning := backend.pipeline.senders.warning:
            yield warning
        if warning := open_to_others(backend.settings.data_dir):
            yield warning
        if self.login_file.exists():
            yield f"the first password has not been changed and is in {self.login_file}"
        if self.site.settings.demo:
            yield "this is a demonstration: changes are refused"
