"""Share links: made, unlocked by their password if they have one, and revoked."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from attrs import evolve

from medamad.accounts.credentials import (
    MAX_LOGIN_TEXT,
    Hashing,
    check_name,
    check_password,
    hash_password,
    verify,
)
from medamad.accounts.login_throttle import LoginThrottle
from medamad.domain.accounts import ANY_ORIGIN, Share
from medamad.domain.errors import ApiError, BadRequest, NotFound, Unauthorised

OPEN_S: Final = 12 * 3_600
"""How long a link stays unlocked by its password."""

MAX_ORIGINS: Final = 20

_ID_BYTES: Final = 18
_ID: Final = re.compile(r"[A-Za-z0-9_-]{24}\Z")
_KEY: Final = re.compile(
    r"(?P<id>[A-Za-z0-9_-]{24})(?:\.(?P<until>[0-9]{1,12})\.(?P<mac>[0-9a-f]{64}))?\Z"
)
_ORIGIN: Final = re.compile(
    r"https?://(?:[a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?\Z"
)
_NETWORKS: Final = 1_000
_NO_SHARE: Final = "this share link does not exist, or no longer does"
_NO_PASSWORD: Final = "this share link asks for a password"  # noqa: S105 - it is no password


class ShareRecords(Protocol):
    """The share links in the store. Reads return at once, writes once on disk."""

    def find(self, key: bytes, /) -> Share | None:
        """Return the link of an id, None if there is none."""

    def all(self) -> list[tuple[bytes, Share]]:
        """Return all links, each with its id."""

    async def add(self, key: bytes, share: Share, /) -> None:
        """Store a new link. Raises Conflict if there are MAX_SHARES."""

    async def revoke(self, key: bytes, /) -> bool:
        """Delete a link, and return whether it existed."""


def make_share(
    name: str, website: int, embed: Iterable[str], password_hash: str, now: int
) -> Share:
    """Return a new share link. Raises BadRequest naming the field that is wrong."""
    return Share(
        id=_new_id(),
        name=check_name(name),
        website=website,
        created=now,
        password_hash=password_hash,
        embed=check_embed(embed),
    )


def _new_id() -> str:
    """Return a new id. A command would take one that begins with a hyphen for an option."""
    while (made := secrets.token_urlsafe(_ID_BYTES)).startswith("-"):
        pass
    return made


def check_embed(origins: Iterable[str]) -> tuple[str, ...]:
    """Return each origin once, or "*" alone if it is one. Raises BadRequest naming `embed`."""
    configured = tuple(dict.fromkeys(origins))
    if len(configured) > MAX_ORIGINS:
        raise BadRequest(f"embed: expected at most {MAX_ORIGINS} origins")
    for origin in configured:
        if origin != ANY_ORIGIN and not _ORIGIN.match(origin):
            raise BadRequest('embed: expected origins such as "https://www.example.com", or "*"')
    return (ANY_ORIGIN,) if ANY_ORIGIN in configured else configured


class Shares:
    """The share links of a store. `clock` returns Unix seconds."""

    def __init__(self, store: ShareRecords, hashing: Hashing, clock: Callable[[], float]) -> None:
        self._store = store
        self._hashing = hashing
        self._clock = clock
        self.refused = 0
        """How many attempts to unlock a link were refused since the start."""
        self._throttle: dict[str, LoginThrottle] = {}

    def find(self, share_id: str) -> Share:
        """Return the link of an id, locked or not. Raises NotFound."""
        share = self._store.find(share_id.encode("ascii")) if _ID.match(share_id) else None
        if share is None:
            raise NotFound(_NO_SHARE)
        return share

    def authenticate(self, key: str) -> Share:
        """Return the link of a key: its id, or what `unlock` returned. Raises Unauthorised."""
        parts = _KEY.match(key)
        share = self._store.find(parts["id"].encode("ascii")) if parts else None
        if parts is None or share is None:
            raise Unauthorised(_NO_SHARE)
        if share.password_hash:
            until, configured = parts["until"], parts["mac"]
            if configured is None or not hmac.compare_digest(configured, _mac(share, int(until))):
                raise Unauthorised(_NO_PASSWORD)
            if int(until) <= self._clock():
                raise Unauthorised(_NO_PASSWORD)
        return share

    async def unlock(self, share_id: str, password: str, network: bytes) -> tuple[Share, str]:
        """Return a link and the key that opens it for OPEN_S.

        Raises NotFound, BadRequest, Unauthorised for a wrong password, TooMany if `network` has to
        wait after wrong ones, Unavailable if too many passwords are waiting.
        """
        share = self.find(share_id)
        if not share.password_hash:
            return share, share.id
        try:
            await self._check(share, password, network)
        except ApiError:
            self.refused += 1
            raise
        until = int(self._clock()) + OPEN_S
        return share, f"{share.id}.{until}.{_mac(share, until)}"

    async def _check(self, share: Share, password: str, network: bytes) -> None:
        if len(password) > MAX_LOGIN_TEXT:
            raise BadRequest(f"password: expected at most {MAX_LOGIN_TEXT} characters")
        throttle = self._throttle.setdefault(share.id, LoginThrottle(_NETWORKS))
        throttle.admit(network, self._clock())
        try:
            is_right = await self._hashing(lambda: verify(share.password_hash, password))
        finally:
            throttle.ended(network)
        if not is_right:
            throttle.failed(network, self._clock())
            raise Unauthorised("the password is wrong")
        throttle.succeeded(network)

    def of(self, website: int) -> list[Share]:
        """Return the links of a website in the order in which they were made."""
        return [share for _, share in self._store.all() if share.website == website]

    async def make(
        self, name: str, website: int, *, password: str | None, embed: Iterable[str]
    ) -> Share:
        """Make a share link. Raises BadRequest, Conflict, Unavailable."""
        share = make_share(name, website, embed, "", int(self._clock()))
        if password is not None:
            checked = check_password(password)
            encoded = await self._hashing(lambda: hash_password(checked))
            share = evolve(share, password_hash=encoded)
        await self._store.add(share.id.encode("ascii"), share)
        return share

    async def revoke(self, share_id: str, website: int) -> None:
        """Revoke a link of a website. Raises NotFound."""
        if self.find(share_id).website != website:
            raise NotFound(_NO_SHARE)
        if not await self._store.revoke(share_id.encode("ascii")):
            raise NotFound(_NO_SHARE)
        self._throttle.pop(share_id, None)


def _mac(share: Share, until: int) -> str:
    """Return the signature of the time until which a link is unlocked.

    It is keyed by the hash of the link's password, so that it ends with the password or the link.
    """
    key = hashlib.sha256(share.password_hash.encode()).digest()
    return hmac.new(key, f"{share.id}.{until}".encode(), hashlib.sha256).hexdigest()
