"""The statistics of a website, as rows and figures, over HTTP."""

from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import msgspec
from attrs import evolve

from medamad.domain.errors import BadRequest, NotFound
from medamad.domain.goals import Definitions, Goal, checked_goal
from medamad.domain.instants import second_of
from medamad.domain.websites import Website
from medamad.domain.zones import DAY_S, zone_named
from medamad.ingest.hit_counts import added_up
from medamad.query.buckets import INTERVALS
from medamad.query.change_counts import METRICS, VISITORS
from medamad.query.changes import PARTS, ChangesOptions, changes, parse_compared
from medamad.query.comparison import (
    ComparisonOptions,
    comparison,
    parse_metrics,
    parse_share,
)
from medamad.query.exclusions import rules_during
from medamad.query.filters import VISIT_FIELDS, VISITOR_FIELD, parse_filters
from medamad.query.goal_reports import (
    funnel_figures,
    goal_figures,
    preview_of_funnel,
    preview_of_goal,
)
from medamad.query.live import live
from medamad.query.period import parse_period
from medamad.query.reader import Reader, SeriesOptions
from medamad.query.reports import STATISTICS, Statistic, SummaryOptions, summary
from medamad.query.request import MAX_ROWS, ORDERS, Cancellation, Query, Result
from medamad.query.visit_reports import pages_beside
from medamad.web.assets import GZIP, gzipped, negotiated_coding
from medamad.web.auth import Access
from medamad.web.backend import Backend
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response, partial_headers
from medamad.web.routes.goals import FunnelDefinition, GoalDefinition

MAX_OFFSET: Final = 5_000

RunReport: TypeAlias = Callable[[Reader, Query], Result[Any]]

_GOAL: Final = msgspec.json.Decoder(GoalDefinition)
_FUNNEL: Final = msgspec.json.Decoder(FunnelDefinition)
_RETURNING_IS_OFF: Final = (
    "returning visitors are switched off in the configuration ([events] returning)"
)
_VISITS_ARE_OFF: Final = "visits are switched off in the configuration ([events] visits)"


def check_visits(call: Call) -> None:
    """Raise NotFound if visits are switched off."""
    if not call.backend.store.settings.visits.is_on:
        raise NotFound(_VISITS_ARE_OFF)


def check_filters(call: Call, query: Query) -> None:
    """Raise BadRequest for filters and other parameters of what is switched off."""
    if query.filters_on((VISITOR_FIELD,)) and not call.backend.pipeline.rules.has_returning:
        raise BadRequest(f"{VISITOR_FIELD}: {_RETURNING_IS_OFF}")
    _check_parameters_of_visits(call, query)


def _check_parameters_of_visits(call: Call, query: Query) -> None:
    """Raise BadRequest for parameters of visits if these are switched off."""
    if call.backend.store.settings.visits.is_on:
        return
    for name, is_set in (
        ("visits", query.with_visits),
        ("conversions", query.conversions is not None),
        ("order", query.order == "visits"),
        *((each.field, True) for each in query.filters_on(VISIT_FIELDS)),
    ):
        if is_set:
            raise BadRequest(f"{name}: {_VISITS_ARE_OFF}")


def query_from(call: Call, website: Website, statistic: Statistic) -> Query:
    """Return the query of a statistic. Raises BadRequest naming the parameter; NotFound."""
    parameters = call.parameters
    query = evolve(
        _query_of_rows(call, website),
        is_brief=statistic.can_be_brief and parameters.boolean("summary", default=False),
        with_visits=not statistic.is_of_visits and parameters.boolean("visits", default=False),
    )
    if statistic.can_have_conversions:
        goal = _wanted_goal(call, website, parameters.text("conversions"))
        query = evolve(query, conversions=goal)
    if statistic.can_have_total:
        query = evolve(query, with_total=parameters.boolean("total", default=False))
    if not statistic.is_of_views:
        return query
    return evolve(
        query,
        with_views=parameters.boolean("views", default=False),
        order=parameters.choice("order", ORDERS) or ORDERS[0],
    )


def _query_of_rows(call: Call, website: Website) -> Query:
    parameters = call.parameters
    return evolve(
        _query_without_rows(call, website),
        limit=parameters.integer("limit", 1, MAX_ROWS),
        offset=parameters.integer("offset", 0, MAX_OFFSET) or 0,
    )


def _query_without_rows(call: Call, website: Website) -> Query:
    parameters = call.parameters
    query = Query(
        period=parse_period(parameters.text("start"), parameters.text("end")),
        filters=parse_filters(parameters.pairs, partial(_goals, call, website)),
    )
    if query.filters_on((VISITOR_FIELD,)) and not call.backend.pipeline.rules.has_returning:
        raise BadRequest(f"{VISITOR_FIELD}: {_RETURNING_IS_OFF}")
    return query


def _goals(call: Call, website: Website) -> Definitions:
    return call.backend.store.goals.of(website.number)


def _wanted_zone(call: Call) -> tzinfo | None:
    timezone = call.parameters.text("timezone")
    return None if timezone is None else zone_named(timezone)


def _wanted_goal(call: Call, website: Website, goal_id: str | None) -> Goal | None:
    if goal_id is None:
        return None
    try:
        return _goals(call, website).goal(goal_id)
    except NotFound as error:
        raise NotFound(f"conversions: {error}") from None


async def respond(
    call: Call, website: Website, query: Query, report: RunReport, *, leaves_out: bool = True
) -> Response:
    """Make a report in the query pool, where it is also encoded and compressed.

    Without `leaves_out`, exclusions do not apply to it.
    """
    backend = call.backend
    sources = backend.settings.sources
    begun = backend.seconds()
    coding = negotiated_coding(call.request, (GZIP,))
    cancellation = Cancellation()

    def response() -> Response:
        result = backend.engine.read(
            website,
            sources,
            cancellation,
            lambda reader: report(reader, query),
            leaves_out=leaves_out,
        )
        cancellation.check()
        encoded = json_response(result.content)
        rules = rules_during(_goals(call, website), query.period) if leaves_out else ()
        partial = partial_headers(result.gaps, len(rules))
        encoded = evolve(encoded, headers=(*encoded.headers, *partial))
        return gzipped(encoded) if coding == GZIP else encoded

    try:
        return await call.run_query(response)
    finally:
        cancellation.cancel()
        backend.response_times.statistics.add(backend.seconds() - begun)


async def summarise(call: Call, hostname: str) -> Response:
    """Return the figures of a period, of the one before, and over time."""
    parameters, website = call.parameters, call.website(hostname)
    query = _query_without_rows(call, website)
    zone = _wanted_zone(call)
    with_previous = parameters.boolean("previous", default=False)
    query = evolve(query, with_visits=parameters.boolean("visits", default=False))
    _check_parameters_of_visits(call, query)
    interval = parameters.choice("interval", INTERVALS)
    clock = call.backend.clock
    rules = call.backend.pipeline.rules

    def report(reader: Reader, query: Query) -> Result[Any]:
        options = SummaryOptions(
            now_ms=int(clock() * 1000),
            previous=with_previous,
            returning_zone=rules.zone if query.with_visits and rules.has_returning else None,
            interval=interval,
            zone=zone,
        )
        result = summary(reader, query, options=options)
        if not query.with_visits:
            return result
        content: dict[str, object] = {**result.content}
        if not rules.has_visitors:
            content["visitors_counted"] = False
        if len(rules.hosting):
            content["hosting_known"] = True
        return Result(content, result.gaps)

    return await respond(call, website, query, report)


async def list_rows(call: Call, hostname: str, statistic: Statistic) -> Response:
    """Return the rows of a statistic, or of its variant."""
    website = call.website(hostname)
    parameters, report, variant = call.parameters, statistic.report, statistic.variant
    if variant is not None and variant.parameter is not None:
        chosen = parameters.boolean(variant.parameter, default=not variant.value)
        report = variant.report if chosen is variant.value else report
    if statistic.is_of_visits:
        check_visits(call)
    query = query_from(call, website, statistic)
    _check_parameters_of_visits(call, query)
    return await respond(call, website, query, report)


async def list_pages_beside(call: Call, hostname: str, step: Literal[1, -1]) -> Response:
    """Return the pages that came next after the views of a page, or before them."""
    check_visits(call)
    parameters, website = call.parameters, call.website(hostname)
    path = parameters.text("of")
    if not path:
        raise BadRequest("of: required, the path of a page")
    report = partial(pages_beside, path=path, step=step)
    return await respond(call, website, _query_of_rows(call, website), report)


async def list_goal_figures(call: Call, hostname: str) -> Response:
    """Return the conversions of each goal, the visits that reached it, and its revenue."""
    parameters, website = call.parameters, call.website(hostname)
    query = _query_of_goals(call, _query_of_rows(call, website))
    zone = _wanted_zone(call)
    report = partial(
        goal_figures,
        goals=_goals(call, website).goals,
        options=SeriesOptions(
            now_ms=int(call.backend.clock() * 1000),
            interval=parameters.choice("interval", INTERVALS),
            zone=zone,
        ),
    )
    return await respond(call, website, query, report)


def _query_of_goals(call: Call, query: Query) -> Query:
    _check_parameters_of_visits(call, query)
    return evolve(query, with_visits=call.backend.store.settings.visits.is_on)


async def preview_goal(call: Call, hostname: str) -> Response:
    """Return the figures that a goal would have, without defining it."""
    website = call.website(hostname)
    query = _query_of_goals(call, _query_without_rows(call, website))
    members = msgspec.structs.asdict(call.parameters.json("definition", _GOAL))
    report = partial(preview_of_goal, goal=checked_goal(Goal(id="", name="", **members)))
    return await respond(call, website, query, report)


async def show_funnel(call: Call, hostname: str, funnel: str) -> Response:
    """Return how many visits reached each step of a funnel."""
    check_visits(call)
    website = call.website(hostname)
    query = _query_without_rows(call, website)
    definitions = _goals(call, website)
    report = partial(funnel_figures, funnel=definitions.funnel(funnel), definitions=definitions)
    return await respond(call, website, query, report)


async def preview_funnel(call: Call, hostname: str) -> Response:
    """Return the steps that a funnel would have, without defining it."""
    check_visits(call)
    website = call.website(hostname)
    query = _query_without_rows(call, website)
    goals = call.parameters.json("definition", _FUNNEL).goals
    definitions = _goals(call, website)
    definitions.check_steps(goals)
    report = partial(preview_of_funnel, goals=[definitions.goal(each) for each in goals])
    return await respond(call, website, query, report)


async def list_changes(call: Call, hostname: str) -> Response:
    """Return the difference of a figure between two periods, split into its parts."""
    parameters, website = call.parameters, call.website(hostname)
    metric = parameters.text("metric")
    if metric is None:
        metric = METRICS[0]
    elif metric not in METRICS:
        raise BadRequest(
            f"metric: expected one of {', '.join(METRICS)};"
            " rates, means and medians are not the sum of their parts"
        )
    if metric != VISITORS:
        check_visits(call)
    elif not call.backend.pipeline.rules.has_visitors:
        raise BadRequest("metric: visitors are not counted ([events] unique in the configuration)")
    goal = _wanted_goal(call, website, parameters.text("conversions"))
    query = evolve(_query_without_rows(call, website), conversions=goal)
    _check_parameters_of_visits(call, query)
    options = ChangesOptions(
        now_ms=int(call.backend.clock() * 1000),
        metric=metric,
        goal=goal,
        compared=parse_compared(parameters.text("compare_start"), parameters.text("compare_end")),
        limit=parameters.integer("limit", 1, MAX_ROWS) or PARTS,
    )
    return await respond(call, website, query, partial(changes, options=options))


async def compare(call: Call, hostname: str) -> Response:
    """Return what changed since a moment, against the same hours of earlier weeks."""
    parameters, website = call.parameters, call.website(hostname)
    backend, rules = call.backend, call.backend.pipeline.rules
    since, name = parameters.text("since"), parameters.text("annotation")
    if since is not None and name is not None:
        raise BadRequest("since: expected at most one of since and annotation")
    now = backend.clock()
    since_s = int(now) - DAY_S if since is None else second_of(since, "since", rules.zone)
    if name is not None:
        annotations = backend.store.annotations.of(website.number)
        since_s = annotations.latest(name, now, rules.zone).start_s(rules.zone)
    share = parameters.text("worse_than")
    options = ComparisonOptions(
        since_ms=since_s * 1000,
        now_ms=int(now * 1000),
        metrics=parse_metrics(
            parameters.text("metric"),
            _goals(call, website),
            keeps_visits=backend.store.settings.visits.is_on,
            has_visitors=rules.has_visitors,
        ),
        worse_than=None if share is None else parse_share(share, "worse_than"),
    )
    return await respond(call, website, Query(), partial(comparison, options=options))


async def count_live_visitors(call: Call, hostname: str) -> Response:
    """Return the number of pages open now, which stand for visitors, and lists on demand."""
    backend, website = call.backend, call.website(hostname)
    if call.parameters.boolean("lists", default=False):
        return await respond(call, website, Query(), _live_report(backend))
    now_ms = int(backend.clock() * 1000)
    sources = backend.settings.sources
    visitors = await call.run_query(
        lambda: backend.engine.read(
            website, sources, Cancellation(), lambda reader: reader.open_pages(now_ms)
        )
    )
    return json_response({"visitors": visitors})


def _live_report(backend: Backend) -> RunReport:
    def report(reader: Reader, _query: Query) -> Result[Any]:
        now_ms = int(backend.clock() * 1000)
        return live(reader, now_ms=now_ms, keeps_visits=backend.store.settings.visits.is_on)

    return report


async def ignored(call: Call, hostname: str) -> Response:
    """Return how many hits did not count in the last 24 hours, by reason."""
    backend, number = call.backend, call.website(hostname).number
    others = [] if backend.collectors is None else await backend.collectors.uncounted(number)
    here = backend.pipeline.uncounted.of(number, backend.clock())
    return json_response(added_up((here, *others)))


def add_to(routes: Routes) -> None:
    """Add the routes of this section."""
    path = "/website/<hostname>/"
    routes.add("GET", path + "summary", summarise, Access.STATISTICS)
    for statistic in STATISTICS:
        list_its_rows = partial(list_rows, statistic=statistic)
        routes.add("GET", path + statistic.name, list_its_rows, Access.STATISTICS)
    routes.add("GET", path + "next", partial(list_pages_beside, step=1), Access.STATISTICS)
    routes.add("GET", path + "previous", partial(list_pages_beside, step=-1), Access.STATISTICS)
    routes.add("GET", path + "changes", list_changes, Access.STATISTICS)
    routes.add("GET", path + "compare", compare, Access.STATISTICS)
    routes.add("GET", path + "goals", list_goal_figures, Access.STATISTICS)
    routes.add("GET", path + "goals/preview", preview_goal, Access.READ)
    routes.add("GET", path + "funnels/<funnel>", show_funnel, Access.STATISTICS)
    routes.add("GET", path + "funnels/preview", preview_funnel, Access.READ)
    routes.add("GET", path + "live", count_live_visitors, Access.STATISTICS)
    routes.add("GET", path + "ignored", ignored, Access.READ)
