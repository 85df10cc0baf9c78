from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.query.snapshots import Dictionary

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query import rows
from medamad.query.names import display_names, order_of_texts
from medamad.query.request import Cancellation

REFERRERS = ["google.com", "t.co", "google.de/search", "example.org"]


@given(st.lists(st.lists(st.text("ab\uffff\U0001d4b3", max_size=2), max_size=30), max_size=4))
def test_the_order_of_texts_follows_them_as_they_grow(added: list[list[str]]) -> None:
    texts = Dictionary()
    for some in added:
        texts.texts[Dimension.PATH] += some
        known = texts(Dimension.PATH)
        order = order_of_texts(texts, Dimension.PATH)()
        assert order is not None
        # Of equal texts, such as those that are damaged, the first goes first.
        assert order.tolist() == sorted(range(len(known)), key=lambda code: (known[code], code))


def test_the_order_of_very_many_texts_is_not_kept() -> None:
    texts = Dictionary()
    texts.texts[Dimension.PATH] = [str(number) for number in range(70_000)]
    assert order_of_texts(texts, Dimension.PATH)() is None


def test_texts_are_named_once() -> None:
    texts, named = Dictionary(), list[str]()
    sources = Sources({"google.com": "Google", "google.de": "Google"})

    def name_of(text: str, sources: Sources) -> str:
        named.append(text)
        return rows.source(text, sources)

    def names() -> list[str]:
        reader: Any = SimpleNamespace(texts=texts, sources=sources, cancellation=Cancellation())
        found, order = display_names(reader, Dimension.REFERRER, name_of)
        numbers = order()
        assert numbers is not None
        assert [found.names[number] for number in numbers] == sorted(found.names)
        every = np.arange(len(texts(Dimension.REFERRER)))
        return [found.names[number] for number in found.numbers_of(every)][1:]

    texts.texts[Dimension.REFERRER] += REFERRERS[:2]
    assert names() == ["Google", "t.co"]
    texts.texts[Dimension.REFERRER] += REFERRERS[2:]
    assert names() == ["Google", "t.co", "Google", "example.org"] == names()
    assert named == ["never seen", *REFERRERS]
    # The operator has named a source.
    sources = Sources({"example.org": "Example"})
    assert names() == ["google.com", "t.co", "google.de", "Example"]
