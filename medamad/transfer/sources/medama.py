"""The database of Medama Analytics, a DuckDB file, read with the optional extra `duckdb`.

It has the tables of Medama 0.5 (medama-io/medama, core/migrations): `views` and `events`. Medama
identified visitors as we do, so its flags are kept. It stores countries and languages by their
English names, which become codes.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, BinaryIO, Final

from babel.core import Locale

from medamad.domain.dimensions import UNKNOWN
from medamad.domain.errors import BadRequest
from medamad.ingest.user_agent import Agent
from medamad.storage.environment.owner import as_invoker
from medamad.transfer.import_context import ImportTarget, ReadContext, SkipReason, ViewPlace
from medamad.transfer.rows import FUTURE_TIME, MAX_MS, HitRow, RejectedRow, ViewRow
from medamad.transfer.sources.normalize import (
    country_code,
    event_rows,
    normalize_browser,
    normalize_device,
    normalize_system,
    view_row,
)

MISSING: Final = "a DuckDB file needs the extra `duckdb` (see Install in the documentation)"
_SIGNATURE: Final = b"DUCK"
_SIGNATURE_AT: Final = 8
_FETCHED_ROWS: Final = 4_096
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
"""Columns of `views`, each with the SQL default for older files; `pathname` is required."""


def is_medama(head: bytes) -> bool:
    """Return whether this is the head of a DuckDB file."""
    return head[_SIGNATURE_AT:].startswith(_SIGNATURE)


def read_medama(
    file: BinaryIO, target: ImportTarget, context: ReadContext
) -> Iterator[HitRow | RejectedRow]:
    """Yield the website's rows in the database. Raises BadRequest if it cannot be read."""
    library = _duckdb()
    try:
        with as_invoker():
            connected = library.connect(file.name, read_only=True)
        with connected as database:
            yield from _DatabaseReader(database, target, context).rows()
    except library.Error as error:
        raise BadRequest(f"not a readable Medama database: {error}") from None


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - large and optional
    except ImportError:
        raise BadRequest(MISSING) from None
    return duckdb


class _DatabaseReader:
    """Reads the two tables."""

    def __init__(self, database: Any, target: ImportTarget, context: ReadContext) -> None:
        self._database = database
        self._target = target
        self._context = context
        bare = target.hostname.removeprefix("www.")
        self._hosts = [bare, f"www.{bare}"]
        self._numbers: dict[str, int] = {}
        """The numbers of the views that have events, by Medama's id."""

    def rows(self) -> Iterator[HitRow | RejectedRow]:
        """Yield the views, then the events, of the website."""
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
        result = self._database.execute("SELECT DISTINCT bid FROM events WHERE bid IS NOT NULL")
        return {bid for (bid,) in result.fetchall()}

    def _views(self) -> Iterator[dict[str, Any]]:
        existing = self._columns("views")
        columns = ", ".join(
            name if name in existing or not default else f"{default} AS {name}"
            for name, default in _COLUMNS.items()
        )
        return self._query(
            f"SELECT epoch_ms(date_created) AS time_ms, {columns} FROM views "  # noqa: S608 - our own names
            "WHERE hostname IN (?, ?) ORDER BY date_created, bid"
        )

    def _events(self) -> Iterator[HitRow | RejectedRow]:
        if not self._has_events():
            return
        existing = self._columns("events")
        columns = ", ".join(
            name if name in existing else f"NULL AS {name}"
            for name in ("bid", "batch_id", "name", "value")
        )
        last: str | None = None
        pairs: list[tuple[str, str]] = []
        time_ms: int | None = None
        view = 0
        hits = self._context.index.hits
        for record in self._query(
            f"SELECT epoch_ms(date_created) AS time_ms, {columns} FROM events "  # noqa: S608 - our own names
            "WHERE group_name IN (?, ?) ORDER BY date_created, batch_id, name, value"
        ):
            if record["batch_id"] is None or record["batch_id"] != last:
                yield from self._event(time_ms, pairs, view, last)
                pairs, time_ms = [], record["time_ms"]
                view = hits.original_of(self._numbers.get(record["bid"] or "", 0))
                last = record["batch_id"]
            pairs.append((record["name"] or "", record["value"] or ""))
        yield from self._event(time_ms, pairs, view, last)

    def _event(
        self, time_ms: int | None, pairs: list[tuple[str, str]], view: int, batch: str | None
    ) -> Iterator[HitRow | RejectedRow]:
        if not pairs or time_ms is None or not 0 <= time_ms <= MAX_MS:
            return
        if self._target.is_ahead(time_ms):
            yield RejectedRow(0, "events: date_created", FUTURE_TIME)
        else:
            number = self._context.next_number()
            yield from event_rows(
                number,
                time_ms,
                pairs,
                redaction=self._target.own.redaction,
                view=view,
                identity=hash((batch,)),
            )

    def _query(self, sql: str) -> Iterator[dict[str, Any]]:
        cursor = self._database.cursor().execute(sql, self._hosts)
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(_FETCHED_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def _view(self, number: int, record: Mapping[str, Any]) -> ViewRow | RejectedRow | None:
        time_ms = record["time_ms"]
        if time_ms is None or not 0 <= time_ms <= MAX_MS:
            return RejectedRow(number, "date_created", "expected a time of the years 1970 to 9999")
        if self._target.is_ahead(time_ms):
            return RejectedRow(number, "date_created", FUTURE_TIME)
        page = self._target.page("", record["pathname"] or "/")
        host = record["referrer_host"]
        referrer = self._target.referrer(f"https://{host}" if host else "", "")
        if page is None or referrer is None:
            self._context.skip(SkipReason.NO_PAGE if page is None else SkipReason.SPAM)
            return None
        campaign = ("utm_source", "utm_medium", "utm_campaign")
        return view_row(
            time_ms,
            self._target.own.with_campaign(page, **{name: record[name] or "" for name in campaign}),
            Agent(
                browser=normalize_browser(record["ua_browser"] or "")[0],
                os=normalize_system(record["ua_os"] or "")[0],
                device=normalize_device(record["ua_device_type"] or ""),
            ),
            place=ViewPlace(bool(record["is_unique_user"]), bool(record["is_unique_page"])),
            referrer=referrer,
            number=self._context.next_number(),
            identity=hash((record["bid"],)),
            country=country_by_name(record["country"] or ""),
            locale=locale_by_name(record["language_base"] or "", record["language_dialect"] or ""),
            duration_ms=min(max(record["duration_ms"] or 0, 0), _MAX_DURATION_MS),
        )


def country_by_name(name: str) -> str:
    """Return the code of a country from its English name or its code; "" for neither."""
    return _territories().get(name) or country_code(name)


def locale_by_name(language: str, dialect: str) -> str:
    """Return a locale from the English names of a dialect and its language; "" if unknown."""
    languages = _languages()
    if code := languages.get(dialect):
        return code
    name, _, territory = dialect.removesuffix(")").partition(" (")
    base = languages.get(name) or languages.get(language, "")
    country = _territories().get(territory, "")
    return f"{base}-{country}" if base and country else base


@cache
def _territories() -> dict[str, str]:
    names = Locale("en").territories.items()
    return {name: code for code, name in names if country_code(code)}


@cache
def _languages() -> dict[str, str]:
    names = Locale("en").languages.items()
    return {name: code.replace("_", "-") for code, name in names if name != UNKNOWN}
