"""The registered websites."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from medamad.domain.websites import Website, canonical_hostname
from medamad.domain.zones import DAY_MS
from medamad.query.period import Period
from medamad.query.request import Cancellation
from medamad.query.visit_reports import visits_in
from medamad.web.auth import Access
from medamad.web.backend import Backend
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response, no_content


class WebsiteDetails(msgspec.Struct):
    """The body that registers or renames a website."""

    hostname: str


_DETAILS: Final = msgspec.json.Decoder(WebsiteDetails)


def _details(websites: Sequence[Website], backend: Backend) -> list[dict[str, Any]]:
    """Return what is shown of each website."""
    limits = backend.store.limits_reached(int(backend.clock() * 1000))
    details: list[dict[str, Any]] = []
    for website in websites:
        shown: dict[str, Any] = {"hostname": website.hostname}
        if (since := backend.quiet.get(website.number)) is not None:
            shown["quietSince"] = since
        if limited := limits.get(website.number):
            shown["limitsReached"] = [dimension.attribute for dimension in limited]
        details.append(shown)
    return details


def _response(website: Website, backend: Backend, status: int = HTTPStatus.OK) -> Response:
    (shown,) = _details([website], backend)
    return json_response(shown, status)


async def list_websites(call: Call) -> Response:
    """Return all websites by hostname, with the visitors of the last day on request.

    Also with the visits, where visitors are not counted.
    """
    backend, store = call.backend, call.backend.store
    websites = [website for website in store.websites.all() if call.caller.may_see(website)]
    details = _details(websites, backend)
    if not call.parameters.boolean("summary", default=False):
        return json_response(details)
    now_ms = int(backend.clock() * 1000)
    has_visitors = backend.pipeline.rules.has_visitors

    last_day = Period(now_ms - DAY_MS, now_ms)

    def with_visitors() -> Response:
        for website, shown in zip(websites, details, strict=True):
            shown["summary"] = {"visitors": backend.engine.visitors_last_day(website, now_ms)}
            if not has_visitors:
                shown["summary"]["visits"] = backend.engine.read(
                    website,
                    backend.settings.sources,
                    Cancellation(),
                    lambda reader: visits_in(reader, last_day),
                )
        return json_response(details)

    return await call.run_query(with_visitors)


async def register_website(call: Call) -> Response:
    """Register a website."""
    call.caller.check_all()
    hostname = canonical_hostname(call.body(_DETAILS).hostname)
    website = await call.backend.store.add_website(hostname, int(call.backend.clock()))
    return _response(website, call.backend, HTTPStatus.CREATED)


def read_website(call: Call, hostname: str) -> Response:
    """Return one website."""
    return _response(call.website(hostname), call.backend)


async def rename_website(call: Call, hostname: str) -> Response:
    """Rename a website, which keeps its hits."""
    website = call.website(hostname)
    wanted = canonical_hostname(call.body(_DETAILS).hostname)
    if wanted != website.hostname:
        # Only callers who see all websites may learn whether a name is taken.
        call.caller.check_all()
        website = await call.backend.store.rename_website(
            website, wanted, int(call.backend.clock())
        )
    return _response(website, call.backend)


async def delete_website(call: Call, hostname: str) -> Response:
    """Delete a website, its hits and its names."""
    website = call.website(hostname)
    await call.backend.store.delete_website(website)
    call.backend.pipeline.uncounted.forget(website.number)
    return no_content()


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    routes.add("GET", "/websites", list_websites, Access.READ)
    routes.add("POST", "/websites", register_website, Access.CHANGE)
    routes.add("GET", "/websites/<hostname>", read_website, Access.READ)
    routes.add("PATCH", "/websites/<hostname>", rename_website, Access.CHANGE)
    routes.add("DELETE", "/websites/<hostname>", delete_website, Access.CHANGE)
