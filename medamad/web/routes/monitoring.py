"""Health checks and metrics, for the addresses in the configuration.

For other addresses, and under /api, these paths do not exist. Metrics are collected at each scrape
by Prometheus, since the start of the daemon. There is no label for the website: the number of
websites is unbounded, and their names concern only the owner.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from itertools import accumulate
from typing import Final

from attrs import frozen
from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from medamad.build import VERSION
from medamad.domain.errors import Unavailable
from medamad.domain.timings import BOUNDS_S, Timings
from medamad.ingest.pipeline import REASONS
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import NO_SNIFFING, NO_STORE, Response, json_response
from medamad.web.server.site import Site

_PREFIX: Final = "medamad_"


@frozen(eq=False)
class Metrics(Collector):
    """The metrics of a site and its backend."""

    _site: Site

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        yield from self._service()
        yield from self._hits()
        yield from self._store()
        yield from self._backups()
        yield from self._cluster()

    def _service(self) -> Iterator[Metric]:
        site, backend = self._site, self._site.backend
        build = {"version": VERSION, "commit": backend.settings.commit}
        yield InfoMetricFamily(f"{_PREFIX}build", "The running build.", build)
        yield _gauge("ready", "Whether hits are accepted.", float(not site.unavailable_reasons()))
        yield _gauge("connections", "Open connections.", len(site.connections))
        yield _gauge("websites", "Registered websites.", len(backend.store.websites.all()))
        limits = backend.store.limits_reached(int(backend.clock() * 1000))
        yield _gauge(
            "new_values_limits_reached",
            "Daily limits on new values of which all, or one network's quarter, is used up today; "
            "the log names the websites.",
            sum(map(len, limits.values())),
        )
        yield _gauge(
            "websites_quiet",
            "Websites that used to be visited and are not any more; the log names them.",
            len(backend.quiet),
        )
        yield _counters(
            "logins_refused",
            "Attempts to log in to the account, or to open a share by its password, that were "
            "refused.",
            "to",
            {"account": backend.accounts.logins_refused, "share": backend.shares.refused},
        )
        yield _histogram(
            "statistics_duration_seconds",
            "Time to respond to a request for statistics, including the wait for a thread.",
            backend.response_times.statistics,
        )

    def _backups(self) -> Iterator[Metric]:
        backups = self._site.backend.backups
        yield _counter(
            "backups_failed",
            "How often the backups became too old, missing or unreadable.",
            backups.failures,
        )
        yield _gauge(
            "backup_last_timestamp_seconds",
            "When the newest backup in the folder of [backup] was made; 0 for none.",
            backups.newest or 0,
        )

    def _cluster(self) -> Iterator[Metric]:
        backend = self._site.backend
        state = backend.cluster
        if state is None:
            return
        yield _counter(
            "cluster_rows_sent", "Rows of views and events sent to the cluster.", state.rows
        )
        yield _counter(
            "cluster_sent_bytes",
            "Bytes that were sent to the cluster, without those of questions.",
            state.sent_bytes,
        )
        yield _gauge("cluster_rows_waiting", "Rows of the log that wait to be sent.", state.waiting)
        yield _gauge(
            "cluster_lag_seconds",
            "For how long the first row that waits to be sent to the cluster has been stored.",
            state.lag_s(backend.clock()),
        )
        yield _gauge(
            "cluster_rows_unsafe",
            "Rows of the log that are in the cluster, but on too few replicas.",
            state.unsafe,
        )
        yield _counter(
            "cluster_failures",
            "How often sending to the cluster has failed; the log has the reason.",
            state.failures,
        )
        yield _gauge(
            "cluster_collectors_unreachable",
            "How many of the other collectors cannot be reached.",
            sum(bool(other.failure) for other in state.others.values()),
        )
        yield _counter(
            "cluster_hits_passed_on",
            "Hits that other collectors have taken from this one.",
            state.passed_on,
        )
        yield _gauge(
            "cluster_hits_to_pass_on",
            "Hits that wait for other collectors, counted once for each of these.",
            state.to_pass_on,
        )

    def _hits(self) -> Iterator[Metric]:
        backend = self._site.backend
        pipeline = backend.pipeline
        yield _counter("hits_accepted", "Hits that were stored.", pipeline.accepted.total)
        yield _counters(
            "hits_refused",
            "Hits that were not stored: ignored, or refused with a 4xx (malformed, rate, "
            "unknown-website) or a 503 (capacity).",
            "reason",
            dict.fromkeys(REASONS, 0) | pipeline.uncounted.totals(),
        )
        yield _gauge("hits_waiting", "Hits that wait to be written.", len(pipeline.queue))
        yield _gauge(
            "hits_waiting_places",
            "The part of hits_waiting_max taken by hits whose write has not begun: one place for "
            "each, and one more for each 1,024 bytes of its request.",
            pipeline.queue.places,
        )
        yield _gauge(
            "hits_waiting_max",
            "The number of places; when all are taken, hits get a 503.",
            pipeline.queue.settings.max_waiting,
        )
        yield _histogram(
            "hit_duration_seconds",
            "Time to respond to a hit, which is then on disk.",
            backend.response_times.hits,
        )

    def _store(self) -> Iterator[Metric]:
        store = self._site.backend.store
        figures = store.figures()
        yield _histogram(
            "commit_duration_seconds",
            "Time of a commit, including the sync to disk.",
            store.commits,
        )
        yield _counter(
            "commits_failed",
            "How often commits began to fail; the log has the reason.",
            store.writer.failures,
        )
        yield _gauge("store_bytes", "Bytes of the store in use.", figures.used_bytes)
        yield _gauge("store_max_bytes", "The maximum size of the store.", figures.map_bytes)
        yield _gauge("disk_free_bytes", "Free bytes on the disk.", figures.free_disk_bytes)
        yield _gauge(
            "retention_websites_unknown",
            "Tables of [retention.websites] that name no registered website; the log names them.",
            len(store.unregistered_tables()),
        )
        yield _gauge(
            "retention_waits_seconds",
            "For how much longer [retention] removes nothing, as the clock is not trusted yet.",
            store.retention_waits_ms(int(self._site.backend.clock() * 1000)) / 1000,
        )
        yield _gauge("live_visits", "Visits that may go on, in memory.", len(store.wal.visits))
        yield _counter(
            "live_visits_evicted",
            "Live visits that made room for others; their next views begin new visits.",
            store.wal.visits.evicted,
        )
        yield _gauge("store_blocks", "Segments.", figures.segments)
        yield _gauge(
            "store_damaged",
            "Damaged parts of the store, which statistics leave out; the log names them.",
            len(store.damaged_places()),
        )
        yield _gauge(
            "store_tail_views", "Views in memtables, not flushed yet.", figures.memtable_views
        )


@frozen(eq=False)
class Exposition:
    """The response to a scrape."""

    _registry: CollectorRegistry

    @classmethod
    def of(cls, site: Site) -> "Exposition":
        """Return the metrics of a site and of this process."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Metrics(site))
        ProcessCollector(registry=registry)
        return cls(registry)

    def text(self, accept: str) -> tuple[bytes, bytes]:
        """Return all metrics in the format that an Accept header prefers, and its media type."""
        try:
            encode, media_type = choose_encoder(accept)
            name = media_type.encode("ascii")
        except (TypeError, ValueError):
            # The requested version is invalid; it would become a part of the media type.
            encode, media_type = choose_encoder("")
            name = media_type.encode("ascii")
        return encode(self._registry), name


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, text, value)


def _counters(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _histogram(name: str, text: str, timings: Timings) -> Metric:
    below = list(accumulate(timings.counts))
    edges = [*map(str, BOUNDS_S), "+Inf"]
    buckets = list(zip(edges, below, strict=True))
    return HistogramMetricFamily(_PREFIX + name, text, buckets, timings.total_s)


FIRST_SEGMENTS: Final = ("health", "metrics")
"""The first segments of the paths in this module."""

_RETRY_AFTER_S: Final = 10


def health(site: Site, _call: Call) -> Response:
    """Respond that hits are accepted, and what is degraded.

    Raises Unavailable with the reasons if they are not.
    """
    reasons = site.unavailable_reasons()
    if reasons:
        raise Unavailable(f"not ready: {'; '.join(reasons)}", retry_after=_RETRY_AFTER_S)
    backend = site.backend
    cluster = "" if backend.cluster is None else backend.cluster.degraded()
    degraded = "; ".join(filter(None, (backend.store.damage, cluster)))
    more = {"degraded": degraded} if degraded else {}
    return json_response({"live": True, "ready": True, **more})


def liveness(_call: Call) -> Response:
    """Respond that the daemon is running, whether or not hits are accepted."""
    return json_response({"live": True})


def expose(exposition: Exposition, call: Call) -> Response:
    """Return the metrics of the daemon."""
    accept = (call.request.headers.joined(b"Accept") or b"").decode("latin-1")
    text, media_type = exposition.text(accept)
    return Response(HTTPStatus.OK, text, media_type, (NO_STORE, NO_SNIFFING))


def add_to(routes: Routes, site: Site) -> None:
    """Add the routes of this module."""
    routes.add("GET", "/health", partial(health, site), Access.OPEN)
    routes.add("GET", "/health/live", liveness, Access.OPEN)
    routes.add("GET", "/metrics", partial(expose, Exposition.of(site)), Access.OPEN)
