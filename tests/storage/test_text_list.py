import gc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medamad.storage.dictionary.decode import TextList

TEXTS = [f"text {number}" for number in range(10_000)]


def growing(texts: list[str]) -> TextList:
    made = TextList()
    made.extend(texts)
    return made


FULL = growing(TEXTS)
_places = st.none() | st.integers(-11_000, 11_000) | st.sampled_from([4_095, 4_096, 4_097, 8_192])


@given(_places, _places, st.none() | st.integers(-3, 3).filter(bool))
@settings(max_examples=3 * settings.default.max_examples)
def test_a_text_list_can_be_sliced_like_a_list(
    start: int | None, stop: int | None, step: int | None
) -> None:
    assert FULL[start:stop:step] == TEXTS[start:stop:step]


def test_a_text_list_reads_like_a_list() -> None:
    made = TextList()
    assert (len(made), list(made), made[:]) == (0, [], [])
    for number, text in enumerate(TEXTS):
        made.append(text)
        assert len(made) == number + 1
        assert made[number] == made[-1] == text
    assert list(made) == TEXTS
    assert [made[-place] for place in (1, 10_000)] == [TEXTS[-1], TEXTS[0]]
    assert [made[np.uint8(200)], made[np.uint16(9_000)]] == [TEXTS[200], TEXTS[9_000]]
    for beyond in (10_000, 12_288, -10_001):
        with pytest.raises(IndexError):
            made[beyond]


@pytest.mark.parametrize("count", [0, 3, 9_000])
def test_texts_can_be_taken_from_some_places(count: int) -> None:
    places = [place * 7_919 % 10_000 for place in range(count)]
    assert FULL.take(places) == [TEXTS[place] for place in places]


def test_the_garbage_collector_scans_only_the_last_piece() -> None:
    made = growing([f"other {number}" for number in range(20_000)])
    gc.collect()
    sizes = [len(piece) for piece in made._pieces if gc.is_tracked(piece)]
    assert sizes == [20_000 % 4_096]
    assert all(one is not other for one, other in pairwise(made._pieces))
