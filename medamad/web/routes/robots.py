"""Robots, which are counted apart from people, and page loads in followed logs, over HTTP."""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from medamad.domain.errors import BadRequest
from medamad.domain.websites import Website
from medamad.lookup.robots import Purpose
from medamad.query.blind_spot import PARTS as BLIND_SPOT_PARTS
from medamad.query.blind_spot import blind_spot, damaged_gaps, followed_days
from medamad.query.period import parse_period
from medamad.query.reader import Reader
from medamad.query.request import MAX_ROWS, Query, Result
from medamad.query.robots import FIELDS, PARTS, PURPOSE, RobotQuery, days_touched, robot_rows
from medamad.storage.request_totals import LOADS, ROBOTS, RequestDays, added_up
from medamad.web.auth import Access
from medamad.web.backend import Backend
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.parameters import QueryParameters
from medamad.web.responses import Response, json_response, partial_headers
from medamad.web.routes.statistics import MAX_OFFSET, respond


def query_from(parameters: QueryParameters) -> RobotQuery:
    """Return what is asked about robots. Raises BadRequest naming the parameter."""
    chosen = {}
    for key, value in parameters.pairs:
        name, bracket, rest = key.partition("[")
        if name in FIELDS:
            if bracket and rest != "eq]":
                raise BadRequest(f"{key}: expected the operator eq")
            chosen[name] = value
        elif rest.endswith("]"):
            raise BadRequest(f"{key}: robots can be filtered by {', '.join(FIELDS)} only")
    if chosen.get(PURPOSE, Purpose.UNKNOWN) not in set(Purpose):
        raise BadRequest(f"{PURPOSE}: expected one of {', '.join(Purpose)}")
    return RobotQuery(
        by=parameters.choice("by", PARTS) or PARTS[0],
        chosen=chosen,
        limit=parameters.integer("limit", 1, MAX_ROWS) or MAX_ROWS,
        offset=parameters.integer("offset", 0, MAX_OFFSET) or 0,
    )


async def counted_requests(
    backend: Backend, website: Website, kind: int, bounds: tuple[int | None, int | None]
) -> Callable[[], RequestDays]:
    """Return what reads the requests that were counted apart, which is for another thread.

    Those of the other collectors are read before. Raises Unavailable if one does not answer.
    """
    place = website.number, kind, *bounds
    others = [] if backend.collectors is None else await backend.collectors.requests(*place)
    return lambda: added_up((backend.store.robots.read(*place), *others)).by_day()


async def list_robots(call: Call, hostname: str) -> Response:
    """Return how many pages robots read, by name, operator, purpose, path or day."""
    backend, website = call.backend, call.website(hostname)
    query = query_from(call.parameters)
    period = parse_period(call.parameters.text("start"), call.parameters.text("end"))
    bounds = days_touched(period, backend.pipeline.rules.zone)
    read = await counted_requests(backend, website, ROBOTS, bounds)
    robots = backend.settings.robots

    def response() -> Response:
        result = robot_rows(read(), robots, query)
        encoded = json_response(result.content)
        return evolve(encoded, headers=(*encoded.headers, *partial_headers(result.gaps)))

    return await call.run_query(response)


async def show_blind_spot(call: Call, hostname: str) -> Response:
    """Return the page loads in followed logs, and how many of them the tracker has not seen."""
    backend, website, parameters = call.backend, call.website(hostname), call.parameters
    for key, _ in parameters.pairs:
        if key.endswith("]"):
            raise BadRequest(f"{key}: page loads in logs cannot be filtered")
    by = parameters.choice("by", BLIND_SPOT_PARTS) or BLIND_SPOT_PARTS[0]
    limit = parameters.integer("limit", 1, MAX_ROWS) or MAX_ROWS
    zone = backend.pipeline.rules.zone
    bounds = days_touched(parse_period(parameters.text("start"), parameters.text("end")), zone)
    now_ms = int(backend.clock() * 1000)
    # All days, as the first one is left out, whatever the period is.
    read = await counted_requests(backend, website, LOADS, (None, None))

    def report(reader: Reader, _query: Query) -> Result[Any]:
        known = read()
        loads = {day: known.counts[day] for day in followed_days(known, *bounds)}
        found = blind_spot(reader, loads, zone, by=by, limit=limit, now_ms=now_ms)
        return Result(found.content, found.gaps | damaged_gaps(known, *bounds))

    # The tracker has seen what exclusions leave out, and the log has it.
    return await respond(call, website, Query(), report, leaves_out=False)


def add_to(routes: Routes) -> None:
    """Add the routes."""
    routes.add("GET", "/website/<hostname>/robots", list_robots, Access.STATISTICS)
    routes.add("GET", "/website/<hostname>/blind-spot", show_blind_spot, Access.STATISTICS)
