"""API tokens: made, shown once, looked up by their SHA-256, and revoked."""

import secrets
from collections.abc import Callable, Collection
from typing import Final, Protocol

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from medamad.accounts.credentials import MAX_TOKEN, check_name, digest
from medamad.accounts.login_throttle import LoginThrottle
from medamad.domain.accounts import Scope, Token
from medamad.domain.errors import BadRequest, NotFound, Unauthorised, Unavailable

TOKEN_PREFIX: Final = "medamad_"  # noqa: S105 - it is no password
"""What every token begins with, so that people and secret scanners recognise one."""

_TOKEN_BYTES: Final = 32
_ID_DIGITS: Final = 16
_DAY_S: Final = 86_400
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""


class TokenRecords(Protocol):
    """The tokens in the store. Reads return at once, writes once on disk."""

    def find(self, key: bytes, /) -> Token | None:
        """Return the token of a digest, None if there is none."""

    def all(self) -> list[tuple[bytes, Token]]:
        """Return all tokens, each with its digest."""

    async def add(self, key: bytes, token: Token, /) -> None:
        """Store a new token. Raises Conflict if there are MAX_TOKENS."""

    async def change(self, key: bytes, change: Callable[[Token], Token], /) -> None:
        """Change a token, unless it has been revoked by then."""

    async def revoke(self, key: bytes, /) -> bool:
        """Delete a token, and return whether it existed."""


def make_token(
    name: str, scope: Scope, websites: Collection[int] | None, expires: int | None, now: int
) -> tuple[str, bytes, Token]:
    """Return a new token: its text, which is not stored, its digest, and the token itself.

    Raises BadRequest naming the field that is wrong.
    """
    if websites is not None and not websites:
        raise BadRequest("websites: expected at least one, or null for all of them")
    if expires is not None and not now < expires <= _LATEST:
        raise BadRequest("dateExpires: expected a Unix time in the future")
    text = TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
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
    """The tokens of a store. `clock` returns Unix seconds.

    A valid token is always accepted. A network that sends invalid ones has to wait, as at the
    login, but slows nobody else: no token can be guessed.
    """

    _log = Logger()

    def __init__(self, store: TokenRecords, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._throttle = LoginThrottle()
        self._touching: set[bytes] = set()

    def authenticate(self, text: str, network: bytes) -> Token:
        """Return the token of a text. Raises Unauthorised, TooMany."""
        now = self._clock()
        key = digest(text)
        token = self._store.find(key) if len(text) <= MAX_TOKEN else None
        if token is None or (token.expires is not None and token.expires <= now):
            self._throttle.admit(network, now)
            self._throttle.ended(network)
            self._throttle.failed(network, now)
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
        """Make a token, and return it with its text, which is not stored.

        Raises BadRequest, Conflict.
        """
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
        """Record in the background that a token was used today."""
        if key in self._touching:
            return
        self._touching.add(key)

        def touched(_result: object) -> None:
            self._touching.discard(key)

        touching = Deferred.fromCoroutine(
            self._store.change(key, lambda token: evolve(token, last_used=today))
        )
        # The store has logged why it takes no writes.
        touching.addErrback(lambda failure: failure.trap(Unavailable))
        touching.addErrback(
            lambda failure: self._log.failure("the use of a token could not be recorded", failure)
        )
        touching.addBoth(touched)
