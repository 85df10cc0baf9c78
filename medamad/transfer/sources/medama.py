"""The database of Medama Analytics, a file of DuckDB, read by the extra `duckdb` alone.

It goes by the tables of Medama 0.5 (medama-io/medama, core/migrations): `views` and `events`. Who
is a visitor was decided there, as it is here. Countries and languages stand there by their English
names, and are turned into codes.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, BinaryIO, Final

from babel.core import Locale

from medamad.domain.dimensions import UNKNOWN
from medamad.domain.errors import BadRequest
from medamad.ingest.user_agent import Agent
from medamad.transfer.rows import AHEAD, MAX_MS, Refused, Row, ViewRow
from medamad.transfer.sources.common import (
    browser_named,
    country_of,
    device_named,
    event_rows,
    system_named,
    view_row,
    with_campaign,
)
from medamad.transfer.visitors import Into, LeftOut, Visits

MISSING: Final = (
    "a file of DuckDB needs the extra `duckdb` (Install, in the documentation, says how)"
)
_MARK: Final = b"DUCK"
_MARK_AT: Final = 8
_ROWS: Final = 4_096
_MAX_DURATION_MS: Final = 86_400_000
_COLUMNS: Final[Mapping[str, str]] = {
    "bid": "''",
    "pathname": "",
    "is_unique_user": "false",
    "is_unique_page": "false",
    "referrer_host": "''",
    "country": "''",
    "language_base": "''",
    "language_dialect": "''",
    "ua_browser": "''",
    "ua_os": "''",
    "ua_device_type": "''",
    "utm_source": "''",
    "utm_medium": "''",
    "utm_campaign": "''",
    "duration_ms": "0",
}
"""Columns of `views`, and what stands for one that an older file has not; pathname has to be."""


def is_medama(head: bytes) -> bool:
    """Return whether a file that begins so is one of DuckDB."""
    return head[_MARK_AT:].startswith(_MARK)


def read_medama(file: BinaryIO, into: Into, visits: Visits) -> Iterator[Row | Refused]:
    """Read what the database has of the website. Raises BadRequest where it is none."""
    library = _duckdb()
    try:
        with library.connect(file.name, read_only=True) as database:
            yield from _Reading(database, into, visits).rows()
    except library.Error as error:
        raise BadRequest(f"not a database of Medama that can be read: {error}") from None


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - it is large, and not everybody has it
    except ImportError:
        raise BadRequest(MISSING) from None
    return duckdb


class _Reading:
    """Reads the two tables."""

    def __init__(self, database: Any, into: Into, visits: Visits) -> None:
        self._database = database
        self._into = into
        self._visits = visits
        bare = into.hostname.removeprefix("www.")
        self._hosts = [bare, f"www.{bare}"]
        self._numbers: dict[str, int] = {}
        """Of the views that have events, by what Medama calls them."""

    def rows(self) -> Iterator[Row | Refused]:
        """Return the views and then the events of the website."""
        with_events = self._with_events()
        for number, record in enumerate(self._views(), 1):
            row = self._view(number, record)
            if isinstance(row, ViewRow) and record["bid"] in with_events:
                self._numbers[record["bid"]] = row.number
            if row is not None:
                yield row
        yield from self._events()

    def _columns(self, table: str) -> set[str]:
        return {column for column, *_ in self._database.execute(f"DESCRIBE {table}").fetchall()}

    def _has_events(self) -> bool:
        tables = self._database.execute("SHOW TABLES").fetchall()
        return ("events",) in tables

    def _with_events(self) -> set[str]:
        if not self._has_events() or "bid" not in self._columns("events"):
            return set()
        found = self._database.execute("SELECT DISTINCT bid FROM events WHERE bid IS NOT NULL")
        return {bid for (bid,) in found.fetchall()}

    def _views(self) -> Iterator[dict[str, Any]]:
        there = self._columns("views")
        chosen = ", ".join(
            name if name in there or not instead else f"{instead} AS {name}"
            for name, instead in _COLUMNS.items()
        )
        return self._asked(
            f"SELECT epoch_ms(date_created) AS time_ms, {chosen} FROM views "  # noqa: S608 - names of ours
            "WHERE hostname IN (?, ?) ORDER BY date_created, bid"
        )

    def _events(self) -> Iterator[Row | Refused]:
        if not self._has_events():
            return
        there = self._columns("events")
        chosen = ", ".join(
            name if name in there else f"NULL AS {name}"
            for name in ("bid", "batch_id", "name", "value")
        )
        last: str | None = None
        pairs: list[tuple[str, str]] = []
        time_ms: int | None = None
        view = 0
        repeats = self._visits.noted.repeats
        for record in self._asked(
            f"SELECT epoch_ms(date_created) AS time_ms, {chosen} FROM events "  # noqa: S608 - names of ours
            "WHERE group_name IN (?, ?) ORDER BY date_created, batch_id, name, value"
        ):
            if record["batch_id"] is None or record["batch_id"] != last:
                yield from self._event(time_ms, pairs, view, last)
                pairs, time_ms = [], record["time_ms"]
                view = repeats.counting(self._numbers.get(record["bid"] or "", 0))
                last = record["batch_id"]
            pairs.append((record["name"] or "", record["value"] or ""))
        yield from self._event(time_ms, pairs, view, last)

    def _event(
        self, time_ms: int | None, pairs: list[tuple[str, str]], view: int, batch: str | None
    ) -> Iterator[Row | Refused]:
        if not pairs or time_ms is None or not 0 <= time_ms <= MAX_MS:
            return
        if self._into.is_ahead(time_ms):
            yield Refused(0, "events: date_created", AHEAD)
        else:
            number = self._visits.number()
            yield from event_rows(number, time_ms, pairs, view, hash((batch,)))

    def _asked(self, sql: str) -> Iterator[dict[str, Any]]:
        cursor = self._database.cursor().execute(sql, self._hosts)
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def _view(self, number: int, record: Mapping[str, Any]) -> ViewRow | Refused | None:
        time_ms = record["time_ms"]
        if time_ms is None or not 0 <= time_ms <= MAX_MS:
            return Refused(number, "date_created", "expected a time of the years 1970 to 9999")
        if self._into.is_ahead(time_ms):
            return Refused(number, "date_created", AHEAD)
        page = self._into.page("", record["pathname"] or "/")
        host = record["referrer_host"]
        referrer = self._into.referrer(f"https://{host}" if host else "", "")
        if page is None or referrer is None:
            self._visits.leave_out(LeftOut.NO_PAGE if page is None else LeftOut.SPAM)
            return None
        campaign = ("utm_source", "utm_medium", "utm_campaign")
        return view_row(
            time_ms,
            with_campaign(page, **{name: record[name] or "" for name in campaign}),
            Agent(
                browser=browser_named(record["ua_browser"] or "")[0],
                os=system_named(record["ua_os"] or "")[0],
                device=device_named(record["ua_device_type"] or ""),
            ),
            firsts=(bool(record["is_unique_user"]), bool(record["is_unique_page"])),
            referrer=referrer,
            number=self._visits.number(),
            identity=hash((record["bid"],)),
            country=country_by_name(record["country"] or ""),
            locale=locale_by_name(record["language_base"] or "", record["language_dialect"] or ""),
            duration_ms=min(max(record["duration_ms"] or 0, 0), _MAX_DURATION_MS),
        )


def country_by_name(name: str) -> str:
    """Return the code of a country by its English name, or by itself; "" for neither."""
    return _territories().get(name) or country_of(name)


def locale_by_name(language: str, dialect: str) -> str:
    """Return a locale by the English names of a dialect and its language; "" if unknown."""
    known = _languages()
    if found := known.get(dialect):
        return found
    name, _, territory = dialect.removesuffix(")").partition(" (")
    base = known.get(name) or known.get(language, "")
    country = _territories().get(territory, "")
    return f"{base}-{country}" if base and country else base


@cache
def _territories() -> dict[str, str]:
    names = Locale("en").territories.items()
    return {name: code for code, name in names if country_of(code)}


@cache
def _languages() -> dict[str, str]:
    names = Locale("en").languages.items()
    return {name: code.replace("_", "-") for code, name in names if name != UNKNOWN}
