import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from support.storage.log_lines import logged_warnings

from medamad.domain.dimensions import Dimension
from medamad.query.names import order_of_texts
from medamad.storage.dictionary.decode import DAMAGED, WebsiteTexts, keep_within
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.dictionary.keys import ENTRY_KEY
from medamad.storage.environment.environment import Environment

LONG = ["/" + "x" * length for length in range(1_000, 1_050)]
SIZE = sum(map(sys.getsizeof, LONG))


@pytest.fixture
def websites(environment: Environment) -> list[WebsiteTexts]:
    """Three websites with equally many texts, all of which were requested."""
    names = Dictionary(environment.databases, {}, 1_000)
    for website in (1, 2, 3):
        with environment.lmdb.begin(write=True) as txn:
            encoder = names.encoder(txn, 0)
            for text in LONG:
                encoder.code(website, Dimension.PATH, text)
        encoder.committed()
    websites = [WebsiteTexts(environment, website) for website in (1, 2, 3)]
    for texts in websites:
        assert list(texts(Dimension.PATH)) == LONG
    return websites


@frozen
class Named:
    """A store in which texts are added after each read."""

    environment: Environment
    names: Dictionary

    @property
    def databases(self) -> Any:
        return self.environment.databases

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self.environment.reading() as txn:
            yield txn
        with self.environment.lmdb.begin(write=True) as txn:
            encoder = self.names.encoder(txn, 0)
            encoder.code(1, Dimension.PATH, f"/{txn.id()}")
        encoder.committed()


def test_texts_added_while_reading_are_not_reported_missing(
    environment: Environment,
) -> None:
    texts = WebsiteTexts(Named(environment, Dictionary(environment.databases, {}, 1_000)), 1)  # type: ignore[arg-type]
    for asked in range(4):
        assert len(texts(Dimension.PATH)) == asked
    assert DAMAGED not in texts(Dimension.PATH)


@pytest.mark.parametrize(("count", "code"), [(3, 0), (257, 256)])
def test_a_text_whose_key_is_too_short_is_reported(
    environment: Environment, count: int, code: int
) -> None:
    names, database = Dictionary(environment.databases, {}, 1_000), environment.databases.dictionary
    texts = WebsiteTexts(environment, 1)
    key = ENTRY_KEY.pack(1, Dimension.PATH, code)
    for first, last in ((0, code), (code, count)):
        with environment.lmdb.begin(write=True) as txn:
            encoder = names.encoder(txn, 0)
            for number in range(first, last):
                encoder.code(1, Dimension.PATH, f"/{number}")
            if last == count:
                assert txn.put(key[:-1], txn.pop(key, db=database), db=database)
        encoder.committed()
        with logged_warnings() as lines:
            read = list(texts(Dimension.PATH))
    assert read[code:] == [DAMAGED, *(f"/{number}" for number in range(code + 1, count))]
    assert f"a text is damaged and not shown: website 1, entry {key[:-1].hex()}" in lines


def sizes(websites: Sequence[WebsiteTexts]) -> list[int]:
    return [texts.size() for texts in websites]


def look(websites: Sequence[WebsiteTexts], bound: int, times: int) -> None:
    for _ in range(times):
        keep_within(bound, websites)


def test_evicted_texts_are_read_again(websites: list[WebsiteTexts]) -> None:
    texts = websites[0]
    held = texts(Dimension.PATH)
    assert texts.size() == SIZE
    texts.clear()
    assert texts.size() == 0
    assert list(held) == LONG
    again = texts(Dimension.PATH)
    assert again is not held
    assert list(again) == LONG
    assert texts.size() == SIZE


def test_evicted_texts_are_in_order_after_a_vacuum(environment: Environment) -> None:
    names, texts = Dictionary(environment.databases, {}, 1_000), WebsiteTexts(environment, 1)

    def ordered(added: str) -> list[str]:
        with environment.lmdb.begin(write=True) as txn:
            encoder = names.encoder(txn, 0)
            for text in added:
                encoder.code(1, Dimension.PATH, text)
        encoder.committed()
        order = order_of_texts(texts, Dimension.PATH)()
        assert order is not None
        known = texts(Dimension.PATH)
        return [known[code] for code in order.tolist()]

    assert ordered("fagche") == [*"acefgh"]
    with environment.lmdb.begin(write=True) as txn:
        used = np.array([False, True, False, True, False, True])
        names.remove(txn, 1, Dimension.PATH, used, begin=0, most=10)
    texts.clear()
    assert ordered("b") == [*[DAMAGED] * 3, *"abce"]


def test_texts_in_use_are_not_evicted(websites: list[WebsiteTexts]) -> None:
    texts = websites[0]
    with texts._lock:
        texts.clear()
    assert texts.size() == SIZE


def test_unused_texts_are_evicted_when_there_are_too_many(websites: list[WebsiteTexts]) -> None:
    look(websites, 2 * SIZE, 20)
    assert sizes(websites) == [SIZE, SIZE, SIZE]
    websites[1](Dimension.PATH)
    look(websites, 2 * SIZE, 10)
    websites[2](Dimension.PATH)
    look(websites, 2 * SIZE, 10)
    assert sizes(websites) == [SIZE, SIZE, SIZE]
    look(websites, 2 * SIZE, 1)
    assert sizes(websites) == [0, SIZE, SIZE]
    look(websites, SIZE, 20)
    assert sizes(websites) == [0, 0, SIZE]
    look(websites, 0, 11)
    assert sizes(websites) == [0, 0, 0]


def test_texts_are_kept_while_there_is_room(websites: list[WebsiteTexts]) -> None:
    look(websites, 3 * SIZE, 100)
    assert sizes(websites) == [SIZE, SIZE, SIZE]


def test_texts_in_use_are_kept_even_beyond_the_limit(websites: list[WebsiteTexts]) -> None:
    for _ in range(100):
        look(websites, 0, 1)
        for texts in websites:
            texts(Dimension.PATH)
    assert sizes(websites) == [SIZE, SIZE, SIZE]


def give(environment: Environment, *texts: str) -> list[int]:
    """Return the codes given after a start."""
    names = Dictionary(environment.databases, {}, 1_000)
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, 0)
        return [encoder.code(1, Dimension.PATH, text) for text in texts]


@pytest.mark.parametrize("bit", [3, 6, 26, 31])
def test_a_damaged_code_does_not_raise_the_next_code(environment: Environment, bit: int) -> None:
    paths = [f"/{number}" for number in range(40)]
    give(environment, *paths)
    database = environment.databases.dictionary
    with environment.lmdb.begin(write=True) as txn:
        name = txn.pop(ENTRY_KEY.pack(1, Dimension.PATH, 39), db=database)
        txn.put(ENTRY_KEY.pack(1, Dimension.PATH, 39 ^ 1 << bit), name, db=database)
    reader = WebsiteTexts(environment, 1)
    with logged_warnings() as lines:
        texts = list(reader(Dimension.PATH))
    assert texts[:39] == paths[:39]
    assert set(texts[39:]) == {DAMAGED}
    assert len(texts) < 80
    assert "a text is damaged and not shown" in lines[0]
    (code,) = give(environment, "/new")
    assert 40 <= code < 80
    for each in (reader, WebsiteTexts(environment, 1)):
        texts = list(each(Dimension.PATH))
        assert texts[:39] == paths[:39]
        assert set(texts[39:code]) == {DAMAGED}
        assert texts[code:] == ["/new"]
