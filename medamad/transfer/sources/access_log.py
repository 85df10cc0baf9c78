"""Access logs of web servers as views: which of their lines are pages that people saw.

A view is a GET that was answered by 200, or by 304 (the browser had the page already), of what is
a page by its Content-Type, where the log has that, else by the ending of its path. What the rules
for hits leave out is left out here too, and whatever does not name a browser, unless the logs are
kept without User-Agents: then no line of them has one. Visitors are told apart by address and
User-Agent, a day long and in memory alone.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import BinaryIO, Final

from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname
from medamad.ingest.page import Page, split_url
from medamad.ingest.user_agent import BotRule, describe, is_bot
from medamad.lookup.languages import locale_of
from medamad.transfer.rows import AHEAD, Refused, Row, ViewRow
from medamad.transfer.sources.common import view_row
from medamad.transfer.sources.log_lines import NoLine, Request, request_of
from medamad.transfer.visitors import Into, LeftOut, Visits

_MOST_OF_A_LINE: Final = 1 << 16
"""No browser's request makes a longer one, but whoever sends much that is escaped does."""
_RECENT: Final = 4_096
_WHOLE: Final = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_SHOWN: Final = frozenset({HTTPStatus.OK, HTTPStatus.NOT_MODIFIED})
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_NO_PAGES: Final = re.compile(
    r"\.(?:7z|aac|apk|appimage|asc|atom|avi|avif|bin|bmp|br|bz2|cjs|css|csv|deb|dmg|docx?|eot|epub"
    r"|exe|flac|flatpak|gif|gz|heic|ico|ics|iso|jar|jpe?g|js|json|jxl|m3u8|m4[av]|map|md5|mjs|mkv"
    r"|mobi|mov|mp[34]|mpd|msi|od[pst]|og[gv]|opus|otf|pdf|pkg|png|pptx?|rar|rpm|rss|rtf"
    r"|sha(?:256|512)|sig|svgz?|tar|tgz|tiff?|ts|ttf|txt|wasm|wav|web[mp]|webmanifest|woff2?|xlsx?"
    r"|xml|xpi|xsl|xz|ya?ml|zip|zst)\Z",
    re.IGNORECASE,
)
"""Endings of paths that are no pages."""
_LESSER: Final = re.compile(
    r"(?:Lynx|w3m|Dillo|NetSurf)/|E?Links(?:/| \()"
    r"|Mozilla/.*(?:\bDillo |\b(?:NetSurf|Konqueror|NintendoBrowser)/)"
)
"""Browsers, of text most of them, that run no tracker, and that the public list does not know."""


def read_access_log(file: BinaryIO, into: Into, visits: Visits) -> Iterator[Row | Refused]:
    """Read a log, which may hold lines of several forms; the last one may be cut."""
    lacks_agent = False
    number = 0
    while line := file.readline(_MOST_OF_A_LINE):
        number += 1
        whole = line.endswith(b"\n") or len(line) < _MOST_OF_A_LINE
        while not line.endswith(b"\n") and (more := file.readline(_MOST_OF_A_LINE)):
            line = more
        if not whole:
            visits.leave_out(LeftOut.LONG)
            continue
        is_ended = line.endswith(b"\n")
        if not (line := line.removeprefix(BOM_UTF8 if number == 1 else b"").strip()):
            continue
        try:
            request = request_of(line)
        except NoLine as error:
            if is_ended:
                yield Refused(number, error.field, str(error))
            else:
                visits.leave_out(LeftOut.CUT)
            continue
        if not is_ended and not lacks_agent and _may_be_cut(line, request):
            visits.leave_out(LeftOut.CUT)
            continue
        lacks_agent = request is not None and request.user_agent is None
        if request is not None and into.is_ahead(request.time_ms):
            yield Refused(number, "time", AHEAD)
            continue
        row = LeftOut.NO_VIEW if request is None else _view(request, into, visits)
        if isinstance(row, LeftOut):
            visits.leave_out(row)
        else:
            yield row


def _may_be_cut(line: bytes, request: Request | None) -> bool:
    """Return whether a line that has not ended may go on: one of common form, to be of combined."""
    return request is not None and request.user_agent is None and not line.startswith(b"{")


def _view(request: Request, into: Into, visits: Visits) -> ViewRow | LeftOut:
    """Return the view that a request was, or why it is none."""
    user_agent = visits.agent_of(request.user_agent)
    shown = _shown(request, into)
    if isinstance(shown, LeftOut):
        return shown
    page, host = shown
    if _is_blocked(request, into):
        return LeftOut.BLOCKED
    if _is_program(user_agent, into.rules.bots):
        return LeftOut.PROGRAMS
    referrer = into.referrer(request.referrer, page.host)
    if referrer is None:
        return LeftOut.SPAM
    number = visits.number()
    visitor = (request.address, user_agent)
    return view_row(
        request.time_ms,
        page,
        describe(user_agent or ""),
        firsts=visits.firsts(number, request.time_ms, visitor, page.path),
        referrer=referrer,
        number=number,
        identity=hash(request),
        host=host,
        locale=locale_of(request.accept_language),
    )


def _shown(request: Request, into: Into) -> tuple[Page, str] | LeftOut:
    """Return the page of the website that was shown, and its host where the log says it."""
    if request.method != "GET" or request.status not in _SHOWN:
        return LeftOut.NO_VIEW
    host, path, query = _target(request)
    if host and into.hostname and not _is_same(host, into.hostname):
        return LeftOut.OTHER_HOSTS
    page = into.page(host, path, query) if path.startswith("/") else None
    if page is None:
        return LeftOut.NO_PAGE
    return (page, host) if _is_page(request, page.path) else LeftOut.NO_VIEW


def _target(request: Request) -> tuple[str, str, str]:
    """Return host, path and query (RFC 9112, section 3.2); of a whole URL its own host counts."""
    host, rest = request.host, request.target
    if whole := _WHOLE.match(rest):
        host, rest = whole[1], rest[whole.end() :]
        rest = rest if rest.startswith("/") else f"/{rest}"
    path, _, query = rest.partition("?")
    return _host(host), path, query


@lru_cache(_RECENT)
def _is_program(user_agent: str | None, rule: BotRule) -> bool:
    """Return whether no person's browser asked.

    A tracker's hit from a plain HTTP client is meant to count; in a log there is whatever asked.
    """
    if user_agent is None or rule == "off":
        return False
    return is_bot(user_agent, "declared" if _LESSER.match(user_agent) else "strict")


def _host(given: str) -> str:
    """Return the name of a host, or what stands in its place: an address is none of a website."""
    try:
        return canonical_hostname(split_url(f"//{given}").hostname or "")
    except (ValueError, BadRequest):
        return given


def _is_same(host: str, hostname: str) -> bool:
    return host.removeprefix("www.") == hostname.removeprefix("www.")


def _is_blocked(request: Request, into: Into) -> bool:
    try:
        return ip_address(request.address) in into.rules.blocked
    except ValueError:
        return False


def _is_page(request: Request, path: str) -> bool:
    content_type = request.content_type.partition(";")[0].strip().lower()
    if content_type and request.status == HTTPStatus.OK:
        return content_type in _PAGES
    return _NO_PAGES.search(path) is None
