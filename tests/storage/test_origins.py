"""A hit has one number here, however many imports its store has sent."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from medamad.storage.import_batches import Span, joined_spans, spans_of

RANGES = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 30), st.integers(0, 12)), max_size=8
)


@given(RANGES)
def test_a_hit_keeps_its_number(ranges: list[tuple[str, int, int]]) -> None:
    free = 1
    given_out: dict[tuple[str, int], int] = {}
    known: list[Span] = []

    def reserve(numbers: int) -> int:
        nonlocal free
        # Hits of the store itself come in between.
        free += 1 + numbers
        return free - numbers

    for store, first, length in ranges:
        spans = list(spans_of(joined_spans(known), store, first, first + length, reserve))
        assert [number for span in spans for number in range(span.first, span.last + 1)] == list(
            range(first, first + length + 1)
        )
        for span in spans:
            for number in range(span.first, span.last + 1):
                place = span.place(number)
                assert given_out.setdefault((store, number), place) == place
        known += spans
    assert len(set(given_out.values())) == len(given_out)
    found = {
        (span.store, number): span.place(number)
        for span in joined_spans(known)
        for number in range(span.first, span.last + 1)
    }
    assert found == given_out


def test_adjacent_spans_of_many_imports_are_joined() -> None:
    free = count(1_000)
    known: list[Span] = []
    for last in range(1, 50):
        known += spans_of(joined_spans(known), "a", 1, last, lambda _: next(free))
    assert joined_spans(known) == [Span("a", 1, 49, 1_000)]


def test_hits_without_a_store_get_new_numbers_each_time() -> None:
    assert list(spans_of([Span("", 1, 9, 100)], "", 1, 9, lambda _: 200)) == [Span("", 1, 9, 200)]
