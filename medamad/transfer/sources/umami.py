"""Umami's export: a zip of website_event.csv and event_data.csv, or the first of them alone.

It has the columns that Umami writes (umami-software/umami, route `websites/[websiteId]/export`).
Umami's `session_id` stays the same for a visitor for a month. Its `visit_id` names the visit; where
that is missing, a session's views with no gap longer than 30 minutes are one. The name of a custom
event becomes a property, along with the event's data; the event belongs to the session's last view
of its page before it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import IO, BinaryIO, Final
from zipfile import is_zipfile

from attrs import define, field

from medamad.domain.errors import BadRequest
from medamad.ingest.user_agent import Agent
from medamad.lookup.languages import locale_of
from medamad.transfer.formats.csv import read_records
from medamad.transfer.import_context import ImportTarget, ReadContext, SkipReason
from medamad.transfer.input_files import open_zip
from medamad.transfer.rows import FUTURE_TIME, EventRow, HitRow, RejectedRow, ViewRow
from medamad.transfer.sources.normalize import (
    country_code,
    event_rows,
    normalize_browser,
    normalize_device,
    normalize_system,
    parse_time_ms,
    screen_width,
    view_row,
)

_EVENTS: Final = "website_event.csv"
_DATA: Final = "event_data.csv"
_TOTALS: Final = "pages.csv"
"""In the export of one website by Umami before 2026: the totals of a period, without days."""
_REQUIRED: Final = ("session_id", "url_path", "event_type", "created_at")
_VIEW, _EVENT = "1", "2"
"""Umami's event types; others are links, pixels and performance figures."""
_FORMULA_ESCAPE: Final = re.compile(r"'(?=[=+\-@\t\r])")
_NUMBER: Final = re.compile(r"-?\d+\.\d{4}\Z", re.ASCII)
_CAMPAIGN: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")

Record = Mapping[str, str]
Data = Mapping[str, list[tuple[str, str]]]
"""The data of events by their `event_id`."""


def is_umami(head: bytes) -> bool:
    """Return whether this is the head of an export."""
    lines = head.splitlines() or [b""]
    if lines[0].startswith(b"PK"):
        names = [name.decode(errors="replace") for name in lines[1:]]
        return any(_is_member(name, _EVENTS) or name == _TOTALS for name in names)
    return b"session_id" in lines[0] and b"event_type" in lines[0]


def read_umami(
    file: BinaryIO, target: ImportTarget, context: ReadContext
) -> Iterator[HitRow | RejectedRow]:
    """Yield the rows of an export. Raises BadRequest if it is not one."""
    if not is_zipfile(file):
        file.seek(0)
        yield from _EventReader(target, context).rows(file)
        return
    with open_zip(file) as archive:
        names = archive.namelist()
        if not any(_is_member(name, _EVENTS) for name in names):
            reason = f"; {_TOTALS} and similar tables have totals without days" * (_TOTALS in names)
            raise BadRequest(f"{_EVENTS}: the zip archive has no such file{reason}")
        data: dict[str, list[tuple[str, str]]] = {}
        for name in (name for name in names if _is_member(name, _DATA)):
            with archive.open(name) as member:
                yield from _read_data(member, data)
        for name in (name for name in names if _is_member(name, _EVENTS)):
            with archive.open(name) as member:
                yield from _EventReader(target, context, data).rows(member)


def _is_member(name: str, wanted: str) -> bool:
    return name.rpartition("/")[2] == wanted


def _read_data(file: IO[bytes], data: dict[str, list[tuple[str, str]]]) -> Iterator[RejectedRow]:
    """Add the data of events to `data`; yield the rows that cannot be read."""
    for result in read_records(file, ("event_id", "data_key")):
        if isinstance(result, RejectedRow):
            yield RejectedRow(result.line, f"{_DATA}: {result.field}", result.reason)
        else:
            record = result[1]
            pair = (_text(record, "data_key"), _value(record))
            data.setdefault(record["event_id"], []).append(pair)


def _value(record: Record) -> str:
    """Return the value of one piece of data.

    Umami exports numbers with four decimals, but displays them without trailing zeros.
    """
    values = ("string_value", "number_value", "date_value")
    value = next((_text(record, name) for name in values if record.get(name)), "")
    if record.get("number_value") and _NUMBER.match(value):
        return value.rstrip("0").removesuffix(".")
    return value


@define
class _EventReader:
    """Reads the rows of one file."""

    target: ImportTarget
    context: ReadContext
    data: Data = field(factory=dict)

    def rows(self, file: IO[bytes]) -> Iterator[HitRow | RejectedRow]:
        """Yield the views and events."""
        for result in read_records(file, _REQUIRED):
            if isinstance(result, RejectedRow):
                yield result
                continue
            line, record = result
            event = record.get("event_id")
            if event and not self.context.is_new((_EVENTS, event)):
                self.context.skip(SkipReason.REPEATED)
                continue
            try:
                time_ms = parse_time_ms(record["created_at"])
            except ValueError:
                yield RejectedRow(line, "created_at", "expected a time such as 2026-01-31 12:00:00")
                continue
            if self.target.is_ahead(time_ms):
                yield RejectedRow(line, "created_at", FUTURE_TIME)
                continue
            if record["event_type"] in {_VIEW, _EVENT}:
                self._check_website(line, record.get("website_id", ""))
            if record["event_type"] == _VIEW:
                if (view := self._view(record, time_ms)) is not None:
                    yield view
            elif record["event_type"] == _EVENT:
                yield from self._event(record, time_ms)
            else:
                self.context.skip(SkipReason.NO_VIEW)

    def _check_website(self, line: int, website: str) -> None:
        """Raise BadRequest for another website: a table copied from the database has them all."""
        if not website:
            return
        self.context.website = self.context.website or website
        if website != self.context.website:
            raise BadRequest(
                f"line {line}: website_id: expected rows of one website, {self.context.website},"
                f" got {website}"
            )

    def _view(self, record: Record, time_ms: int) -> ViewRow | None:
        page = self.target.page(
            _text(record, "hostname"), _text(record, "url_path"), _text(record, "url_query")
        )
        if page is None:
            self.context.skip(SkipReason.NO_PAGE)
            return None
        domain = _text(record, "referrer_domain")
        url = f"https://{domain}{_text(record, 'referrer_path')}" if domain else ""
        referrer = self.target.referrer(url, page.host)
        if referrer is None:
            self.context.skip(SkipReason.SPAM)
            return None
        number = self.context.next_number()
        campaign = {name: _text(record, name) for name in _CAMPAIGN}
        os, os_version = normalize_system(_text(record, "os"))
        return view_row(
            time_ms,
            self.target.own.with_campaign(page, **campaign),
            Agent(
                browser=normalize_browser(_text(record, "browser"))[0],
                os=os,
                os_version=os_version,
                device=normalize_device(_text(record, "device")),
            ),
            place=self.context.place_of(
                number, time_ms, record["session_id"], page.path, record.get("visit_id") or None
            ),
            referrer=referrer,
            number=number,
            host=page.host if record.get("hostname") else "",
            country=country_code(_text(record, "country")),
            locale=locale_of(_text(record, "language")),
            width_px=screen_width(_text(record, "screen")),
            identity=_identity(record),
        )

    def _event(self, record: Record, time_ms: int) -> Iterator[EventRow]:
        name = _text(record, "event_name")
        pairs = [(name, "")] if name else []
        pairs += self.data.get(record.get("event_id", ""), [])
        page = self.target.page(_text(record, "hostname"), _text(record, "url_path"))
        view = 0
        if page is not None:
            view = self.context.index.last_view_before(time_ms, record["session_id"], page.path)
        return event_rows(
            self.context.next_number(),
            time_ms,
            pairs,
            redaction=self.target.own.redaction,
            view=view,
            identity=_identity(record),
        )


def _identity(record: Record) -> int:
    """Return the identity of a row without `event_id`; those with one are never repeated."""
    return 0 if record.get("event_id") else hash((record["session_id"],))


def _text(record: Record, name: str) -> str:
    """Return a cell, without the apostrophe that Umami puts before what looks like a formula."""
    return _FORMULA_ESCAPE.sub("", record.get(name) or "", count=1)
