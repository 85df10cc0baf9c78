"""API tokens: made, shown once, found again by their SHA-256, revoked."""

import secrets
from collections.abc import Callable, Collection
from typing import Final, Protocol

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from medamad.accounts.credentials import check_name
from medamad.accounts.login_throttle import Attempts
from medamad.accounts.sessions import MAX_TOKEN, digest
from medamad.domain.accounts import Scope, Token
from medamad.domain.errors import BadRequest, NotFound, Unauthorised, Unavailable

PREFIX: Final = "medamad_"
"""What every token begins with, so that people and scanners of secrets recognise one."""

_TOKEN_BYTES: Final = 32
_ID_DIGITS: Final = 16
_DAY_S: Final = 86_400
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""


class Records(Protocol):
    """What the store keeps of tokens: reads are at once, writes when they are on disk."""

    def find(self, key: bytes, /) -> Token | None:
        """Return the token kept under a digest."""

    def all(self) -> list[tuple[bytes, Token]]:
        """Return all, each with its digest."""

    async def add(self, key: bytes, token: Token, /) -> None:
        """Keep another one. Raises Conflict when there are as many as there may be."""

    async def change(self, key: bytes, change: Callable[[Token], Token], /) -> None:
        """Change one, unless it has been revoked in the meantime."""

    async def revoke(self, key: bytes, /) -> bool:
        """Revoke one; gives whether it was there."""


def make_token(
    name: str, scope: Scope, websites: Collection[int] | None, expires: int | None, now: int
) -> tuple[str, bytes, Token]:
    """Make up a token: its text, which is kept nowhere, the digest to keep it under, and the rest.

    Raises BadRequest naming the field that is wrong.
    """
    if websites is not None and not websites:
        raise BadRequest("websites: expected at least one, or null for all of them")
    if expires is not None and not now < expires <= _LATEST:
        raise BadRequest("dateExpires: expected a Unix second to come")
    text = PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
    key = digest(text)
    token = Token(
        id=key.hex()[:_ID_DIGITS],
        name=check_name(name),
        scope=scope,
        websites=None if websites is None else tuple(sorted(set(websites))),
        created=now,
        expires=expires,
    )
    return text, key, token


class Tokens:
    """The tokens of a store. `clock` gives Unix seconds.

    A good token always opens what it is for. Who shows bad ones is told to wait, as at the login,
    but keeps nobody else from asking: no token can be guessed.
    """

    _log = Logger()

    def __init__(self, store: Records, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._attempts = Attempts()
        self._touching: set[bytes] = set()

    def authenticate(self, text: str, network: bytes) -> Token:
        """Return the token that a text is. Raises Unauthorised, TooMany."""
        now = self._clock()
        key = digest(text)
        token = self._store.find(key) if len(text) <= MAX_TOKEN else None
        if token is None or (token.expires is not None and token.expires <= now):
            self._attempts.admit(network, now)
            self._attempts.ended(network)
            self._attempts.failed(network, now)
            raise Unauthorised(
                "the token is unknown or revoked" if token is None else "the token has expired"
            )
        today = int(now) // _DAY_S * _DAY_S
        if token.last_used is None or token.last_used < today:
            self._touch(key, today)
        return token

    def all(self) -> list[Token]:
        """Return all tokens in the order in which they were made."""
        return [token for _, token in self._store.all()]

    async def make(
        self, name: str, scope: Scope, websites: Collection[int] | None, expires: int | None
    ) -> tuple[str, Token]:
        """Make a token; gives its text, this once. Raises BadRequest, Conflict."""
        text, key, token = make_token(name, scope, websites, expires, int(self._clock()))
        await self._store.add(key, token)
        return text, token

    async def revoke(self, token_id: str) -> None:
        """Revoke a token. Raises NotFound."""
        for key, token in self._store.all():
            if token.id == token_id and await self._store.revoke(key):
                return
        raise NotFound("there is no such token")

    def _touch(self, key: bytes, today: int) -> None:
        """Note in the background that a token was used today; nobody waits for it."""
        if key in self._touching:
            return
        self._touching.add(key)

        def touched(_result: object) -> None:
            self._touching.discard(key)

        touching = Deferred.fromCoroutine(
            self._store.change(key, lambda token: evolve(token, last_used=today))
        )
        # The store has told in the log why it can take nothing.
        touching.addErrback(lambda failure: failure.trap(Unavailable))
        touching.addErrback(
            lambda failure: self._log.failure("a token's use could not be noted", failure)
        )
        touching.addBoth(touched)
