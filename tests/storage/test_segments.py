"""Segments, written and reopened, compared with the views and events they are made of."""

import random
import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query.snapshots import MadeSnapshot
from support.storage.contents import agrees, in_order, rows

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber, property_text
from medamad.storage.errors import Damaged
from medamad.storage.segments.build import (
    Content,
    concatenate,
    content_of,
    encode_merged,
    encode_segment,
    merged_header,
)
from medamad.storage.segments.corrections import Overlay
from medamad.storage.segments.format import (
    PAGE_VISITOR,
    VISITOR,
    Segment,
    decode_header,
    encode_header,
    segment_key,
    timed_flags,
)
from medamad.storage.segments.parts import (
    EventRows,
    MergedSegment,
    Part,
    ViewColumns,
)
from medamad.storage.segments.read import open_part
from medamad.storage.segments.visit_columns import MadeVisits, visits_of

DATABASES: Any = SimpleNamespace(segments="segments", counters="counters")
TEXTS = {
    Dimension.PATH: [f"/{number}" for number in range(400)],
    Dimension.PROPERTY: [
        property_text(name, value) for name in ("plan", "Plan", "n") for value in ("a", "b")
    ],
}
DURATIONS_MS = (0, 0, 1, 200, 4_999, 5_000, 5_001, 65_535, 65_536, 86_400_000)


def texts(dimension: Dimension) -> list[str]:
    return TEXTS.get(dimension, ["", "one", "two"])


def names_of(codes: Any) -> Any:
    return codes.astype(np.intp) // 2  # each name has two values


@define
class Kept:
    """A store in memory, which is a `ReadAccess`."""

    values: dict[tuple[str, bytes], bytes] = field(factory=dict)

    def value(self, key: bytes, database: Any) -> memoryview | None:
        found = self.values.get((database, key))
        return None if found is None else memoryview(found)

    def renew(self) -> None:
        pass

    def release(self) -> None:
        pass

    def write(self, content: Content, number: int, counted_from: int = 0) -> Segment:
        written = encode_segment(
            content, key_of(content, number), names_of, counted_from=counted_from
        )
        segment = Segment(1, number, written.header)
        assert segment.key == key_of(content, number)
        self._put(segment, written.puts)
        return segment

    def write_merged(self, members: list[Segment], number: int) -> Segment:
        header = merged_header([(member.number, member.header) for member in members])
        segment = Segment(1, number, header, tuple(members))
        self._put(
            segment, encode_merged([self.open(member) for member in members], header, segment.key)
        )
        return segment

    def open(self, segment: Segment, overlay: Overlay | None = None) -> Any:
        return open_part(segment, overlay, self, DATABASES)

    def _put(self, segment: Segment, puts: Any) -> None:
        for is_counters, kind, value in puts:
            key = ("counters" if is_counters else "segments", segment.key + bytes((kind,)))
            assert key not in self.values
            self.values[key] = value


def key_of(content: Content, number: int) -> bytes:
    times = [*content.time_ms.tolist(), *content.events.time_ms.tolist()]
    return segment_key(1, SimpleNamespace(key_ms=min(times)), number)  # type: ignore[arg-type]


def made(rng: random.Random, first: int, views: int, events: int) -> Content:
    """Return views, each with its own path, and events of them, of other views and of none."""
    sequence = sorted(rng.sample(range(first, first + 3 * views + 1), views))
    base_ms = rng.choice((0, 5, 1_790_000_000_000))
    time_ms = [base_ms + rng.choice((0, 1, 60_000, rng.randrange(90_000_000))) for _ in sequence]
    if rng.random() < 0.5:
        time_ms.sort()
    duration_ms = np.array([rng.choice(DURATIONS_MS) for _ in sequence], np.uint32)
    flags = np.array([rng.choice((0, VISITOR, PAGE_VISITOR, 3)) for _ in sequence], np.uint8)
    properties: list[tuple[int, int, int, int]] = []
    for number in range(first, first + events):
        view = rng.choice([0, first + 999, *sequence])
        event_ms = base_ms + rng.randrange(90_000_000)
        # Sometimes the same name twice, as for values past a limit.
        codes = sorted(rng.sample(range(6), rng.choice((1, 1, 2, 3))))
        properties += [(2 * number, event_ms, view, code) for code in codes]
    return Content(
        time_ms=np.array(time_ms, np.int64),
        sequence=np.array(sequence, np.uint64),
        flags=timed_flags(flags, duration_ms),
        duration_ms=duration_ms,
        numbers={
            number: np.array([rng.randrange(256) for _ in sequence], np.uint8)
            for number in ViewNumber
        },
        codes={
            dimension: np.array(
                [
                    place % 400 if dimension == Dimension.PATH else rng.randrange(3)
                    for place in sequence
                ],
                np.uint32,
            )
            for dimension in VIEW_DIMENSIONS
        },
        events=EventRows(
            np.array([event for event, _, _, _ in properties], np.uint64),
            np.array([ms for _, ms, _, _ in properties], np.int64),
            np.array([view for _, _, view, _ in properties], np.uint64),
            np.array([code for _, _, _, code in properties], np.uint32),
        ),
    )


class Plain:
    """Content as a part with all events loose, for comparison with a segment."""

    def __init__(self, content: Content) -> None:
        self.content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self.content, name)

    def __len__(self) -> int:
        return len(self.content)

    @property
    def loose(self) -> Any:
        return self.content.events

    @property
    def own(self) -> Any:
        nothing = np.zeros(0, np.uint64)
        return EventRows(nothing, nothing.astype(np.int64), nothing, nothing.astype(np.uint32))

    def codes(self, dimension: Dimension) -> Any:
        return self.content.codes[dimension]

    def numbers(self, number: ViewNumber) -> Any:
        return self.content.numbers[number]

    def views_with_late_events(self, _among: object = None) -> Any:
        return np.zeros(0, np.intp)

    def visits(self) -> Any:
        return visits_of(self)  # type: ignore[arg-type]


def seen(*parts: Part | Plain) -> Any:
    return rows(MadeSnapshot(texts=texts, parts=parts))  # type: ignore[arg-type]


def seen_in(*contents: Content) -> Any:
    return seen(*(Plain(content) for content in contents))


contents = st.builds(
    made,
    st.randoms(use_true_random=False),
    st.just(100),
    st.integers(0, 12),
    st.integers(0, 6),
).filter(lambda content: len(content) + len(content.events) > 0)


@given(contents, st.sampled_from([0, 0, 3, 1_000]))
def test_a_segment_has_the_content_it_was_built_from(content: Content, counted_from: int) -> None:
    kept = Kept()
    part = kept.open(kept.write(content, 7, counted_from))
    assert seen(part) == seen_in(content)
    is_counted = len(content) + len(content.events) >= counted_from
    assert agrees(MadeSnapshot(texts=texts, parts=[part])) == is_counted
    assert len(part) == 0 or not isinstance(part.visits(), MadeVisits)
    assert set(part.own.event.tolist()).isdisjoint(part.loose.event.tolist())
    assert all(view not in content.sequence for view in part.loose.view.tolist())


@settings(deadline=None)
@given(contents, st.data())
def test_an_overlay_is_applied_to_a_segment(content: Content, data: Any) -> None:
    kept = Kept()
    segment = kept.write(content, 7)
    places = sorted(data.draw(st.sets(st.integers(0, len(content) - 1)))) if len(content) else []
    raised = [int(content.duration_ms[at]) + data.draw(st.integers(1, 6_000)) for at in places]
    duration_ms = content.duration_ms.copy()
    duration_ms[places] = raised
    loose = kept.open(segment).loose
    unbound = sorted(
        {e for e, v in zip(loose.event.tolist(), loose.view.tolist(), strict=True) if v == 0}
    )
    bound = sorted(data.draw(st.sets(st.sampled_from(unbound)))) if unbound else []
    views = [data.draw(st.sampled_from([10**6, *content.sequence.tolist()])) for _ in bound]
    view = content.events.view.copy()
    for event, of in zip(bound, views, strict=True):
        view[content.events.event == event] = of
    overlay = Overlay(
        np.array(places, np.intp),
        np.array(raised, np.uint32),
        np.array(bound, np.uint64),
        np.array(views, np.uint64),
    )
    after = evolve(
        content,
        duration_ms=duration_ms,
        flags=timed_flags(content.flags, duration_ms),
        events=evolve(content.events, view=view),
    )
    part = kept.open(segment, overlay)
    assert seen(part) == seen_in(after)
    assert len(part) == 0 or not isinstance(part.visits(), MadeVisits)
    agrees(MadeSnapshot(texts=texts, parts=[part]))
    folded = kept.open(kept.write(content_of([part]), 8))
    assert seen(folded) == seen_in(after)
    agrees(MadeSnapshot(texts=texts, parts=[folded]))


@given(st.randoms(use_true_random=False), st.lists(st.integers(1, 8), min_size=2, max_size=6))
@settings(deadline=None)
def test_a_merged_segment_counts_as_its_members_together(
    rng: random.Random, sizes: list[int]
) -> None:
    kept = Kept()
    pieces = [made(rng, 1_000 * n, size, rng.randrange(4)) for n, size in enumerate(sizes, 1)]
    segments = [kept.write(piece, number) for number, piece in enumerate(pieces, 1)]
    merged = [kept.write_merged(segments[:2], 50)]
    if len(segments) > 3:
        merged = [kept.write_merged([*merged, kept.write_merged(segments[2:], 51)], 52)]
    tops = [*merged, *(segments[2:] if len(merged[0].members) == 2 and len(segments) < 4 else [])]
    parts = [kept.open(top) for top in tops]
    assert seen(*parts) == seen_in(*pieces)
    assert agrees(MadeSnapshot(texts=texts, parts=parts)) >= len(segments)
    assert isinstance(parts[0], MergedSegment)


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_concatenated_contents_are_in_order(rng: random.Random, sizes: list[int]) -> None:
    pieces = [made(rng, 1_000 * n, size, rng.randrange(4)) for n, size in enumerate(sizes, 1)]
    shuffled = rng.sample(pieces, len(pieces))
    for together in (concatenate(shuffled), content_of([Plain(piece) for piece in shuffled])):
        assert together.sequence.tolist() == sorted(together.sequence.tolist())
        assert together.events.event.tolist() == sorted(together.events.event.tolist())
        assert seen_in(together) == seen_in(*pieces)


@given(contents, st.data())
def test_every_flipped_bit_of_a_header_is_detected(content: Content, data: Any) -> None:
    header = Kept().write(content, 7).header
    value = encode_header(b"its key", header)
    assert decode_header(b"its key", value) == header
    flipped = bytearray(value)
    bit = data.draw(st.integers(0, len(value) * 8 - 1))
    flipped[bit // 8] ^= 1 << bit % 8
    for key, damaged in (
        (b"its key", bytes(flipped)),
        (b"no key", value),
        (b"its key", value[:-1]),
    ):
        with pytest.raises(Damaged):
            decode_header(key, damaged)


def test_a_header_of_another_format_is_detected() -> None:
    """An earlier version of the program may have written it."""
    packed = b"\x93\x01\x02\x03"
    value = zlib.crc32(packed, zlib.crc32(b"its key")).to_bytes(4, "little") + packed
    with pytest.raises(Damaged):
        decode_header(b"its key", value)


def test_events_of_views_elsewhere_stay_loose() -> None:
    content = made(random.Random(1), 100, 5, 5)  # noqa: S311 - the same each time
    kept = Kept()
    part: ViewColumns = kept.open(kept.write(content, 1))
    assert len(part.own) > 0
    assert len(part.loose) > 0
    assert in_order(seen(part)[1]) == seen_in(content)[1]
