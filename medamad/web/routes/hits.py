"""Hits, pings and pixels from pages, and hits that servers send for their visitors.

Hits are decoded, checked and stored by `ingest/pipeline.py`. This module turns a request into the
pipeline's arguments, and the pipeline's result or error into a response.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from secrets import token_urlsafe
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from medamad.domain.errors import ApiError, BadRequest
from medamad.domain.zones import day_at
from medamad.ingest import ping as pings
from medamad.ingest.networks import Sender
from medamad.ingest.page import host_of
from medamad.ingest.payload import LoadPayload
from medamad.web.auth import token_of
from medamad.web.call import Call, HitHandler, Respond
from medamad.web.parameters import parse_query_string
from medamad.web.responses import JSON, Headers, Response, encode_json
from medamad.web.server.parser import RequestHeaders

HIT: Final = "/event/hit"
HIT_ROUTE: Final = f"POST {HIT}"
PING: Final = "/event/ping"
PIXEL: Final = "/event/pixel.gif"

NOT_IGNORED: Final = Response(HTTPStatus.NO_CONTENT)
"""The response to a hit that was not ignored, whether it was stored now or before."""

_IGNORED: Final = b"X-Medamad-Ignored"
_QUERY_OF_PING: Final = re.compile(rb"(?:d=(?P<day>[^&]*)&)?(?P<form>[nv])=(?P<page>.*)", re.DOTALL)
_DAY: Final = re.compile(rb"[0-9]{1,6}")
_FOR_A_DAY: Final = (b"Cache-Control", b"private, no-cache, max-age=86400")
_NOT_KEPT: Final = (b"Cache-Control", b"private, no-store")
_BY_ORIGIN: Final = (b"Vary", b"Origin")
"""Keeps pages of another origin from reading the browser's entry without a request."""
_TEXT: Final = b"text/plain; charset=utf-8"
_GIF: Final = bytes.fromhex(
    "474946383961 0100 0100 80 00 00 000000 ffffff"  # GIF89a of one pixel and two colours
    "21 f9 04 01 0000 00 00"  # the first colour is transparent
    "2c 0000 0000 0100 0100 00 02 02 44 01 00 3b"
)
_BEACON_BYTES: Final = 12
_NO_WEBSITE: Final = "https://"
"""An origin that no website has."""
_ANY_PAGE: Final = (b"Cross-Origin-Resource-Policy", b"cross-origin")


def hit(call: Call, respond: Respond) -> None:
    """Store a hit from a tracker, or from a server that sends a token."""
    request, token = call.request, None
    if b"Authorization" in request.headers:
        token = token_of(request, call.backend)
    backend, begun_s = call.backend, call.backend.seconds()

    def received(result: str | Exception | None) -> None:
        backend.response_times.hits.add(backend.seconds() - begun_s)
        respond(result if isinstance(result, Exception) else response_to(result))

    try:
        backend.pipeline.receive(request.body, _sender(call), received, token)
    except ApiError as error:
        received(error)


def response_to(reason: str | None) -> Response:
    """Return the response to a hit that was ignored for a reason, or was not."""
    if reason is None:
        return NOT_IGNORED
    return Response(HTTPStatus.NO_CONTENT, headers=_ignored(reason))


def pixel(call: Call, respond: Respond) -> None:
    """Store a view from an image, for pages where no script runs.

    The browser keeps one date for each URL of the pixel. That date cannot distinguish the first
    view of a page (`q`) from the first of the day (`p`), so both are taken from it.
    """
    request, parameters = call.request, parse_query_string(call.request.query_string)
    referer = (request.headers.joined(b"Referer") or b"").decode("latin-1")
    ping = _ping(call)
    page = parameters.text("u")
    if page is None:
        if not referer.startswith(("http://", "https://")):
            raise BadRequest("u: expected the URL of the page, since there is no Referer")
        page = referer

    def received(result: str | Exception | None) -> None:
        if isinstance(result, Exception):
            respond(result)
            return
        has_returning = call.backend.pipeline.rules.has_returning
        is_kept = result is None and _may_remember(call, page.encode().partition(b"://")[2])
        date = _remembered(ping, for_longer=has_returning) if is_kept else _NO_DATE
        headers = (*date, _BY_ORIGIN, _ANY_PAGE, *_ignored(result))
        respond(Response(HTTPStatus.OK, _GIF, b"image/gif", headers))

    if request.method == b"HEAD":
        received(None)
    else:
        is_first = ping.views_before == 0
        load = LoadPayload(
            beacon=token_urlsafe(_BEACON_BYTES),
            url=page,
            first_today=is_first,
            first_of_page=is_first,
            referrer=parameters.text("r") or "",
            number_today=ping.views_before + 1,
            since=ping.since,
        )
        sender = _sender(call)
        if host_of(sender.origin) is None:
            # Browsers send no Origin for an image; the Referer begins with it. A page may withhold
            # that, and would otherwise count for any website.
            origin = "/".join(referer.split("/", 3)[:3])
            known = _NO_WEBSITE if host_of(origin) is None else origin
            sender = msgspec.structs.replace(sender, origin=known)
        call.backend.pipeline.receive(load, sender, received)


def ping(call: Call, respond: Respond) -> None:
    """Respond with whether the visitor was here today."""
    respond(_response_to_ping(call))


def _response_to_ping(call: Call) -> Response:
    """Return whether the visitor was here today, and count this view.

    With `n`, return how often; with `v`, also when it was here last, if the browser remembers.
    `d` is the day by the browser's clock: each day has an address of its own, so that no browser
    sends the date of an earlier one. If it is wrong, return today's, with which the tracker asks
    again: a redirect would not do, since WebKit follows it without the date that it has.
    """
    text = call.request.query_string
    day, form, page = None, b"u", b""
    if asked := _QUERY_OF_PING.fullmatch(text):
        day, form, page = asked["day"], asked["form"], asked["page"]
        if b"%00" in page:
            raise BadRequest(f"{form.decode()}: expected text without NUL")
    elif text:
        parameters = parse_query_string(text)
        page = (parameters.text("u") or "").encode()
        named_day = parameters.text("d")
        day = None if named_day is None else named_day.encode()
    if day is not None and (wrong := _wrong_day(call, day)):
        return wrong
    ping = _ping(call)
    has_returning = call.backend.pipeline.rules.has_returning
    is_kept = _may_remember(call, page) and _is_asked_by(page, call.request.headers)
    if not is_kept:
        ping = pings.answer(None, call.backend.clock(), call.backend.pipeline.rules.zone)
    headers = _remembered(ping, for_longer=has_returning and form == b"v") if is_kept else _NO_DATE
    if page:
        headers = (*headers, _BY_ORIGIN)
    if form == b"v":
        since = {"since": ping.since} if has_returning and is_kept else {}
        return Response(
            HTTPStatus.OK, encode_json({"n": ping.views_before, **since}), JSON, headers
        )
    body = ping.body if form == b"u" else str(ping.views_before)
    return Response(HTTPStatus.OK, body.encode("ascii"), _TEXT, headers)


def _wrong_day(call: Call, day: bytes) -> Response | None:
    """Return the response to a ping of another day than today, None if it is of today.

    The browser does not keep it, and drops what it has under the address. Raises BadRequest.
    """
    if not _DAY.fullmatch(day):
        raise BadRequest("d: expected a number of days since 1970-01-01")
    today = day_at(call.backend.pipeline.rules.zone, int(call.backend.clock()))
    if int(day) == today:
        return None
    return Response(HTTPStatus.OK, encode_json({"d": today}), JSON, _NO_DATE)


def _is_asked_by(page: bytes, headers: RequestHeaders) -> bool:
    """Return whether the page that a ping names sent it, as far as the browser says.

    Pages of other hosts of the same site share the browser's cache. They would learn whether the
    browser was on the page, and count a view of it.
    """
    if not page:
        return True
    asking = headers.joined(b"Origin") or headers.joined(b"Referer")
    if asking:
        return _authority(asking.partition(b"://")[2]) == _authority(unquote_to_bytes(page))
    # Browsers that send this send an Origin, too, where a script asks another origin.
    return headers.joined(b"Sec-Fetch-Site") in (None, b"same-origin")


def _authority(address: bytes) -> bytes:
    """Return the host and port at the beginning of an address without its scheme."""
    return re.split(rb"[/?#]", address, maxsplit=1)[0].lower()


def _sender(call: Call) -> Sender:
    """Return the sender of a hit, as its headers describe it."""
    request = call.request
    return Sender(
        address=call.sender_address,
        user_agent=first_text(request.headers, b"User-Agent"),
        accept_language=first_text(request.headers, b"Accept-Language"),
        origin=first_text(request.headers, b"Origin"),
        gpc=_sends_gpc(call),
        sent_bytes=request.sent_bytes,
    )


def first_text(headers: RequestHeaders, name: bytes) -> str:
    """Return the first value of a header, "" if it was not sent."""
    values = headers.values(name)
    return values[0].decode("latin-1") if values else ""


def _ignored(reason: str | None) -> Headers:
    """Return the header with the reason why a hit was ignored, if it was."""
    return ((_IGNORED, reason.encode("ascii")),) if reason else ()


def _sends_gpc(call: Call) -> bool:
    return call.request.headers.joined(b"Sec-GPC") == b"1"


def _may_remember(call: Call, page: bytes) -> bool:
    """Return whether the browser may be given a date: visitors are counted, and it agrees.

    `page` is the address of the page without its scheme; "" is that of the page that asks.
    """
    pipeline = call.backend.pipeline
    if not pipeline.rules.has_visitors:
        return False
    if not _sends_gpc(call):
        return True
    asking = page or (call.request.headers.joined(b"Origin") or b"").partition(b"://")[2]
    authority = _authority(unquote_to_bytes(asking)).decode("latin-1")
    website = pipeline.websites.serving(host_of(f"https://{authority}") or "")
    return not pipeline.respects_gpc(website)


def _ping(call: Call) -> pings.Ping:
    """Return what the visitor's browser remembers. Raises BadRequest."""
    headers = call.request.headers
    since, tag = (
        None if value is None else value.decode("latin-1")
        for value in (headers.joined(b"If-Modified-Since"), headers.joined(b"If-None-Match"))
    )
    return pings.answer(since, call.backend.clock(), call.backend.pipeline.rules.zone, tag)


_NO_DATE: Final[Headers] = (_NOT_KEPT,)
"""The headers of a response of which the browser keeps nothing."""


def _remembered(ping: pings.Ping, *, for_longer: bool = False) -> Headers:
    """Return the headers that make the browser remember its views of today.

    With `for_longer`, it also remembers when these were after the end of the day, and since when.
    """
    date = (b"Last-Modified", ping.last_modified.encode("ascii"))
    if not for_longer:
        return (_FOR_A_DAY, date)
    lifetime = (b"Cache-Control", b"private, no-cache, max-age=%d" % ping.remaining_s)
    return (lifetime, date, (b"ETag", ping.entity_tag.encode("ascii")))


HANDLERS: Final[Mapping[str, HitHandler]] = MappingProxyType(
    {HIT_ROUTE: hit, f"GET {PING}": ping, f"GET {PIXEL}": pixel}
)
"""The handlers of hits and pings, by method and path."""
