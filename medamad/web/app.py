"""The HTTP side of the daemon: every request, at the root and under /api, to its routes."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from medamad.accounts.accounts import Accounts
from medamad.accounts.shares import Shares
from medamad.accounts.tokens import Tokens
from medamad.build import check_frontend, load_kernel
from medamad.domain.errors import ApiError, Unavailable
from medamad.ingest.pipeline import Pipeline, load_tables
from medamad.ingest.write_queue import Reactor
from medamad.mail.mailer import Mailer
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.engine import Engine
from medamad.storage.store import Store
from medamad.web import cors
from medamad.web.backend import Backend, OtherCollectors, RunQuery
from medamad.web.call import hit_call
from medamad.web.responses import (
    NO_STORE,
    Response,
    error_response,
    failure_response,
    json_response,
)
from medamad.web.routes import hits
from medamad.web.server.request import Request
from medamad.web.server.site import Site
from medamad.web.settings import API_PREFIX, EVENT_NAME, WebSettings
from medamad.web.whole_hits import WholeHits

if TYPE_CHECKING:
    from medamad.web.routing import Routing

_OPTIONS_OF_SERVER: Final = (b"OPTIONS", b"*")
COLLECTORS: Final = b"/cluster"
"""The path of what collectors of a cluster say to each other."""
_METHODS: Final = b"DELETE, GET, HEAD, OPTIONS, PATCH, POST"


class Root:
    """Finds the route of every request.

    Klein routes all of them except hits and pings. There are so many of these that routing by
    Klein would cost as much as everything else, so they are looked up by their exact paths. The
    checks and handlers are the same. They need none of what the others import.
    """

    def __init__(self, backend: Backend, site: Site) -> None:
        self._backend = backend
        self._site = site
        self._event_name = EVENT_NAME
        self._hits = _hit_paths(EVENT_NAME)

    @cached_property
    def _routing(self) -> "Routing":
        # Klein and the tables import werkzeug, which fails if two threads load modules of it at
        # once. This waits for what another thread has begun to load of the tables.
        load_tables()
        # Importing it would take half of the start.
        from medamad.web.routing import Routing  # noqa: PLC0415

        return Routing(self._backend, self._site)

    def load(self) -> None:
        """Load what requests need and the start does not; other threads can run meanwhile."""
        _ = self._routing

    def serve(self, request: Request) -> None:
        """Respond to a request, now or later."""
        self._remove_base_path(request)
        name = self._name_of_hit(request.method, request.path)
        if name is not None:
            self._serve_hit(request, name)
        elif (request.method, request.path) == _OPTIONS_OF_SERVER:
            request.respond(Response(HTTPStatus.NO_CONTENT, headers=((b"Allow", _METHODS),)))
        elif request.path == COLLECTORS and self._backend.collectors is not None:
            serving = Deferred.fromCoroutine(_answer(request, self._backend.collectors))
            serving.addErrback(
                lambda failure: request.respond(failure_response(failure, "a collector"))
            )
        else:
            resource = self._routing.routes_of(request).resource
            resource.render(request)  # type: ignore[arg-type] # mypy knows no zope

    def is_hit(self, method: bytes, target: bytes) -> bool:
        """Return whether a request of a method and target is a hit."""
        return self._name_of_hit(method, self._without_base_path(target)) == hits.HIT_ROUTE

    def _name_of_hit(self, method: bytes, path: bytes) -> str | None:
        """Return the name of the route of hits or pings for a method and path, None for others."""
        event_name = self._backend.settings.event_name
        if event_name != self._event_name:
            self._event_name = event_name
            self._hits = _hit_paths(event_name)
        return self._hits.get((method, path))

    def _serve_hit(self, request: Request, name: str) -> None:
        def respond(result: Response | Exception) -> None:
            if result is hits.NOT_IGNORED and request.keeps_connection:
                request.respond_encoded(self._site.encoded_no_content())
                return
            if isinstance(result, Exception):
                result = failure_response(Failure(result), name)
            request.respond(result, cors.ANY_EXPOSED)

        try:
            hits.HANDLERS[name](hit_call(request, self._backend), respond)
        except Exception as error:  # noqa: BLE001 - any error is logged and answered
            respond(error)

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""
        self._remove_base_path(request)
        return self._routing.routes_of(request).error_response(request, error)

    def _remove_base_path(self, request: Request) -> None:
        request.path = self._without_base_path(request.path)

    def _without_base_path(self, path: bytes) -> bytes:
        """Return a path without the base path, unless the proxy has removed it."""
        base = self._backend.settings.base_path.encode("ascii")
        if base and (path == base or path.startswith(base + b"/")):
            return path.removeprefix(base) or b"/"
        return path


async def _answer(request: Request, collectors: OtherCollectors) -> None:
    """Respond to another collector of the cluster."""
    sent = request.headers.joined(b"Authorization") or b""
    answer = await collectors.answer(sent.removeprefix(b"Bearer "), request.body)
    request.respond(Response(HTTPStatus.OK, answer, b"application/msgpack", (NO_STORE,)))


_API: Final = b"/" + API_PREFIX.encode("ascii")


def _hit_paths(event_name: str) -> Mapping[tuple[bytes, bytes], str]:
    """Return the route's name of each method and path of hits: under both prefixes, by both names.

    A tracker whose tag has a slash at the end of the API address sends two slashes.
    """
    return MappingProxyType(
        {
            (
                method.encode("ascii"),
                prefix + path.replace(EVENT_NAME, name, 1).encode("ascii"),
            ): route
            for route in hits.HANDLERS
            for method, path in [route.split(" ")]
            for prefix in (b"", b"/", _API, _API + b"/")
            for name in (EVENT_NAME, event_name)
        }
    )


def make_site(
    *,
    store: Store,
    pipeline: Pipeline,
    accounts: Accounts,
    run_query: RunQuery,
    mailer: Mailer,
    settings: WebSettings,
    clock: Callable[[], float],
    reactor: Reactor,
    engine: Engine | None = None,
) -> Site:
    """Return the site. Its backend's `settings` may be replaced while it runs.

    Statistics are answered from the store, unless by another engine.

    Raises FileNotFoundError if the package was built without the front end.
    """
    backend = Backend(
        store=store,
        engine=engine or EmbeddedEngine(store),
        pipeline=pipeline,
        accounts=accounts,
        tokens=Tokens(store.tokens, clock),
        shares=Shares(store.shares, partial(accounts.hash_in_turn, is_known=False), clock),
        run_query=run_query,
        mailer=mailer,
        clock=clock,
        seconds=reactor.seconds,
        call_later=reactor.callLater,
        settings=settings,
    )
    site = Site(backend, reactor)
    check_frontend()
    load_kernel()
    root = Root(backend, site)
    site.root = root
    hits = WholeHits(backend, site, root.is_hit)
    site.take_hit, site.is_head_of_hit = hits.take, hits.is_head
    site.forget_heads = hits.forget
    return site


_RETRY_AFTER_S: Final = 60
_FOR_EVERYONE: Final = "the service is unavailable: its store is damaged"


@frozen
class _OutageBackend:
    """The part of a backend that a site needs while the store is damaged."""

    settings: WebSettings
    clock: Callable[[], float]


@frozen
class OutageRoot:
    """Responds with 503 while the store is damaged; who may see /health gets the reason."""

    _reason: str
    _settings: WebSettings

    def serve(self, request: Request) -> None:
        """Respond to a request."""
        may_see = cors.may_monitor(request.peer, request.headers, self._settings)
        if may_see and request.path == b"/health/live":
            request.respond(json_response({"live": True}))
        elif may_see and request.path == b"/health":
            request.respond(_unavailable(f"not ready: {self._reason}"))
        else:
            request.respond(_unavailable(_FOR_EVERYONE))

    def error_response(self, _request: Request, _error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""
        return _unavailable(_FOR_EVERYONE)

    def load(self) -> None:
        """Load nothing: a response is always the same."""


def _unavailable(message: str) -> Response:
    response = error_response(Unavailable(message, retry_after=_RETRY_AFTER_S))
    return evolve(response, headers=(*cors.ANY, *response.headers))


def make_outage_site(
    reason: str, settings: WebSettings, clock: Callable[[], float], reactor: Reactor
) -> Site:
    """Return a site that responds with 503 to everything."""
    # A site uses nothing else of its backend.
    site = Site(cast("Backend", _OutageBackend(settings, clock)), reactor)
    site.root = OutageRoot(reason, settings)
    return site
