"""The plan of an import, and its report."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from attrs import frozen

from medamad.admin.import_requests import days_request, rows_request
from medamad.admin.imports import Ended
from medamad.admin.protocol import AdminRequest
from medamad.cli.support import counted, print_error
from medamad.domain.exported_settings import ExportedSettings
from medamad.domain.instants import day_as_text
from medamad.domain.websites import Website
from medamad.storage.compaction.retention import Cutoff
from medamad.storage.environment.trusted_clock import until_trusted
from medamad.storage.import_batches import Span
from medamad.transfer.import_context import SkipReason
from medamad.transfer.import_days import DayGatherer
from medamad.transfer.import_rows import RowGatherer
from medamad.transfer.import_survey import ImportFile, Survey

Gathered: TypeAlias = RowGatherer | DayGatherer


@frozen(eq=False)
class Plan:
    """What to import."""

    website: Website
    files: Sequence[ImportFile]
    digest: str
    survey: Survey
    newest: int
    """The number of the latest batch that the files were compared with."""
    gathering: Callable[[Sequence[Span]], Gathered]
    """Returns a new gatherer of what the website does not have, given its numbers in this store."""
    cutoff: Cutoff | None
    """From before when retention will remove what is imported; None for never."""
    waits_ms: int
    """For how much longer nothing is removed, as the clock is not trusted yet."""
    exclusions: ExportedSettings
    """The exclusions, with the goals that they name."""
    missing: int
    """How many exclusions the website does not have yet."""

    def requests(self, gathering: Gathered, number: int) -> Iterator[AdminRequest | None]:
        """Yield the requests that import it; None for a step without one."""
        if isinstance(gathering, RowGatherer):
            for piece in gathering.gather(self.files):
                yield None if piece is None else rows_request(number, piece)
        else:
            for counts in gathering.gather():
                yield None if counts is None else days_request(number, counts)


_LEFT_OUT: Final = MappingProxyType(
    {
        SkipReason.NO_VIEW: "without a page view",
        SkipReason.OTHER_HOSTS: "of other hosts",
        SkipReason.NO_PAGE: "without an address of a page",
        SkipReason.BLOCKED: "from blocked networks",
        SkipReason.HOSTING: "from hosting providers (see `[events] hosting`)",
        SkipReason.PROGRAMS: "of robots (see `[events] bots`)",
        SkipReason.EXCLUDED: "of excluded pages",
        SkipReason.SPAM: "with a referrer that is spam",
        SkipReason.REPEATED: "that are repeated",
        SkipReason.LONG: "of 64 KiB or more",
        SkipReason.CUT: "cut off at the end of a log",
    }
)


class ImportReport(msgspec.Struct, kw_only=True):
    """What was imported, or would be."""

    website: str
    number: int | None
    """The number of the import; None for a dry run."""
    dry_run: bool
    files: list[str]
    views: int
    visitors: int
    events: int
    first: str | None
    last: str | None
    """The days of the first and of the last hit, in UTC; or the first and the last imported day."""
    already_there: int
    """Views and events that were left out, including those of a time that was already counted."""
    refused: int
    reasons: list[str]
    """Why rows were rejected: the first of them."""
    already_counted: int = 0
    """How many of these were left out only because of their time."""
    days: int = 0
    """How many days were imported from files with daily totals."""
    days_there: int = 0
    """How many were not, because the website has data of them; likewise below."""
    days_not_over: int = 0
    days_without_views: int = 0
    robots: int = 0
    """How many requests of robots were counted apart."""
    exclusions: int = 0
    """How many exclusions were added."""
    left_out: dict[str, int] = {}
    """Rows of other programs' files that are not hits to count, by reason."""
    past_views: int = 0
    """How many retention will remove; likewise below."""
    past_events: int = 0
    past_days: int = 0


def report(plan: Plan, gathering: Gathered, ended: Ended | None, *, as_json: bool) -> None:
    """Print what was imported, or what would be."""
    found = _report(plan, gathering, ended)
    if as_json:
        print(msgspec.json.encode(found).decode())
        return
    if ended is None:
        print(f"{found.website}: this would be imported (nothing was stored):")
    else:
        print(f"{found.website}: imported as number {found.number}:")
    views, visitors = counted(found.views, "view"), counted(found.visitors, "visitor")
    print(f"  {views} of {visitors}, {counted(found.events, 'event')}")
    if found.first is not None:
        print(f"  from {found.first} to {found.last}")
    for count, noun, what in (
        (found.days, "day", ", with daily totals only"),
        (found.robots, "request", " of robots, counted apart"),
        (found.exclusions, "exclusion", ""),
    ):
        if count:
            print(f"  {counted(count, noun)}{what}")
    for line in _left_out(plan, gathering):
        print(f"  {line}, left out")
    if removed := _removed(plan, found):
        print(f"  {removed}")
    if found.refused:
        print(f"  {counted(found.refused, 'row')} rejected:")
        print_rejected(plan.survey)
    if ended is not None:
        but = ", but not the exclusions" if found.exclusions else ""
        print(f"`medamad import --undo {found.number}` removes them again{but}.")


def nothing_in(plan: Plan, gathering: Gathered) -> str:
    """Return why there is nothing to import."""
    nothing = "day" if isinstance(gathering, DayGatherer) else "view or event"
    reason = ", ".join(_left_out(plan, gathering)) or f"there is no {nothing} in it"
    if not plan.survey.rows and {file.source for file in plan.files} == {"goatcounter"}:
        reason += (
            "; GoatCounter exports single page views only if its setting “Individual pageviews” was"
            " on; its JSON export has the totals of each day"
        )
    return f"nothing was imported: {reason}"


def print_rejected(found: Survey) -> None:
    """Print on standard error which rows are rejected, and why."""
    for reason in _reasons(found):
        print_error(reason)
    if found.rejected_rows > len(found.rejected):
        print_error(f"and {found.rejected_rows - len(found.rejected):,} more")


def date_of_time(time_ms: int) -> str:
    """Return the date of a moment, in UTC."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).date().isoformat()


def _report(plan: Plan, gathering: Gathered, ended: Ended | None) -> ImportReport:
    found = plan.survey
    report = ImportReport(
        website=plan.website.hostname,
        number=None if ended is None else ended.number,
        dry_run=ended is None,
        files=[str(given.path) for given in plan.files],
        views=gathering.views,
        visitors=gathering.visitors,
        events=gathering.events,
        first=None,
        last=None,
        already_there=0,
        refused=found.rejected_rows,
        reasons=list(_reasons(found)),
        robots=sum(
            sum(by_path.values()) for day in found.robots.values() for by_path in day.values()
        ),
        exclusions=plan.missing,
        left_out={str(why): rows for why, rows in found.skipped.items()},
    )
    if isinstance(gathering, DayGatherer):
        report.past_days = gathering.past_days
        if gathering.days:
            report.first, report.last = day_as_text(gathering.first), day_as_text(gathering.last)
        report.days = gathering.days
        report.days_there = gathering.days_existing
        report.days_not_over = gathering.days_not_over
        report.days_without_views = gathering.days_without_views
        return report
    if gathering.last_ms >= 0:
        report.first = date_of_time(gathering.first_ms)
        report.last = date_of_time(gathering.last_ms)
    report.past_views, report.past_events = gathering.past_views, gathering.past_events
    report.already_there = gathering.left_out
    report.already_counted = gathering.covered
    return report


def _removed(plan: Plan, found: ImportReport) -> str:
    """Return what retention will remove, "" for nothing."""
    past = ((found.past_views, "view"), (found.past_events, "event"), (found.past_days, "day"))
    some = [counted(count, noun) for count, noun in past if count]
    if plan.cutoff is None or not some:
        return ""
    before = datetime.fromtimestamp(plan.cutoff.before_ms // 1000, plan.cutoff.zone).date()
    remains = "daily totals remain" if plan.cutoff.keeps_rollups else "nothing of them remains"
    soon = "soon after"
    if plan.waits_ms:
        soon = f"but not {until_trusted(plan.waits_ms)}, as the clock is not trusted yet"
    return (
        f"[retention] removes what is from before {before} {soon}: {' and '.join(some)}; {remains}"
    )


def _reasons(found: Survey) -> Iterator[str]:
    for file, row in found.rejected:
        line = f", line {row.line}" if row.line else ""
        yield f"{file}{line}: {row.field}: {row.reason}"


def _left_out(plan: Plan, gathering: Gathered) -> Iterator[str]:
    """Yield what is left out, and why."""
    for reason, what in _LEFT_OUT.items():
        if rows := plan.survey.skipped[reason]:
            yield f"{counted(rows, 'row')} {what}"
    if not isinstance(gathering, DayGatherer):
        if there := gathering.left_out - gathering.covered:
            yield f"{counted(there, 'hit')} already imported or counted"
        if gathering.covered:
            yield f"{counted(gathering.covered, 'hit')} of a time that was already counted"
        return
    for days, why in (
        (gathering.days_existing, "there is data already"),
        (gathering.days_not_over, "the data is not complete yet"),
        (gathering.days_without_views, "no view is known"),
    ):
        if days:
            yield f"{counted(days, 'day')} for which {why}"
