from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.query.snapshots import SOURCES
from support.slices import Slices

from medamad.query import rows
from medamad.query.rows import Naming, fractions, make_rows, page_of_rows


@given(st.lists(st.integers(0, 10**6)), st.integers(0, 10**6))
def test_fractions_are_rounded_like_in_python(parts: list[int], whole: int) -> None:
    expected = [round(part / whole, 4) if whole else 0 for part in parts]
    assert fractions(np.array(parts, np.int64), np.array(whole)).tolist() == expected


@pytest.mark.parametrize("whole", [32, 160, 800, 20_000, 99_999])
def test_fractions_that_end_in_a_half(whole: int) -> None:
    parts = np.arange(whole + 1)
    expected = [round(part / whole, 4) for part in range(whole + 1)]
    assert fractions(parts, np.full(whole + 1, whole)).tolist() == expected


class LookedUp(list[str]):
    """A list that notes which of its items are looked up."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self.looked_up: list[int] = []

    def __getitem__(self, number: Any) -> Any:
        self.looked_up.append(number)
        return super().__getitem__(number)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.text("ab\uffff\U0001d4b3", max_size=2))
    ),
    st.integers(0, 12),
    st.integers(1, 12),
)
def test_a_page_of_rows_is_a_slice_of_the_whole_order(
    rows: list[tuple[int, int, str]], offset: int, limit: int
) -> None:
    rows = list({name: (first, second, name) for first, second, name in rows}.values())
    names_of_rows = LookedUp(name for *_, name in rows)
    numbers, names = page_of_rows(
        np.arange(len(rows)),
        [np.array([row[place] for row in rows], np.int64) for place in (0, 1)],
        names_of_rows,
        slice(offset, offset + limit),
    )
    ordered = sorted(rows, key=lambda row: (-row[0], -row[1], row[2]))[offset : offset + limit]
    assert [rows[number] for number in numbers] == ordered
    assert names == [name for *_, name in ordered]
    shown = {row[:2] for row in ordered}
    assert all(rows[number][:2] in shown for number in names_of_rows.looked_up)


def test_rows_are_plain_values() -> None:
    rows = make_rows(
        {"path": ["/", "/a"], "visitors": np.array([1, 2]), "share": np.array([0.5, 1])}
    )
    assert msgspec.json.encode(rows) == (
        b'[{"path":"/","visitors":1,"share":0.5},{"path":"/a","visitors":2,"share":1.0}]'
    )


def test_rows_are_built_in_pieces() -> None:
    paths, visitors = Slices(map(str, range(12_000))), np.arange(12_000)
    rows = make_rows({"path": paths, "visitors": visitors})
    assert [(row.path, row.visitors) for row in rows] == [
        (str(number), number) for number in range(12_000)
    ]
    assert sum(paths.sizes) == 12_000
    assert max(paths.sizes) <= 5_000
    assert make_rows({"path": [], "visitors": visitors[:0]}) == []


@pytest.mark.parametrize("with_order", [False, True])
def test_a_page_of_many_equal_rows(*, with_order: bool) -> None:
    # More than are sorted in one go.
    names = [f"{number * 7_919 % 20_011:05}" for number in range(20_000)]
    views = np.array([3] * 10 + [2] * 15_000 + [1] * 4_990)
    order = np.argsort(np.array(names)) if with_order else None
    numbers, shown = page_of_rows(np.arange(20_000), [views], names, slice(5, 5_005), lambda: order)
    expected = [*sorted(names[:10]), *sorted(names[10:15_010])][5:5_005]
    assert shown == expected
    assert [names[number] for number in numbers] == expected


@pytest.mark.parametrize(
    ("name_of", "text", "name"),
    [
        (rows.as_stored, "en-GB", "en-GB"),
        (rows.source, "google.de/search", "Google"),
        (rows.source, "", ""),
        (rows.source, "(other)", "(other)"),
        (rows.country, "DE", "Germany"),
        (rows.country, "", "Unknown"),
        (rows.language, "en-GB", "English"),
        (rows.language, "", "Unknown"),
        (rows.locale, "en-GB", "British English"),
        (rows.locale, "(other)", "(other)"),
    ],
)
def test_names(name_of: Naming, text: str, name: str) -> None:
    assert name_of(text, SOURCES) == name
