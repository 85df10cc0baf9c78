"""Authentication: the account by its cookie, a program by a token, a reader by a share link."""

from collections.abc import Hashable, Sequence
from typing import Final

from attrs import frozen

from medamad.accounts.tokens import PREFIX
from medamad.domain.accounts import Token
from medamad.domain.errors import Forbidden, Unauthorised
from medamad.domain.websites import Website
from medamad.ingest.networks import prefix_of
from medamad.web import cookies
from medamad.web.backend import Backend
from medamad.web.server import clients
from medamad.web.server.request import Request

SHARE: Final = b"X-Medamad-Share"
"""The header that a page of a share link shows its key by."""

_BEARER: Final = b"bearer "
_FOREIGN: Final = f"the token is none of this service: those begin with {PREFIX}"


@frozen
class Caller:
    """Who asks. `websites` are the numbers of those that may be asked about, None for all."""

    websites: frozenset[int] | None = None
    token: Token | None = None
    is_share: bool = False

    @property
    def is_account(self) -> bool:
        """Whether it is the account, by its cookie, which a browser sends whoever is behind."""
        return self.token is None and not self.is_share

    @property
    def who(self) -> Hashable:
        """Who it is, among those who ask at a time: those behind one share link are one."""
        return self.websites if self.token is None else self.token.id

    def may_see(self, website: Website) -> bool:
        """Return whether a website may be asked about."""
        return self.websites is None or website.number in self.websites

    def check_website(self, hostname: str, website: Website | None) -> None:
        """Raise Forbidden for what may not be asked about: of some websites only, None neither.

        So nobody learns which others are registered.
        """
        if self.websites is not None and (website is None or not self.may_see(website)):
            what = "share link" if self.is_share else "token"
            raise Forbidden(f"hostname: the {what} is not for {hostname}")

    def check_all(self) -> None:
        """Raise Forbidden unless all websites may be asked about."""
        if self.websites is not None:
            raise Forbidden("this takes a token for all websites")


def token_text(request: Request) -> str | None:
    """Return the token that a request shows, None for none.

    What others give out is none of ours: a proxy in front may have logins of its own.
    """
    for value in _authorizations(request):
        if _is_bearer(value):
            text = value[len(_BEARER) :].strip().decode("latin-1")
            if text.startswith(PREFIX):
                return text
    return None


def _authorizations(request: Request) -> Sequence[bytes]:
    return request.headers.values(b"Authorization")


def _is_bearer(value: bytes) -> bool:
    return value[: len(_BEARER)].lower() == _BEARER


def token_of(request: Request, backend: Backend) -> Token | None:
    """Return the good token that a request shows, None for none. Raises Unauthorised, TooMany."""
    text = token_text(request)
    if text is None:
        return None
    return backend.tokens.authenticate(text, network_of(request, backend))


def network_of(request: Request, backend: Backend) -> bytes:
    """Return the network that a sender is counted under."""
    sender = clients.sender_address(request.peer, request.headers, backend.settings)
    return b"" if sender is None else prefix_of(sender)


def caller_of(request: Request, backend: Backend) -> Caller:
    """Tell who asks: what a request shows of itself counts before the cookie.

    Raises Unauthorised when nobody is known by it, TooMany after many bad tokens.
    """
    token = token_of(request, backend)
    if token is not None:
        return Caller(websites_of(token), token)
    key = request.headers.joined(SHARE)
    if key is not None:
        share = backend.shares.authenticate(key.decode("latin-1"))
        return Caller(frozenset((share.website,)), is_share=True)
    cookie = cookies.token_of(request)
    if cookie is None and any(map(_is_bearer, _authorizations(request))):
        raise Unauthorised(_FOREIGN)
    backend.accounts.authenticate(cookie)
    return Caller()


def websites_of(token: Token) -> frozenset[int] | None:
    """Return the numbers of the websites that a token is for, None for all."""
    return None if token.websites is None else frozenset(token.websites)
