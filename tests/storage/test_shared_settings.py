"""The settings that collectors have in common: copied whole, with nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.contents import stored_rows
from support.storage.hits import NOW_MS, a_view

from medamad.domain.accounts import Login, Token
from medamad.domain.annotations import Annotation
from medamad.storage.errors import StoreError
from medamad.storage.shared_settings import Epoch, Role, SharedSettings, join_cluster
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

NOW = NOW_MS // 1000
FOLLOWING = Role(2, Epoch(primary=1, cluster="first"))


def no_claim(_store: str) -> None:
    """Let the number be free."""


def nothing_dropped(_settings: SharedSettings) -> None:
    """Keep no file."""


async def filled(store: Store) -> SharedSettings:
    website = await store.add_website("example.com", NOW)
    await store.add_website("b.example", NOW)
    await store.account.add_login(b"d" * 32, Login(NOW, NOW))
    note = Annotation(id="a", time="2025-06-11", text="Deploy")
    await store.annotations.change(website.number, lambda old: old.with_annotation(note))
    return store.shared_settings()


@pytest_twisted.ensureDeferred
async def test_an_empty_directory_gets_a_copy_and_a_used_one_is_left_alone(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    settings = await filled(store)
    other = tmp_path / "other"

    def refuse(_store: str) -> None:
        raise ValueError("taken")

    with pytest.raises(ValueError, match="taken"):
        join_cluster(other, 1 << 24, settings, FOLLOWING, refuse)
    join_cluster(other, 1 << 24, settings, FOLLOWING, no_claim)
    with pytest.raises(StoreError, match="begins with an empty data directory"):
        join_cluster(other, 1 << 24, settings, FOLLOWING, no_claim)
    await store.close()
    store = open_store(name="other")
    assert store.role(2) == FOLLOWING
    assert store.shared_settings() == settings
    assert [website.hostname for website in store.websites.all()] == ["b.example", "example.com"]
    assert store.account.login(b"d" * 32) == Login(NOW, NOW)


@pytest_twisted.ensureDeferred
async def test_websites_that_the_primary_has_not_are_deleted_here(open_store: OpenStore) -> None:
    store = open_store(spool_hours=72)
    settings = await filled(store)
    lost = await store.add_website("lost.example", NOW)
    await store.append([a_view(lost.number)])
    await store.take_shared(settings, FOLLOWING, nothing_dropped)
    assert store.websites.by_hostname("lost.example") is None
    assert store.shared_settings() == settings
    # And what it has sent of them is deleted in the cluster.
    assert store.spool is not None
    assert store.spool.marks.deleted == (lost.number,)
    await store.close()
    store = open_store(spool_hours=72)
    assert [website.hostname for website in store.websites.all()] == ["b.example", "example.com"]


@pytest_twisted.ensureDeferred
async def test_a_website_that_cannot_be_read_is_not_deleted(open_store: OpenStore) -> None:
    store = open_store()
    settings = await filled(store)
    website = store.websites.by_hostname("example.com")
    assert website is not None
    await store.append([a_view(website.number)])
    stored = settings.stored["websites"]
    damaged = {key: value[:-1] + b"!" for key, value in stored.items() if b"example.com" in value}
    assert len(damaged) == 1
    broken = SharedSettings(settings.stored | {"websites": stored | damaged})
    await store.take_shared(broken, FOLLOWING, nothing_dropped)
    assert store.websites.by_hostname("example.com") is None
    await store.take_shared(settings, FOLLOWING, nothing_dropped)
    assert len(stored_rows(store, website)[0]) == 1


@pytest_twisted.ensureDeferred
async def test_a_promotion_leaves_out_numbers_of_websites(open_store: OpenStore) -> None:
    store = open_store()
    settings = await filled(store)
    await store.take_shared(settings, FOLLOWING, nothing_dropped)
    role = await store.begin_epoch(FOLLOWING)
    assert role.epoch == Epoch(2, 2, "first", (settings.digest,))
    assert role.is_primary
    assert store.role(2) == role
    assert (await store.add_website("c.example", NOW)).number == 1_001
    # What differs is what the former primary would write to a file.
    batch, change = store.shared_settings().changes_from(settings)
    assert batch["key"] == "last-batch"
    assert '"c.example"' in change["value"]
    assert list(settings.changes_from(settings)) == []


@pytest_twisted.ensureDeferred
async def test_what_was_removed_here_is_a_change(open_store: OpenStore) -> None:
    store = open_store()
    await filled(store)
    await store.tokens.add(b"t" * 32, Token("1", "old", "read", None, NOW))
    known = store.shared_settings()
    await store.tokens.revoke(b"t" * 32)
    website = store.websites.by_hostname("b.example")
    assert website is not None
    await store.delete_website(website)
    token, deleted = store.shared_settings().changes_from(known)
    assert (token["value"], deleted["value"]) == (None, None)
    assert '"old"' in (token["there"] or "")
    assert '"b.example"' in (deleted["there"] or "")
    # What was deleted is purged in the background.
    await store.close()


@pytest_twisted.ensureDeferred
async def test_the_keys_of_changes_are_text_whatever_bytes_are_in_them(
    open_store: OpenStore,
) -> None:
    store = open_store()
    await filled(store)
    known = store.shared_settings()
    token = Token("1", "new", "read", None, NOW)
    for digest in (b"\xaa:\xbb" * 10, b":" * 32, b"t" * 32):
        await store.tokens.add(digest, token)
    for number in range(3, ord(":") + 1):
        assert (await store.add_website(f"{number}.example", NOW)).number == number
    keys = {change["key"] for change in store.shared_settings().changes_from(known)}
    assert {f"token:{'aa3abb' * 10}", "token:" + ":" * 32, "0000003a"} <= keys
