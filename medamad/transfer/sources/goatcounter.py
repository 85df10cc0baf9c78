"""GoatCounter's exports: single pageviews as CSV, and figures by hour and day as JSON in a zip.

The CSV follows GoatCounter's help ("CSV export", versions 1 and 2 of the format). A session in
GoatCounter lasts eight hours; a visitor who comes back later on the same day counts again, as
there. Its views with no gap longer than 30 minutes are a visit. Where GoatCounter kept no sessions,
it considered every view a first visit, and so does the import; they belong to no visit here. A
referrer that GoatCounter named itself ("Hacker News") keeps its name. The text of a campaign
becomes the UTM source, since GoatCounter does not say which parameter it came from.

The JSON follows GoatCounter's help ("JSON export", version 1 of the format). GoatCounter counts
visits to pages: a visitor who opens three pages within eight hours counts three times, and again
later. So each of its counts becomes a view, a visitor of the page, and a visitor, as in its own
figures. Hours are in UTC and are assigned to days of the configured zone; browsers, systems,
devices (by the width of the screen), countries and languages come by day.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Annotated, BinaryIO, Final, TypeVar
from zipfile import ZipFile

import msgspec
from attrs import define, field

from medamad.domain.dimensions import (
    MAX_PROPERTY_NAME,
    PROPERTY_SEPARATOR,
    Dimension,
    property_text,
)
from medamad.domain.errors import BadRequest
from medamad.domain.zones import day_at
from medamad.ingest.page import MAX_UTM
from medamad.ingest.user_agent import Agent, describe
from medamad.lookup.languages import locale_of
from medamad.transfer.formats.csv import read_records
from medamad.transfer.import_context import ImportTarget, ReadContext, SkipReason, ViewPlace
from medamad.transfer.input_files import open_zip
from medamad.transfer.rows import (
    FUTURE_TIME,
    MAX_FIGURE,
    DayRow,
    DayTable,
    HitRow,
    RejectedRow,
    ViewRow,
    parse_day,
)
from medamad.transfer.sources.normalize import (
    country_code,
    device_of_width,
    event_rows,
    normalize_browser,
    normalize_system,
    parse_time_ms,
    screen_width,
    view_row,
)

_URL, _CAMPAIGN = "h", "c"
"""The schemes of a referrer."""
_FULL_URLS: Final = ("http://", "https://", "android-app://")
_HEAD: Final = re.compile(rb'(?:\xef\xbb\xbf)?"?(\d+),?Path"?,')
_VERSIONS: Final = frozenset({"1", "2"})
_REQUIRED: Final = ("Event", "Bot", "Session", "FirstVisit", "Date")
_AGENT: Final = "Mozilla/"
_NO_SESSION: Final = "0-"
"""The characters of the id of no session: `0-0`, and in version 1 a UUID of zeros."""


def is_goatcounter(head: bytes) -> bool:
    """Return whether this is the head of a CSV export."""
    first, _, _ = head.partition(b"\n")
    return _HEAD.match(first) is not None and b"FirstVisit" in first


def read_goatcounter(
    file: BinaryIO, target: ImportTarget, context: ReadContext
) -> Iterator[HitRow | RejectedRow]:
    """Yield the rows of a CSV export. Raises BadRequest if it is not one of a known version."""
    match = _HEAD.match(file.readline())
    if match is None:
        raise BadRequest("Path: the file has no such column")
    if (version := match[1].decode()) not in _VERSIONS:
        raise BadRequest(f"Path: expected an export of version 1 or 2, got {version}")
    file.seek(0)
    path = f"{version}Path"
    for record in read_records(file, (path, *_REQUIRED)):
        if isinstance(record, RejectedRow):
            yield record
        else:
            yield from _rows(*record, path, target, context)


def _rows(
    line: int, record: Mapping[str, str], path: str, target: ImportTarget, context: ReadContext
) -> Iterator[HitRow | RejectedRow]:
    if record["Bot"] not in {"", "0"}:
        context.skip(SkipReason.PROGRAMS)
        return
    try:
        time_ms = parse_time_ms(record["Date"])
    except ValueError:
        yield RejectedRow(line, "Date", "expected a time such as 2026-01-31T12:00:00Z")
        return
    if target.is_ahead(time_ms):
        yield RejectedRow(line, "Date", FUTURE_TIME)
        return
    if record["Event"] in {"true", "1"}:
        pairs = [(record[path], "")]
        identity = hash((record["Session"],))
        yield from event_rows(
            context.next_number(),
            time_ms,
            pairs,
            redaction=target.own.redaction,
            identity=identity,
        )
    elif (view := _view(record, record[path], time_ms, target, context)) is not None:
        yield view


def _view(
    record: Mapping[str, str], path: str, time_ms: int, target: ImportTarget, context: ReadContext
) -> ViewRow | None:
    url_path, _, query = path.partition("?")
    page = target.page("", url_path, query)
    if page is None:
        context.skip(SkipReason.NO_PAGE)
        return None
    name = record.get("Referrer", "")
    scheme = record.get("Referrer scheme", "")
    referrer = _referrer(name, scheme, target)
    if referrer is None:
        context.skip(SkipReason.SPAM)
        return None
    if scheme == _CAMPAIGN:
        page, referrer = target.own.with_campaign(page, utm_source=name), ""
    width_px = screen_width(record.get("Screen size", ""))
    number = context.next_number()
    session = record["Session"]
    if session.strip(_NO_SESSION):
        place = context.place_of(number, time_ms, session, page.path)
    else:
        is_first = record["FirstVisit"] in {"true", "1"}
        place = ViewPlace(is_first, is_first)
    return view_row(
        time_ms,
        page,
        _agent(record, width_px),
        place=place,
        referrer=referrer,
        number=number,
        identity=hash((session,)),
        country=country_code(record.get("Location", "")),
        width_px=width_px,
    )


def _referrer(name: str, scheme: str, target: ImportTarget) -> str | None:
    """Return the stored form of a referrer that is not a campaign, or None if it is spam.

    GoatCounter writes the URL of a page without its scheme, or under another marker in full; all
    else is a name.
    """
    if scheme == _URL or name.startswith(_FULL_URLS):
        return target.referrer(name if "://" in name else f"https://{name}", "")
    return target.own.referrer(name)


def _agent(record: Mapping[str, str], width_px: int) -> Agent:
    """Return the browser and system: version 1 has a User-Agent where version 2 has names.

    Only a User-Agent has the device; without one, it is the usual one for the screen's width.
    """
    browser = record.get("Browser", "")
    if browser.startswith(_AGENT):
        return describe(browser)
    name, version = normalize_browser(browser)
    system, system_version = normalize_system(record.get("System", ""))
    return Agent(name, version, system, system_version, device_of_width(width_px))


_MAX_LINE_BYTES: Final = 1 << 20
_VERSION: Final = "1"
_CACHED: Final = 4_096
_INFO: Final = "info.json"

_HITS: Final = DayTable(
    "hit_stats", (Dimension.PATH, Dimension.REFERRER, Dimension.UTM_SOURCE), is_total=True
)
_EVENTS: Final = DayTable("events", (Dimension.PROPERTY,))
_BROWSERS: Final = DayTable("browser_stats", (Dimension.BROWSER, Dimension.BROWSER_VERSION))
_SYSTEMS: Final = DayTable("system_stats", (Dimension.OS, Dimension.OS_VERSION))
_SIZES: Final = DayTable("size_stats", (Dimension.DEVICE,))
_COUNTRIES: Final = DayTable("location_stats", (Dimension.COUNTRY,))
_LANGUAGES: Final = DayTable("language_stats", (Dimension.LOCALE,))

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_FIGURE)]


_Texts = tuple[str, ...]


class _Info(msgspec.Struct):
    export_version: str


class _Path(msgspec.Struct):
    id: int
    path: str
    event: bool = False


class _Referrer(msgspec.Struct):
    id: int
    ref: str
    ref_scheme: str | None = None


class _Software(msgspec.Struct):
    """A browser or an operating system."""

    id: int
    name: str
    version: str = ""


class _Hits(msgspec.Struct):
    hour: str
    path_id: int
    ref_id: int
    count: Count


class _DayCount(msgspec.Struct):
    day: str
    path_id: int
    count: Count


class _Browsers(_DayCount):
    browser_id: int


class _Systems(_DayCount):
    system_id: int


class _Sizes(_DayCount):
    width: Count


class _Countries(_DayCount):
    location: str


class _Languages(_DayCount):
    language: str


S = TypeVar("S", bound=msgspec.Struct)
D = TypeVar("D", bound=_DayCount)


def is_goatcounter_days(head: bytes) -> bool:
    """Return whether this is the head of a JSON export."""
    signature, *paths = head.splitlines() or [b""]
    names = {path.rpartition(b"/")[2] for path in paths}
    return signature.startswith(b"PK") and {b"hit_stats.jsonl", b"paths.jsonl"} <= names


def read_goatcounter_days(file: BinaryIO, target: ImportTarget) -> Iterator[DayRow | RejectedRow]:
    """Yield the rows of a JSON export. Raises BadRequest if it is not one of a known version."""
    with open_zip(file) as archive:
        yield from _JsonReader(archive, target).rows()


@define(eq=False)
class _JsonReader:
    """Reads a JSON export, whose rows refer to paths, referrers, browsers and systems by id."""

    _archive: ZipFile
    _target: ImportTarget
    _members: dict[str, str] = field(init=False)
    """The paths of files in the archive, by name: they are in a folder of any name."""
    _paths: dict[int, tuple[bool, str]] = field(factory=dict)
    """Whether it is an event, and its path or property."""
    _referrers: dict[int, _Texts] = field(factory=dict)
    """The referrer and the UTM source."""
    _browsers: dict[int, _Texts] = field(factory=dict)
    _systems: dict[int, _Texts] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._members = {}
        for path in self._archive.namelist():
            name = path.rpartition("/")[2]
            # Other files in the archive may share a name, but not these.
            if name in self._members and name.endswith((".json", ".jsonl")):
                raise BadRequest(f"expected one export, got {self._members[name]} and {path}")
            self._members[name] = path

    def rows(self) -> Iterator[DayRow | RejectedRow]:
        """Yield the rows."""
        self._check_version()
        yield from self._read_names("paths", _Path, self._add_path)
        yield from self._read_names("refs", _Referrer, self._add_referrer)
        yield from self._read_names("browsers", _Software, self._add_browser)
        yield from self._read_names("systems", _Software, self._add_system)
        yield from self._read_hits()
        yield from self._read_days(
            _BROWSERS, _Browsers, "browser_id", lambda row: self._browsers.get(row.browser_id)
        )
        yield from self._read_days(
            _SYSTEMS, _Systems, "system_id", lambda row: self._systems.get(row.system_id)
        )
        yield from self._read_days(
            _SIZES, _Sizes, "width", lambda row: (device_of_width(row.width),)
        )
        yield from self._read_days(
            _COUNTRIES, _Countries, "location", lambda row: (country_code(row.location),)
        )
        yield from self._read_days(
            _LANGUAGES, _Languages, "language", lambda row: (locale_of(row.language),)
        )

    def _check_version(self) -> None:
        if _INFO not in self._members:
            raise BadRequest(f"{_INFO}: the zip archive has no such file")
        with self._archive.open(self._members[_INFO]) as member:
            try:
                info = msgspec.json.decode(member.read(_MAX_LINE_BYTES), type=_Info)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise BadRequest(f"{_INFO}: {error}") from None
        if info.export_version.partition(".")[0] != _VERSION:
            raise BadRequest(f"{_INFO}: expected an export of version 1, got {info.export_version}")

    def _read_names(
        self, name: str, kind: type[S], add: Callable[[S], None]
    ) -> Iterator[RejectedRow]:
        for result in self._lines(name, kind):
            if isinstance(result, RejectedRow):
                yield result
            else:
                add(result[1])

    def _add_path(self, row: _Path) -> None:
        if row.event:
            name = row.path.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_PROPERTY_NAME]
            self._paths[row.id] = True, property_text(name, "")
            return
        url_path, _, query = row.path.partition("?")
        page = self._target.page(
            "", url_path if url_path.startswith("/") else f"/{url_path}", query
        )
        self._paths[row.id] = False, "/" if page is None else page.path

    def _add_referrer(self, row: _Referrer) -> None:
        if row.ref_scheme == _CAMPAIGN:
            self._referrers[row.id] = "", self._target.own.utm(row.ref)
        else:
            referrer = _referrer(row.ref, row.ref_scheme or "", self._target) or ""
            self._referrers[row.id] = referrer[:MAX_UTM], ""

    def _add_browser(self, row: _Software) -> None:
        self._browsers[row.id] = normalize_browser(row.name, row.version)

    def _add_system(self, row: _Software) -> None:
        self._systems[row.id] = normalize_system(row.name, row.version)

    def _read_hits(self) -> Iterator[DayRow | RejectedRow]:
        for result in self._lines(_HITS.name, _Hits):
            if isinstance(result, RejectedRow):
                yield result
                continue
            line, row = result
            path, referrer = self._paths.get(row.path_id), self._referrers.get(row.ref_id)
            if path is None:
                yield _unknown_id(line, _HITS.name, "path_id")
            elif referrer is None:
                yield _unknown_id(line, _HITS.name, "ref_id")
            elif (day := _day_of_hour(row.hour, self._target.rules.zone)) is None:
                reason = "expected an hour such as 2026-01-31T12:00:00Z"
                yield RejectedRow(line, f"{_HITS.name}.jsonl: hour", reason)
            elif path[0]:
                yield DayRow(_EVENTS, day, (path[1],), views=row.count, line=line)
            else:
                yield _day_row(_HITS, day, (path[1], *referrer), row.count, line)

    def _read_days(
        self, table: DayTable, kind: type[D], field: str, texts_of: Callable[[D], _Texts | None]
    ) -> Iterator[DayRow | RejectedRow]:
        for result in self._lines(table.name, kind):
            if isinstance(result, RejectedRow):
                yield result
                continue
            line, row = result
            path, texts = self._paths.get(row.path_id), texts_of(row)
            if path is None:
                yield _unknown_id(line, table.name, "path_id")
                continue
            if texts is None:
                yield _unknown_id(line, table.name, field)
                continue
            try:
                day = parse_day(row.day)
            except ValueError:
                reason = "expected a date such as 2026-01-31"
                yield RejectedRow(line, f"{table.name}.jsonl: day", reason)
                continue
            if not path[0]:
                yield _day_row(table, day, texts, row.count, line)

    def _lines(self, name: str, kind: type[S]) -> Iterator[tuple[int, S] | RejectedRow]:
        """Yield the lines of a file, if the archive has it."""
        member = f"{name}.jsonl"
        if member not in self._members:
            return
        decoder = msgspec.json.Decoder(kind)
        number = 0
        with self._archive.open(self._members[member]) as file:
            while line := file.readline(_MAX_LINE_BYTES):
                number += 1
                if len(line) == _MAX_LINE_BYTES:
                    raise BadRequest(
                        f"{member}: line {number}: expected less than {_MAX_LINE_BYTES} bytes"
                    )
                if line.isspace():
                    continue
                try:
                    yield number, decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    yield RejectedRow(number, member, str(error))


def _day_row(table: DayTable, day: int, texts: _Texts, count: int, line: int) -> DayRow:
    return DayRow(table, day, texts, views=count, visitors=count, page_visitors=count, line=line)


def _unknown_id(line: int, name: str, field: str) -> RejectedRow:
    return RejectedRow(line, f"{name}.jsonl: {field}", "no other file has this id")


@lru_cache(_CACHED)
def _day_of_hour(hour: str, zone: tzinfo) -> int | None:
    """Return the local day of an hour in UTC; None if it is invalid or before 1970."""
    try:
        moment = datetime.fromisoformat(hour)
    except ValueError:
        return None
    day = day_at(zone, int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()))
    return day if day >= 0 else None
