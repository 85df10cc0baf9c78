"""The account on records in memory; passwords are hashed when the test says so."""

from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define, evolve, field
from logged import LoggedFailures
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from medamad.account.accounts import Accounts
from medamad.account.first_login import GivenLoginError
from medamad.account.logins import digest
from medamad.account.passwords import hash_password, verify
from medamad.model.accounts import Account, Login, Settings
from medamad.model.errors import BadRequest, Refusal, TooMany, Unauthorised, Unavailable

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

    def account(self) -> Account | None:
        return self.kept

    def login(self, key: bytes) -> Login | None:
        return self.logins.get(key)

    async def put_account(self, account: Account) -> None:
        await self._written()
        self.kept = account

    async def change_account(
        self, change: Callable[[Account], Account], *, login: bytes | None, end_logins: bool
    ) -> Account:
        await self._written()
        if self.kept is None or (login is not None and login not in self.logins):
            raise Unauthorised("the login has ended")
        self.kept = change(self.kept)
        if end_logins:
            self.logins = {key: row for key, row in self.logins.items() if key == login}
        return self.kept

    async def replace_account(self, account: Account) -> None:
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

    async def forget_logins(self, is_over: Callable[[Login], bool]) -> int:
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
    """A password pool that works at once, or when it is told to go on."""

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
class Bench:
    """An account and what is around it."""

    folder: Path
    store: Memory = field(factory=Memory)
    pool: Pool = field(factory=Pool)
    clock: Clock = field(factory=Clock)

    def accounts(self, environ: dict[str, str] = GIVEN) -> Accounts:
        self.clock.rightNow = float(NOW)
        return Accounts(
            store=self.store,
            data_dir=self.folder,
            hashing=self.pool,
            clock=self.clock.seconds,
            environ=environ,
        )


def begun(work: Coroutine[Any, Any, T]) -> Deferred[T]:
    return Deferred.fromCoroutine(work)


def outcome(deferred: Deferred[T]) -> T:
    """Give the result that a Deferred has already, or raise its failure."""
    results: list[T | Failure] = []
    deferred.addBoth(results.append)
    assert results, "not fired"
    if isinstance(results[0], Failure):
        results[0].raiseException()
    return results[0]


def deferred_error(deferred: Deferred[Any]) -> Exception:
    """Give the refusal that a Deferred has already."""
    with pytest.raises(Refusal) as refusal:
        outcome(deferred)
    return refusal.value


def done(work: Coroutine[Any, Any, T]) -> T:
    return outcome(begun(work))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def accounts(bench: Bench) -> Accounts:
    accounts = bench.accounts()
    done(accounts.ensure_first())
    return accounts


def log_in(accounts: Accounts, password: str = PASSWORD, network: bytes = HOME) -> str:
    return done(accounts.log_in("ada", password, network))


# The first account


def test_the_first_account_is_made_once_and_written_down(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.username == "admin"
    assert first.file == bench.folder / "first-login.txt"
    assert first.file.read_text() == f"username: admin\npassword: {first.password}\n"
    stored = bench.store.kept
    assert stored is not None
    assert (stored.username, stored.created, stored.updated) == ("admin", NOW, NOW)
    assert stored.settings == Settings("en", ("default",))
    assert verify(stored.password_hash, first.password)
    assert done(accounts.ensure_first()) is None
    assert bench.store.kept is stored


def test_a_given_first_account_leaves_no_file(bench: Bench, accounts: Accounts) -> None:
    assert list(bench.folder.iterdir()) == []
    assert accounts.authenticate(log_in(accounts)).username == "ada"


def test_a_wrong_given_login_stops_the_start(bench: Bench) -> None:
    with pytest.raises(GivenLoginError, match=r"^MEDAMAD_PASSWORD: "):
        bench.accounts({"MEDAMAD_PASSWORD": "x"})


def test_two_starts_at_once_make_one_account(bench: Bench) -> None:
    accounts = bench.accounts({})
    bench.store.is_held = True
    one, other = begun(accounts.ensure_first()), begun(accounts.ensure_first())
    bench.store.writes.pop().callback(None)
    assert outcome(one) is not None
    assert outcome(other) is None
    assert bench.store.writes == []


# Logging in and out


def test_a_login_opens_the_account_until_logout(bench: Bench, accounts: Accounts) -> None:
    token, other = log_in(accounts), log_in(accounts)
    assert accounts.authenticate(token) is bench.store.kept
    assert set(bench.store.logins) == {digest(token), digest(other)}
    done(accounts.log_out(token))
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)
    with pytest.raises(Unauthorised):
        done(accounts.log_out(token))
    accounts.authenticate(other)


@pytest.mark.parametrize("token", [None, "", "x", "é\ud800", "x" * 100_000])
def test_no_token_of_ours_is_unauthorised(accounts: Accounts, token: str | None) -> None:
    with pytest.raises(
        Unauthorised, match=r"^the session cookie is missing or its login has ended$"
    ):
        accounts.authenticate(token)


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("ada", "correct hors"),
        ("Ada", "correct horse"),
        ("eve", "correct horse"),
        ("", ""),
        ("日本語", "x"),
    ],
)
def test_a_wrong_pair_is_unauthorised(accounts: Accounts, username: str, password: str) -> None:
    with pytest.raises(Unauthorised, match=r"^the username or the password is wrong$"):
        done(accounts.log_in(username, password, HOME))


@pytest.mark.parametrize("username", ["ada", "eve"])
def test_a_wrong_name_costs_the_same_work(bench: Bench, accounts: Accounts, username: str) -> None:
    bench.pool.is_held = True
    attempt = begun(accounts.log_in(username, "wrong", HOME))
    assert len(bench.pool.waiting) == 1
    bench.pool.go_on()
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert bench.pool.waiting == []


@pytest.mark.parametrize("field_", ["username", "password"])
@pytest.mark.parametrize("text", ["x" * 1_025, "a\x00", "\ud800"])
def test_texts_that_cannot_be_looked_at(accounts: Accounts, field_: str, text: str) -> None:
    pair = {"username": "ada", "password": "correct horse", field_: text}
    with pytest.raises(BadRequest, match=f"^{field_}: "):
        done(accounts.log_in(pair["username"], pair["password"], HOME))


def test_a_login_ends_after_seven_idle_days(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.clock.advance(7 * DAY)
    accounts.authenticate(token)
    bench.clock.advance(7 * DAY + 1)
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)


def test_a_login_ends_after_thirty_days_of_use(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    for _ in range(30):
        bench.clock.advance(DAY)
        accounts.authenticate(token)
    bench.clock.advance(1)
    with pytest.raises(Unauthorised):
        accounts.authenticate(token)


def test_a_login_that_ended_unseen_is_forgotten(bench: Bench, accounts: Accounts) -> None:
    ended = log_in(accounts)
    bench.clock.advance(7 * DAY)
    token = log_in(accounts)
    done(accounts.tidy())
    assert sorted(bench.store.logins) == sorted([digest(ended), digest(token)])
    bench.clock.advance(1)
    done(accounts.tidy())
    assert list(bench.store.logins) == [digest(token)]


def test_a_use_is_noted_once_a_minute_and_once_at_a_time(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    bench.clock.advance(60)
    accounts.authenticate(token)
    assert bench.store.writes == []
    bench.clock.advance(1)
    accounts.authenticate(token)
    accounts.authenticate(token)
    bench.store.writes.pop().callback(None)
    assert bench.store.writes == []
    assert bench.store.logins[digest(token)] == Login(NOW, NOW + 61)


def test_a_use_that_cannot_be_noted_is_logged_and_tried_again(
    bench: Bench, accounts: Accounts, logged_failures: LoggedFailures
) -> None:
    token = log_in(accounts)
    bench.clock.advance(100)
    bench.store.fault = Unavailable("full", retry_after=1)
    accounts.authenticate(token)
    assert [str(error) for error in logged_failures.take(Unavailable)] == ["full"]
    bench.store.fault = None
    accounts.authenticate(token)
    assert bench.store.logins[digest(token)].last_seen == NOW + 100


def test_ten_failures_then_a_wait_then_the_right_password(bench: Bench, accounts: Accounts) -> None:
    for _ in range(10):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong")
    with pytest.raises(TooMany) as refusal:
        log_in(accounts)
    assert refusal.value.retry_after == 1
    bench.clock.advance(1)
    accounts.authenticate(log_in(accounts))
    for _ in range(10):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong")


def test_others_do_not_wait_for_a_guesser(accounts: Accounts) -> None:
    for _ in range(10):
        with pytest.raises(Unauthorised):
            log_in(accounts, "wrong", b"guesser")
    accounts.authenticate(log_in(accounts))


def many(accounts: Accounts, count: int, networks: int) -> list[Deferred[str]]:
    """Guess so many passwords at once."""
    return [
        begun(accounts.log_in("ada", f"guess {number}", b"guesser %d" % (number % networks)))
        for number in range(count)
    ]


def go_on_to_the_end(bench: Bench) -> None:
    while bench.pool.waiting:
        bench.pool.go_on()


@pytest.mark.parametrize("count", [64, 1_000])
def test_guesses_sent_at_once_are_no_more_than_guesses_one_by_one(
    bench: Bench, accounts: Accounts, count: int
) -> None:
    bench.pool.is_held = True
    guesses = many(accounts, count, networks=1)
    assert len(bench.pool.waiting) == 10
    owner = begun(accounts.log_in("ada", PASSWORD, HOME))
    go_on_to_the_end(bench)
    accounts.authenticate(outcome(owner))
    refused = Counter(type(deferred_error(guess)) for guess in guesses)
    assert refused == {Unauthorised: 10, Unavailable: count - 10}


def test_only_so_many_passwords_wait(bench: Bench, accounts: Accounts) -> None:
    log_in(accounts)
    bench.pool.is_held = True
    guesses = many(accounts, 1_000, networks=1_000)
    assert len(bench.pool.waiting) == 56
    with pytest.raises(Unavailable) as refusal:
        log_in(accounts, network=b"never seen")
    assert refusal.value.retry_after == 1
    # From where the owner has been before there is still room, and for a change of the password.
    owner = begun(accounts.log_in("ada", PASSWORD, HOME))
    go_on_to_the_end(bench)
    token = outcome(owner)
    errors = list(map(deferred_error, guesses))
    assert Counter(map(type, errors)) == {Unauthorised: 56, Unavailable: 944}
    assert {error.retry_after for error in errors if isinstance(error, Unavailable)} == {1}
    more = many(accounts, 1_000, networks=1_000)
    change = begun(accounts.change(token, password="another one"))
    go_on_to_the_end(bench)
    outcome(change)
    assert len(list(map(deferred_error, more))) == 1_000
    # Once that is over, from anywhere.
    bench.pool.is_held = False
    log_in(accounts, "another one", b"never seen")


# Changing


def test_nothing_to_change_changes_nothing(bench: Bench, accounts: Accounts) -> None:
    token, before = log_in(accounts), bench.store.kept
    bench.clock.advance(10)
    assert done(accounts.change(token)) is before
    assert done(accounts.change(token, settings={})) is before
    assert bench.store.kept is before


def test_everything_changes_together(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.clock.advance(10)
    changed = done(
        accounts.change(
            token, username="eve", password="battery", settings={"script_type": ["page-events"]}
        )
    )
    assert changed is bench.store.kept
    assert (changed.username, changed.created, changed.updated) == ("eve", NOW, NOW + 10)
    assert changed.settings == Settings("en", ("page-events",))
    accounts.authenticate(token)
    done(accounts.log_in("eve", "battery", HOME))


@pytest.mark.parametrize(
    ("change", "field_"),
    [
        ({"username": "ab", "password": "battery"}, "username"),
        ({"username": "eve", "password": "1234"}, "password"),
        ({"username": "eve", "settings": {"language": "xx"}}, r"settings\.language"),
        ({"password": "battery", "settings": {"script_type": 1}}, r"settings\.script_type"),
    ],
)
def test_one_wrong_field_changes_nothing(
    bench: Bench, accounts: Accounts, change: dict[str, Any], field_: str
) -> None:
    token, before = log_in(accounts), bench.store.kept
    with pytest.raises(BadRequest, match=f"^{field_}: "):
        done(accounts.change(token, **change))
    assert bench.store.kept is before


def test_a_new_password_ends_other_logins_and_the_file(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    mine, other = (done(accounts.log_in("admin", first.password, HOME)) for _ in range(2))
    done(accounts.change(mine, settings={"language": "de"}))
    accounts.authenticate(other)
    assert first.file.exists()
    done(accounts.change(mine, password="battery"))
    accounts.authenticate(mine)
    with pytest.raises(Unauthorised):
        accounts.authenticate(other)
    with pytest.raises(Unauthorised):
        done(accounts.log_in("admin", first.password, HOME))
    assert not first.file.exists()


def test_two_changes_at_once_both_hold(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    one = begun(accounts.change(token, username="eve"))
    other = begun(accounts.change(token, settings={"language": "fr"}))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(one)
    changed = outcome(other)
    assert (changed.username, changed.settings.language) == ("eve", "fr")
    assert bench.store.kept is changed


def test_a_password_that_was_changed_meanwhile_opens_nothing(
    bench: Bench, accounts: Accounts
) -> None:
    token = log_in(accounts)
    bench.pool.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    change = begun(accounts.change(token, password="battery"))
    (login_turn, change_turn), bench.pool.waiting = bench.pool.waiting, []
    bench.store.is_held = True
    change_turn.callback(None)
    login_turn.callback(None)
    bench.store.writes.pop().callback(None)
    outcome(change)
    bench.pool.go_on()
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert set(bench.store.logins) == {digest(token)}


def test_a_login_under_way_is_ended_by_the_change_that_follows(
    bench: Bench, accounts: Accounts
) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    change = begun(accounts.change(token, password="battery"))
    bench.store.writes.pop().callback(None)
    bench.store.writes.pop().callback(None)
    late = outcome(attempt)
    outcome(change)
    with pytest.raises(Unauthorised):
        accounts.authenticate(late)


def test_a_password_that_another_process_changes_meanwhile_opens_nothing(
    bench: Bench, accounts: Accounts
) -> None:
    bench.store.is_held = True
    attempt = begun(accounts.log_in("ada", PASSWORD, HOME))
    assert bench.store.kept is not None
    bench.store.kept = evolve(bench.store.kept, password_hash=hash_password("battery"))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert bench.store.logins == {}


def test_a_change_keeps_what_another_process_changes_meanwhile(
    bench: Bench, accounts: Accounts
) -> None:
    token, encoded = log_in(accounts), hash_password("battery")
    bench.store.is_held = True
    change = begun(accounts.change(token, username="eve"))
    assert bench.store.kept is not None
    bench.store.kept = evolve(bench.store.kept, password_hash=encoded)
    bench.store.writes.pop().callback(None)
    changed = outcome(change)
    assert (changed.username, changed.password_hash) == ("eve", encoded)
    assert bench.store.kept is changed


def test_a_login_that_another_process_ends_meanwhile_changes_nothing(
    bench: Bench, accounts: Accounts
) -> None:
    token, before = log_in(accounts), bench.store.kept
    bench.store.is_held = True
    change = begun(accounts.change(token, password="battery"))
    bench.store.logins.clear()
    bench.store.writes.pop().callback(None)
    with pytest.raises(Unauthorised):
        outcome(change)
    assert bench.store.kept is before


# Deleting


def test_deleting_leaves_the_service_as_on_its_first_start(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    token, other = (done(accounts.log_in("admin", first.password, HOME)) for _ in range(2))
    done(accounts.change(token, username="eve", password="battery"))
    again = done(accounts.delete(token))
    assert bench.store.websites == 0
    for ended in (token, other):
        with pytest.raises(Unauthorised):
            accounts.authenticate(ended)
    assert again.username == "admin"
    assert again.password not in (first.password, "battery")
    assert again.file is not None
    assert again.file.read_text() == f"username: admin\npassword: {again.password}\n"
    done(accounts.log_in("admin", again.password, HOME))


def test_of_two_deletions_at_once_the_second_finds_no_login(
    bench: Bench, accounts: Accounts
) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    one, other = begun(accounts.delete(token)), begun(accounts.delete(token))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(one)
    with pytest.raises(Unauthorised):
        outcome(other)
    assert bench.store.kept is not None


def test_a_change_during_a_deletion_brings_nothing_back(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.is_held = True
    deletion = begun(accounts.delete(token))
    change = begun(accounts.change(token, username="eve"))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(deletion)
    with pytest.raises(Unauthorised):
        outcome(change)
    assert bench.store.kept is not None
    assert bench.store.kept.username == "ada"


def test_a_login_during_a_deletion_opens_nothing(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    done(accounts.change(token, password="battery"))
    bench.store.is_held = True
    deletion = begun(accounts.delete(token))
    attempt = begun(accounts.log_in("ada", "battery", HOME))
    while bench.store.writes:
        bench.store.writes.pop(0).callback(None)
    outcome(deletion)
    with pytest.raises(Unauthorised):
        outcome(attempt)
    assert bench.store.logins == {}


@pytest.mark.parametrize("was_there", [True, False])
def test_a_deletion_that_fails_changes_nothing(bench: Bench, was_there: bool) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    token = done(accounts.log_in("admin", first.password, HOME))
    if not was_there:
        done(accounts.change(token, password=first.password))
    before = {file.name: file.read_text() for file in bench.folder.iterdir()}
    assert bool(before) is was_there
    bench.store.fault = Unavailable("full", retry_after=1)
    with pytest.raises(Unavailable):
        done(accounts.delete(token))
    bench.store.fault = None
    assert {file.name: file.read_text() for file in bench.folder.iterdir()} == before
    assert bench.store.websites == 2
    assert accounts.authenticate(token).username == "admin"
    done(accounts.log_in("admin", first.password, HOME))


def test_the_new_password_is_written_down_before_the_old_account_goes(bench: Bench) -> None:
    accounts = bench.accounts({})
    first = done(accounts.ensure_first())
    assert first is not None
    assert first.file is not None
    token = done(accounts.log_in("admin", first.password, HOME))
    before, bench.store.is_held = bench.store.kept, True
    deletion = begun(accounts.delete(token))
    written = first.file.read_text()
    assert bench.store.kept is before
    bench.store.writes.pop().callback(None)
    assert bench.store.writes == [], "it is one transaction"
    assert written == f"username: admin\npassword: {outcome(deletion).password}\n"


def test_a_write_that_fails_leaves_the_next_one_free(bench: Bench, accounts: Accounts) -> None:
    token = log_in(accounts)
    bench.store.fault = Unavailable("full", retry_after=1)
    with pytest.raises(Refusal):
        done(accounts.change(token, username="eve"))
    with pytest.raises(Refusal):
        log_in(accounts)
    bench.store.fault = None
    assert done(accounts.change(token, username="eve")).username == "eve"
