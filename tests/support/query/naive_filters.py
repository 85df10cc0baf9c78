"""A query of the HTTP interface, read naively: its period and its filters."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby
from typing import Any, Final

Pairs = Sequence[tuple[str, str]]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
UTM: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
ENTRIES: Final = {
    "entry_page": "path",
    "visit_referrer": "referrer",
    **{f"visit_{field}": field for field in UTM[:3]},
}
EXITS: Final = {"exit_page": "path"}
"""The fields of the first and of the last view of a visit, by the name of the filter."""
NUMBERS: Final = ("duration", "visit_views", "visit_duration")
TEXTS: Final = ("path", "referrer", *UTM, "browser", "os", "device", "country", "locale")
NEGATED: Final = {
    "neq": "eq",
    "not_contains": "contains",
    "not_starts_with": "starts_with",
    "not_ends_with": "ends_with",
    "not_in": "in",
}


class ParsedQuery:
    """A query."""

    def __init__(self, query: Pairs) -> None:
        self.query = query
        self.start = instant(self.one("start"))
        self.end = instant(self.one("end"))
        self.zone: tzinfo = UTC if self.start is None else self.start.tzinfo or UTC
        if self.start is not None:
            self.start_ms = -(-microseconds(self.start) // 1000)
        if self.end is not None:
            whole = "." not in (self.one("end") or "")
            self.end_us = microseconds(self.end) + (999_999 if whole else 0)
        self.limit = int(self.one("limit") or 5000)
        self.offset = int(self.one("offset") or 0)
        self.filters = list(self._filters())
        self.goals = [value for key, value in query if key in ("goal", "goal[eq]")]
        self.names_page = any(field == "path" for field, *_ in self.filters)
        self.visitors = [value for key, value in query if key in ("visitor", "visitor[eq]")]
        self.bounces = [
            value == "true" for key, value in query if key in ("visit_bounce", "visit_bounce[eq]")
        ]
        self.hosting = [
            value == "true" for key, value in query if key in ("hosting", "hosting[eq]")
        ]
        self.bounds = [
            (field, operator, int(value))
            for field in NUMBERS
            for operator in ("gte", "lte")
            for key, value in query
            if key == f"{field}[{operator}]"
        ]
        self.names_behaviour = bool(self.bounces or self.bounds)
        self.names_duration = any(field == "duration" for field, *_ in self.bounds)
        self.names_visit = (
            bool(self.visitors or self.bounces)
            or any(field in {**ENTRIES, **EXITS} for field, *_ in self.filters)
            or any(field != "duration" for field, *_ in self.bounds)
        )
        of_views = self.visitors or self.goals or self.hosting or self.names_behaviour
        self.filters_views = bool(of_views) or any(
            not field.startswith("prop_") for field, *_ in self.filters
        )
        self.names_property = any(field.startswith("prop_") for field, *_ in self.filters)

    def one(self, name: str) -> str | None:
        return next((value for key, value in self.query if key == name), None)

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.one(name)
        return default if value is None else value.lower() in ("true", "1")

    def _filters(self) -> Iterable[tuple[str, str, list[str]]]:
        fields = [*TEXTS[:-1], "language", "prop_name", "prop_value", *ENTRIES, *EXITS]
        for field in fields:
            for operator in ("eq", "contains", "starts_with", "ends_with", *NEGATED):
                for key, value in self.query:
                    if operator == "not_in":
                        break
                    if key == f"{field}[{operator}]" or (operator == "eq" and key == field):
                        yield field, operator, [value]
            for operator in ("in", "not_in"):
                lists = [value for key, value in self.query if key == f"{field}[{operator}]"]
                if lists:
                    yield field, operator, [entry for text in lists for entry in text.split(",")]

    def has(self, time_ms: int) -> bool:
        return (self.start is None or time_ms * 1000 >= microseconds(self.start)) and (
            self.end is None or time_ms * 1000 <= self.end_us
        )

    def is_within(self, field: str, number: int) -> bool:
        """Whether a number is within all bounds of a field."""
        return all(
            number >= bound if operator == "gte" else number <= bound
            for name, operator, bound in self.bounds
            if name == field
        )

    def matches(self, name: str, value: str) -> bool:
        """Whether one property matches all filters on properties."""
        return all(
            holds(operator, [name if field == "prop_name" else value], values)
            for field, operator, values in self.filters
            if field.startswith("prop_")
        )


def holds(operator: str, names: list[str], values: list[str]) -> bool:
    if operator in NEGATED:
        return not holds(NEGATED[operator], names, values)
    wanted = [value.casefold() for value in values]
    return any(
        {
            "eq": name == wanted[0],
            "contains": wanted[0] in name,
            "starts_with": name[: len(wanted[0])] == wanted[0],
            "ends_with": name.endswith(wanted[0]),
            "in": name in wanted,
        }[operator]
        for name in map(str.casefold, names)
    )


def instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    return datetime.fromisoformat(text[:-6] + text[-6:].replace(" ", "+"))


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def calendar(interval: str, start_s: int, end_s: int, zone: tzinfo) -> list[tuple[int, str]]:
    """Return (beginning, date) of the buckets, by looking at the clock at every step.

    Right for zones that change at a quarter of an hour and repeat no midnight.
    """
    step_s = 60 if interval == "minute" else 900

    def label(unix_s: int) -> Any:
        local = datetime.fromtimestamp(unix_s, zone)
        match interval:
            case "minute":
                return local.date(), local.hour, local.minute, local.utcoffset()
            case "hour":
                return local.date(), local.hour, local.utcoffset()
            case "day":
                return local.date()
            case "week":
                return local.isocalendar()[:2]
        return local.year, local.month

    begin_s = start_s - start_s % step_s
    while label(begin_s - step_s) == label(begin_s):
        begin_s -= step_s
    beginnings = [next(steps) for _, steps in groupby(range(begin_s, end_s + 1, step_s), label)]
    return [(unix_s, datetime.fromtimestamp(unix_s, zone).isoformat()) for unix_s in beginnings]
