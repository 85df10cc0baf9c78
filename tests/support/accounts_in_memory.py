"""An account on records in memory; passwords are hashed when the test says so."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define, evolve, field
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from medamad.accounts.accounts import Accounts
from medamad.domain.accounts import Account, Login
from medamad.domain.errors import ApiError, Unauthorised

T = TypeVar("T")

NOW = 1_750_000_000
DAY = 86_400
HOME = b"\x0a\x00\x00"
PASSWORD = "correct horse"
GIVEN = {"MEDAMAD_USERNAME": "ada", "MEDAMAD_PASSWORD": PASSWORD}


@define(eq=False)
class Memory:
    """Records that are written at once, or when `writes` are let through."""

    kept: Account | None = None
    logins: dict[bytes, Login] = field(factory=dict)
    websites: int = 2
    fault: Exception | None = None
    is_held: bool = False
    writes: list[Deferred[None]] = field(factory=list)

    def read(self) -> Account | None:
        return self.kept

    def login(self, key: bytes) -> Login | None:
        return self.logins.get(key)

    async def put(self, account: Account) -> None:
        await self._written()
        self.kept = account

    async def change(
        self, change: Callable[[Account], Account], *, login: bytes | None, end_logins: bool
    ) -> Account:
        await self._written()
        if self.kept is None or (login is not None and login not in self.logins):
            raise Unauthorised("the login has ended")
        self.kept = change(self.kept)
        if end_logins:
            self.logins = {key: row for key, row in self.logins.items() if key == login}
        return self.kept

    async def replace(self, account: Account) -> None:
        await self._written()
        self.kept, self.websites = account, 0
        self.logins.clear()

    async def add_login(self, key: bytes, login: Login) -> None:
        await self._written()
        self.logins[key] = login

    async def touch_login(self, key: bytes, now: int) -> None:
        await self._written()
        if key in self.logins:
            self.logins[key] = evolve(self.logins[key], last_seen=now)

    async def end_login(self, key: bytes) -> None:
        await self._written()
        self.logins.pop(key, None)

    async def delete_expired_logins(self, is_over: Callable[[Login], bool]) -> int:
        await self._written()
        over = [key for key, login in self.logins.items() if is_over(login)]
        for key in over:
            del self.logins[key]
        return len(over)

    async def _written(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self.is_held:
            write: Deferred[None] = Deferred()
            self.writes.append(write)
            await write


@define(eq=False)
class Pool:
    """A password pool that works at once, or when released."""

    is_held: bool = False
    waiting: list[Deferred[None]] = field(factory=list)

    def __call__(self, work: Callable[[], T]) -> Deferred[T]:
        if not self.is_held:
            return execute(work)
        turn: Deferred[None] = Deferred()
        self.waiting.append(turn)
        return turn.addCallback(lambda _: work())

    def go_on(self) -> None:
        self.waiting.pop(0).callback(None)


@define(eq=False)
class Doubles:
    """Test doubles of what accounts need: records, a pool for passwords, and a clock."""

    folder: Path
    store: Memory = field(factory=Memory)
    pool: Pool = field(factory=Pool)
    clock: Clock = field(factory=Clock)

    def accounts(self, environ: dict[str, str] = GIVEN) -> Accounts:
        self.clock.rightNow = float(NOW)
        return Accounts(
            records=self.store,
            replace=self.store.replace,
            data_dir=self.folder,
            hashing=self.pool,
            clock=self.clock.seconds,
            environ=environ,
        )


def begun(work: Coroutine[Any, Any, T]) -> Deferred[T]:
    return Deferred.fromCoroutine(work)


def outcome(deferred: Deferred[T]) -> T:
    """Return the result that a Deferred has already, or raise its failure."""
    results: list[T | Failure] = []
    deferred.addBoth(results.append)
    assert results, "not fired"
    if isinstance(results[0], Failure):
        results[0].raiseException()
    return results[0]


def deferred_error(deferred: Deferred[Any]) -> Exception:
    """Return the refusal that a Deferred has already."""
    with pytest.raises(ApiError) as error:
        outcome(deferred)
    return error.value


def done(work: Coroutine[Any, Any, T]) -> T:
    return outcome(begun(work))


@pytest.fixture
def doubles(tmp_path: Path) -> Doubles:
    return Doubles(tmp_path)


@pytest.fixture
def accounts(doubles: Doubles) -> Accounts:
    accounts = doubles.accounts()
    done(accounts.ensure_first())
    return accounts


def log_in(accounts: Accounts, password: str = PASSWORD, network: bytes = HOME) -> str:
    return done(accounts.log_in("ada", password, network)).token
