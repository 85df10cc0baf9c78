"""The account: logging in and out, and changing it."""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from medamad.accounts.credentials import (
    DUMMY_HASH,
    MAX_TOKEN,
    Hashing,
    changed_settings,
    check_login,
    check_password,
    check_username,
    device_id_of,
    digest,
    has_ended,
    hash_password,
    is_stale,
    new_device,
    new_token,
    verify,
)
from medamad.accounts.first_login import (
    FirstLogin,
    configured_login,
    first_login,
    put_back,
    read_file,
    remove_file,
    write_file,
)
from medamad.accounts.login_throttle import LoginThrottle
from medamad.domain.accounts import Account, Login
from medamad.domain.errors import ApiError, Unauthorised, Unavailable

T = TypeVar("T")


class AccountRecords(Protocol):
    """The account and its logins in the store. Reads return at once, writes once on disk."""

    def read(self) -> Account | None:
        """Return the account, None if there is none."""

    def login(self, digest: bytes, /) -> Login | None:
        """Return the login of a token's digest, None if there is none."""

    async def put(self, account: Account, /) -> None:
        """Store the account."""

    async def change(
        self, change: Callable[[Account], Account], /, *, login: bytes | None, end_logins: bool
    ) -> Account:
        """Change the account in one transaction; `end_logins` ends every login except `login`.

        `change` is called in another thread. Raises Unauthorised if the account or the login is
        gone by then.
        """

    async def add_login(self, digest: bytes, login: Login, /) -> None:
        """Store a new login."""

    async def touch_login(self, digest: bytes, now: int, /) -> None:
        """Record that a login was used."""

    async def end_login(self, digest: bytes, /) -> None:
        """Delete a login."""

    async def delete_expired_logins(self, is_over: Callable[[Login], bool], /) -> int:
        """Delete the logins that are over, and return how many there were."""


@frozen
class NewSession:
    """What a browser gets at a login: the session token, and a device to be recognised by later."""

    token: str
    device: str


@frozen
class _LoginSource:
    """What a login attempt is counted under: a known device, or else the sender's network."""

    throttle: LoginThrottle
    name: bytes
    is_known: bool


_MAX_WAITING: Final = 64
"""Passwords that may wait to be hashed: about a second's work for one thread."""
_KEPT_FREE: Final = 8
"""Places among them reserved for known devices and networks, while others guess."""

_NO_LOGIN: Final = "the session cookie is missing or its login has ended"


class Accounts:
    """The account of a store.

    `replace` deletes everything and stores a new account, in one transaction. `hashing` runs slow
    work in the password pool; `clock` returns Unix seconds; `environ` may name the first account.
    Raises FirstLoginError if what it names is invalid. Changes of the account and new logins run
    one at a time, so that no login outlives its password.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        records: AccountRecords,
        replace: Callable[[Account], Awaitable[None]],
        data_dir: Path,
        hashing: Hashing,
        clock: Callable[[], float],
        environ: Mapping[str, str],
    ) -> None:
        self._records = records
        self._replace = replace
        self._data_dir = data_dir
        self._hashing = hashing
        self._clock = clock
        self._configured = configured_login(environ)
        self.logins_refused = 0
        """How many login attempts were refused since the start."""
        self._throttle = LoginThrottle(joint=True)
        self._device_throttle = LoginThrottle()
        self._waiting = 0
        self._touching: set[bytes] = set()
        self._one_at_a_time = DeferredLock()

    def authenticate(self, token: str | None) -> Account:
        """Return the account that a token opens. Raises Unauthorised."""
        account = self._records.read()
        if account is None or not token or len(token) > MAX_TOKEN:
            raise Unauthorised(_NO_LOGIN)
        key = digest(token)
        login = self._records.login(key)
        now = self._clock()
        if login is None or has_ended(login, now):
            raise Unauthorised(_NO_LOGIN)
        if is_stale(login, now):
            self._touch(key, int(now))
        return account

    async def log_in(
        self, username: str, password: str, network: bytes, device: str | None = None
    ) -> NewSession:
        """Begin a login.

        A `device` from an earlier login with this password is slowed by its own failures only, so
        that nobody else can lock the owner out.

        Raises BadRequest for texts that are too long, Unauthorised for a wrong username or
        password (after the same work for either), TooMany if the device or the network has to wait
        after failures, Unavailable if too many attempts are under way.
        """
        try:
            check_login(username, password)
            origin = self._origin(network, device)
            origin.throttle.admit(origin.name, self._clock())
            try:
                begun = await self._check_and_begin(username, password, origin, device)
            finally:
                origin.throttle.ended(origin.name)
        except ApiError:
            self.logins_refused += 1
            raise
        # A success also ends the network's row of failures, which others may have caused.
        self._throttle.succeeded(network)
        return begun

    def _origin(self, network: bytes, device: str | None) -> _LoginSource:
        known = device_id_of(device, self._records.read())
        if known is not None:
            return _LoginSource(self._device_throttle, known, is_known=True)
        return _LoginSource(self._throttle, network, self._throttle.is_known(network))

    async def _check_and_begin(
        self, username: str, password: str, origin: _LoginSource, device: str | None
    ) -> NewSession:
        while True:
            account = self._records.read()
            if not await self._matches(account, username, password, is_known=origin.is_known):
                origin.throttle.failed(origin.name, self._clock())
                raise Unauthorised("the username or the password is wrong")
            async with self._one_at_a_time:
                now = self._records.read()
                if now is None or not _same_credentials(account, now):
                    continue
                token = await self._begin_login()
                if _same_credentials(account, self._records.read()):
                    origin.throttle.succeeded(origin.name)
                    if device is None or device_id_of(device, now) is None:
                        device = new_device(now)
                    return NewSession(token, device)
                # Another process has changed the account meanwhile.
                await self._records.end_login(digest(token))

    async def log_out(self, token: str | None) -> None:
        """End a login. Raises Unauthorised when there is none."""
        self.authenticate(token)
        await self._records.end_login(digest(token or ""))

    async def change(
        self,
        token: str | None,
        *,
        username: str | None = None,
        password: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Account:
        """Change the given fields, all or none, and return the changed account.

        A new password ends every other login. Raises Unauthorised, BadRequest.
        """
        account = self.authenticate(token)
        if username is not None:
            check_username(username)
        change = dict(settings or {})
        changed_settings(account.settings, change)
        encoded = None if password is None else await self._hashed(check_password(password))
        if username is None and encoded is None and not change:
            return account
        now = int(self._clock())

        def changed(account: Account) -> Account:
            return evolve(
                account,
                username=account.username if username is None else username,
                password_hash=account.password_hash if encoded is None else encoded,
                settings=changed_settings(account.settings, change),
                updated=max(now, account.created),
            )

        async with self._one_at_a_time:
            account = await self._records.change(
                changed, login=digest(token or ""), end_logins=encoded is not None
            )
            if encoded is not None:
                remove_file(self._data_dir)
        return account

    async def delete(self, token: str | None) -> FirstLogin:
        """Delete the account with everything it owns, and make a new first account.

        Raises Unauthorised; and Unavailable, in which case nothing has changed.
        """
        self.authenticate(token)
        async with self._one_at_a_time:
            self.authenticate(token)
            return await self._make_first(self._replace)

    async def ensure_first(self) -> FirstLogin | None:
        """Make the first account and return its login, or None if there is an account."""
        async with self._one_at_a_time:
            if self._records.read() is not None:
                return None
            return await self._make_first(self._records.put)

    async def tidy(self) -> None:
        """Delete the logins that have expired."""
        now = self._clock()
        await self._records.delete_expired_logins(lambda login: has_ended(login, now))

    async def _make_first(self, keep: Callable[[Account], Awaitable[None]]) -> FirstLogin:
        """Make the account, its file first: a crash in between leaves no unknown password."""
        login = first_login(self._configured, self._data_dir)
        encoded = await self._hashing(lambda: hash_password(login.password))
        now = int(self._clock())
        before = read_file(self._data_dir)
        write_file(login)
        try:
            await keep(Account(login.username, encoded, created=now, updated=now))
        except Unavailable:
            put_back(before, self._data_dir)
            raise
        if login.file is None:
            remove_file(self._data_dir)
        where = "as given" if login.file is None else f"see {login.file}"
        self._log.info("made the account {username}, {where}", username=login.username, where=where)
        return login

    async def _matches(
        self, account: Account | None, username: str, password: str, *, is_known: bool
    ) -> bool:
        """Return whether both match; a wrong username takes as long as a wrong password."""
        known = account is not None and hmac.compare_digest(
            account.username.encode(), username.encode()
        )
        encoded = account.password_hash if account is not None and known else DUMMY_HASH
        work = self.hash_in_turn(lambda: verify(encoded, password), is_known=is_known)
        return await work and known

    async def _hashed(self, password: str) -> str:
        return await self.hash_in_turn(lambda: hash_password(password), is_known=True)

    async def hash_in_turn(self, work: Callable[[], T], *, is_known: bool) -> T:
        """Run `work` in the password pool. Raises Unavailable if too much is waiting for it.

        `is_known` callers may use the reserved places.
        """
        if self._waiting >= _MAX_WAITING - (0 if is_known else _KEPT_FREE):
            raise Unavailable("too many logins at once, try again later", retry_after=1)
        self._waiting += 1
        try:
            return await self._hashing(work)
        finally:
            self._waiting -= 1

    async def _begin_login(self) -> str:
        token = new_token()
        now = int(self._clock())
        await self._records.add_login(digest(token), Login(since=now, last_seen=now))
        return token

    def _touch(self, key: bytes, now: int) -> None:
        """Record in the background that a login was used."""
        if key in self._touching:
            return
        self._touching.add(key)

        def touched(_result: object) -> None:
            self._touching.discard(key)

        touching = Deferred.fromCoroutine(self._records.touch_login(key, now))
        # The store has logged why it takes no writes.
        touching.addErrback(lambda failure: failure.trap(Unavailable))
        touching.addErrback(
            lambda failure: self._log.failure("the use of a login could not be recorded", failure)
        )
        touching.addBoth(touched)


def _same_credentials(one: Account | None, other: Account | None) -> bool:
    """Return whether both accounts have the same username and password."""
    return (
        one is not None
        and other is not None
        and (one.username, one.password_hash) == (other.username, other.password_hash)
    )
