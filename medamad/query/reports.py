"""The reports, and the statistics that requests and exports choose from.

A report composes a few primitives (see `medamad.query`) into rows. To add a statistic with rows,
write its report, unless it only counts views by another dimension, and list it in STATISTICS.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.query import rows
from medamad.query.buckets import Buckets
from medamad.query.filters import HOSTING_FIELD, TRUTHS
from medamad.query.names import NameOrder, display_names, order_of_texts
from medamad.query.period import previous_period
from medamad.query.reader import Reader, Selected, SeriesOptions
from medamad.query.request import Filter, Gap, Query, Result
from medamad.query.returning import returning_columns
from medamad.query.rows import (
    Columns,
    Naming,
    Row,
    fractions,
    make_rows,
    page_of_rows,
    rows_in_reach,
)
from medamad.query.sums import (
    BOUNCES,
    VISITS,
    RowVisits,
    Series,
    Tally,
    VisitGrouping,
    VisitSums,
    WhichView,
)
from medamad.query.visit_reports import entry_pages, exit_pages, visit_columns

_ANY: Final = Dimension.DEVICE
"""A dimension with few texts, of sums that do not depend on it."""

Summary: TypeAlias = dict[str, Row | list[Row]]
Report: TypeAlias = Callable[[Reader, Query], Result[list[Row]]]


@frozen(kw_only=True)
class SummaryOptions(SeriesOptions):
    """What a summary includes besides the figures of the period.

    With `returning_zone`, figures of new and returning visitors, and of its calendar weeks and
    months, come with all others.
    """

    previous: bool = False
    returning_zone: tzinfo | None = None


def summary(
    reader: Reader,
    query: Query,
    *,
    options: SummaryOptions,
) -> Result[Summary]:
    """Return the figures `current`, and on demand `previous` and the series `interval`.

    If the query is with visits, so are the figures. Raises BadRequest for an unknown interval, for
    too many buckets, and for `previous` without both bounds of the period.
    """
    before = evolve(query, period=previous_period(query.period)) if options.previous else None
    selected = reader.select(query)
    gaps = selected.left_out

    def figures(
        selected: Selected,
        buckets: Buckets | None = None,
        series: Series | None = None,
        visits: VisitSums | None = None,
    ) -> tuple[list[Row], Series, VisitSums | None]:
        """Return the rows of some buckets, or of all, and their sums, which may be known."""
        nonlocal gaps
        series = series or selected.series(buckets)
        if query.with_visits and visits is None:
            visits, visit_gaps = selected.visits_by_bucket(buckets)
            gaps |= visit_gaps
        sums = series.tally
        gaps |= sums.gaps
        columns: Columns = {
            "visitors": sums.visitors(of_page=query.has_path_filter),
            "pageviews": sums.views,
            **_bounces_and_durations(sums, series.medians_ms, query),
        }
        if visits is not None:
            columns |= visit_columns(visits)
        if options.returning_zone is not None:
            columns |= returning_columns(
                selected,
                query,
                zone=options.returning_zone,
                now_ms=options.now_ms,
                buckets=buckets,
                interval=None if buckets is None else options.interval,
            )
        if buckets is not None:
            columns["date"] = buckets.dates
        return make_rows(columns), series, visits

    total, total_visits, interval = None, None, None
    of_series = options.buckets(reader, query.period)
    if of_series is not None:
        period, buckets = of_series
        interval, series, visits = figures(selected.during(period, Gap.INTERVAL), buckets)
        is_complete = query.period.end_ms is not None or options.now_ms >= reader.time_bounds()[1]
        if is_complete and not gaps.days(Gap.INTERVAL):
            # All views of the period are in the series.
            total, total_visits = series.total, visits and visits.total()
    (current,), *_ = figures(selected, None, total, total_visits)
    found: Summary = {"current": current}
    if before is not None:
        selected = reader.select(before)
        (found["previous"],), *_ = figures(selected)
        gaps |= selected.left_out
    if interval is not None:
        found["interval"] = interval
    return Result(found, gaps)


def views_by_dimension(
    reader: Reader,
    query: Query,
    *,
    column: str,
    dimension: Dimension,
    naming: Naming = rows.as_stored,
) -> Result[list[Row]]:
    """Return a row for each name of a dimension's texts: most visitors first, then most views.

    Name (in `column`), visitors and their share; unless the report is to be brief, also the bounce
    rate and the total time. Rows of pages count visitors of the page, and also have views and their
    share. The query can ask for views in any row, and for the rows with most views first. And for
    visits: those that saw a page or whose first view has another text, their share and, unless the
    report is to be brief, how many of them bounced. And for a goal: how many visits reached it, and
    their share of those of the row, whatever goals they reached.
    """
    selected = reader.select(query)
    sums = selected.tally(dimension, with_durations=not query.is_brief)
    reader.cancellation.check()
    gaps = sums.gaps | selected.left_out
    names: Sequence[str] = reader.texts(dimension)
    order = order_of_texts(reader.texts, dimension)
    found = _visits_of_rows(reader, query, selected, dimension, sums.size)
    if found is not None:
        # Visits may have seen pages, or begun with texts, that no selected view has.
        sums = sums.padded(found.size)
        gaps |= found.gaps
    numbers = codes = _numbers_of_rows(sums, found)
    if naming is not rows.as_stored:
        named, order = display_names(reader, dimension, naming)
        groups, names = named.numbers_of(codes), named.names
        sums = sums.take(codes).grouped(groups, len(names))
        if found is not None:
            found = found.take(codes).grouped(groups, len(names))
        numbers = np.unique(groups)
    page = _page(
        query,
        numbers,
        sums,
        found,
        column=column,
        names=names,
        order=order,
        is_by_page=dimension is Dimension.PATH,
    )
    return Result(page, gaps)


def views_by_hosting(reader: Reader, query: Query) -> Result[list[Row]]:
    """Return a row "true" for views from networks of hosting providers, and "false" for others.

    The columns and the order are those of `views_by_dimension`. A visit is in the row of each of
    its selected views.
    """
    hosting = (Filter(HOSTING_FIELD, "eq", (value,)) for value in TRUTHS)
    of_rows = [evolve(query, filters=(*query.filters, each)) for each in hosting]
    selected = [reader.select(row) for row in of_rows]
    one, other = (each.tally(_ANY, with_durations=not query.is_brief) for each in selected)
    sums, found = one.beside(other), None
    gaps = sums.gaps | selected[0].left_out
    visits_of_one, visits_of_other = (
        _visits_of_rows(reader, row, each, _ANY, 0)
        for row, each in zip(of_rows, selected, strict=True)
    )
    if visits_of_one is not None and visits_of_other is not None:
        # Rollups know the visits of days, but not which of them are in a row.
        total = int(reader.select(query).count_visits(None)[0])
        found = evolve(visits_of_one.beside(visits_of_other), total=total)
        gaps |= found.gaps
    numbers = _numbers_of_rows(sums, found)
    return Result(_page(query, numbers, sums, found, column="hosting", names=TRUTHS), gaps)


def _visits_of_rows(
    reader: Reader, query: Query, selected: Selected, dimension: Dimension, size: int
) -> RowVisits | None:
    """Return the visits of at least `size` rows, if any are wanted."""
    if not (query.with_visits or query.conversions or query.order == "visits"):
        return None
    by_row = VisitGrouping(dimension, up_to=VISITS if query.is_brief else BOUNCES)
    groupings = [by_row]
    if dimension is Dimension.PATH:
        # A visit that bounced saw its first page alone.
        by_row = VisitGrouping(dimension, WhichView.ANY)
        groupings.append(by_row)
    by_row = evolve(by_row, up_to=VISITS)
    if query.conversions:
        groupings.append(evolve(by_row, reached=query.conversions))
    found = selected.group_visits(groupings)
    visits = among = found.sums[1 if dimension is Dimension.PATH else 0]
    if query.conversions and query.goals:
        of_all = reader.select(query.without_goals)
        (among,) = of_all.group_visits([by_row], include_rollups=False).sums
    known = [each.codes for each in (*found.sums, among) if len(each.codes)]
    size = max([size, *(int(codes[-1]) + 1 for codes in known)])
    nothing = np.zeros(size, np.int64)
    sums = (
        visits.dense(size).visits,
        nothing if query.is_brief else found.sums[0].dense(size).bounces,
        found.sums[-1].dense(size).visits if query.conversions else nothing,
        among.dense(size).visits if query.conversions else nothing,
    )
    return RowVisits(np.stack(sums), found.gaps, found.total)


def _numbers_of_rows(sums: Tally, found: RowVisits | None) -> NDArray[np.intp]:
    """Return the numbers of the rows that have views or visits."""
    return np.flatnonzero(sums.views if found is None else sums.views + found.visits)


def _page(
    query: Query,
    numbers: NDArray[np.intp],
    sums: Tally,
    found: RowVisits | None,
    *,
    column: str,
    names: Sequence[str],
    order: NameOrder = lambda: None,
    is_by_page: bool = False,
) -> list[Row]:
    """Return the page of rows that a query asks for, with their names in a column."""
    views, visitors = sums.views, sums.visitors(of_page=is_by_page or query.has_path_filter)
    descending = (visitors, views) if query.order == "visitors" else (views,)
    if found is not None and query.order == "visits":
        descending = (found.visits, views)
    numbers, shown_names = page_of_rows(numbers, descending, names, query.row_slice, order)
    columns: Columns = {
        column: shown_names,
        "visitors": visitors[numbers],
        "visitors_percentage": fractions(visitors[numbers], visitors.sum()),
    }
    has_all_of_page = is_by_page and not query.is_brief
    if query.with_views or has_all_of_page:
        columns["pageviews"] = views[numbers]
    if has_all_of_page:
        columns["pageviews_percentage"] = fractions(views[numbers], views.sum())
    if not query.is_brief:
        shown = sums.take(numbers)
        columns |= _bounces_and_durations(shown, shown.duration_ms, query)
    if found is not None:
        columns |= _columns_of_visits(found, numbers, query)
    return make_rows(columns)


def _bounces_and_durations(sums: Tally, duration_ms: NDArray[np.int64], query: Query) -> Columns:
    """Return the columns of the bounce rate and of a duration, 0 where it is unknown.

    If the query asks for blanks, there is None where there are views but the figure is unknown.
    """
    columns: Columns = {
        "bounce_percentage": fractions(sums.bounces, sums.timed_visitors),
        "duration": duration_ms,
    }
    if query.with_blanks:
        for name, known in zip(columns, (sums.timed_visitors, duration_ms), strict=True):
            blank = np.asarray(columns[name], np.object_)
            blank[(sums.views > 0) & (known == 0)] = None
            columns[name] = blank
    return columns


def _columns_of_visits(visits: RowVisits, numbers: NDArray[np.intp], query: Query) -> Columns:
    """Return the columns of the visits in some rows."""
    columns: Columns = {}
    if query.with_visits:
        columns["visits"] = visits.visits[numbers]
        columns["visits_percentage"] = fractions(visits.visits[numbers], np.array(visits.total))
        if not query.is_brief:
            columns["visit_bounce_percentage"] = fractions(
                visits.bounces[numbers], visits.visits[numbers]
            )
    if query.conversions:
        columns["conversions"] = visits.conversions[numbers]
        columns["conversion_percentage"] = fractions(
            visits.conversions[numbers], visits.among[numbers]
        )
    return columns


def time_on_page(reader: Reader, query: Query) -> Result[list[Row]]:
    """Return a row for each path that has a view with a known duration.

    Path, median duration and the path's share of the total time; most of it first. Unless the
    report is to be brief, also visitors and the quartiles; most visitors of the page first. With
    `with_total` also the total time, and most of it first. The query can ask for visits and
    conversions, as with `views_by_dimension`. Days of which single durations are unknown are left
    out.
    """
    selected, gaps = reader.select(query).with_single_durations()
    sums = selected.tally(Dimension.PATH)
    total_ms, visitors = sums.duration_ms, sums.visitors(of_page=True)
    shares = fractions(total_ms, total_ms.sum())
    first = shares if query.is_brief else visitors
    if query.with_total:
        first = total_ms
    # Durations are sorted only for the pages that may be on the page of rows, as the sums decide.
    shown, row_slice = rows_in_reach(np.flatnonzero(total_ms), first, query.row_slice)
    texts = reader.texts(Dimension.PATH)
    lower_ms, of_shown_ms, upper_ms = selected.quartiles(shown)
    medians_ms = np.zeros(len(total_ms), np.int64)
    medians_ms[shown] = of_shown_ms
    order = order_of_texts(reader.texts, Dimension.PATH)
    codes, paths = page_of_rows(shown, (first, medians_ms), texts, row_slice, order)
    columns: Columns = {
        "path": paths,
        "duration": medians_ms[codes],
        "duration_percentage": shares[codes],
    }
    if query.with_total:
        columns["total_duration"] = total_ms[codes]
    if not query.is_brief:
        places = np.searchsorted(shown, codes)
        columns["visitors"] = visitors[codes]
        columns["duration_upper_quartile"] = upper_ms[places]
        columns["duration_lower_quartile"] = lower_ms[places]
    found = _visits_of_rows(reader, query, selected, Dimension.PATH, sums.size)
    if found is not None:
        columns |= _columns_of_visits(found, codes, query)
        gaps |= found.gaps
    return Result(make_rows(columns), gaps | sums.gaps | selected.left_out)


def events_by_property(
    reader: Reader,
    query: Query,
    *,
    by_value: bool = False,
) -> Result[list[Row]]:
    """Return a row for each property name or, by value, for each name and value.

    Name (and value), the number of events with it and their share of those with any; most events
    first. A filter on the name also counts by value. The query can ask for the visits in which one
    occurred.
    """
    by_value = by_value or bool(query.filters_on(("prop_name",)))
    counts = reader.count_properties(query, by_value=by_value)
    numbers, labels = page_of_rows(
        np.flatnonzero(counts.events), (counts.events,), counts.labels, query.row_slice
    )
    columns: Columns = {"name": [split_property(label)[0] for label in labels]}
    if by_value:
        columns["value"] = [split_property(label)[1] for label in labels]
    events = counts.events[numbers]
    columns["events"] = events
    columns["events_percentage"] = fractions(events, np.array(counts.total))
    if counts.visits is not None:
        columns["visits"] = counts.visits[numbers]
    return Result(make_rows(columns), counts.gaps)


@frozen
class Variant:
    """Another report of a statistic, under a name of its own in exports.

    A request chooses it by setting the boolean `parameter` to `value`; without `parameter`, only
    exports have it.
    """

    name: str
    report: Report
    parameter: str | None = None
    value: bool = True


@frozen
class Statistic:
    """A statistic with rows, at `/website/{hostname}/{name}` and in exports.

    Only a statistic of views by dimension can have views in each row and another order. One of
    visits is not there where these are switched off; others can have visits in each row, most also
    conversions, and one the total of its durations.
    """

    name: str
    report: Report
    variant: Variant | None = None
    can_be_brief: bool = True
    is_of_views: bool = True
    is_of_visits: bool = False
    can_have_conversions: bool = True
    can_have_total: bool = False


def _views_by(column: str, dimension: Dimension, naming: Naming = rows.as_stored) -> Report:
    return partial(views_by_dimension, column=column, dimension=dimension, naming=naming)


def _ends_of_visits(name: str, report: Report) -> Statistic:
    return Statistic(name, report, is_of_views=False, is_of_visits=True, can_have_conversions=False)


STATISTICS: Final = (
    Statistic("pages", _views_by("path", Dimension.PATH)),
    _ends_of_visits("entries", entry_pages),
    _ends_of_visits("exits", exit_pages),
    Statistic("time", time_on_page, is_of_views=False, can_have_total=True),
    Statistic(
        "referrers",
        _views_by("referrer", Dimension.REFERRER, rows.source),
        Variant("referrer_urls", _views_by("referrer", Dimension.REFERRER), "grouped", value=False),
    ),
    Statistic("sources", _views_by("source", Dimension.UTM_SOURCE)),
    Statistic("mediums", _views_by("medium", Dimension.UTM_MEDIUM)),
    Statistic("campaigns", _views_by("campaign", Dimension.UTM_CAMPAIGN)),
    Statistic("terms", _views_by("term", Dimension.UTM_TERM)),
    Statistic("contents", _views_by("content", Dimension.UTM_CONTENT)),
    Statistic("browsers", _views_by("browser", Dimension.BROWSER)),
    Statistic("os", _views_by("os", Dimension.OS)),
    Statistic("devices", _views_by("device", Dimension.DEVICE)),
    Statistic("countries", _views_by("country", Dimension.COUNTRY, rows.country)),
    Statistic(
        "languages",
        _views_by("language", Dimension.LOCALE, rows.language),
        Variant("locales", _views_by("language", Dimension.LOCALE, rows.locale), "locale"),
    ),
    Statistic("hosting", views_by_hosting),
    Statistic(
        "properties",
        events_by_property,
        Variant("property_values", partial(events_by_property, by_value=True)),
        can_be_brief=False,
        is_of_views=False,
        can_have_conversions=False,
    ),
)
"""The statistics with rows by dimension or property; `web/routes/statistics.py` has the others."""

ROW_REPORTS: Final[Mapping[str, Report]] = MappingProxyType(
    {
        each.name: each.report
        for statistic in STATISTICS
        for each in (statistic, statistic.variant)
        if each is not None
    }
)
"""The reports of all statistics and their variants, by name."""
