from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import pytest_twisted
from attrs import evolve
from support.storage.hits import a_view
from support.storage.visible_hits import paths, reopened

from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.website_settings import FOR_NEW_WEBSITES, WebsiteSettings
from medamad.domain.websites import Website
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


@pytest_twisted.ensureDeferred
async def test_a_renamed_website_keeps_its_number(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("old.example", 10)
    await store.append([a_view(path="/kept")])
    renamed = await store.rename_website(website, "new.example", 20)
    assert renamed == evolve(website, hostname="new.example", updated=20)
    assert (website.number, website.created, website.settings) == (1, 10, FOR_NEW_WEBSITES)
    assert store.websites.by_hostname("old.example") is None
    store, snapshot = await reopened(store, open_store)
    assert paths(snapshot) == ["/kept"]
    assert store.websites.all() == [renamed]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_websites_are_listed_while_one_is_deleted(open_store: OpenStore) -> None:
    class DeletedMeanwhile(dict[str, Website]):
        def __iter__(self) -> Iterator[str]:
            store.websites._publish({})
            return super().__iter__()

    store = open_store()
    website = await store.add_website("one.example", 1)
    store.websites._publish(DeletedMeanwhile({website.hostname: website}))
    assert store.websites.all() == [website]
    assert store.websites.all() == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_website_is_found_by_number_without_a_scan(
    open_store: OpenStore,
) -> None:
    looked_at = []

    class Looked(dict[str, Website]):
        def values(self) -> Any:
            looked_at.append("all")
            return super().values()

    store = open_store()
    one = await store.add_website("one.example", 1)
    two = await store.add_website("two.example", 1)
    store.websites._publish(Looked({each.hostname: each for each in (one, two)}))
    looked_at.clear()
    found = [store.websites.by_number(number) for number in (one.number, two.number, 99)]
    assert (found, looked_at) == ([one, two, None], [])
    renamed = await store.rename_website(one, "new.example", 2)
    await store.delete_website(two)
    found = [store.websites.by_number(number) for number in (one.number, two.number)]
    assert found == [renamed, None]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_hostnames_are_unique(open_store: OpenStore) -> None:
    store = open_store()
    one = await store.add_website("one.example", 1)
    await store.add_website("two.example", 1)
    with pytest.raises(Conflict, match=r"one\.example is registered already"):
        await store.add_website("one.example", 2)
    with pytest.raises(BadRequest, match=r"two\.example is the name of another website"):
        await store.rename_website(one, "two.example", 2)
    await store.rename_website(one, "one.example", 3)
    assert [website.hostname for website in store.websites.all()] == ["one.example", "two.example"]
    await store.close()


@pytest.mark.parametrize(
    ("registered", "asked", "served"),
    [
        ("example.com", "example.com", True),
        ("example.com", "www.example.com", True),
        ("www.example.com", "example.com", True),
        ("example.com", "blog.example.com", False),
        ("example.com", "www.www.example.com", False),
    ],
)
@pytest_twisted.ensureDeferred
async def test_www_and_the_bare_hostname_are_one_website(
    open_store: OpenStore, registered: str, asked: str, served: bool
) -> None:
    store = open_store()
    website = await store.add_website(registered, 1)
    assert store.websites.serving(asked) == (website if served else None)
    await store.close()


def test_a_website_of_an_earlier_build_has_everything_as_it_was() -> None:
    stored = b'{"number":7,"hostname":"old.example","created":1,"updated":2}'
    website = msgspec.json.decode(stored, type=Website)
    assert website.settings == WebsiteSettings()
    assert website.settings.redaction.path("/u/ada@example.org") == "/u/ada@example.org"


@pytest_twisted.ensureDeferred
async def test_settings_are_kept_and_go_with_the_website(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("a.example", 1)
    changed = await store.change_website_settings(
        website, lambda old: old.with_changes({"excluded_paths": ["/x"]}), 5
    )
    assert (changed.settings.excluded_paths, changed.updated) == (("/x",), 5)
    await store.close()
    store = open_store()
    assert store.websites.all() == [changed]
    await store.delete_website(changed)
    with pytest.raises(NotFound):
        await store.change_website_settings(changed, lambda old: old, 6)
    await store.close()
