"""What a store still has of the hits of a website, and the figures that only these know."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from attrs import define
from support.query.naive_filters import ENTRIES, EXITS, Pairs, ParsedQuery
from support.query.oracle import Entry, Oracle
from support.query.snapshots import STEPS
from support.storage.contents import leaves

from medamad.storage.segments.snapshot import Snapshot

_GAP: Final = re.compile(r'(\w+)="([^/]+)/([^"]+)"')


def remaining_numbers(snapshot: Snapshot) -> tuple[set[int], set[int]]:
    """Return the numbers of the views and of the events that have not been deleted."""
    parts = [*leaves(snapshot.parts)]
    events = [*(part.own for part in parts), *(part.loose for part in parts), *snapshot.events]
    return (
        {number for part in parts for number in part.sequence.tolist()},
        {number for piece in events for number in piece.event.tolist()},
    )


def is_of_views(endpoint: str, query: Pairs) -> bool:
    """Return whether a query is about what rollups do not know at all."""
    return (
        endpoint in (*STEPS, "goals", "hosting")
        or endpoint.startswith("funnels/")
        or any(name.partition("[")[0] in ("goal", "hosting", *ENTRIES, *EXITS) for name, _ in query)
    )


def has_columns_of_views(endpoint: str, query: Pairs) -> bool:
    """Return whether rows have columns of visits that rollups do not know, and others."""
    if endpoint == "properties":
        return ParsedQuery(query).flag("visits") is True
    return endpoint not in ("summary", "entries", "exits") and "conversions" in dict(query)


@define(slots=False)
class RemainingHits:
    """The hits of a website, of which a store has those with some `numbers`, of views and events.

    The number of a hit is its `stored`. `oracle_of` returns an oracle of views, events
    and the ids of views that are gone.
    """

    views: list[Entry]
    events: list[Entry]
    numbers: tuple[set[int], set[int]]
    oracle_of: Callable[[list[Entry], list[Entry], set[int]], Oracle]

    @cached_property
    def gone_views(self) -> list[Entry]:
        return [view for view in self.views if view["stored"] not in self.numbers[0]]

    @cached_property
    def gone_events(self) -> list[Entry]:
        return [event for event in self.events if event["stored"] not in self.numbers[1]]

    @property
    def are_gone(self) -> bool:
        """Whether any are gone."""
        return bool(self.gone_views or self.gone_events)

    @cached_property
    def alone(self) -> Oracle:
        """An oracle of what remains."""
        return self.oracle_of(
            [view for view in self.views if view["stored"] in self.numbers[0]],
            [event for event in self.events if event["stored"] in self.numbers[1]],
            {view["id"] for view in self.gone_views},
        )

    @cached_property
    def visits_alone(self) -> Oracle:
        """An oracle of everything, except for the visits of which not all views remain."""
        gone = {view["id"] for view in self.gone_views}
        views = [
            {**view, "visit": 0 if view["visit"] in gone else view["visit"]} for view in self.views
        ]
        return self.oracle_of(views, self.events, set())

    @cached_property
    def everything(self) -> Oracle:
        """An oracle of all hits."""
        return self.oracle_of(self.views, self.events, set())

    def expected(self, endpoint: str, query: Pairs, partial: str | None) -> Any:
        """Return what is expected, given the header that names gaps; None if it is unknown."""
        if is_of_views(endpoint, query):
            self._check_gaps(endpoint, query, partial)
            return self.alone.answer(endpoint, query)
        if has_columns_of_views(endpoint, query) and {*_spans(partial)} <= {"visits"}:
            return self.visits_alone.answer(endpoint, query)
        # Missing parts are named by day; the tests of rollups check those.
        return self.everything.answer(endpoint, query) if partial is None else None

    def _check_gaps(self, endpoint: str, query: Pairs, partial: str | None) -> None:
        """Check that days without views are named and, for goals, also those without events.

        Entry and exit pages are those of visits, and lack the days on which these began.
        """
        has, spans = ParsedQuery(query).has, _spans(partial)
        gone = self.gone_views + (self.gone_events if endpoint == "goals" else [])
        if endpoint in ("entries", "exits"):
            gone = [view for view in gone if view["visit"] in (0, view["id"])]
        times_ms = [entry["time_ms"] for entry in gone if has(entry["time_ms"])]
        if not times_ms:
            return
        first, last = _date(min(times_ms)), _date(max(times_ms))
        if {name for name, _ in query} <= {"of"}:
            kind = "figures" if endpoint in ("goals", "hosting") else "visits"
            assert spans == {kind: (first, last)}
        named = [date for span in spans.values() for date in span]
        if not named:
            # No view that is gone can match.
            assert self.everything.answer(endpoint, query) == self.alone.answer(endpoint, query)
            return
        assert min(named) <= first, (endpoint, query, partial)
        assert max(named) >= last, (endpoint, query, partial)


def _spans(partial: str | None) -> dict[str, tuple[str, str]]:
    """Return the first and the last day of each kind of gap."""
    return {kind: (first, last) for kind, first, last in _GAP.findall(partial or "")}


def _date(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()
