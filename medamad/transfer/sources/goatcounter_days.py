"""GoatCounter's export as JSON: a zip of what it counted by hour and by day, page by page.

It goes by GoatCounter's help ("JSON export", version 1 of the format). GoatCounter counts visits of
pages: whoever is shown three pages within eight hours counts three times, and again afterwards. So
each of its counts is taken for a view, for a visitor of that page, and for a visitor, as in its own
figures. Hours are of UTC, and become days of the zone that is configured; browsers, systems,
countries and languages come with days already.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Annotated, BinaryIO, Final, TypeVar
from zipfile import ZipFile

import msgspec
from attrs import define, field

from medamad.domain.dimensions import PROPERTY_SEPARATOR, Dimension, property_text
from medamad.domain.errors import BadRequest
from medamad.domain.zones import day_at
from medamad.ingest.page import MAX_UTM
from medamad.ingest.payload import MAX_NAME
from medamad.lookup.languages import locale_of
from medamad.transfer.day_rows import MOST, DayRow, DayTable, day_of
from medamad.transfer.input_files import opened_zip
from medamad.transfer.rows import Refused
from medamad.transfer.sources.common import browser_named, country_of, system_named
from medamad.transfer.visitors import Into

_MOST_OF_A_LINE: Final = 1 << 20
_VERSION: Final = "1"
_RECENT: Final = 4_096
_URL, _CAMPAIGN = "h", "c"
_INFO: Final = "info.json"

_HITS: Final = DayTable(
    "hit_stats", (Dimension.PATH, Dimension.REFERRER, Dimension.UTM_SOURCE), is_total=True
)
_EVENTS: Final = DayTable("events", (Dimension.PROPERTY,))
_BROWSERS: Final = DayTable("browser_stats", (Dimension.BROWSER, Dimension.BROWSER_VERSION))
_SYSTEMS: Final = DayTable("system_stats", (Dimension.OS, Dimension.OS_VERSION))
_COUNTRIES: Final = DayTable("location_stats", (Dimension.COUNTRY,))
_LANGUAGES: Final = DayTable("language_stats", (Dimension.LOCALE,))

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]


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


class _Named(msgspec.Struct):
    """A browser or a system."""

    id: int
    name: str
    version: str = ""


class _Hits(msgspec.Struct):
    hour: str
    path_id: int
    ref_id: int
    count: Count


class _OfDay(msgspec.Struct):
    day: str
    path_id: int
    count: Count


class _Browsers(_OfDay):
    browser_id: int


class _Systems(_OfDay):
    system_id: int


class _Countries(_OfDay):
    location: str


class _Languages(_OfDay):
    language: str


T = TypeVar("T", bound=msgspec.Struct)
D = TypeVar("D", bound=_OfDay)
_Texts = tuple[str, ...]


def is_goatcounter_days(head: bytes) -> bool:
    """Return whether a file that begins so is such an export."""
    mark, *names = head.splitlines() or [b""]
    found = {name.rpartition(b"/")[2] for name in names}
    return mark.startswith(b"PK") and {b"hit_stats.jsonl", b"paths.jsonl"} <= found


def read_goatcounter_days(file: BinaryIO, into: Into) -> Iterator[DayRow | Refused]:
    """Read an export. Raises BadRequest where it is none, or of a version that is not known."""
    with opened_zip(file) as archive:
        yield from _Reading(archive, into).rows()


@define(eq=False)
class _Reading:
    """Reads an export. What its rows name by number is kept in mind."""

    _archive: ZipFile
    _into: Into
    _members: dict[str, str] = field(init=False)
    """What its files are called in the zip: they are in a folder, of whatever name."""
    _paths: dict[int, tuple[bool, str]] = field(factory=dict)
    """Whether it is an event, and what it is called here."""
    _referrers: dict[int, _Texts] = field(factory=dict)
    """Referrer and UTM source."""
    _browsers: dict[int, _Texts] = field(factory=dict)
    _systems: dict[int, _Texts] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._members = {}
        for path in self._archive.namelist():
            name = path.rpartition("/")[2]
            # Files of other programs may stand beside them, in one folder or another.
            if name in self._members and name.endswith((".json", ".jsonl")):
                raise BadRequest(f"expected one export, got {self._members[name]} and {path}")
            self._members[name] = path

    def rows(self) -> Iterator[DayRow | Refused]:
        """Give its rows."""
        self._check_version()
        yield from self._names("paths", _Path, self._add_path)
        yield from self._names("refs", _Referrer, self._add_referrer)
        yield from self._names("browsers", _Named, self._add_browser)
        yield from self._names("systems", _Named, self._add_system)
        yield from self._hits()
        yield from self._by_day(
            _BROWSERS, _Browsers, "browser_id", lambda row: self._browsers.get(row.browser_id)
        )
        yield from self._by_day(
            _SYSTEMS, _Systems, "system_id", lambda row: self._systems.get(row.system_id)
        )
        yield from self._by_day(
            _COUNTRIES, _Countries, "location", lambda row: (country_of(row.location),)
        )
        yield from self._by_day(
            _LANGUAGES, _Languages, "language", lambda row: (locale_of(row.language),)
        )

    def _check_version(self) -> None:
        if _INFO not in self._members:
            raise BadRequest(f"{_INFO}: there is no such file")
        with self._archive.open(self._members[_INFO]) as member:
            try:
                info = msgspec.json.decode(member.read(_MOST_OF_A_LINE), type=_Info)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise BadRequest(f"{_INFO}: {error}") from None
        if info.export_version.partition(".")[0] != _VERSION:
            raise BadRequest(f"{_INFO}: expected an export of version 1, got {info.export_version}")

    # What is behind the numbers

    def _names(self, name: str, row: type[T], add: Callable[[T], None]) -> Iterator[Refused]:
        for found in self._lines(name, row):
            if isinstance(found, Refused):
                yield found
            else:
                add(found[1])

    def _add_path(self, row: _Path) -> None:
        if row.event:
            name = row.path.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_NAME]
            self._paths[row.id] = True, property_text(name, "")
            return
        target, _, query = row.path.partition("?")
        page = self._into.page("", target if target.startswith("/") else f"/{target}", query)
        self._paths[row.id] = False, "/" if page is None else page.path

    def _add_referrer(self, row: _Referrer) -> None:
        if row.ref_scheme == _CAMPAIGN:
            self._referrers[row.id] = "", row.ref[:MAX_UTM]
        elif row.ref_scheme == _URL:
            self._referrers[row.id] = self._into.referrer(f"https://{row.ref}", "") or "", ""
        else:
            self._referrers[row.id] = row.ref[:MAX_UTM], ""

    def _add_browser(self, row: _Named) -> None:
        self._browsers[row.id] = browser_named(row.name, row.version)

    def _add_system(self, row: _Named) -> None:
        self._systems[row.id] = system_named(row.name, row.version)

    # What was counted

    def _hits(self) -> Iterator[DayRow | Refused]:
        for found in self._lines(_HITS.name, _Hits):
            if isinstance(found, Refused):
                yield found
                continue
            line, row = found
            path, referrer = self._paths.get(row.path_id), self._referrers.get(row.ref_id)
            if path is None:
                yield _refused(line, _HITS.name, "path_id")
            elif referrer is None:
                yield _refused(line, _HITS.name, "ref_id")
            elif (day := _day_of_hour(row.hour, self._into.rules.zone)) is None:
                reason = "expected an hour such as 2026-01-31T12:00:00Z"
                yield Refused(line, f"{_HITS.name}.jsonl: hour", reason)
            elif path[0]:
                yield DayRow(_EVENTS, day, (path[1],), views=row.count, line=line)
            else:
                yield _counted(_HITS, day, (path[1], *referrer), row.count, line)

    def _by_day(
        self, table: DayTable, kind: type[D], field: str, texts_of: Callable[[D], _Texts | None]
    ) -> Iterator[DayRow | Refused]:
        for found in self._lines(table.name, kind):
            if isinstance(found, Refused):
                yield found
                continue
            line, row = found
            path, texts = self._paths.get(row.path_id), texts_of(row)
            if path is None:
                yield _refused(line, table.name, "path_id")
                continue
            if texts is None:
                yield _refused(line, table.name, field)
                continue
            try:
                day = day_of(row.day)
            except ValueError:
                reason = "expected a date such as 2026-01-31"
                yield Refused(line, f"{table.name}.jsonl: day", reason)
                continue
            if not path[0]:
                yield _counted(table, day, texts, row.count, line)

    def _lines(self, name: str, row: type[T]) -> Iterator[tuple[int, T] | Refused]:
        """Return the lines of a file, none if it is not there."""
        member = f"{name}.jsonl"
        if member not in self._members:
            return
        decoder = msgspec.json.Decoder(row)
        number = 0
        with self._archive.open(self._members[member]) as file:
            while line := file.readline(_MOST_OF_A_LINE):
                number += 1
                if len(line) == _MOST_OF_A_LINE:
                    raise BadRequest(
                        f"{member}: line {number}: expected less than {_MOST_OF_A_LINE} bytes"
                    )
                if line.isspace():
                    continue
                try:
                    yield number, decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    yield Refused(number, member, str(error))


def _counted(table: DayTable, day: int, texts: _Texts, count: int, line: int) -> DayRow:
    return DayRow(table, day, texts, views=count, visitors=count, page_visitors=count, line=line)


def _refused(line: int, name: str, field: str) -> Refused:
    return Refused(line, f"{name}.jsonl: {field}", "no other file says what it is")


@lru_cache(_RECENT)
def _day_of_hour(hour: str, zone: tzinfo) -> int | None:
    """Return the local date of an hour of UTC; None for what is no hour since 1970."""
    try:
        moment = datetime.fromisoformat(hour)
    except ValueError:
        return None
    day = day_at(zone, int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()))
    return day if day >= 0 else None
