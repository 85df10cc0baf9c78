"""Logging in and out, and changing the account: what may happen to it, in what order."""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from medamad.accounts.credentials import (
    DUMMY_HASH,
    changed_settings,
    check_login,
    check_password,
    check_username,
    hash_password,
    verify,
)
from medamad.accounts.first_login import (
    FirstLogin,
    first_login,
    given_login,
    put_back,
    read_file,
    remove_file,
    write_file,
)
from medamad.accounts.interfaces import Hashing, Records
from medamad.accounts.login_throttle import Attempts
from medamad.accounts.sessions import (
    MAX_TOKEN,
    device_of,
    digest,
    has_ended,
    is_stale,
    new_device,
    new_token,
)
from medamad.domain.accounts import Account, Login
from medamad.domain.errors import ApiError, Unauthorised, Unavailable

T = TypeVar("T")


@frozen
class Begun:
    """A login that has begun: its token, and the device to know the browser again by."""

    token: str
    device: str


@frozen
class _From:
    """Where an attempt to log in comes from: a known device, whatever its network, or a network."""

    attempts: Attempts
    name: bytes
    is_known: bool


_MAX_WAITING: Final = 64
"""Passwords that may wait to be hashed: with one thread, about a second's work."""
_KEPT_FREE: Final = 8
"""Places among them for known devices and networks, whoever else is guessing."""

_NO_LOGIN: Final = "the session cookie is missing or its login has ended"


class Accounts:
    """The account of a store.

    `replace` puts a new account in the place of all there is, in one transaction. `hashing` runs
    slow work in the password pool; `clock` gives Unix seconds; `environ` may name the first
    account. Raises GivenLoginError when what it names cannot be used. Whatever changes the account
    or begins a login does so one at a time, so that no login outlives its password.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        records: Records,
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
        self._given = given_login(environ)
        self.logins_refused = 0
        """How many attempts to log in were refused, since the start."""
        self._attempts = Attempts()
        self._device_attempts = Attempts()
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
    ) -> Begun:
        """Begin a login.

        A `device` that an earlier login with this password gave is slowed by its own failures
        alone, so that nobody else can keep the owner waiting.

        Raises BadRequest for texts beyond any bound, Unauthorised for a pair that is not the
        account's (after the same work whether or not the name is), TooMany when the device or else
        the network has to wait after failures, Unavailable when too many attempts, of it or of
        all, are under way.
        """
        try:
            check_login(username, password)
            origin = self._origin(network, device)
            origin.attempts.admit(origin.name, self._clock())
            try:
                begun = await self._log_in(username, password, origin, device)
            finally:
                origin.attempts.ended(origin.name)
        except ApiError:
            self.logins_refused += 1
            raise
        # The failures of others, too, were no longer in a row.
        self._attempts.succeeded(network)
        return begun

    def _origin(self, network: bytes, device: str | None) -> _From:
        known = device_of(device, self._records.read())
        if known is not None:
            return _From(self._device_attempts, known, is_known=True)
        return _From(self._attempts, network, self._attempts.is_known(network))

    async def _log_in(
        self, username: str, password: str, origin: _From, device: str | None
    ) -> Begun:
        while True:
            account = self._records.read()
            if not await self._matches(account, username, password, is_known=origin.is_known):
                origin.attempts.failed(origin.name, self._clock())
                raise Unauthorised("the username or the password is wrong")
            async with self._one_at_a_time:
                now = self._records.read()
                if now is None or not _same_credentials(account, now):
                    continue
                token = await self._begin_login()
                if _same_credentials(account, self._records.read()):
                    origin.attempts.succeeded(origin.name)
                    if device is None or device_of(device, now) is None:
                        device = new_device(now)
                    return Begun(token, device)
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
        """Change what is given, all or not at all, and give the account as it is then.

        A new password ends every login but this one. Raises Unauthorised, BadRequest.
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
        """Put a new first account in the place of the account and all that is its own.

        Raises Unauthorised; and Unavailable, when nothing has changed.
        """
        self.authenticate(token)
        async with self._one_at_a_time:
            self.authenticate(token)
            return await self._make_first(self._replace)

    async def ensure_first(self) -> FirstLogin | None:
        """Make the first account where there is none, and give its login; None where there is."""
        async with self._one_at_a_time:
            if self._records.read() is not None:
                return None
            return await self._make_first(self._records.put)

    async def tidy(self) -> None:
        """Forget the logins that have ended by themselves."""
        now = self._clock()
        await self._records.forget_logins(lambda login: has_ended(login, now))

    async def _make_first(self, keep: Callable[[Account], Awaitable[None]]) -> FirstLogin:
        """Make the account. The file comes first: a crash between leaves no unknown password."""
        login = first_login(self._given, self._data_dir)
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
        """Return whether a pair is the account's; a wrong name takes as long as a wrong password."""
        known = account is not None and hmac.compare_digest(
            account.username.encode(), username.encode()
        )
        encoded = account.password_hash if account is not None and known else DUMMY_HASH
        work = self.hash_in_turn(lambda: verify(encoded, password), is_known=is_known)
        return await work and known

    async def _hashed(self, password: str) -> str:
        return await self.hash_in_turn(lambda: hash_password(password), is_known=True)

    async def hash_in_turn(self, work: Callable[[], T], *, is_known: bool) -> T:
        """Run `work` in the password pool. Raises Unavailable when too much waits for it.

        Some room is kept for whom `is_known` tells of.
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
        """Note in the background that a login was used; nobody waits for it."""
        if key in self._touching:
            return
        self._touching.add(key)

        def touched(_result: object) -> None:
            self._touching.discard(key)

        touching = Deferred.fromCoroutine(self._records.touch_login(key, now))
        # The store has told in the log why it can take nothing.
        touching.addErrback(lambda failure: failure.trap(Unavailable))
        touching.addErrback(
            lambda failure: self._log.failure("a login's use could not be noted", failure)
        )
        touching.addBoth(touched)


def _same_credentials(one: Account | None, other: Account | None) -> bool:
    """Return whether a pair that opened `one` opens `other`."""
    return (
        one is not None
        and other is not None
        and (one.username, one.password_hash) == (other.username, other.password_hash)
    )
