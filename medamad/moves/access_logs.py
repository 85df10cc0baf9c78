"""Access logs of web servers as views: which of their lines are pages that people saw.

A view is a GET that was answered by 200, or by 304 (the browser had the page already), of what is
a page by its Content-Type, where the log has that, else by the ending of its path. What the rules
for hits leave out is left out here too. Visitors are told apart by address and User-Agent, a day
long and in memory alone.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from ipaddress import ip_address
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from medamad.collect.agents import describe
from medamad.collect.bots import is_bot
from medamad.model.errors import BadRequest
from medamad.model.websites import canonical_hostname
from medamad.moves.foreign import view_row
from medamad.moves.log_lines import NoLine, Request, request_of
from medamad.moves.rows import AHEAD, Refused, Row, ViewRow
from medamad.moves.visits import Into, Visits
from medamad.vocabulary.languages import locale_of

_MOST_OF_A_LINE: Final = 1 << 16
_SHOWN: Final = frozenset({HTTPStatus.OK, HTTPStatus.NOT_MODIFIED})
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_NO_PAGES: Final = re.compile(
    r"\.(?:7z|atom|avi|avif|bmp|br|bz2|cjs|css|csv|deb|dmg|eot|exe|flac|gif|gz|ico|ics|jpe?g|js|json"
    r"|m3u8|m4[av]|map|md5|mjs|mov|mp[34]|mpd|msi|og[gv]|otf|pdf|pkg|png|rar|rpm|rss|sha256|svgz?"
    r"|tar|tgz|tiff?|ts|ttf|txt|wasm|wav|web[mp]|webmanifest|woff2?|xml|xsl|xz|ya?ml|zip|zst)\Z",
    re.IGNORECASE,
)
"""Endings of paths that are no pages."""


def read_access_log(file: BinaryIO, into: Into, visits: Visits) -> Iterator[Row | Refused]:
    """Read a log, which may hold lines of several forms."""
    number = 0
    while line := file.readline(_MOST_OF_A_LINE):
        number += 1
        whole = line.endswith(b"\n") or len(line) < _MOST_OF_A_LINE
        while not line.endswith(b"\n") and (more := file.readline(_MOST_OF_A_LINE)):
            line = more
        if not whole:
            yield Refused(number, "line", f"expected less than {_MOST_OF_A_LINE} bytes")
            continue
        if not (line := line.strip()):
            continue
        try:
            request = request_of(line)
        except NoLine as error:
            yield Refused(number, error.field, str(error))
            continue
        if request is not None and into.is_ahead(request.time_ms):
            yield Refused(number, "time", AHEAD)
        elif request is not None and (row := _view(request, into, visits)) is not None:
            yield row


def _view(request: Request, into: Into, visits: Visits) -> ViewRow | None:
    """Give the view that a request was, None for what was none."""
    if not _is_seen(request, into):
        return None
    host = _host(request.host)
    try:
        target = urlsplit(request.target)
    except ValueError:
        return None
    page = into.page(host, target.path, target.query)
    if page is None or not _is_page(request, page.path):
        return None
    referrer = into.referrer(request.referrer, page.host)
    if referrer is None:
        return None
    visitor = (request.address, request.user_agent)
    return view_row(
        request.time_ms,
        page,
        describe(request.user_agent),
        firsts=visits.first(request.time_ms, visitor, page.path),
        referrer=referrer,
        host=host,
        locale=locale_of(request.accept_language),
    )


def _is_seen(request: Request, into: Into) -> bool:
    """Tell whether somebody was shown something of this website."""
    if request.method != "GET" or request.status not in _SHOWN:
        return False
    host = _host(request.host)
    if host and into.hostname and not _is_same(host, into.hostname):
        return False
    return not is_bot(request.user_agent, into.rules.bots) and not _is_blocked(request, into)


def _host(given: str) -> str:
    try:
        return canonical_hostname(urlsplit(f"//{given}").hostname or "")
    except (ValueError, BadRequest):
        return ""


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
