"""Tokens on a real store."""

import re
from collections.abc import Callable
from typing import cast

import pytest
import pytest_twisted
from attrs import define
from support.log_failures import LoggedFailures
from twisted.internet.defer import Deferred

from medamad.accounts.tokens import TokenRecords, Tokens, make_token
from medamad.domain.accounts import MAX_TOKENS, Scope, Token
from medamad.domain.errors import BadRequest, Conflict, NotFound, TooMany, Unauthorised, Unavailable
from medamad.storage.grants import Grants
from medamad.storage.store import Store

NOW = 1_750_000_000
MIDNIGHT = 1_749_945_600
NETWORK, ANOTHER = b"one", b"other"


@define
class TokenFixture:
    store: Store
    tokens: Tokens
    now: float = NOW


@pytest.fixture
def fixture(store: Store) -> TokenFixture:
    made = TokenFixture(store, Tokens(store.tokens, lambda: made.now))
    return made


async def settled(fixture: TokenFixture) -> None:
    """Wait until background writes are done."""
    await fixture.store.tokens.change(b"none", lambda token: token)


@pytest_twisted.ensureDeferred
async def test_a_token_is_found_only_by_its_text(fixture: TokenFixture) -> None:
    text, token = await fixture.tokens.make(" report ", Scope.READ, [7, 3, 7], NOW + 60)
    assert re.fullmatch("medamad_[A-Za-z0-9_-]{43}", text)
    assert token == Token(token.id, "report", Scope.READ, (3, 7), NOW, NOW + 60)
    assert fixture.tokens.authenticate(text, NETWORK) == token
    for bad in (text[:-1], text + "x", text.upper(), token.id, "medamad_", "x" * 100_000):
        with pytest.raises(Unauthorised, match="unknown or revoked"):
            fixture.tokens.authenticate(bad, bad[-1:].encode())
    assert text.removeprefix("medamad_").encode() not in (
        fixture.store.environment.path.read_bytes()
    )


@pytest_twisted.ensureDeferred
async def test_a_token_ends_when_it_expires_or_is_revoked(fixture: TokenFixture) -> None:
    text, token = await fixture.tokens.make("a", Scope.FULL, None, NOW + 60)
    other, _ = await fixture.tokens.make("b", Scope.FULL, None, None)
    fixture.now = NOW + 59.9
    fixture.tokens.authenticate(text, NETWORK)
    fixture.now = NOW + 60
    with pytest.raises(Unauthorised, match="the token has expired"):
        fixture.tokens.authenticate(text, NETWORK)
    assert len(fixture.tokens.all()) == 2
    await fixture.tokens.revoke(token.id)
    with pytest.raises(Unauthorised, match="unknown or revoked"):
        fixture.tokens.authenticate(text, NETWORK)
    with pytest.raises(NotFound):
        await fixture.tokens.revoke(token.id)
    fixture.tokens.authenticate(other, NETWORK)


@pytest_twisted.ensureDeferred
async def test_the_day_of_its_last_use_is_stored(fixture: TokenFixture) -> None:
    text, token = await fixture.tokens.make("a", Scope.READ, None, None)
    assert token.last_used is None
    for _ in range(3):
        fixture.tokens.authenticate(text, NETWORK)
    await settled(fixture)
    assert fixture.tokens.all()[0].last_used == MIDNIGHT
    fixture.now += 86_400
    fixture.tokens.authenticate(text, NETWORK)
    await settled(fixture)
    assert fixture.tokens.all()[0].last_used == MIDNIGHT + 86_400


@define
class Failing:
    """A store that finds its tokens, and fails to change them as long as there is a fault."""

    records: Grants[Token]
    fault: Exception | None

    def find(self, key: bytes) -> Token | None:
        return self.records.find(key)

    async def change(self, key: bytes, change: Callable[[Token], Token]) -> None:
        if self.fault is not None:
            raise self.fault
        await self.records.change(key, change)


@pytest.mark.parametrize(
    ("fault", "logged"), [(Unavailable("full", retry_after=1), []), (OSError("odd"), ["odd"])]
)
@pytest_twisted.ensureDeferred
async def test_a_use_that_cannot_be_stored_is_retried(
    fixture: TokenFixture, logged_failures: LoggedFailures, fault: Exception, logged: list[str]
) -> None:
    text, _ = await fixture.tokens.make("a", Scope.READ, None, None)
    failing = Failing(fixture.store.tokens, fault)
    tokens = Tokens(cast("TokenRecords", failing), lambda: fixture.now)
    tokens.authenticate(text, NETWORK)
    assert [str(error) for error in logged_failures.take(OSError)] == logged
    failing.fault = None
    tokens.authenticate(text, NETWORK)
    await settled(fixture)
    assert fixture.tokens.all()[0].last_used == MIDNIGHT


@pytest_twisted.ensureDeferred
async def test_a_use_does_not_restore_a_revoked_token(fixture: TokenFixture) -> None:
    text, token = await fixture.tokens.make("a", Scope.READ, None, None)
    revoking = Deferred.fromCoroutine(fixture.tokens.revoke(token.id))
    fixture.tokens.authenticate(text, NETWORK)
    await revoking
    await settled(fixture)
    assert fixture.tokens.all() == []


@pytest_twisted.ensureDeferred
async def test_tokens_are_bounded(fixture: TokenFixture) -> None:
    for number in range(MAX_TOKENS):
        await fixture.tokens.make(f"{number}", Scope.READ, None, None)
    with pytest.raises(Conflict, match="there are 100 tokens already"):
        await fixture.tokens.make("one more", Scope.READ, None, None)
    await fixture.tokens.revoke(fixture.tokens.all()[50].id)
    await fixture.tokens.make("one more", Scope.READ, None, None)
    assert len(fixture.tokens.all()) == MAX_TOKENS


@pytest_twisted.ensureDeferred
async def test_only_a_network_with_bad_tokens_is_throttled(fixture: TokenFixture) -> None:
    text, _ = await fixture.tokens.make("a", Scope.READ, None, None)
    for _ in range(10):
        with pytest.raises(Unauthorised):
            fixture.tokens.authenticate("medamad_bad", NETWORK)
    with pytest.raises(TooMany) as refused:
        fixture.tokens.authenticate("medamad_bad", NETWORK)
    assert refused.value.retry_after == 1
    fixture.tokens.authenticate(text, NETWORK)
    with pytest.raises(Unauthorised):
        fixture.tokens.authenticate("medamad_bad", ANOTHER)


@pytest.mark.parametrize(
    ("name", "websites", "expires", "reason"),
    [
        ("", None, None, "name: expected 1 to 64 characters, got 0"),
        ("a", [], None, "websites: expected at least one, or null for all of them"),
        ("a", None, NOW, "dateExpires: expected a Unix time in the future"),
        ("a", None, 1 << 60, "dateExpires: expected a Unix time in the future"),
    ],
)
def test_invalid_tokens_are_rejected(
    name: str, websites: list[int] | None, expires: int | None, reason: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        make_token(name, Scope.READ, websites, expires, NOW)
    assert str(refused.value) == reason
