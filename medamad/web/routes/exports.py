"""Exports: the data of a website, sent while it is read."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from typing import Final

from attrs import define, field
from twisted.internet.defer import Deferred

from medamad.domain.errors import TooMany, Unavailable
from medamad.domain.websites import Website
from medamad.query.exclusions import rules_of
from medamad.query.filters import parse_filters
from medamad.query.period import Period, parse_period
from medamad.query.request import NO_GAPS, Cancellation, Gaps
from medamad.transfer.export import (
    FORMAT_NAMES,
    WHAT,
    DamageFound,
    EncodedPiece,
    ExportRequest,
    ExportSource,
    Source,
)
from medamad.transfer.registry import FORMATS
from medamad.transfer.tables import STATISTICS_TABLE
from medamad.web.auth import Access, sender_network
from medamad.web.backend import Backend
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import NO_SNIFFING, NO_STORE, Response, Stream, partial_headers

MAX_EXPORTS: Final = 4
"""The most exports at once; each holds a lease on the segments that it reads."""
MAX_EXPORTS_PER_NETWORK: Final = 2
"""The most exports at once for one network, so that slow readers do not take all four."""
_RETRY_AFTER_S: Final = 10
_WAIT_S: Final = 0.5
_STEP_BYTES: Final = 4 << 20


@define(eq=False)
class _File:
    """The file of an export, made piece by piece in the query pool."""

    _call: Call
    _cancellation: Cancellation
    _encoded: Iterator[EncodedPiece]
    _ready: deque[bytes | None] = field(factory=deque)
    _done: int = -1
    _has_ended: bool = False
    _has_failed: bool = False
    gaps: Gaps = NO_GAPS
    """The gaps in what has been made."""

    async def begin(self, *, is_complete: bool) -> None:
        """Make the first piece, or all of them. Raises the error if one cannot be made."""
        self._ready.append(await self._call.run_query(self._step))
        while is_complete and self._ready[-1] is not None:
            self._ready.append(await self._make())

    async def next_piece(self) -> bytes | None:
        """Return the next piece, or None at the end."""
        return self._ready.popleft() if self._ready else await self._make()

    def close(self) -> None:
        """Cancel the export, and discard what was not sent."""
        self._cancellation.cancel()
        if not self._has_ended:
            discarded = [self._encoded]
            self._encoded = iter(())
            # Freeing many rows takes long, so a thread of the pool does it. If the pool refuses,
            # they are freed here.
            self._call.run_query(discarded.clear).addErrback(lambda _failure: None)

    async def _make(self) -> bytes | None:
        while True:
            try:
                return await self._call.run_query(self._step)
            except Unavailable:
                if self._has_failed:
                    raise
                # Too many queries are waiting: they go first.
                waited: Deferred[None] = Deferred()
                self._call.backend.call_later(_WAIT_S, waited.callback, None)
                await waited

    def _step(self) -> bytes | None:
        """Return the next bytes, which may be empty, or None at the end.

        The pieces of a report are joined, unless they are too large.
        """
        data: list[bytes] = []
        try:
            for piece in self._encoded:
                data.append(piece.data)
                for gaps in piece.gaps.values():
                    self.gaps |= gaps
                has_progressed = piece.done != self._done
                self._done = piece.done
                if has_progressed or sum(map(len, data)) >= _STEP_BYTES:
                    break
        except Unavailable:
            # The iterator has ended with it: another step would find the end of the file.
            self._has_failed = True
            raise
        self._has_ended = not data
        return b"".join(data) if data else None


def request_from(call: Call, website: Website) -> ExportRequest:
    """Return the export that is requested. Raises BadRequest naming the parameter."""
    parameters = call.parameters
    return ExportRequest(
        what=parameters.choice("what", WHAT) or WHAT[0],
        format=parameters.choice("format", FORMAT_NAMES) or FORMAT_NAMES[0],
        period=parse_period(parameters.text("start"), parameters.text("end")),
        filters=parse_filters(
            parameters.pairs, partial(call.backend.store.goals.of, website.number)
        ),
    )


async def export(call: Call, hostname: str) -> Response:
    """Send the views, the events or the statistics of a website as a file."""
    backend, website = call.backend, call.website(hostname)
    request = request_from(call, website)
    network = sender_network(call.request, backend)
    if backend.exports[network] >= MAX_EXPORTS_PER_NETWORK:
        raise TooMany("too many exports at once from there", retry_after=_RETRY_AFTER_S)
    if backend.exports.total() >= MAX_EXPORTS:
        raise Unavailable("too many exports at once", retry_after=_RETRY_AFTER_S)
    while True:
        try:
            return await _begin(call, website, request, network)
        except DamageFound:
            continue


async def _begin(call: Call, website: Website, request: ExportRequest, network: bytes) -> Response:
    """Return the response with the first piece of the file made. Raises DamageFound."""
    backend = call.backend
    with ExitStack() as stack:
        backend.exports[network] += 1
        stack.callback(_end, backend, network)
        cancellation = Cancellation()
        source = _source_of(call, website, request.period, cancellation, stack)
        encoded = request.encoded(source, int(backend.clock() * 1000))
        file = _File(call, cancellation, encoded)
        stack.callback(file.close)
        # The headers have the gaps of statistics, which are known once all of them are made.
        await file.begin(is_complete=request.what == STATISTICS_TABLE.name)
        name = request.file_name(website.hostname).encode("ascii")
        return Response(
            HTTPStatus.OK,
            content_type=FORMATS[request.format].content_type,
            headers=(
                NO_STORE,
                NO_SNIFFING,
                (b"Content-Disposition", b'attachment; filename="%b"' % name),
                *partial_headers(file.gaps),
            ),
            stream=Stream(file.next_piece, stack.pop_all().close),
        )


def _source_of(
    call: Call, website: Website, period: Period, cancellation: Cancellation, stack: ExitStack
) -> Source:
    """Return what is exported, until the stack ends."""
    backend = call.backend
    origins, sources = backend.store.imports.origins(website), backend.settings.sources
    rules = rules_of(backend.store.goals.of(website.number))
    zone, has_visits = backend.pipeline.rules.zone, backend.store.settings.visits.is_on
    if backend.store.spool is None:
        return ExportSource(
            snapshot=stack.enter_context(backend.store.snapshot(website)),
            origins=origins,
            sources=sources,
            period=period,
            zone=zone,
            has_visits=has_visits,
            cancellation=cancellation,
            rules=rules,
        )
    # Only with a cluster.
    from medamad.query.clickhouse.engine import ClickHouseEngine  # noqa: PLC0415
    from medamad.transfer.cluster_export import ClusterSource  # noqa: PLC0415

    engine = backend.engine
    if not isinstance(engine, ClickHouseEngine):
        raise TypeError("the hits are in a cluster, which another engine cannot export")
    return ClusterSource(
        reader=engine.reader(website.number, sources, cancellation, rules),
        origins=origins,
        period=period,
        zone=zone,
        has_visits=has_visits,
    )


def _end(backend: Backend, network: bytes) -> None:
    # Subtracting counters drops networks that have no exports left.
    backend.exports -= Counter([network])


def add_to(routes: Routes) -> None:
    """Add the route."""
    routes.add("GET", "/website/<hostname>/export", export, Access.READ)
