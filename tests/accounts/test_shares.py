"""Share links on a real store."""

import pytest
import pytest_twisted
from attrs import define
from twisted.internet.defer import execute

from medamad.accounts.shares import OPEN_S, Shares, check_embed, make_share
from medamad.domain.errors import BadRequest, NotFound, TooMany, Unauthorised
from medamad.storage.store import Store

NOW = 1_750_000_000
NETWORK, ANOTHER = b"one", b"other"
PASSWORD = "open sesame"


@define
class World:
    store: Store
    shares: Shares
    now: float = NOW


@pytest.fixture
def world(store: Store) -> World:
    made = World(store, Shares(store.shares, execute, lambda: made.now))
    return made


@pytest_twisted.ensureDeferred
async def test_a_public_link_is_opened_by_its_id(world: World) -> None:
    share = await world.shares.make("club", 3, password=None, embed=["https://a.example"])
    assert (share.website, share.created, share.password_hash) == (3, NOW, "")
    assert world.shares.authenticate(share.id) == share
    assert await world.shares.unlock(share.id, "whatever", NETWORK) == (share, share.id)
    for bad in ("", "x", share.id[:-1], f"{share.id}x", f"{share.id}.1", "ü" * 24, "A" * 24):
        with pytest.raises(Unauthorised, match="does not exist"):
            world.shares.authenticate(bad)
        with pytest.raises(NotFound):
            world.shares.find(bad)


@pytest_twisted.ensureDeferred
async def test_a_protected_link_is_opened_by_the_key_of_its_password(world: World) -> None:
    share = await world.shares.make("club", 3, password=PASSWORD, embed=())
    twin = await world.shares.make("club", 3, password=PASSWORD, embed=())
    assert PASSWORD not in share.password_hash
    found, key = await world.shares.unlock(share.id, PASSWORD, NETWORK)
    assert found == share
    assert world.shares.authenticate(key) == share
    _, until, mac = key.split(".")
    for bad in (
        share.id,
        f"{share.id}.{int(until) + 1}.{mac}",
        f"{share.id}.{until}.{'0' * 64}",
        f"{twin.id}.{until}.{mac}",
    ):
        with pytest.raises(Unauthorised, match="asks for a password"):
            world.shares.authenticate(bad)
    world.now += OPEN_S - 1
    world.shares.authenticate(key)
    world.now += 1
    with pytest.raises(Unauthorised, match="asks for a password"):
        world.shares.authenticate(key)


@pytest_twisted.ensureDeferred
async def test_a_revoked_link_opens_nothing(world: World) -> None:
    share = await world.shares.make("club", 3, password=PASSWORD, embed=())
    _, key = await world.shares.unlock(share.id, PASSWORD, NETWORK)
    with pytest.raises(NotFound):
        await world.shares.revoke(share.id, 4)
    world.shares.authenticate(key)
    await world.shares.revoke(share.id, 3)
    with pytest.raises(Unauthorised):
        world.shares.authenticate(key)
    with pytest.raises(NotFound):
        await world.shares.unlock(share.id, PASSWORD, NETWORK)
    with pytest.raises(NotFound):
        await world.shares.revoke(share.id, 3)


@pytest_twisted.ensureDeferred
async def test_only_the_guesser_is_throttled(world: World) -> None:
    share = await world.shares.make("club", 3, password=PASSWORD, embed=())
    other = await world.shares.make("other", 3, password=PASSWORD, embed=())
    for _ in range(10):
        with pytest.raises(Unauthorised, match="the password is wrong"):
            await world.shares.unlock(share.id, "wrong", NETWORK)
    with pytest.raises(TooMany) as refused:
        await world.shares.unlock(share.id, PASSWORD, NETWORK)
    assert refused.value.retry_after == 1
    await world.shares.unlock(other.id, PASSWORD, NETWORK)
    await world.shares.unlock(share.id, PASSWORD, ANOTHER)
    world.now += 2
    await world.shares.unlock(share.id, PASSWORD, NETWORK)


@pytest_twisted.ensureDeferred
async def test_deleting_a_website_deletes_its_links(world: World) -> None:
    kept, gone = [await world.store.add_website(name, NOW) for name in ("a.example", "b.example")]
    for website in (kept, gone):
        await world.shares.make("club", website.number, password=None, embed=())
    await world.store.delete_website(gone)
    assert [share.website for _, share in world.store.shares.all()] == [kept.number]


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
async def test_an_invalid_password_is_rejected(world: World) -> None:
    with pytest.raises(BadRequest, match=r"^password: expected 5 to 128 characters"):
        await world.shares.make("club", 3, password="four", embed=())
    share = await world.shares.make("club", 3, password=PASSWORD, embed=())
    with pytest.raises(BadRequest, match=r"^password: expected at most 1024 characters"):
        await world.shares.unlock(share.id, "x" * 1_025, NETWORK)
