"""The vacuum removes unused texts once a day, and no others."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest_twisted
from support.query.snapshots import answer
from support.storage.bulk_loads import code_texts, expected, load, made
from support.storage.contents import agrees, idle, segments_and_merged, settled, stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view, event, views
from support.storage.log_lines import logged_warnings
from support.storage.visible_hits import stored_texts
from twisted.internet.defer import Deferred

from medamad.domain.dimensions import Dimension
from medamad.domain.websites import Website
from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

SIZES = Sizes(chunk_views=2, merged_members=2, counted_from=3)


async def fill(store: Store) -> Website:
    """Store views in a merged segment, in segments with and without counters, and in memory."""
    website = await store.add_website("example.com", 1)
    for number in range(3):
        await store.append([*views(10 * number, 10 * number + 4), event(f"b{10 * number}")])
        await idle(store)
    await store.append([a_view(path="/country", country="DE", properties=(("x", "y"),))])
    await settled(store, NOW_MS + DAY_MS + HOUR_MS + 1)
    await store.append(views(90, 92, NOW_MS + DAY_MS + HOUR_MS))
    assert segments_and_merged(store.environment)[1] > 0
    return website


async def name(store: Store, website: Website, *names: str) -> None:
    """Encode texts that nothing uses, as a failed load does."""
    dimensions = (Dimension.PATH, Dimension.COUNTRY, Dimension.PROPERTY)
    when_ms, _ = made(1, 1, 0).time_bounds()
    await code_texts(store, website, dict.fromkeys(dimensions, names), when_ms)


@pytest_twisted.ensureDeferred
async def test_used_texts_stay_wherever_they_are_used(open_store: OpenStore) -> None:
    store = open_store(sizes=SIZES)
    website = await fill(store)
    before = stored_rows(store, website)
    await name(store, website, "unused", "also", "the last")
    for days in (10, 11):
        await settled(store, NOW_MS + days * DAY_MS)
        assert stored_rows(store, website) == before
        assert stored_texts(store, website, Dimension.COUNTRY) == ["", "DE", "the last"]
        assert {"unused", "also"}.isdisjoint(stored_texts(store, website, Dimension.PATH))
        assert {"unused", "also"}.isdisjoint(stored_texts(store, website, Dimension.PROPERTY))
        store.read(website, agrees)
        await store.close()
        store = open_store(sizes=SIZES)
    await store.append([a_view(path="/again", country="also", time_ms=NOW_MS + 11 * DAY_MS)])
    (again,) = (row for row in stored_rows(store, website)[0] if row["path"] == "/again")
    assert again["country"] == "also"
    await store.close()


@pytest_twisted.ensureDeferred
async def test_the_vacuum_runs_once_a_day(open_store: OpenStore) -> None:
    store = open_store(sizes=SIZES)
    website = await fill(store)
    midnight_ms = -(-NOW_MS // DAY_MS) * DAY_MS + 9 * DAY_MS
    await store.maintain(midnight_ms)
    await name(store, website, "unused", "the last")
    await store.maintain(midnight_ms + DAY_MS - 1)
    assert "unused" in stored_texts(store, website, Dimension.PATH)
    await store.maintain(midnight_ms + DAY_MS)
    assert "unused" not in stored_texts(store, website, Dimension.PATH)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_texts_of_expired_views_stay_for_queries_that_read_them(
    open_store: OpenStore,
) -> None:
    """But not for later queries, however many there are."""
    store = open_store(sizes=SIZES, retention=Retention(others=Keep(3, "nothing")))
    website = await store.add_website("example.com", 1)
    await store.append([a_view(path="/old"), a_view(path="/new", time_ms=NOW_MS + 5 * DAY_MS)])
    await settled(store, NOW_MS + 2 * DAY_MS)
    reader, later = ExitStack(), ExitStack()
    reader.enter_context(store.snapshot(website))
    for days in (7, 8):
        await settled(store, NOW_MS + days * DAY_MS)
        assert stored_rows(store, website)[0][0]["path"] == "/new"
        assert stored_texts(store, website, Dimension.PATH) == ["/old", "/new"]
    later.enter_context(store.snapshot(website))
    reader.close()
    await settled(store, NOW_MS + 8 * DAY_MS)
    assert stored_texts(store, website, Dimension.PATH) == ["/new"]
    later.close()
    await store.close()


SEEN_AGAIN = "/old"
QUESTIONS = [
    (name, [*parameters, *further])
    for name in (
        *("summary", "pages", "entries", "exits", "time", "referrers", "sources", "browsers"),
        *("countries", "languages", "properties", "next", "previous", "goals"),
    )
    for parameters in ([("of", SEEN_AGAIN)], [("of", SEEN_AGAIN), ("summary", "true")])
    for further in (
        [],
        [("path", SEEN_AGAIN)],
        [("path[neq]", SEEN_AGAIN)],
        [("path[in]", f"{SEEN_AGAIN},/x")],
        [("country", "DE"), ("utm_source", "s")],
        [("prop_name", "k"), ("prop_value", "v")],
        *([(f"{place}_page[eq]", SEEN_AGAIN)] for place in ("entry", "exit")),
    )
    if not (name == "summary" and ("summary", "true") in parameters)
]


async def see(store: Store, *, days: int) -> None:
    """Store a visit of three pages, each of whose texts is in a dimension of its own."""
    fields = {"country": "DE", "utm_source": "s", "referrer": "g.example", "browser": "B"}
    for number, path in enumerate(("/x", SEEN_AGAIN, "/y"), 1):
        view = a_view(
            path=path,
            time_ms=NOW_MS + days * DAY_MS + number,
            properties=(("k", "v"),),
            identity=b"ada",
            number_today=number,
            first_today=number == 1,
            from_page=None if number == 1 else "/x",
            **fields,
        )
        await store.append([view])


@pytest_twisted.ensureDeferred
async def test_a_text_that_is_vacuumed_and_comes_back_is_the_same_text(
    open_store: OpenStore,
) -> None:
    """Until its texts are read again, those in memory have it at two codes."""

    def answers(store: Store) -> list[object]:
        return [
            store.read(website, lambda snapshot: answer(snapshot, name, parameters))  # noqa: B023
            for name, parameters in QUESTIONS
        ]

    store = open_store(sizes=SIZES, retention=Retention(others=Keep(3, "nothing")))
    website = await store.add_website("example.com", 1)
    await see(store, days=0)
    await store.append([a_view(path="/new", time_ms=NOW_MS + 5 * DAY_MS)])
    assert answers(store)
    for days in (7, 8):
        await settled(store, NOW_MS + days * DAY_MS)
    assert SEEN_AGAIN not in stored_texts(store, website, Dimension.PATH)
    await see(store, days=8)
    with store.snapshot(website) as snapshot:
        texts = snapshot.texts(Dimension.PATH)
    assert list(texts).count(SEEN_AGAIN) == 2
    found = answers(store)
    await store.close()
    store = open_store(sizes=SIZES, retention=Retention(others=Keep(3, "nothing")))
    for (name, parameters), before, after in zip(QUESTIONS, found, answers(store), strict=True):
        assert before == after, (name, parameters)
    (following,) = store.read(website, lambda snapshot: answer(snapshot, "next", [("of", "/x")]))
    assert following["path"] == SEEN_AGAIN
    await store.close()


@pytest_twisted.ensureDeferred
async def test_texts_of_damaged_segments_are_kept(open_store: OpenStore) -> None:
    store = open_store(sizes=SIZES)
    website = await fill(store)
    await name(store, website, "unused", "the last")
    await store.close()
    store = open_store(sizes=SIZES)
    environment = store.environment
    with environment.lmdb.begin(write=True) as txn:
        for key, value in list(txn.cursor(db=environment.databases.counters)):
            flipped = bytes([value[0] ^ 1]) + value[1:]
            txn.put(key, flipped, db=environment.databases.counters)
    with logged_warnings() as lines:
        await store.maintain(NOW_MS + 10 * DAY_MS)
    assert any("texts are kept" in line for line in lines)
    assert "unused" in stored_texts(store, website, Dimension.PATH)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_many_texts_are_deleted_in_steps_between_hits(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    bulk = made(1, 5_000, 30)
    await load(store, website, bulk)
    await name(store, website, *(f"unused {number}" for number in range(5_000)))
    tidying = Deferred.fromCoroutine(store.maintain(NOW_MS))
    for number in range(20):
        await store.append(views(number, number))
    await tidying
    views_there, events = stored_rows(store, website)
    whole = expected(bulk)
    of_bulk = [row for row in views_there if row["path"].startswith("/bulk")]
    assert (of_bulk, events) == whole
    assert len(views_there) == 5_020
    unused = [
        text for text in stored_texts(store, website, Dimension.PATH) if text.startswith("unused")
    ]
    assert len(unused) <= 1, "the last one may have to stay"
    await store.close()
