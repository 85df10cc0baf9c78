"""Umami's export: a zip of website_event.csv and event_data.csv, or the first of them alone.

It goes by the columns that Umami writes (umami-software/umami, route
`websites/[websiteId]/export`). Umami's `session_id` is the same for a visitor for a month. A custom
event becomes a property by its name, with the event's data as further properties beside it; it
belongs to the session's last view of its page that was before it.
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
from medamad.transfer.input_files import opened_zip
from medamad.transfer.rows import AHEAD, EventRow, Refused, Row, ViewRow
from medamad.transfer.sources.common import (
    browser_named,
    country_of,
    device_named,
    event_rows,
    system_named,
    time_ms_of,
    view_row,
    width_of,
    with_campaign,
)
from medamad.transfer.visitors import Into, LeftOut, Visits

_EVENTS: Final = "website_event.csv"
_DATA: Final = "event_data.csv"
_SUMS: Final = "pages.csv"
"""Of the export of a single website by Umami of before 2026: figures of a period, without days."""
_NEEDED: Final = ("session_id", "url_path", "event_type", "created_at")
_VIEW, _EVENT = "1", "2"
"""Umami's types; others are links, pixels and figures of speed."""
_MARKED: Final = re.compile(r"'(?=[=+\-@\t\r])")
_NUMBER: Final = re.compile(r"-?\d+\.\d{4}\Z", re.ASCII)
_CAMPAIGN: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")

Record = Mapping[str, str]
Data = Mapping[str, list[tuple[str, str]]]
"""The data of events by their `event_id`."""


def is_umami(head: bytes) -> bool:
    """Return whether a file that begins so is such an export."""
    lines = head.splitlines() or [b""]
    if lines[0].startswith(b"PK"):
        names = [name.decode(errors="replace") for name in lines[1:]]
        return any(_is_member(name, _EVENTS) or name == _SUMS for name in names)
    return b"session_id" in lines[0] and b"event_type" in lines[0]


def read_umami(file: BinaryIO, into: Into, visits: Visits) -> Iterator[Row | Refused]:
    """Read an export. Raises BadRequest where it is none."""
    if not is_zipfile(file):
        file.seek(0)
        yield from _Reading(into, visits).rows(file)
        return
    with opened_zip(file) as archive:
        names = archive.namelist()
        if not any(_is_member(name, _EVENTS) for name in names):
            why = f"; {_SUMS} and those beside it have sums without days" * (_SUMS in names)
            raise BadRequest(f"{_EVENTS}: there is no such file in the zip{why}")
        data: dict[str, list[tuple[str, str]]] = {}
        for name in (name for name in names if _is_member(name, _DATA)):
            with archive.open(name) as member:
                yield from _added(member, data)
        for name in (name for name in names if _is_member(name, _EVENTS)):
            with archive.open(name) as member:
                yield from _Reading(into, visits, data).rows(member)


def _is_member(name: str, wanted: str) -> bool:
    return name.rpartition("/")[2] == wanted


def _added(file: IO[bytes], data: dict[str, list[tuple[str, str]]]) -> Iterator[Refused]:
    """Read the data of events, and add them; give what cannot be read."""
    for found in read_records(file, ("event_id", "data_key")):
        if isinstance(found, Refused):
            yield Refused(found.line, f"{_DATA}: {found.field}", found.reason)
        else:
            record = found[1]
            pair = (_text(record, "data_key"), _value(record))
            data.setdefault(record["event_id"], []).append(pair)


def _value(record: Record) -> str:
    """Return the value of a datum; of a number, Umami writes four decimals and shows no zeros."""
    values = ("string_value", "number_value", "date_value")
    value = next((_text(record, name) for name in values if record.get(name)), "")
    if record.get("number_value") and _NUMBER.match(value):
        return value.rstrip("0").removesuffix(".")
    return value


@define
class _Reading:
    """Reads the rows of one file."""

    into: Into
    visits: Visits
    data: Data = field(factory=dict)

    def rows(self, file: IO[bytes]) -> Iterator[Row | Refused]:
        """Return the views and events."""
        for found in read_records(file, _NEEDED):
            if isinstance(found, Refused):
                yield found
                continue
            line, record = found
            event = record.get("event_id")
            if event and not self.visits.is_new((_EVENTS, event)):
                self.visits.leave_out(LeftOut.REPEATED)
                continue
            try:
                time_ms = time_ms_of(record["created_at"])
            except ValueError:
                yield Refused(line, "created_at", "expected a time such as 2026-01-31 12:00:00")
                continue
            if self.into.is_ahead(time_ms):
                yield Refused(line, "created_at", AHEAD)
                continue
            if record["event_type"] in {_VIEW, _EVENT}:
                self._check_website(line, record.get("website_id", ""))
            if record["event_type"] == _VIEW:
                if (view := self._view(record, time_ms)) is not None:
                    yield view
            elif record["event_type"] == _EVENT:
                yield from self._event(record, time_ms)
            else:
                self.visits.leave_out(LeftOut.NO_VIEW)

    def _check_website(self, line: int, website: str) -> None:
        """Whoever takes the table out of Umami's database has all websites in it."""
        if not website:
            return
        self.visits.website = self.visits.website or website
        if website != self.visits.website:
            raise BadRequest(
                f"line {line}: website_id: expected rows of one website, {self.visits.website} as"
                f" before, got {website}"
            )

    def _view(self, record: Record, time_ms: int) -> ViewRow | None:
        page = self.into.page(
            _text(record, "hostname"), _text(record, "url_path"), _text(record, "url_query")
        )
        if page is None:
            self.visits.leave_out(LeftOut.NO_PAGE)
            return None
        domain = _text(record, "referrer_domain")
        url = f"https://{domain}{_text(record, 'referrer_path')}" if domain else ""
        referrer = self.into.referrer(url, page.host)
        if referrer is None:
            self.visits.leave_out(LeftOut.SPAM)
            return None
        number = self.visits.number()
        os, os_version = system_named(_text(record, "os"))
        return view_row(
            time_ms,
            with_campaign(page, **{name: _text(record, name) for name in _CAMPAIGN}),
            Agent(
                browser=browser_named(_text(record, "browser"))[0],
                os=os,
                os_version=os_version,
                device=device_named(_text(record, "device")),
            ),
            firsts=self.visits.firsts(number, time_ms, record["session_id"], page.path),
            referrer=referrer,
            number=number,
            host=page.host if record.get("hostname") else "",
            country=country_of(_text(record, "country")),
            locale=locale_of(_text(record, "language")),
            width_px=width_of(_text(record, "screen")),
            identity=_identity(record),
        )

    def _event(self, record: Record, time_ms: int) -> Iterator[EventRow]:
        name = _text(record, "event_name")
        pairs = [(name, "")] if name else []
        pairs += self.data.get(record.get("event_id", ""), [])
        page = self.into.page(_text(record, "hostname"), _text(record, "url_path"))
        view = 0
        if page is not None:
            view = self.visits.noted.view_before(time_ms, record["session_id"], page.path)
        return event_rows(self.visits.number(), time_ms, pairs, view, _identity(record))


def _identity(record: Record) -> int:
    """Return what a row is known by again: rows of the same `event_id` come no second time."""
    return 0 if record.get("event_id") else hash((record["session_id"],))


def _text(record: Record, name: str) -> str:
    """Return a cell; an apostrophe before what looks like a formula is Umami's."""
    return _MARKED.sub("", record.get(name) or "", count=1)
