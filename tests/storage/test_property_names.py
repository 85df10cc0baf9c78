"""Property names are looked up one by one, and only those that are requested."""

from collections.abc import Callable

import numpy as np
import pytest_twisted
from support.storage.contents import idle
from support.storage.hits import DAY_MS, NOW_MS, a_view, event

from medamad.domain.dimensions import Dimension
from medamad.storage.compaction.planner import Sizes
from medamad.storage.dictionary.decode import PropertyNameNumbers
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.dictionary.keys import ENTRY_KEY
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

BOUNDS = {Dimension.PROPERTY: 9, Dimension.PROPERTY_NAME: 9}
PROPERTIES = (("plan", "a"), ("size", "a"), ("plan", "b"), ("size", "b"))


def test_properties_of_one_name_have_one_code(environment: Environment) -> None:
    with environment.lmdb.begin(write=True) as txn:
        encoder = Dictionary(environment.databases, BOUNDS, 9).encoder(txn, 0)
        codes = np.array(encoder.property_codes(1, PROPERTIES))
        names = PropertyNameNumbers(WriterAccess(txn), environment.databases, 1)
        plan, size, *others = names(codes).tolist()
        assert (plan != size, others) == (True, [plan, size])
        assert names(codes[[3, 0]]).tolist() == [size, plan]


def test_each_code_is_looked_up_once(environment: Environment) -> None:
    with environment.lmdb.begin(write=True) as txn:
        encoder = Dictionary(environment.databases, BOUNDS, 9).encoder(txn, 0)
        codes = np.array(encoder.property_codes(1, PROPERTIES))
        names = PropertyNameNumbers(WriterAccess(txn), environment.databases, 1)
        assert len(list(names.look_up([codes[:2], codes[[0, 0, 2]]]))) == 3
        assert list(names.look_up([codes[:3]])) == []


def test_damaged_and_missing_names_are_treated_alike(environment: Environment) -> None:
    with environment.lmdb.begin(write=True) as txn:
        encoder = Dictionary(environment.databases, BOUNDS, 9).encoder(txn, 0)
        codes = np.array(encoder.property_codes(1, PROPERTIES))
        database = environment.databases.dictionary
        key = ENTRY_KEY.pack(1, Dimension.PROPERTY, codes[1])
        txn.put(key, txn.get(key, db=database)[:-1] + b"\xff", db=database)
        numbers = PropertyNameNumbers(WriterAccess(txn), environment.databases, 1)(
            np.array([*codes, 99])
        )
        assert numbers[1] == numbers[4]
        assert len(set(numbers.tolist())) == 3


@pytest_twisted.ensureDeferred
async def test_flush_and_retention_do_not_read_the_texts_of_queries(
    open_store: Callable[..., Store],
) -> None:
    """There may be many, and a segment has few of them.

    A query that reads them holds a lock.
    """
    store = open_store(
        sizes=Sizes(chunk_views=4, counted_from=0), retention=Retention(others=Keep(2))
    )
    website = await store.add_website("example.com", 1)
    texts = store.partitions.get_or_create(website.number).texts
    await store.append([a_view(beacon="b"), event("b"), event("")])
    await store.maintain(NOW_MS + DAY_MS + 1)
    assert store.read(website, lambda snapshot: len(list(snapshot.parts))) == 1
    await store.maintain(NOW_MS + 4 * DAY_MS)
    await idle(store)
    assert store.read(website, lambda snapshot: len(list(snapshot.rollups))) == 1
    assert texts.size() == 0
    await store.close()
