"""The rows of a website in a cluster."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.clickhouse.client import Client
from medamad.clickhouse.tables import settled_days
from medamad.domain.dimensions import Dimension, property_text
from medamad.lookup.referrers import Sources
from medamad.query.clickhouse.left_out import VisitsLeftOut
from medamad.query.clickhouse.sql import Condition, Days, Sets, every
from medamad.query.clickhouse.texts import WebsiteTexts
from medamad.query.request import Cancellation, Query

Found: TypeAlias = Mapping[str, Any]
"""A result: its columns by name."""


@frozen(eq=False)
class WebsiteRows:
    """The rows of a website, for one request. Raises ClickHouseError if a server cannot answer.

    Without those that rules leave out, or with `is_left_out` these alone.
    """

    client: Client
    website: int
    sources: Sources
    cancellation: Cancellation
    texts: WebsiteTexts
    rules: Sequence[Query] = ()
    is_left_out: bool = False
    hidden: frozenset[int] = field(default=frozenset(), kw_only=True)
    """The import batches whose rows do not count: they are not all there, or not any more."""
    visits_left_out: VisitsLeftOut | None = field(default=None, kw_only=True)
    """What is known of the visits that the rules leave out."""
    sets: Sets = field()
    _left_out: dict[tuple[str, Days], str] = field(factory=dict, init=False)
    """The condition that a row of a table is left out, by the table and the days of its visit."""

    @sets.default
    def _make_sets(self) -> Sets:
        return Sets(self.texts)

    @property
    def all_rows(self) -> Self:
        """All rows of the website, for the same request."""
        return evolve(self, rules=(), is_left_out=False) if self.rules else self

    def run(self, statement: str) -> Found:
        """Return the result of a SELECT. Raises ClickHouseError, and Cancelled."""
        self.cancellation.check()
        return self.client.query(
            statement, uploads=self.sets.used_in(statement), check=self.cancellation.check
        )

    @cached_property
    def settled_days(self) -> Mapping[int, int]:
        """The days whose visits are rows of `visits`, and how often each was touched; ascending."""
        return settled_days(self.client, self.cancellation.check)

    @cached_property
    def first_day(self) -> int:
        """The first day on which a visit began of which there is a view."""
        rows = self.all_rows.of_website("views", final=False)
        # The first row in the table's order is found without reading the others.
        found = self.run(f"SELECT visit_day AS day FROM {rows} ORDER BY website, visit_day LIMIT 1")
        return next(iter(column_of(found, "day").tolist()), 0)

    def of_website(
        self, table: str, *conditions: Condition, final: bool = True, are_all: bool = False
    ) -> str:
        """Return a table's rows of the website that fulfil some conditions, as SQL has it.

        Rows that were sent several times may be there several times unless they are `final`. With
        `are_all`, rules leave nothing out. `Days`, which all rows of a visit have in common, spare
        looking at the rest for what rules leave out.
        """
        here: list[Condition] = [f"website = {self.website}"]
        if self.hidden:
            here.append(f"batch NOT IN ({', '.join(map(str, sorted(self.hidden)))})")
        counted = [] if are_all else self._counted(table, Days.in_all(conditions))
        where = every((*here, *conditions, *counted))
        # A duration may be that of an earlier version of a row.
        final = final or "duration_ms" in where
        return f"{self.client.table(table)}{' FINAL' if final else ''} WHERE {where}"

    def left_out_by(self, rules: Sequence[Query], table: str, days: Days) -> str:
        """Return the condition that a row of a table is left out by any of some rules.

        Its visit began on one of `days`.
        """
        raise NotImplementedError

    def _counted(self, table: str, days: Days) -> list[str]:
        """Return the conditions that a row of a table counts; its visit began on some days."""
        if not self.rules:
            return []
        key = (table, days)
        if key not in self._left_out:
            self._left_out[key] = self.left_out_by(self.rules, table, days)
        left_out = self._left_out[key]
        return [left_out if self.is_left_out else f"NOT {left_out}"]

    def property_codes(self, found: Found) -> NDArray[np.int64]:
        """Return the codes of the properties in the columns `name` and `value`."""
        return self.texts.codes(Dimension.PROPERTY, labels_of(found))


def as_texts(columns: str) -> str:
    """Return columns as plain strings, each with a name of its own, as SQL has it."""
    return ", ".join(f"CAST({name} AS String) AS as_{name}" for name in columns.split(", "))


def labels_of(found: Found) -> list[str]:
    """Return the names of properties, or their texts, in a result."""
    names: list[str] = found.get("as_name", [])
    if "as_value" not in found:
        return names
    return [property_text(*pair) for pair in zip(names, found["as_value"], strict=True)]


def column_of(found: Found, name: str) -> NDArray[np.int64]:
    """Return a column of whole numbers; that of an empty result is empty."""
    return np.asarray(found.get(name, ())).astype(np.int64)
