import sys

import numpy as np
import pytest

from medamad.domain.dimensions import OTHER, Dimension, split_property
from medamad.domain.errors import NotFound
from medamad.storage.dictionary.decode import DAMAGED, WebsiteTexts
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.environment import Environment

DAY_MS = 86_400_000
BOUNDS = {
    Dimension.PATH: 3,
    Dimension.PROPERTY_NAME: 2,
    Dimension.PROPERTY: 3,
}


def new_names(environment: Environment, bounds: dict[Dimension, int] = BOUNDS) -> Dictionary:
    return Dictionary(environment.databases, bounds, 100)


def give(
    environment: Environment, names: Dictionary, texts: list[str], *, website: int = 1, day: int = 0
) -> list[int]:
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, day * DAY_MS)
        codes = [encoder.code(website, Dimension.PATH, text) for text in texts]
    encoder.committed()
    return codes


def give_properties(
    environment: Environment, names: Dictionary, properties: list[tuple[str, str]], *, day: int = 0
) -> list[tuple[str, str]]:
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, day * DAY_MS)
        codes = [encoder.property_codes(1, (pair,)) for pair in properties]
    encoder.committed()
    texts = WebsiteTexts(environment, 1)(Dimension.PROPERTY)
    return [split_property(texts[code]) for (code,) in codes]


def test_codes_count_up_and_stay(environment: Environment) -> None:
    names = new_names(environment)
    assert give(environment, names, ["/a", "/b", "/a"]) == [0, 1, 0]
    assert give(environment, names, ["/b", "/c"]) == [1, 2]
    assert give(environment, new_names(environment), ["/c", "/a"]) == [2, 0]
    assert list(WebsiteTexts(environment, 1)(Dimension.PATH)) == ["/a", "/b", "/c"]


def test_each_website_and_dimension_has_its_own_codes(environment: Environment) -> None:
    names = new_names(environment)
    give(environment, names, ["/a", "/b"])
    assert give(environment, names, ["/b"], website=2) == [0]
    with environment.lmdb.begin(write=True) as txn:
        assert names.encoder(txn, 0).code(1, Dimension.BROWSER, "Firefox") == 0


def test_a_failed_transaction_leaves_no_code_behind(environment: Environment) -> None:
    names = new_names(environment)
    with environment.lmdb.begin(write=True) as txn:
        assert names.encoder(txn, 0).code(1, Dimension.PATH, "/lost") == 0
        txn.abort()
    assert give(environment, names, ["/kept"]) == [0]
    assert list(WebsiteTexts(environment, 1)(Dimension.PATH)) == ["/kept"]


def test_new_values_beyond_the_daily_limit_become_other(environment: Environment) -> None:
    names = new_names(environment)
    assert give(environment, names, ["/a", "/b", "/c", "/d", "/a", "/e"]) == [0, 1, 2, 3, 0, 3]
    assert WebsiteTexts(environment, 1)(Dimension.PATH)[3] == OTHER


def test_daily_limits_survive_a_restart_and_reset_the_next_day(environment: Environment) -> None:
    give(environment, new_names(environment), ["/a", "/b", "/c", "/d"], day=5)
    names = new_names(environment)
    assert give(environment, names, ["/e"], day=5) == [3]
    assert give(environment, names, ["/e", "/f"], day=6) == [4, 5]
    assert give(environment, new_names(environment), ["/g", "/h"], day=6) == [6, 3]


def test_property_values_are_limited_per_name(environment: Environment) -> None:
    names = new_names(environment)
    pairs = [("size", "s"), ("size", "m"), ("size", "l"), ("size", "xl"), ("colour", "red")]
    assert give_properties(environment, names, pairs) == [
        ("size", "s"),
        ("size", "m"),
        ("size", "l"),
        ("size", OTHER),
        ("colour", "red"),
    ]
    again = new_names(environment)
    assert give_properties(environment, again, [("size", "xxl"), ("colour", "blue")]) == [
        ("size", OTHER),
        ("colour", "blue"),
    ]


def test_numbers_have_limits_of_their_own(environment: Environment) -> None:
    def kept(names: Dictionary, name: str, values: list[str], day: int = 5) -> int:
        given = give_properties(environment, names, [(name, value) for value in values], day=day)
        return sum(value != OTHER for _, value in given)

    names = new_names(environment)
    amounts = [f"{cents / 100}" for cents in range(100, 200)]
    words = [f"{number} pieces" for number in range(9)]
    assert kept(names, "total", words) == 3
    assert kept(names, "total", amounts[:59]) == 59
    assert kept(names, "total", ["-1e3", ".5", "1" * 33, "1 000"]) == 1, "sixty numbers"
    again = new_names(environment)
    assert kept(again, "total", [*amounts[59:], *words]) == 3, "as before the restart"
    assert kept(again, "size", amounts) == 60
    assert kept(again, "total", [*amounts, *words], day=6) == 100 + 6


def test_numbers_are_limited_in_total(environment: Environment) -> None:
    names = new_names(environment, BOUNDS | {Dimension.PROPERTY_NAME: 99})
    pairs = [(f"n{name}", str(value)) for value in range(50) for name in range(7)]
    given = give_properties(environment, names, pairs)
    assert sum(value != OTHER for _, value in given) == 300
    assert give_properties(environment, names, [("n0", "a")]) == [("n0", "a")]


def test_property_names_are_limited(environment: Environment) -> None:
    names = new_names(environment)
    pairs = [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("d", "9")]
    expected = [("a", "1"), ("b", "1"), (OTHER, OTHER), ("a", "2"), (OTHER, OTHER)]
    assert give_properties(environment, names, pairs) == expected
    assert give_properties(environment, new_names(environment), [("e", "1")]) == [(OTHER, OTHER)]


def test_property_values_are_limited_in_total_for_any_number_of_names(
    environment: Environment,
) -> None:
    names = new_names(environment)
    kept = []
    for day in range(5):
        known = [f"{was}-{number}" for was in range(day + 1) for number in range(2)]
        pairs = [(name, f"{day}-{value}") for value in range(3) for name in known]
        given = give_properties(environment, names, pairs, day=day)
        kept.append([value for _, value in given if value != OTHER])
    assert [len(values) for values in kept] == [6] * 5
    again = new_names(environment)
    assert give_properties(environment, again, [("0-0", "more")], day=4) == [("0-0", OTHER)]
    assert give_properties(environment, again, [("0-0", "more")], day=5) == [("0-0", "more")]


def test_a_long_value_counts_as_several(environment: Environment) -> None:
    bounds = {Dimension.PATH: 6, Dimension.PROPERTY_NAME: 9, Dimension.PROPERTY: 4}
    names = new_names(environment, bounds)
    # Of 256 bytes, 257 and 514: one, two and three values.
    paths = ["a" * 256, "b" * 257, "é" * 257]
    assert give(environment, names, paths, day=5) == [0, 1, 2]
    assert give(environment, names, ["/c", "a" * 256], day=5) == [3, 0]
    assert WebsiteTexts(environment, 1)(Dimension.PATH)[3] == OTHER
    for again in (names, new_names(environment, bounds)):
        assert give(environment, again, ["/d"], day=5) == [3]
        assert give(environment, again, ["/d"], website=2, day=5) == [0]
    assert give(environment, names, ["d" * 1_500, "/e"], day=6) == [4, 3]
    pairs = [("size", "s" * 200), ("size", "m" * 800), ("size", "l"), ("colour", "red")]
    kept = [*pairs[:2], ("size", OTHER), pairs[3]]
    assert give_properties(environment, names, pairs, day=6) == kept
    again = new_names(environment, bounds)
    assert give_properties(environment, again, [("size", "x"), ("colour", "blue")], day=6) == [
        ("size", OTHER),
        ("colour", "blue"),
    ]


def test_the_cache_is_bounded_in_bytes(environment: Environment) -> None:
    names = Dictionary(environment.databases, {Dimension.PATH: 10_000}, 100, cache_bytes=10_000)
    texts = [f"{number:02}" + "\N{GRINNING FACE}" * 500 for number in range(20)]
    assert give(environment, names, texts) == list(range(20))
    cached = [text for known in names.spaces.values() for text in known.codes]
    assert 0 < sum(map(sys.getsizeof, cached)) <= 10_000
    assert give(environment, names, texts) == list(range(20))
    many = [str(number) for number in range(500)]
    assert give(environment, names, many) == list(range(20, 520))
    assert 0 < sum(len(known.codes) for known in names.spaces.values()) <= 100
    assert give(environment, names, many) == list(range(20, 520))


def test_one_event_has_each_property_once(environment: Environment) -> None:
    names = new_names(environment)
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, 0)
        codes = encoder.property_codes(1, tuple((f"n{number}", "v") for number in range(9)))
    assert codes == [0, 1, 2]


@pytest.mark.parametrize("text", ["", "ünïcode", "x" * 2048, "😀"])
def test_any_text_round_trips(environment: Environment, text: str) -> None:
    assert give(environment, new_names(environment), [text]) == [0]
    assert list(WebsiteTexts(environment, 1)(Dimension.PATH)) == [text]


def test_a_reader_sees_texts_added_since(environment: Environment) -> None:
    names, reader = new_names(environment), WebsiteTexts(environment, 1)
    assert list(reader(Dimension.PATH)) == []
    give(environment, names, ["/a"])
    assert list(reader(Dimension.PATH)) == ["/a"]
    give(environment, names, ["/b"])
    assert list(reader(Dimension.PATH)) == ["/a", "/b"]


def test_setting_the_clock_back_a_day_resets_no_limit(environment: Environment) -> None:
    names = new_names(environment)
    give(environment, names, ["/a", "/b"], day=6)
    give(environment, names, ["/c"], day=5)
    assert give(environment, names, ["/d", "/e"], day=6) == [3, 4]
    assert list(WebsiteTexts(environment, 1)(Dimension.PATH)[3:]) == ["/d", OTHER]


def test_the_texts_of_a_deleted_website_are_not_found(environment: Environment) -> None:
    give(environment, new_names(environment), ["/a", "/b"])
    texts = WebsiteTexts(environment, 1)
    assert list(texts(Dimension.PATH)) == ["/a", "/b"]
    texts.is_deleted = True
    with pytest.raises(NotFound):
        texts(Dimension.PATH)


@pytest.mark.parametrize(
    ("used", "left"),
    [
        ([True, True, True, True], ["/a", "/b", "/c", "/d"]),
        ([False, True, False, True], [DAMAGED, "/b", DAMAGED, "/d"]),
        ([True], ["/a", DAMAGED, DAMAGED, "/d"]),
        ([], [DAMAGED, DAMAGED, DAMAGED, "/d"]),
    ],
)
def test_codes_of_deleted_texts_are_not_reused(
    environment: Environment, used: list[bool], left: list[str]
) -> None:
    bounds = {Dimension.PATH: 100}
    names = new_names(environment, bounds)
    give(environment, names, ["/a", "/b", "/c", "/d"])
    with environment.lmdb.begin(write=True) as txn:
        assert (
            names.remove(txn, 1, Dimension.PATH, np.array(used, np.bool_), begin=0, most=2_000)
            is None
        )
    assert list(WebsiteTexts(environment, 1)(Dimension.PATH)) == left
    for known in (names, new_names(environment, bounds)):
        again = give(environment, known, ["/a", "/b", "/c", "/d", "/a"])
        assert again[-1] == again[0]
    kept = [code for code, text in enumerate(left) if text != DAMAGED]
    assert [code for code in again[:4] if code < 4] == kept
    assert len(set(again[:4])) == 4
    assert WebsiteTexts(environment, 1)(Dimension.PATH)[again[0]] == "/a"


def test_texts_are_vacuumed_in_steps(environment: Environment) -> None:
    names = new_names(environment, {Dimension.PATH: 10_000})
    give(environment, names, [f"/{number}" for number in range(4_500)])
    begins, begin = [], 0
    while begin is not None:
        begins.append(begin)
        with environment.lmdb.begin(write=True) as txn:
            begin = names.remove(
                txn, 1, Dimension.PATH, np.zeros(0, np.bool_), begin=begin, most=2_000
            )
    assert begins == [0, 2_000, 4_000]
    assert set(WebsiteTexts(environment, 1)(Dimension.PATH)) == {DAMAGED, "/4499"}


def test_an_import_after_a_restart_resets_no_limit(environment: Environment) -> None:
    give(environment, new_names(environment), ["/a", "/b"], day=6)
    names = new_names(environment)
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, 2 * DAY_MS)
        assert encoder.any_code(1, Dimension.PATH, "/old") == 2
    encoder.committed()
    codes = give(environment, names, ["/c", "/d"], day=6)
    texts = WebsiteTexts(environment, 1)(Dimension.PATH)
    assert [texts[code] for code in codes] == ["/c", OTHER]


def test_limits_reset_daily_after_the_clock_was_once_ahead(
    environment: Environment,
) -> None:
    names = new_names(environment)
    give(environment, names, ["/first"], day=6)
    give(environment, names, ["/ahead"], day=371)
    for known in (names, new_names(environment)):
        for day in range(10, 20):
            texts = [f"/{known is names}/{day}/{number}" for number in range(4)]
            codes = give(environment, known, texts, day=day)
            kept = WebsiteTexts(environment, 1)(Dimension.PATH)
            assert [kept[code] for code in codes] == [*texts[:3], OTHER]


def test_neither_a_clock_ahead_nor_an_import_resets_the_limits(
    environment: Environment,
) -> None:
    names = new_names(environment)
    give(environment, names, ["/a", "/b"], day=6)
    give_properties(environment, names, [("size", "s"), ("size", "m"), ("size", "l")], day=6)
    give(environment, names, ["/ahead"], day=371)
    give_properties(environment, names, [("size", "xl")], day=371)
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, 2 * DAY_MS)
        encoder.any_code(1, Dimension.PATH, "/old")
    encoder.committed()
    codes = give(environment, names, ["/c", "/d"], day=6)
    texts = WebsiteTexts(environment, 1)(Dimension.PATH)
    assert [texts[code] for code in codes] == ["/c", OTHER]
    assert give_properties(environment, names, [("size", "xxl"), ("colour", "red")], day=6) == [
        ("size", OTHER),
        ("colour", "red"),
    ]
