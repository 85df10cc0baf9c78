"""The statistics of a website as one table: every report, with all of its rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from attrs import evolve

from medamad.moves.day_rows import date_of
from medamad.moves.exporting import STEP_ROWS, Exported, Piece
from medamad.moves.tables import STATISTICS, Rows
from medamad.stats import dimensions, pages, properties, summary, times
from medamad.stats.filters import Condition
from medamad.stats.question import Question
from medamad.store.parts import Missed, Missing, Snapshot
from medamad.vocabulary.sources import Sources

Report: TypeAlias = Callable[[Snapshot, Question, Sources], list[Any]]

_ALL_ROWS: Final = 1 << 40
_ANY_NAME: Final = Condition("prop_name", "contains", ("",))

_DATE_LENGTH: Final = len("2026-01-31")
_FIGURES_OF_A_DAY: Final = ("visitors", "pageviews", "bounce_percentage", "duration")

_COLUMNS: Final = MappingProxyType(
    {
        "referrers": dimensions.SOURCES_OF_REFERRERS,
        "referrer_urls": dimensions.REFERRERS,
        **dimensions.BY_REPORT,
        "languages": dimensions.LANGUAGES,
        "locales": dimensions.LOCALES,
    }
)


def statistics(
    exported: Exported, conditions: tuple[Condition, ...], now_ms: int
) -> Iterator[Piece]:
    """Give the rows of one report after the other; a series is of the days of the zone."""
    period = evolve(exported.period, zone=exported.zone)
    question = Question(period, conditions, limit=_ALL_ROWS, with_blanks=True)
    reports = _reports(now_ms)
    for number, (name, report) in enumerate(reports.items()):
        found, missed = exported.held.ask(partial(_put, report, question, exported))
        exported.note(name, missed)
        for some in taken(found):
            yield Piece(_rows(name, some), number, len(reports))
        yield Piece([()] * len(STATISTICS.columns), number + 1, len(reports))


def taken(found: list[Any]) -> Iterator[list[Any]]:
    """Take the rows out of a list, in their order and some at a time; in the end it is empty.

    To let go of a hundred thousand at once would hold all threads up.
    """
    found.reverse()
    try:
        while found:
            some = found[: -STEP_ROWS - 1 : -1]
            del found[-STEP_ROWS:]
            yield some
    finally:
        while found:
            del found[-STEP_ROWS:]


def _put(
    report: Report, question: Question, exported: Exported, snapshot: Snapshot
) -> tuple[list[Any], Missed]:
    return report(exported.wanted.watched(snapshot), question, exported.sources), snapshot.missed


def _reports(now_ms: int) -> Mapping[str, Report]:
    def whole(snapshot: Snapshot, question: Question, sources: Sources) -> list[Any]:
        return [summary.report(snapshot, question, sources, now_ms=now_ms)["current"]]

    def days(snapshot: Snapshot, question: Question, sources: Sources) -> Any:
        found = summary.report(snapshot, question, sources, now_ms=now_ms, interval="day")
        return _without_unknown(found["interval"], snapshot.missed)

    def values(snapshot: Snapshot, question: Question, sources: Sources) -> list[Any]:
        asked = evolve(question, conditions=(*question.conditions, _ANY_NAME))
        return properties.report(snapshot, asked, sources)

    by_dimension = {
        name: partial(dimensions.report, column=column) for name, column in _COLUMNS.items()
    }
    return {
        "summary": whole,
        "days": days,
        "pages": pages.report,
        "time": times.report,
        **by_dimension,
        "properties": properties.report,
        "property_values": values,
    }


def _without_unknown(rows: Any, missed: Missed) -> list[Any]:
    """Leave empty what is not known of a day: nothing is seen of it, and there are only sums."""
    days = [*missed.days(Missing.FIGURES), *missed.days(Missing.INTERVAL)]
    unknown = set(map(date_of, days))
    return [
        msgspec.structs.replace(row, **dict.fromkeys(_FIGURES_OF_A_DAY))
        if row.date[:_DATE_LENGTH] in unknown and not row.pageviews
        else row
        for row in rows
    ]


def _rows(report: str, found: Sequence[Any]) -> Rows:
    """Give some rows of a report as columns. What it counts by becomes the name."""
    fields = found[0].__struct_fields__
    attributes = dict(zip(fields, fields, strict=True))
    if fields[0] not in STATISTICS.names:
        attributes["name"] = fields[0]
    columns: dict[str, Sequence[object]] = {
        name: list(map(attrgetter(attributes[name]), found))
        for name in STATISTICS.names
        if name in attributes
    }
    columns["report"] = [report] * len(found)
    unknown = [None] * len(found)
    return [columns.get(name, unknown) for name in STATISTICS.names]
