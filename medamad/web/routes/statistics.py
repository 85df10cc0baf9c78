"""The statistics of a website, as rows and figures, over HTTP."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from attrs import evolve

from medamad.domain.zones import zone_named
from medamad.lookup.referrers import Sources
from medamad.query.buckets import INTERVALS
from medamad.query.filters import conditions_of
from medamad.query.period import period_of
from medamad.query.reports import dimensions, pages, properties, summary, time
from medamad.query.reports.dimensions import Column
from medamad.query.request import MAX_ROWS, Question, Wanted
from medamad.storage.segments.snapshot import Missed, Snapshot
from medamad.web.assets import GZIP, chosen, zipped
from medamad.web.dispatch import Access, Call, Routes
from medamad.web.parameters import Query
from medamad.web.responses import Response, json_response, partial_headers

MAX_OFFSET: Final = 5_000

Report: TypeAlias = Callable[[Snapshot, Question, Sources], object]


def question_of(query: Query, *, has_summary: bool = True) -> Question:
    """Read what all statistics with rows have in common. Raises BadRequest naming the parameter."""
    return Question(
        period=period_of(query.text("start"), query.text("end")),
        conditions=conditions_of(query.pairs),
        summary=has_summary and query.boolean("summary", default=False),
        limit=query.integer("limit", 1, MAX_ROWS),
        offset=query.integer("offset", 0, MAX_OFFSET) or 0,
    )


async def _answer(call: Call, hostname: str, question: Question, report: Report) -> Response:
    """Put a question in the question pool; what is found is encoded and compressed there too."""
    backend = call.backend
    website, sources = call.website(hostname), backend.settings.sources

    begun = backend.seconds()
    coding = chosen(call.request, (GZIP,))
    wanted = Wanted()

    def found(snapshot: Snapshot) -> tuple[object, Missed]:
        return report(wanted.watched(snapshot), question, sources), snapshot.missed

    def answer() -> Response:
        answered, missed = backend.store.ask(website, found)
        wanted.check()
        response = json_response(answered)
        response = evolve(response, headers=(*response.headers, *partial_headers(missed)))
        return zipped(response) if coding == GZIP else response

    try:
        return await call.ask(answer)
    finally:
        wanted.is_wanted = False
        backend.times.statistics.add(backend.seconds() - begun)


async def summarise(call: Call, hostname: str) -> Response:
    """Return the figures of a period, of the one before, and over time."""
    query = call.query
    # A summary has no rows: what chooses among rows is no parameter of it.
    question = Question(
        period=period_of(query.text("start"), query.text("end")),
        conditions=conditions_of(query.pairs),
    )
    timezone = query.text("timezone")
    if timezone is not None:
        zone_named(timezone)
    with_previous = query.boolean("previous", default=False)
    interval = query.choice("interval", INTERVALS)
    clock = call.backend.clock

    def report(snapshot: Snapshot, question: Question, sources: Sources) -> object:
        return summary.report(
            snapshot,
            question,
            sources,
            now_ms=int(clock() * 1000),
            with_previous=with_previous,
            interval=interval,
            timezone=timezone,
        )

    return await _answer(call, hostname, question, report)


async def count_pages(call: Call, hostname: str) -> Response:
    """Return views and visitors by page."""
    return await _answer(call, hostname, question_of(call.query), pages.report)


async def measure_times(call: Call, hostname: str) -> Response:
    """Return the time on each page."""
    return await _answer(call, hostname, question_of(call.query), time.report)


async def list_properties(call: Call, hostname: str) -> Response:
    """Return the custom properties, or the values of one."""
    question = question_of(call.query, has_summary=False)
    return await _answer(call, hostname, question, properties.report)


async def count_referrers(call: Call, hostname: str) -> Response:
    """Return views by source of the referrer, or by its host and path."""
    grouped = call.query.boolean("grouped", default=True)
    column = dimensions.SOURCES_OF_REFERRERS if grouped else dimensions.REFERRERS
    return await _count(call, hostname, column)


async def count_languages(call: Call, hostname: str) -> Response:
    """Return views by language, or by its dialect."""
    dialects = call.query.boolean("locale", default=False)
    return await _count(call, hostname, dimensions.LOCALES if dialects else dimensions.LANGUAGES)


async def _count(call: Call, hostname: str, column: Column) -> Response:
    report = partial(dimensions.report, column=column)
    return await _answer(call, hostname, question_of(call.query), report)


async def live(call: Call, hostname: str) -> Response:
    """Return how many are there now."""
    backend, website = call.backend, call.website(hostname)
    now_ms = int(backend.clock() * 1000)
    visitors = await call.ask(lambda: backend.store.live_visitors(website, now_ms))
    return json_response({"visitors": visitors})


def ignored(call: Call, hostname: str) -> Response:
    """Return which hits were not counted in the last 24 hours, and why."""
    backend = call.backend
    return json_response(
        backend.pipeline.rejections.of(call.website(hostname).number, backend.clock())
    )


def add_to(routes: Routes) -> None:
    """Add the routes of this section."""
    path = "/website/<hostname>/"
    routes.add("GET", path + "summary", summarise, Access.STATISTICS)
    routes.add("GET", path + "pages", count_pages, Access.STATISTICS)
    routes.add("GET", path + "time", measure_times, Access.STATISTICS)
    routes.add("GET", path + "referrers", count_referrers, Access.STATISTICS)
    for name, column in dimensions.BY_REPORT.items():
        routes.add("GET", path + name, partial(_count, column=column), Access.STATISTICS)
    routes.add("GET", path + "languages", count_languages, Access.STATISTICS)
    routes.add("GET", path + "properties", list_properties, Access.STATISTICS)
    routes.add("GET", path + "live", live, Access.STATISTICS)
    routes.add("GET", path + "ignored", ignored, Access.READ)
