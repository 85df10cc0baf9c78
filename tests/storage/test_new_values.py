"""New values of a day are counted without scanning what imports added."""

from typing import Any, Self

import pytest
from attrs import define
from support.storage.log_lines import logged_warnings

from medamad.domain.dimensions import OTHER, Dimension
from medamad.storage.dictionary.decode import WebsiteTexts
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.dictionary.limits import count_mark_key
from medamad.storage.environment.environment import Environment

DAY_MS = 86_400_000
PATHS = (1, Dimension.PATH)
BOUNDS = {Dimension.PATH: 3, Dimension.PROPERTY_NAME: 9, Dimension.PROPERTY: 3}
MANY = 5_000


@define
class Counted:
    """A transaction, or one of its cursors, that counts steps backwards."""

    held: Any
    steps: list[str]

    def __getattr__(self, name: str) -> Any:
        if name == "prev":
            self.steps.append(name)
        return getattr(self.held, name)

    def cursor(self, **named: Any) -> "Counted":
        return Counted(self.held.cursor(**named), self.steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.held.close()


def new_names(environment: Environment) -> Dictionary:
    return Dictionary(environment.databases, BOUNDS, 100)


def give(
    environment: Environment, names: Dictionary, texts: list[str], day: int
) -> tuple[int, int]:
    """Encode paths of hits; return how many got their own code, and the steps backwards."""
    steps: list[str] = []
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(Counted(txn, steps), day * DAY_MS)  # type: ignore[arg-type]
        codes = [encoder.code(*PATHS, text) for text in texts]
    encoder.committed()
    known = WebsiteTexts(environment, 1)(Dimension.PATH)
    return sum(known[code] != OTHER for code in codes), len(steps)


def load(
    environment: Environment,
    names: Dictionary,
    first: int,
    at_once: int,
    dimension: Dimension = Dimension.PATH,
) -> int:
    """Encode many texts of past hits; return the most steps backwards in a transaction."""
    most = 0
    for begin in range(first, first + MANY, at_once):
        steps: list[str] = []
        with environment.lmdb.begin(write=True) as txn:
            encoder = names.encoder(Counted(txn, steps), 0)  # type: ignore[arg-type]
            for number in range(begin, begin + at_once):
                encoder.any_code(1, dimension, f"/{number}")
        encoder.committed()
        most = max(most, len(steps))
    return most


def test_few_texts_are_scanned_after_a_large_import(environment: Environment) -> None:
    names = new_names(environment)
    assert give(environment, names, ["/a", "/b"], 5)[0] == 2
    assert load(environment, names, 0, 1_000) < 2_500
    again = new_names(environment)
    kept, steps = give(environment, again, ["/c", "/d"], 5)
    assert (kept, steps < 2_500) == (1, True), "a restart forgives nothing"
    load(environment, again, MANY, 1_000)
    assert give(environment, new_names(environment), ["/e"], 5)[0] == 0
    assert give(environment, new_names(environment), ["/f", "/g", "/h", "/i"], 6)[0] == 3
    assert give(environment, new_names(environment), ["/j"], 6)[0] == 0


def test_texts_of_a_store_without_marks_are_scanned_once(environment: Environment) -> None:
    give(environment, new_names(environment), ["/a", "/b"], 5)
    load(environment, new_names(environment), 0, MANY)
    kept, steps = give(environment, new_names(environment), ["/c", "/d"], 5)
    assert (kept, steps > MANY) == (1, True)
    kept, steps = give(environment, new_names(environment), ["/e"], 5)
    assert (kept, steps < 10) == (0, True)


def test_imported_texts_are_not_new(environment: Environment) -> None:
    load(environment, new_names(environment), 0, 1_000)
    for kept in (3, 0):
        texts = [f"/{kept}/{number}" for number in range(4)]
        assert give(environment, new_names(environment), texts, 5)[0] == kept


def test_each_property_name_has_its_own_mark(environment: Environment) -> None:
    def given(*values: str) -> int:
        names = new_names(environment)
        with environment.lmdb.begin(write=True) as txn:
            encoder = names.encoder(txn, 5 * DAY_MS)
            codes = [encoder.property_codes(1, (("size", value),)) for value in values]
        encoder.committed()
        texts = WebsiteTexts(environment, 1)(Dimension.PROPERTY)
        return sum(not texts[code].endswith(OTHER) for (code,) in codes)

    assert given("s", "m") == 2
    load(environment, new_names(environment), 0, 1_000, Dimension.PROPERTY)
    assert given("l", "xl") == 1
    assert given("xxl") == 0


@pytest.mark.parametrize("place", [0, 10])
def test_a_damaged_mark_is_rebuilt(environment: Environment, place: int) -> None:
    give(environment, new_names(environment), ["/a", "/b"], 5)
    load(environment, new_names(environment), 0, 1_000)
    give(environment, new_names(environment), ["/c"], 5)
    with environment.lmdb.begin(write=True) as txn:
        key, names = count_mark_key(PATHS), environment.databases.dictionary
        damaged = bytearray(txn.get(key, db=names))
        damaged[place] ^= 1
        txn.put(key, bytes(damaged), db=names)
    with logged_warnings() as lines:
        assert give(environment, new_names(environment), ["/d"], 5)[0] == 0
    place = "the count of new values, website 1, dimension 1: its checksum does not match"
    assert lines == [f"a damaged part of the store is ignored: {place}"]
    with logged_warnings() as lines:
        assert give(environment, new_names(environment), ["/e"], 5)[0] == 0
    assert lines == []


SHARED = {Dimension.PATH: 8, Dimension.PROPERTY_NAME: 8, Dimension.PROPERTY: 8}
ONE, ANOTHER = b"\xc0\x00\x02", b"\xc6\x33\x64"


def shared_names(environment: Environment, reached: list[tuple[int, Dimension]]) -> Dictionary:
    return Dictionary(environment.databases, SHARED, 8, on_limit=reached.append)


def add_from(
    environment: Environment, names: Dictionary, network: bytes, texts: list[str], day: int = 1
) -> list[bool]:
    """Return which paths from a network get their own code."""
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, day * DAY_MS)  # type: ignore[arg-type]
        encoder.network = network
        codes = [encoder.code(*PATHS, text) for text in texts]
        other = encoder.code(*PATHS, OTHER)
    encoder.committed()
    return [code != other for code in codes]


def test_a_network_gets_a_quarter_of_a_limit_once_half_is_used(environment: Environment) -> None:
    reached: list[tuple[int, Dimension]] = []
    names = shared_names(environment, reached)
    first = [f"/{number}" for number in range(9)]
    # "(other)" itself takes one place.
    assert add_from(environment, names, ONE, first) == [True] * 6 + [False] * 3
    assert reached == [PATHS]
    assert names.reached == {PATHS: 1}
    assert add_from(environment, names, ONE, ["/0", "/more"]) == [True, False]
    assert add_from(environment, names, ANOTHER, ["/a", "/b"]) == [True, False]
    assert reached == [PATHS]
    # On the next day everything begins again.
    assert add_from(environment, names, ONE, [f"/next{n}" for n in range(7)], 2) == [True] * 6 + [
        False
    ]
    assert reached == [PATHS, PATHS]


def test_hits_without_a_network_have_no_share(environment: Environment) -> None:
    reached: list[tuple[int, Dimension]] = []
    names = shared_names(environment, reached)
    texts = [f"/{number}" for number in range(9)]
    assert add_from(environment, names, b"", texts) == [True] * 8 + [False]
    assert reached == [PATHS]


def test_a_network_gets_a_quarter_of_a_property_s_limit(environment: Environment) -> None:
    names = shared_names(environment, [])
    with environment.lmdb.begin(write=True) as txn:
        encoder = names.encoder(txn, DAY_MS)
        encoder.network = ONE
        mine = [encoder.property_codes(1, (("plan", text),))[0] for text in "abcdefghi"]
        encoder.network = ANOTHER
        other = encoder.property_codes(1, (("plan", "other's"),))[0]
    assert len(set(mine)) == 7, "six values and (other)"
    assert other not in mine
