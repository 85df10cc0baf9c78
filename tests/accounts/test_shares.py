"""Share links on a real store."""

import pytest
import pytest_twisted
from attrs import define
from twisted.internet.defer import execute

from medamad.accounts.shares import Shares, check_embed, make_share
from medamad.domain.errors import BadRequest, NotFound, TooMany, Unauthorised
from medamad.storage.store import Store

NOW = 1_750_000_000
NETWORK, ANOTHER = b"one", b"other"
PASSWORD = "open sesame"


@define
class ShareFixture:
    store: Store
    shares: Shares
    now: float = NOW


@pytest.fixture
def fixture(store: Store) -> ShareFixture:
    made = ShareFixture(store, Shares(store.shares, execute, lambda: made.now))
    return made


@pytest_twisted.ensureDeferred
async def test_a_public_link_is_opened_by_its_id(fixture: ShareFixture) -> None:
    share = await fixture.shares.make("club", 3, password=None, embed=["https://a.example"])
    assert (share.website, share.created, share.password_hash) == (3, NOW, "")
    assert fixture.shares.authenticate(share.id) == share
    assert await fixture.shares.unlock(share.id, "whatever", NETWORK) == (share, share.id)
    for bad in ("", "x", share.id[:-1], f"{share.id}x", f"{share.id}.1", "ü" * 24, "A" * 24):
        with pytest.raises(Unauthorised, match="does not exist"):
            fixture.shares.authenticate(bad)
        with pytest.raises(NotFound):
            fixture.shares.find(bad)


@pytest_twisted.ensureDeferred
async def test_a_protected_link_is_opened_by_the_key_of_its_password(fixture: ShareFixture) -> None:
    share = await fixture.shares.make("club", 3, password=PASSWORD, embed=())
    twin = await fixture.shares.make("club", 3, password=PASSWORD, embed=())
    assert PASSWORD not in share.password_hash
    found, key = await fixture.shares.unlock(share.id, PASSWORD, NETWORK)
    assert found == share
    assert fixture.shares.authenticate(key) == share
    _, until, mac = key.split(".")
    for bad in (
        share.id,
        f"{share.id}.{int(until) + 1}.{mac}",
        f"{share.id}.{until}.{'0' * 64}",
        f"{twin.id}.{until}.{mac}",
    ):
        with pytest.raises(Unauthorised, match="asks for a password"):
            fixture.shares.authenticate(bad)
    fixture.now += 12 * 3_600 - 1
    fixture.shares.authenticate(key)
    fixture.now += 1
    with pytest.raises(Unauthorised, match="asks for a password"):
        fixture.shares.authenticate(key)


@pytest_twisted.ensureDeferred
async def test_a_revoked_link_opens_nothing(fixture: ShareFixture) -> None:
    share = await fixture.shares.make("club", 3, password=PASSWORD, embed=())
    _, key = await fixture.shares.unlock(share.id, PASSWORD, NETWORK)
    with pytest.raises(NotFound):
        await fixture.shares.revoke(share.id, 4)
    fixture.shares.authenticate(key)
    await fixture.shares.revoke(share.id, 3)
    with pytest.raises(Unauthorised):
        fixture.shares.authenticate(key)
    with pytest.raises(NotFound):
        await fixture.shares.unlock(share.id, PASSWORD, NETWORK)
    with pytest.raises(NotFound):
        await fixture.shares.revoke(share.id, 3)


@pytest_twisted.ensureDeferred
async def test_only_the_guesser_is_throttled(fixture: ShareFixture) -> None:
    share = await fixture.shares.make("club", 3, password=PASSWORD, embed=())
    other = await fixture.shares.make("other", 3, password=PASSWORD, embed=())
    for _ in range(10):
        with pytest.raises(Unauthorised, match="the password is wrong"):
            await fixture.shares.unlock(share.id, "wrong", NETWORK)
    with pytest.raises(TooMany) as refused:
        await fixture.shares.unlock(share.id, PASSWORD, NETWORK)
    assert refused.value.retry_after == 1
    await fixture.shares.unlock(other.id, PASSWORD, NETWORK)
    await fixture.shares.unlock(share.id, PASSWORD, ANOTHER)
    fixture.now += 2
    await fixture.shares.unlock(share.id, PASSWORD, NETWORK)


@pytest_twisted.ensureDeferred
async def test_deleting_a_website_deletes_its_links(fixture: ShareFixture) -> None:
    kept, gone = [await fixture.store.add_website(name, NOW) for name in ("a.example", "b.example")]
    for website in (kept, gone):
        await fixture.shares.make("club", website.number, password=None, embed=())
    await fixture.store.delete_website(gone)
    assert [share.website for _, share in fixture.store.shares.all()] == [kept.number]


@pytest.mark.parametrize(
    ("configured", "kept"),
    [
        ([], ()),
        (["https://a.example", "https://a.example"], ("https://a.example",)),
        (["http://localhost:8080", "https://[::1]"], ("http://localhost:8080", "https://[::1]")),
        (["https://a.example", "*"], ("*",)),
    ],
)
def test_valid_origins(configured: list[str], kept: tuple[str, ...]) -> None:
    assert check_embed(configured) == kept


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "",
            "a.example",
            "https://",
            "https://a.example/",
            "HTTPS://a.example",
            "ftp://a.example",
        ),
        *("https://a.example;", "https://a.example 'self'", "https://a.example\n", "https://*.x"),
        *("data:", "https://a.example:", "https://a.example:123456", "https://user@a.example"),
    ],
)
def test_invalid_origins_are_rejected(origin: str) -> None:
    with pytest.raises(BadRequest, match=r"^embed: expected origins such as"):
        check_embed([origin])


def test_no_id_looks_like_a_command_line_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["-first", "-second", "third-"])
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: next(drawn))
    assert make_share("club", 1, (), "", 1).id == "third-"


def test_origins_are_bounded() -> None:
    with pytest.raises(BadRequest, match=r"^embed: expected at most 20 origins"):
        check_embed([f"https://{n}.example" for n in range(21)])


@pytest_twisted.ensureDeferred
async def test_an_invalid_password_is_rejected(fixture: ShareFixture) -> None:
    with pytest.raises(BadRequest, match=r"^password: expected 5 to 128 characters"):
        await fixture.shares.make("club", 3, password="four", embed=())
    share = await fixture.shares.make("club", 3, password=PASSWORD, embed=())
    with pytest.raises(BadRequest, match=r"^password: expected at most 1024 characters"):
        await fixture.shares.unlock(share.id, "x" * 1_025, NETWORK)
