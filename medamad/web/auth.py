"""Who may call what: the account by its cookie, a program by a token, a reader by a share link."""

import re
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final

from attrs import frozen

from medamad.accounts.credentials import DEVICE_LIFETIME_S
from medamad.accounts.tokens import TOKEN_PREFIX
from medamad.domain.accounts import Scope, Token
from medamad.domain.errors import Forbidden, Unauthorised
from medamad.domain.websites import Website
from medamad.ingest.networks import prefix_of
from medamad.web.backend import Backend
from medamad.web.server import clients
from medamad.web.server.request import Request

SESSION_COOKIE: Final = b"_me_sess"
DEVICE_COOKIE: Final = b"_me_device"
SESSION_MAX_AGE_S: Final = 30 * 24 * 3600
_ATTRIBUTES: Final = b"Path=/; HttpOnly; SameSite=Lax; Secure"


def session_token(request: Request) -> str | None:
    """Return the session token that a request carries, None if there is none or it is not ASCII."""
    return _cookie(request, SESSION_COOKIE)


def device_text(request: Request) -> str | None:
    """Return the device that a request carries, None if there is none or it is not ASCII."""
    return _cookie(request, DEVICE_COOKIE)


def _cookie(request: Request, name: bytes) -> str | None:
    """Return the last cookie of a name. The rest of the header is not parsed."""
    sent = b";".join(request.headers.values(b"Cookie"))
    values = re.findall(rb"(?:\A|;)\s*%b=([^;]*)" % name, sent)
    if not values or not values[-1].isascii():
        return None
    return values[-1].decode("ascii") or None


def set_session(token: str) -> tuple[bytes, bytes]:
    """Return the header that sets the session cookie."""
    attributes = b"Max-Age=%d; %b" % (SESSION_MAX_AGE_S, _ATTRIBUTES)
    return (b"Set-Cookie", b"%b=%b; %b" % (SESSION_COOKIE, token.encode(), attributes))


def set_device(device: str, path: bytes) -> tuple[bytes, bytes]:
    """Return the header that sets the device cookie, which is sent to the login at `path` only."""
    attributes = b"Max-Age=%d; Path=%b; HttpOnly; SameSite=Strict; Secure" % (
        DEVICE_LIFETIME_S,
        path,
    )
    return (b"Set-Cookie", b"%b=%b; %b" % (DEVICE_COOKIE, device.encode(), attributes))


DELETE_SESSION: Final = (
    b"Set-Cookie",
    b"%b=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; %b" % (SESSION_COOKIE, _ATTRIBUTES),
)
"""The header that deletes the session cookie."""


SHARE_HEADER: Final = b"X-Medamad-Share"
"""The header in which the page of a share link sends the link's key."""

_BEARER: Final = b"bearer "
_FOREIGN: Final = f"this is not a token of this service: those begin with {TOKEN_PREFIX}"


@frozen
class Caller:
    """Who makes a request. `websites` are the numbers of those it may see, None for all."""

    websites: frozenset[int] | None = None
    token: Token | None = None
    is_share: bool = False

    @property
    def is_account(self) -> bool:
        """Whether it is the account, by the cookie that a browser sends on its own."""
        return self.token is None and not self.is_share

    @property
    def identity(self) -> Hashable:
        """What identifies a caller where callers alternate; readers of a website are one."""
        return self.websites if self.token is None else self.token.id

    def may_see(self, website: Website) -> bool:
        """Return whether the caller may see a website."""
        return self.websites is None or website.number in self.websites

    def check_website(self, hostname: str, website: Website | None) -> None:
        """Raise Forbidden for a website that the caller may not see, or that does not exist.

        `website` is None then. The error is the same in both cases, so that it does not reveal what
        is registered.
        """
        if self.websites is not None and (website is None or not self.may_see(website)):
            what = "share link" if self.is_share else "token"
            raise Forbidden(f"hostname: the {what} is not for {hostname}")

    def check_all(self) -> None:
        """Raise Forbidden unless the caller may see all websites."""
        if self.websites is not None:
            raise Forbidden("this takes a token for all websites")


class Access(Enum):
    """Who may call a route.

    Changes made by cookie have to come from our own pages, and are forbidden in demo mode.
    """

    COOKIE = "the account, by its cookie"
    LOGOUT = "the account, by its cookie, in demo mode too"
    CHANGE = "the account, or a full token"
    ANNOTATE = "the account, or a token that may annotate"
    READ = "the account, or a token that may read"
    STATISTICS = "the account, a token that may read, or a share link"
    LOGIN = "anyone, from our own pages only"
    ANY_PAGE = "anyone, from any page"
    SCRIPT = "anyone, under any hostname, since a website may proxy it as its own"
    OPEN = "anyone"
    FORM = "anyone, from a page or a mail program, which send no JSON"

    @property
    def is_authenticated(self) -> bool:
        """Whether the caller has to be known."""
        return self in _SCOPES

    def check(self, caller: Caller) -> None:
        """Raise Forbidden if this caller may not use the route."""
        if caller.is_share and self is not Access.STATISTICS:
            raise Forbidden("a share link shows the figures of its website, and nothing else")
        if caller.token is not None and caller.token.scope not in _SCOPES[self]:
            scopes = " or ".join(sorted(_SCOPES[self]))
            raise Forbidden(
                f"this takes a token whose scope is {scopes}"
                if scopes
                else "this takes the account's own login; no token is accepted"
            )


_READERS: Final = frozenset((Scope.READ, Scope.FULL))
_SCOPES: Final[Mapping[Access, frozenset[Scope]]] = MappingProxyType(
    {
        Access.COOKIE: frozenset(),
        Access.LOGOUT: frozenset(),
        Access.CHANGE: frozenset((Scope.FULL,)),
        Access.ANNOTATE: frozenset((Scope.ANNOTATE, Scope.FULL)),
        Access.READ: _READERS,
        Access.STATISTICS: _READERS,
    }
)
"""The scopes of the tokens that each authenticated access accepts."""


def caller_of(request: Request, backend: Backend) -> Caller:
    """Return who makes a request. A token or the key of a share link goes before the cookie.

    Raises Unauthorised if the caller is unknown, TooMany after many invalid tokens.
    """
    token = token_of(request, backend)
    if token is not None:
        return Caller(None if token.websites is None else frozenset(token.websites), token)
    key = request.headers.joined(SHARE_HEADER)
    if key is not None:
        share = backend.shares.authenticate(key.decode("latin-1"))
        return Caller(frozenset((share.website,)), is_share=True)
    cookie = session_token(request)
    if cookie is None and any(map(_is_bearer, _authorizations(request))):
        raise Unauthorised(_FOREIGN)
    backend.accounts.authenticate(cookie)
    return Caller()


def token_of(request: Request, backend: Backend) -> Token | None:
    """Return the valid token that a request carries, None for none. Raises Unauthorised, TooMany.

    Other bearer tokens are ignored: a proxy in front may have logins of its own.
    """
    for value in _authorizations(request):
        if _is_bearer(value):
            text = value[len(_BEARER) :].strip().decode("latin-1")
            if text.startswith(TOKEN_PREFIX):
                return backend.tokens.authenticate(text, sender_network(request, backend))
    return None


def _authorizations(request: Request) -> Sequence[bytes]:
    return request.headers.values(b"Authorization")


def _is_bearer(value: bytes) -> bool:
    return value[: len(_BEARER)].lower() == _BEARER


def sender_network(request: Request, backend: Backend) -> bytes:
    """Return the /24 or /48 of the sender, b"" if its address is unknown."""
    sender = clients.sender_address(request.peer, request.headers, backend.settings)
    return b"" if sender is None else prefix_of(sender)
