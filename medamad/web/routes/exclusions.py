"""The exclusions of a website: what is left out of all its figures, and how much that is."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from attrs import evolve

from medamad.domain.errors import BadRequest
from medamad.domain.goals import Exclusion, members_of, new_id
from medamad.domain.zones import DAY_MS, zone_named
from medamad.query.exclusions import left_out_by_day, rule_of
from medamad.query.floods import floods
from medamad.query.period import parse_period
from medamad.query.reader import Reader
from medamad.query.request import Cancellation, Filter, Query, Result
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.parameters import parse_query_string
from medamad.web.responses import Response, json_response, no_content
from medamad.web.routes.statistics import check_filters, check_visits, respond


class ExclusionDetails(msgspec.Struct, forbid_unknown_fields=True):
    """The body that adds an exclusion: its filters are those of a query string."""

    name: str
    filters: str = ""
    start: str | None = None
    end: str | None = None


SUGGESTED_DAYS: Final = 30
MAX_SUGGESTED_DAYS: Final = 92
_SAFE: Final = "[]/"
_EXCLUSION: Final = msgspec.json.Decoder(ExclusionDetails)


def _shown(exclusion: Exclusion) -> dict[str, Any]:
    """Return the members of an exclusion, its filters as a query string."""
    return {**members_of(exclusion), "filters": exclusion.query}


async def list_exclusions(call: Call, hostname: str) -> Response:
    """Return the exclusions of a website, with what each leaves out."""
    website, backend = call.website(hostname), call.backend
    timezone = call.parameters.text("timezone")
    zone = backend.pipeline.rules.zone if timezone is None else zone_named(timezone)
    definitions = backend.store.goals.of(website.number)
    has_visits = backend.store.settings.visits.is_on
    cancellation = Cancellation()

    def report(reader: Reader) -> list[dict[str, Any]]:
        return [
            {
                **_shown(each),
                **left_out_by_day(reader, rule_of(each, definitions), zone, has_visits=has_visits),
            }
            for each in definitions.exclusions
        ]

    sources = backend.settings.sources
    try:
        return await call.run_query(
            lambda: json_response(backend.engine.read(website, sources, cancellation, report))
        )
    finally:
        cancellation.cancel()


async def suggest_exclusions(call: Call, hostname: str) -> Response:
    """Return the floods in a period, as exclusions that would leave them out."""
    check_visits(call)
    parameters, website = call.parameters, call.website(hostname)
    period = parse_period(parameters.text("start"), parameters.text("end"))
    now_ms = int(call.backend.clock() * 1000)
    end_ms = now_ms if period.end_ms is None else period.end_ms
    if period.start_ms is None:
        period = evolve(period, start_ms=end_ms - SUGGESTED_DAYS * DAY_MS)
    elif end_ms - period.start_ms > MAX_SUGGESTED_DAYS * DAY_MS:
        raise BadRequest(f"start: expected at most {MAX_SUGGESTED_DAYS} days before the end")

    def report(reader: Reader, query: Query) -> Result[Any]:
        found = floods(reader, query, now_ms=now_ms)
        rows = [{**flood, "filters": _query_string(flood["filters"])} for flood in found.content]
        return Result(rows, found.gaps)

    return await respond(call, website, Query(period), report)


def _query_string(filters: Iterable[Filter]) -> str:
    pairs = [(f"{each.field}[{each.operator}]", ",".join(each.values)) for each in filters]
    return urlencode(pairs, safe=_SAFE)


async def add_exclusion(call: Call, hostname: str) -> Response:
    """Leave out what matches filters in a period."""
    website, goals = call.website(hostname), call.backend.store.goals
    details = call.body(_EXCLUSION)
    new = Exclusion(
        id=new_id(),
        name=details.name,
        filters=parse_query_string(details.filters.encode()).pairs,
        start=details.start,
        end=details.end,
        created=int(call.backend.clock()),
    )
    check_filters(call, rule_of(new, goals.of(website.number)))
    if not new.filters and new.start is None and new.end is None:
        raise BadRequest("filters: expected at least one filter, or a period")
    definitions = await goals.change(website.number, lambda old: old.with_exclusion(new))
    return json_response(_shown(definitions.exclusion(new.id)), HTTPStatus.CREATED)


async def remove_exclusion(call: Call, hostname: str, exclusion: str) -> Response:
    """Remove an exclusion, so that what it left out counts again."""
    website, goals = call.website(hostname), call.backend.store.goals
    await goals.change(website.number, lambda old: old.without_exclusion(exclusion))
    return no_content()


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    path = "/websites/<hostname>/exclusions"
    routes.add("GET", path, list_exclusions, Access.CHANGE)
    routes.add("GET", "/websites/<hostname>/suggestions", suggest_exclusions, Access.CHANGE)
    routes.add("POST", path, add_exclusion, Access.CHANGE)
    routes.add("DELETE", f"{path}/<exclusion>", remove_exclusion, Access.CHANGE)
