"""What the rules of a website look at: the views of the last hour, new referrers, goals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import Final

import msgspec
import numpy as np
from attrs import field, frozen

from medamad.alerts.silence import views_in
from medamad.domain.alerts import PARTS, ChangedPart, Facts, Part, Rule
from medamad.domain.dimensions import OTHER
from medamad.domain.errors import NotFound
from medamad.domain.goals import Definitions
from medamad.domain.zones import offset_at
from medamad.query.chance import against_earlier
from medamad.query.changes import ChangesOptions, changes, largest_parts
from medamad.query.goal_reports import preview_of_goal
from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.reports import ROW_REPORTS
from medamad.query.request import Filter, Query

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS
WEEKS: Final = 8
"""So many weeks are the past: an hour is compared with theirs, and a referrer in them is known."""
LEVEL_OF_HOUR: Final = 0.05 / 168
"""Without a change, an hour seems to have changed so often: one of a week's 168 in 5% of weeks."""
MAX_REFERRERS: Final = 100
"""So many referrers of the last day are looked at, most visits first."""


@frozen
class Findings:
    """The causes that a rule finds at a moment, and whether others are known to have ended."""

    facts: Mapping[str, Facts] = field(factory=dict)
    are_all: bool = True


UNKNOWN: Final = Findings(are_all=False)
"""Nothing can be said: what was reported goes on."""


@frozen(kw_only=True)
class Looked:
    """What is known of a website besides its hits when its rules are looked at.

    `listening_since_ms` is since when the daemon has been taking hits without a break, and
    `quiet_since` the time of the last view of a website that has gone quiet, in Unix seconds.
    """

    now_ms: int
    listening_since_ms: int
    quiet_since: int | None
    zone: tzinfo
    definitions: Definitions
    keeps_visits: bool


def look(reader: Reader, rules: Sequence[Rule], looked: Looked) -> dict[str, Findings]:
    """Return what each rule of a website finds, by its id."""
    find: dict[str, Callable[[Reader, Rule, Looked], Findings]] = {
        "quiet": _quiet,
        "spike": partial(_unusual, sign=1),
        "drop": partial(_unusual, sign=-1),
        "referrer": _new_referrers,
        "goal": _goal,
        "no-goal": _goal,
    }
    return {rule.id: find[rule.kind](reader, rule, looked) for rule in rules}


def _quiet(reader: Reader, rule: Rule, looked: Looked) -> Findings:
    if looked.quiet_since is not None:
        return Findings({"": {"last": looked.quiet_since}})
    cause = rule.cause("")
    if cause is None:
        return Findings()
    # A restart, or 30 days, only mean that silence is not known any more.
    later = Period((_second(cause.facts["last"]) + 1) * 1000, looked.now_ms)
    return UNKNOWN if reader.last_counted_ms(later) is None else Findings()


def _second(fact: object) -> int:
    """Return a fact that is a time, in Unix seconds."""
    return fact if isinstance(fact, int) else 0


def _unusual(reader: Reader, rule: Rule, looked: Looked, *, sign: int) -> Findings:
    """Compare the last hour of the clock that is over with the same hour of earlier weeks.

    Those after the first view, except where some views are unknown. `sign` is 1 for more views than
    usual, -1 for fewer. What begins is said with its largest parts.
    """
    begun_ms = _last_hour(looked)
    if begun_ms < looked.listening_since_ms:
        return UNKNOWN
    views, first_ms = views_in(reader, begun_ms, HOUR_MS), reader.time_bounds()[0]
    weeks_ms = (_weeks_before(begun_ms, week, looked.zone) for week in range(1, WEEKS + 1))
    counted = {each: views_in(reader, each, HOUR_MS) for each in weeks_ms if each >= first_ms}
    known = {each: count for each, count in counted.items() if count is not None}
    if views is None or not known:
        return UNKNOWN
    before = list(known.values())
    figures = np.array(before, np.int64)[:, np.newaxis]
    weeks = np.arange(len(before), dtype=np.intp)
    verdicts = against_earlier(np.array([views]), weeks, figures, level=LEVEL_OF_HOUR)
    verdict = verdicts.by_chance(0)
    if verdict is None:
        return UNKNOWN
    usual = sum(before) / len(before)
    percent = round(100 * sign * (views - usual) / max(usual, 1))
    if verdict or percent < (rule.threshold or 0):
        return Findings()
    facts: Facts = {
        "hour": begun_ms // 1000,
        "views": views,
        "usual": round(usual),
        "percent": percent,
    }
    if looked.keeps_visits and rule.cause("") is None:
        facts[PARTS] = _changed_parts(reader, looked, begun_ms, next(iter(known)))
    return Findings({"": facts})


def _changed_parts(
    reader: Reader, looked: Looked, hour_ms: int, before_ms: int
) -> list[ChangedPart]:
    """Return what explains best how the visits of an hour differ from those of an earlier one."""
    hour, before = (
        Period(begin_ms, begin_ms + HOUR_MS - 1, looked.zone) for begin_ms in (hour_ms, before_ms)
    )
    options = ChangesOptions(now_ms=looked.now_ms, compared=before)
    found = changes(reader, Query(hour), options=options).content
    return [
        ChangedPart(
            parts=tuple(Part(each["dimension"], each["name"]) for each in parts),
            before=change["before"],
            now=change["now"],
        )
        for parts, change in largest_parts(found)
    ]


def _last_hour(looked: Looked) -> int:
    """Return when the last hour that is over began, by the clock of the zone."""
    offset_ms = offset_at(looked.zone, looked.now_ms // 1000) * 1000
    return (looked.now_ms + offset_ms) // HOUR_MS * HOUR_MS - offset_ms - HOUR_MS


def _weeks_before(moment_ms: int, weeks: int, zone: tzinfo) -> int:
    """Return the time that the clock of a zone showed the same some weeks before."""
    earlier_ms = moment_ms - weeks * WEEK_MS
    now_s, then_s = (offset_at(zone, each // 1000) for each in (moment_ms, earlier_ms))
    return earlier_ms + (now_s - then_s) * 1000


def _new_referrers(reader: Reader, rule: Rule, looked: Looked) -> Findings:
    """Find the referrers of more visits in the last day than the rule says that had none before.

    One that was reported goes on for as long as it has as many. Without visits, views count.
    """
    counted = "visits" if looked.keeps_visits else "pageviews"
    recent = Query(
        Period(looked.now_ms - DAY_MS, looked.now_ms),
        is_brief=True,
        limit=MAX_REFERRERS,
        with_views=not looked.keeps_visits,
        with_visits=looked.keeps_visits,
        order=counted,
    )
    many = {
        name: visits
        for name, visits in _referrers(reader, recent, counted)
        if name not in ("", OTHER) and visits > (rule.threshold or 0)
    }
    candidates = [name for name in many if rule.cause(name) is None]
    known = _referrers_before(reader, candidates, looked.now_ms - DAY_MS) if candidates else set()
    return Findings(
        {
            name: {"referrer": name, "visits": visits}
            for name, visits in many.items()
            if name.casefold() not in known
        }
    )


def _referrers_before(reader: Reader, names: Sequence[str], until_ms: int) -> set[str]:
    """Return which referrers have views in the weeks before a moment, casefolded."""
    earlier = Query(
        Period(until_ms - WEEKS * WEEK_MS, until_ms - 1),
        filters=(Filter("referrer", "in", tuple(names)),),
        is_brief=True,
    )
    return {name.casefold() for name, _ in _referrers(reader, earlier, "visitors")}


def _referrers(reader: Reader, query: Query, counted: str) -> Iterator[tuple[str, int]]:
    for row in ROW_REPORTS["referrers"](reader, query).content:
        members = msgspec.structs.asdict(row)
        yield members["referrer"], members[counted]


def _goal(reader: Reader, rule: Rule, looked: Looked) -> Findings:
    """Count how often a goal was reached in the last hours."""
    try:
        goal = looked.definitions.goal(rule.goal or "")
    except NotFound:
        return UNKNOWN
    hours = rule.hours or 1
    since_ms = looked.now_ms - hours * HOUR_MS
    found = preview_of_goal(reader, Query(Period(since_ms, looked.now_ms)), goal=goal)
    count = found.content["conversions"]
    facts: Facts = {"goal": goal.name, "count": count, "hours": hours}
    if rule.kind == "goal":
        return Findings({"": facts} if count >= (rule.threshold or 1) else {})
    if not count and since_ms < looked.listening_since_ms:
        return UNKNOWN
    return Findings({} if count else {"": facts})
