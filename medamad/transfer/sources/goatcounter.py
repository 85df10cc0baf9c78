"""GoatCounter's export of single pageviews as CSV.

It goes by GoatCounter's help ("CSV export", versions 1 and 2 of the format). A session of
GoatCounter's lasts eight hours; whoever comes back later on the same day counts again, as there.
Where it kept no sessions, every view is a first visit for it, and so it is here.
A referrer of its own naming ("Hacker News") stays as it is; the text of a campaign counts as the
UTM source, since GoatCounter does not say of which parameter it was.
"""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from medamad.domain.errors import BadRequest
from medamad.ingest.user_agent import Agent, describe
from medamad.transfer.formats.csv import read_records
from medamad.transfer.rows import AHEAD, Refused, Row, ViewRow
from medamad.transfer.sources.common import (
    browser_named,
    country_of,
    event_rows,
    system_named,
    time_ms_of,
    view_row,
    width_of,
    with_campaign,
)
from medamad.transfer.visitors import Into, LeftOut, Visits

_HEAD: Final = re.compile(rb'(?:\xef\xbb\xbf)?"?(\d+),?Path"?,')
_VERSIONS: Final = frozenset({"1", "2"})
_NEEDED: Final = ("Event", "Bot", "Session", "FirstVisit", "Date")
_AGENT: Final = "Mozilla/"
_URL, _CAMPAIGN = "h", "c"
_NO_SESSION: Final = "0-"
"""The characters of the number of no session, `0-0`, of version 1 that of a UUID."""


def is_goatcounter(head: bytes) -> bool:
    """Return whether a file that begins so is such an export."""
    first, _, _ = head.partition(b"\n")
    return _HEAD.match(first) is not None and b"FirstVisit" in first


def read_goatcounter(file: BinaryIO, into: Into, visits: Visits) -> Iterator[Row | Refused]:
    """Read an export. Raises BadRequest where it is none, or of a version that is not known."""
    head = file.readline()
    found = _HEAD.match(head)
    if found is None:
        raise BadRequest("Path: there is no such column")
    if (version := found[1].decode()) not in _VERSIONS:
        raise BadRequest(f"Path: expected an export of version 1 or 2, got {version}")
    file.seek(0)
    path = f"{version}Path"
    for record in read_records(file, (path, *_NEEDED)):
        if isinstance(record, Refused):
            yield record
        else:
            yield from _rows(*record, path, into, visits)


def _rows(
    line: int, record: Mapping[str, str], path: str, into: Into, visits: Visits
) -> Iterator[Row | Refused]:
    if record["Bot"] not in {"", "0"}:
        visits.leave_out(LeftOut.PROGRAMS)
        return
    try:
        time_ms = time_ms_of(record["Date"])
    except ValueError:
        yield Refused(line, "Date", "expected a time such as 2026-01-31T12:00:00Z")
        return
    if into.is_ahead(time_ms):
        yield Refused(line, "Date", AHEAD)
        return
    if record["Event"] in {"true", "1"}:
        pairs = [(record[path], "")]
        identity = hash((record["Session"],))
        yield from event_rows(visits.number(), time_ms, pairs, identity=identity)
    elif (view := _view(record, record[path], time_ms, into, visits)) is not None:
        yield view


def _view(
    record: Mapping[str, str], path: str, time_ms: int, into: Into, visits: Visits
) -> ViewRow | None:
    target, _, query = path.partition("?")
    page = into.page("", target, query)
    if page is None:
        visits.leave_out(LeftOut.NO_PAGE)
        return None
    found = record.get("Referrer", "")
    scheme = record.get("Referrer scheme", "")
    referrer = into.referrer(f"https://{found}", "") if scheme == _URL else found
    if referrer is None:
        visits.leave_out(LeftOut.SPAM)
        return None
    if scheme == _CAMPAIGN:
        page, referrer = with_campaign(page, utm_source=found), ""
    number = visits.number()
    session = record["Session"]
    if session.strip(_NO_SESSION):
        firsts = visits.firsts(number, time_ms, session, page.path)
    else:
        firsts = (record["FirstVisit"] in {"true", "1"},) * 2
    return view_row(
        time_ms,
        page,
        _agent(record),
        firsts=firsts,
        referrer=referrer,
        number=number,
        identity=hash((session,)),
        country=country_of(record.get("Location", "")),
        width_px=width_of(record.get("Screen size", "")),
    )


def _agent(record: Mapping[str, str]) -> Agent:
    """Tell browser and system: version 1 has the User-Agent where version 2 has names."""
    browser = record.get("Browser", "")
    if browser.startswith(_AGENT):
        return describe(browser)
    name, version = browser_named(browser)
    system, system_version = system_named(record.get("System", ""))
    return Agent(name, version, system, system_version)
