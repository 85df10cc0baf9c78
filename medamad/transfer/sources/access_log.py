"""Access logs of web servers: the page views among the requests.

A view is a GET request with status 200, or 304 (the browser had the page cached), for a page: by
its Content-Type if the log has it, otherwise by the extension of its path. The rules for hits
apply, and requests by anything but a browser are counted as those of robots, unless the logs were
written without User-Agents. A visitor is an address with a User-Agent, for one day, and is kept in
memory only; so is what tells the visits, which have no gap longer than 30 minutes.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import lru_cache
from http import HTTPStatus
from typing import BinaryIO, Final, NamedTuple

from medamad.domain.errors import BadRequest
from medamad.domain.hits import BotRule
from medamad.domain.websites import canonical_hostname
from medamad.ingest.networks import address_of
from medamad.ingest.page import Page, page_of, split_url
from medamad.ingest.user_agent import describe, is_bot, robot_name
from medamad.lookup.languages import locale_of
from medamad.lookup.robots import HOSTING_NETWORK
from medamad.transfer.import_context import ImportTarget, ReadContext, SkipReason
from medamad.transfer.rows import FUTURE_TIME, HitRow, RejectedRow, ViewRow
from medamad.transfer.sources.log_lines import LoggedRequest, LogLineError, parse_log_line
from medamad.transfer.sources.normalize import view_row

_MAX_LINE_BYTES: Final = 1 << 16
"""No browser's request makes a longer line; a long request full of escapes does."""
_CACHED: Final = 4_096
_ABSOLUTE_FORM: Final = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_VIEWED: Final = frozenset({HTTPStatus.OK, HTTPStatus.NOT_MODIFIED})
_PAGE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
_NO_PAGE: Final = re.compile(
    r"\.(?:7z|aac|apk|appimage|asc|atom|avi|avif|bin|bmp|br|bz2|cjs|css|csv|deb|dmg|docx?|eot|epub"
    r"|exe|flac|flatpak|gif|gz|heic|ico|ics|iso|jar|jpe?g|js|json|jxl|m3u8|m4[av]|map|md5|mjs|mkv"
    r"|mobi|mov|mp[34]|mpd|msi|od[pst]|og[gv]|opus|otf|pdf|pkg|png|pptx?|rar|rpm|rss|rtf"
    r"|sha(?:256|512)|sig|svgz?|tar|tgz|tiff?|ts|ttf|txt|wasm|wav|web[mp]|webmanifest|woff2?|xlsx?"
    r"|xml|xpi|xsl|xz|ya?ml|zip|zst)\Z",
    re.IGNORECASE,
)
"""Extensions of paths that are not pages."""
_MINOR_BROWSERS: Final = re.compile(
    r"(?:Lynx|w3m|Dillo|NetSurf)/|E?Links(?:/| \()"
    r"|Mozilla/.*(?:\bDillo |\b(?:NetSurf|Konqueror|NintendoBrowser)/)"
)
"""Browsers, mostly text browsers, that run no tracker and are missing from the public list."""


def read_access_log(
    file: BinaryIO, target: ImportTarget, context: ReadContext
) -> Iterator[HitRow | RejectedRow]:
    """Yield the views of a log.

    Its lines may have different formats; the last may be incomplete.
    """
    lacks_agent = False
    number = 0
    while line := file.readline(_MAX_LINE_BYTES):
        number += 1
        is_short = line.endswith(b"\n") or len(line) < _MAX_LINE_BYTES
        while not line.endswith(b"\n") and (rest := file.readline(_MAX_LINE_BYTES)):
            line = rest
        if not is_short:
            context.skip(SkipReason.LONG)
            continue
        is_ended = line.endswith(b"\n")
        if not (line := line.removeprefix(BOM_UTF8 if number == 1 else b"").strip()):
            continue
        try:
            request = parse_log_line(line)
        except LogLineError as error:
            if is_ended:
                yield RejectedRow(number, error.field, str(error))
            else:
                context.skip(SkipReason.CUT)
            continue
        if not is_ended and not lacks_agent and _may_be_cut(line, request):
            context.skip(SkipReason.CUT)
            continue
        lacks_agent = request is not None and request.user_agent is None
        if request is not None and target.is_ahead(request.time_ms):
            yield RejectedRow(number, "time", FUTURE_TIME)
            continue
        row = SkipReason.NO_VIEW if request is None else _view(request, target, context)
        if isinstance(row, SkipReason):
            context.skip(row)
        else:
            yield row


def _may_be_cut(line: bytes, request: LoggedRequest | None) -> bool:
    """Return whether a line in the common format may be the start of one in the combined format."""
    return request is not None and request.user_agent is None and not line.startswith(b"{")


def _view(
    request: LoggedRequest, target: ImportTarget, context: ReadContext
) -> ViewRow | SkipReason:
    """Return the view that a request stands for, or why it is none."""
    user_agent = context.agent_of(request.user_agent)
    viewed = viewed_page(request, target)
    if isinstance(viewed, SkipReason):
        return viewed
    host, own, rules = viewed.host, target.own, target.rules
    address = address_of(request.address)
    if address is not None and (address in rules.blocked or address in own.blocked):
        return SkipReason.BLOCKED
    page = own.stored(viewed.page, viewed.url)
    is_hosting = address is not None and address in rules.hosting
    robot, reason = "", None
    if is_program(user_agent, own.settings.bots or rules.bots):
        robot, reason = robot_name(user_agent or ""), SkipReason.PROGRAMS
    elif is_hosting and (rule := rules.hosting_rule_of(own)) != "count":
        robot = HOSTING_NETWORK if rule == "count apart" else ""
        reason = SkipReason.HOSTING
    elif own.excludes(viewed.page.path):
        reason = SkipReason.EXCLUDED
    if robot:
        context.count_robot(request.time_ms, robot, page.path)
    if reason is not None:
        return reason
    referrer = target.referrer(request.referrer, page.host)
    if referrer is None:
        return SkipReason.SPAM
    number = context.next_number()
    visitor = (request.address, user_agent)
    return view_row(
        request.time_ms,
        page,
        describe(user_agent or ""),
        place=context.place_of(number, request.time_ms, visitor, page.path),
        referrer=referrer,
        number=number,
        identity=hash(request),
        host=host,
        locale=locale_of(request.accept_language),
        hosting=is_hosting,
    )


class ViewedPage(NamedTuple):
    """A page that was requested, with its URL; the host is "" if the log does not have it."""

    page: Page
    url: str
    host: str


def viewed_page(request: LoggedRequest, target: ImportTarget) -> ViewedPage | SkipReason:
    """Return the page of the website that was viewed."""
    if request.method != "GET" or request.status not in _VIEWED:
        return SkipReason.NO_VIEW
    host, path, query = _split_target(request)
    if host and target.hostname and not _is_same(host, target.hostname):
        return SkipReason.OTHER_HOSTS
    if not path.startswith("/"):
        return SkipReason.NO_PAGE
    url = target.url(host, path, query)
    try:
        page = page_of(url)
    except BadRequest:
        return SkipReason.NO_PAGE
    return ViewedPage(page, url, host) if _is_page(request, page.path) else SkipReason.NO_VIEW


def _split_target(request: LoggedRequest) -> tuple[str, str, str]:
    """Return the host, path and query (RFC 9112, section 3.2) of a request.

    The host of a target in absolute form takes precedence.
    """
    host, rest = request.host, request.target
    if absolute := _ABSOLUTE_FORM.match(rest):
        host, rest = absolute[1], rest[absolute.end() :]
        rest = rest if rest.startswith("/") else f"/{rest}"
    path, _, query = rest.partition("?")
    return _canonical_host(host), path, query


@lru_cache(_CACHED)
def is_program(user_agent: str | None, rule: BotRule) -> bool:
    """Return whether the client was not a person's browser.

    This is stricter than for hits: there, an HTTP client that sends one means it to count.
    """
    if user_agent is None or rule == "off":
        return False
    return is_bot(user_agent, "declared" if _MINOR_BROWSERS.match(user_agent) else "strict")


def _canonical_host(host: str) -> str:
    """Return the canonical form of a host, or the host itself if it is no hostname."""
    try:
        return canonical_hostname(split_url(f"//{host}").hostname or "")
    except (ValueError, BadRequest):
        return host


def _is_same(host: str, hostname: str) -> bool:
    return host.removeprefix("www.") == hostname.removeprefix("www.")


def _is_page(request: LoggedRequest, path: str) -> bool:
    content_type = request.content_type.partition(";")[0].strip().lower()
    if content_type and request.status == HTTPStatus.OK:
        return content_type in _PAGE_TYPES
    return _NO_PAGE.search(path) is None
