"""A request that has passed the checks of its route, and how hits are responded to."""

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import msgspec
from attrs import frozen
from twisted.internet.defer import Deferred

from medamad.domain.accounts import Account
from medamad.domain.errors import ApiError, BadRequest, NotFound
from medamad.domain.websites import Website, canonical_hostname
from medamad.ingest.networks import Address
from medamad.web import parameters
from medamad.web.auth import Caller, sender_network, session_token
from medamad.web.backend import Backend
from medamad.web.parameters import QueryParameters
from medamad.web.responses import Response
from medamad.web.server import clients
from medamad.web.server.request import Request

T = TypeVar("T")

NO_PARAMETERS: Final = QueryParameters()
ANYONE: Final = Caller()


@frozen
class Call:
    """A request that has passed the checks of its route."""

    request: Request
    backend: Backend
    parameters: QueryParameters
    caller: Caller
    """Who calls, if the route's access is authenticated."""

    @property
    def session_token(self) -> str | None:
        """The token of the session cookie."""
        return session_token(self.request)

    @property
    def account(self) -> Account:
        """The account that the session cookie opens. Raises Unauthorised."""
        return self.backend.accounts.authenticate(self.session_token)

    @property
    def sender_address(self) -> Address | None:
        """The sender's address."""
        request = self.request
        return clients.sender_address(request.peer, request.headers, self.backend.settings)

    def run_query(self, query: Callable[[], T]) -> Deferred[T]:
        """Run a query in the query pool, where callers take turns."""
        client = (self.caller.identity, sender_network(self.request, self.backend))
        return self.backend.run_query(query, client=client)

    def body(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Return the decoded body. Raises BadRequest."""
        return parameters.read_body(self.request.body, decoder)

    def website(self, hostname: str) -> Website:
        """Return the website that the path names. Raises BadRequest, NotFound, Forbidden."""
        name = canonical_hostname(hostname)
        website = self.backend.store.websites.by_hostname(name)
        self.caller.check_website(name, website)
        if website is None:
            raise NotFound(f"hostname: no website {name} is registered")
        return website


Respond: TypeAlias = Callable[[Response | Exception], object]
"""Sends a response, or the response to an error. Called once."""

HitHandler: TypeAlias = Callable[[Call, Respond], object]
"""Takes a hit or a ping, and responds now or later: many wait at a time, and awaiting each would
cost more than taking it. May raise what it would respond with."""


def hit_call(request: Request, backend: Backend) -> Call:
    """Return the call of a hit or a ping. Raises BadRequest.

    Any page sends them to any of the service's names, and they read their own query string.
    """
    if request.malformed:
        raise malformed()
    return Call(request, backend, NO_PARAMETERS, ANYONE)


def malformed() -> ApiError:
    """Return the error of a path that is badly encoded."""
    return BadRequest("path: an invalid percent-escape, or not valid UTF-8")
