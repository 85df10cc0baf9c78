"""Exports: all that is stored of a website, sent while it is read."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import Final

from attrs import define, field
from twisted.internet.defer import Deferred

from medamad.domain.errors import TooMany, Unavailable
from medamad.query.filters import parse_conditions
from medamad.query.period import parse_period
from medamad.query.request import Cancellation
from medamad.query.result import NO_GAPS, Gaps
from medamad.transfer.export import FORMAT_NAMES, WHAT, Asked, Exported, Written
from medamad.transfer.registry import FORMATS
from medamad.transfer.tables import STATISTICS
from medamad.web.auth import Access, network_of
from medamad.web.backend import Backend
from medamad.web.dispatch import Call, Routes
from medamad.web.responses import NO_SNIFFING, NO_STORE, Response, Stream, partial_headers

MOST_EXPORTS: Final = 4
"""How many may be under way at once: each holds what it reads."""
MOST_OF_A_NETWORK: Final = 2
"""How many of them for one network, so that a slow reader does not take all."""
_RETRY_AFTER_S: Final = 10
_WAIT_S: Final = 0.5
_STEP_BYTES: Final = 4 << 20


@define(eq=False)
class _Source:
    """The pieces of a file, each made in the question pool."""

    _call: Call
    _cancellation: Cancellation
    _written: Iterator[Written]
    _made: deque[bytes | None] = field(factory=deque)
    _done: int = -1
    _has_ended: bool = False
    gaps: Gaps = NO_GAPS
    """The gaps in what has been made."""

    async def begin(self, *, to_the_end: bool) -> None:
        """Make the first piece, so that what cannot be made at all is refused, or all of them."""
        self._made.append(await self._call.ask(self._step))
        while to_the_end and self._made[-1] is not None:
            self._made.append(await self._make())

    async def next_piece(self) -> bytes | None:
        """Return the next piece, None at the end."""
        return self._made.popleft() if self._made else await self._make()

    async def _make(self) -> bytes | None:
        while True:
            try:
                return await self._call.ask(self._step)
            except Unavailable:
                # There are many questions at the moment: they go first.
                waited: Deferred[None] = Deferred()
                self._call.backend.call_later(_WAIT_S, waited.callback, None)
                await waited

    def close(self) -> None:
        """Make no more, and let go of what was not sent: in a thread, as many rows take long."""
        self._cancellation.cancel()
        if not self._has_ended:
            held = [self._written]
            self._written = iter(())
            # Where that is refused, or a stop gives it up, they go by themselves.
            self._call.ask(held.clear).addErrback(lambda _failure: None)

    def _step(self) -> bytes | None:
        """Go on with the file by one step, which need not give anything.

        The pieces of one report are made in one, as long as they are not too many.
        """
        made: list[bytes] = []
        for written in self._written:
            made.append(written.data)
            for gaps in written.gaps.values():
                self.gaps |= gaps
            has_come_on = written.done != self._done
            self._done = written.done
            if has_come_on or sum(map(len, made)) >= _STEP_BYTES:
                break
        self._has_ended = not made
        return b"".join(made) if made else None


def asked_of(call: Call) -> Asked:
    """Read what is asked for. Raises BadRequest naming the parameter."""
    query = call.query
    return Asked(
        what=query.choice("what", WHAT) or WHAT[0],
        format=query.choice("format", FORMAT_NAMES) or FORMAT_NAMES[0],
        period=parse_period(query.text("start"), query.text("end")),
        conditions=parse_conditions(query.pairs),
    )


async def export(call: Call, hostname: str) -> Response:
    """Send the views, the events or the statistics of a website as a file."""
    backend, website, asked = call.backend, call.website(hostname), asked_of(call)
    network = network_of(call.request, backend)
    if backend.exports[network] >= MOST_OF_A_NETWORK:
        raise TooMany("too many exports at once from there", retry_after=_RETRY_AFTER_S)
    if backend.exports.total() >= MOST_EXPORTS:
        raise Unavailable("too many exports at once", retry_after=_RETRY_AFTER_S)
    with ExitStack() as opened:
        backend.exports[network] += 1
        opened.callback(_ended, backend, network)
        snapshot = opened.enter_context(backend.store.snapshot(website))
        exported = Exported(
            snapshot=snapshot,
            origins=backend.store.imports.origins(website),
            sources=backend.settings.sources,
            period=asked.period,
            zone=backend.pipeline.rules.zone,
        )
        source = _Source(
            call, exported.cancellation, asked.written(exported, int(backend.clock() * 1000))
        )
        opened.callback(source.close)
        # The gaps of statistics are in the headers, before the statistics themselves.
        await source.begin(to_the_end=asked.what == STATISTICS.name)
        name = asked.file_name(website.hostname).encode("ascii")
        return Response(
            HTTPStatus.OK,
            content_type=FORMATS[asked.format].content_type,
            headers=(
                NO_STORE,
                NO_SNIFFING,
                (b"Content-Disposition", b'attachment; filename="%b"' % name),
                *partial_headers(source.gaps),
            ),
            stream=Stream(source.next_piece, opened.pop_all().close),
        )


def _ended(backend: Backend, network: bytes) -> None:
    # A network that receives none any more is kept no longer.
    backend.exports -= Counter([network])


def add_to(routes: Routes) -> None:
    """Add the route."""
    routes.add("GET", "/website/<hostname>/export", export, Access.READ)
