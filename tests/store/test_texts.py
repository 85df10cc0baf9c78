import sys
from collections.abc import Sequence

import pytest

from medamad.model.dimensions import Dimension
from medamad.store.environment import Environment
from medamad.store.names import Names
from medamad.store.texts import Texts, keep_within

LONG = ["/" + "x" * length for length in range(1_000, 1_050)]
SIZE = sum(map(sys.getsizeof, LONG))


@pytest.fixture
def websites(environment: Environment) -> list[Texts]:
    """Three websites with as many texts each, all of which were asked for."""
    names = Names(environment.databases, {}, 1_000)
    for website in (1, 2, 3):
        with environment.lmdb.begin(write=True) as txn:
            coding = names.coding(txn, 0)
            for text in LONG:
                coding.code(website, Dimension.PATH, text)
        coding.adopt()
    websites = [Texts(environment, website) for website in (1, 2, 3)]
    for texts in websites:
        assert list(texts(Dimension.PATH)) == LONG
    return websites


def sizes(websites: Sequence[Texts]) -> list[int]:
    return [texts.size() for texts in websites]


def look(websites: Sequence[Texts], bound: int, times: int) -> None:
    for _ in range(times):
        keep_within(bound, websites)


def test_texts_that_are_let_go_are_read_anew(websites: list[Texts]) -> None:
    texts = websites[0]
    held = texts(Dimension.PATH)
    assert texts.size() == SIZE
    texts.let_go()
    assert texts.size() == 0
    assert list(held) == LONG
    again = texts(Dimension.PATH)
    assert again is not held
    assert list(again) == LONG
    assert texts.size() == SIZE


def test_texts_that_are_being_read_are_kept(websites: list[Texts]) -> None:
    texts = websites[0]
    with texts._lock:
        texts.let_go()
    assert texts.size() == SIZE


def test_those_that_nobody_asks_for_go_while_there_are_too_many(websites: list[Texts]) -> None:
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


def test_as_long_as_there_is_room_all_are_kept(websites: list[Texts]) -> None:
    look(websites, 3 * SIZE, 100)
    assert sizes(websites) == [SIZE, SIZE, SIZE]


def test_those_that_are_asked_for_are_kept_however_many_there_are(websites: list[Texts]) -> None:
    for _ in range(100):
        look(websites, 0, 1)
        for texts in websites:
            texts(Dimension.PATH)
    assert sizes(websites) == [SIZE, SIZE, SIZE]
