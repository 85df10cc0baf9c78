"""What is defined for a website, as it is exported and imported: nothing secret, nobody's address.

The URL of a webhook has no path, which often is a secret. Reports by mail are not part of it: their
addresses are personal data, and have confirmed the mails of this server alone.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from attrs import asdict, evolve, fields_dict, frozen

from medamad.domain.alerts import FORMATS, WEBSITE_KINDS, Alerts, Rule, checked_rule, shown
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.errors import BadRequest, Conflict
from medamad.domain.goals import D, Definitions, Exclusion, Funnel, Goal, members_of, new_id
from medamad.domain.website_settings import DEFAULTS, WebsiteSettings
from medamad.domain.websites import changed_settings

MOST: Final = 2_000
"""So many entries a file has at most: more than a website can have."""


@frozen(kw_only=True)
class ListedRule:
    """An alert of a website as it is exported: what was reported is left out."""

    kind: str
    threshold: int | None = None
    goal: str | None = None
    hours: int | None = None
    url: str = ""
    report: str | None = None
    format: str = FORMATS[0]


@frozen(kw_only=True)
class ListedExclusion:
    """An exclusion as it is exported: its filters are a query string."""

    name: str
    filters: str = ""
    start: str | None = None
    end: str | None = None
    created: int = 0

    @property
    def exclusion(self) -> Exclusion:
        """The exclusion, with a new id."""
        filters = tuple(parse_qsl(self.filters, keep_blank_values=True))
        bounds = {"start": self.start, "end": self.end}
        return Exclusion(
            id=new_id(), name=self.name, filters=filters, created=self.created, **bounds
        )


@frozen(kw_only=True)
class ExportedSettings:
    """What is defined for a website. What names goals does so by the ids that these have here.

    `settings` says what counts, and what is stored.
    """

    goals: tuple[Goal, ...] = ()
    funnels: tuple[Funnel, ...] = ()
    exclusions: tuple[ListedExclusion, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    alerts: tuple[ListedRule, ...] = ()
    settings: WebsiteSettings = DEFAULTS


_TYPES: Final = {
    "goals": Goal,
    "funnels": Funnel,
    "exclusions": ListedExclusion,
    "annotations": Annotation,
    "alerts": ListedRule,
    "settings": WebsiteSettings,
}


def check_members(settings: Mapping[str, Any]) -> None:
    """Raise BadRequest naming a member of exported settings, as JSON has them, that is unknown."""
    for name, found in settings.items():
        if name not in _TYPES:
            raise BadRequest(f"{name}: no such member")
        places = {name: found}
        if isinstance(found, list):
            places = {f"{name}[{place}]": entry for place, entry in enumerate(found)}
        for place, entry in places.items():
            for member in entry:
                if member not in fields_dict(_TYPES[name]):
                    raise BadRequest(f"{member}: no such member of {place}")


def exported_exclusions(definitions: Definitions) -> dict[str, Any]:
    """Return the JSON members of the exclusions alone, and of the goals that they name."""
    named = {goal for each in definitions.exclusions for goal in each.goals}
    return {
        "exclusions": [members_of(_listed(each)) for each in definitions.exclusions],
        "goals": [members_of(each) for each in definitions.goals if each.id in named],
    }


_EXCLUSIONS: Final = re.compile(rb'\s*\{\s*"exclusions"\s*:')


def are_exported_exclusions(head: bytes) -> bool:
    """Return whether a file that begins like this has what `exported_exclusions` returned."""
    return _EXCLUSIONS.match(head) is not None


@frozen(kw_only=True)
class Imported:
    """How much was added; was known before; and was left out, as its mailed report is not here."""

    goals: int
    funnels: int
    exclusions: int
    annotations: int
    alerts: int
    settings: int
    known: int
    without_report: int


@frozen
class Defined:
    """What is stored for a website."""

    definitions: Definitions
    annotations: Annotations
    alerts: Alerts
    settings: WebsiteSettings = DEFAULTS

    def exported(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "goals": [members_of(each) for each in self.definitions.goals],
            "funnels": [members_of(each) for each in self.definitions.funnels],
            "exclusions": [members_of(_listed(each)) for each in self.definitions.exclusions],
            "annotations": [members_of(each) for each in self.annotations.all],
            "alerts": [_exported(rule) for rule in self.alerts.rules],
            "settings": self.settings.made,
        }

    def with_imported(
        self, settings: ExportedSettings, reports: Collection[str]
    ) -> "tuple[Defined, Imported]":
        """Return what is defined after an import, which adds what is not there yet, and its counts.

        `reports` are the ids of mailed reports: an alert by mail that names another one is left
        out. Raises BadRequest and Conflict, if something there has the same name and is different.
        The filters of exclusions have been checked.
        """
        sizes = (
            *(settings.goals, settings.funnels, settings.exclusions),
            *(settings.annotations, settings.alerts),
        )
        if sum(map(len, sizes)) > MOST:
            raise BadRequest(f"expected at most {MOST:,} entries")
        definitions, ids = self.definitions, dict[str, str]()
        for goal in settings.goals:
            made = Definitions().with_goal(evolve(goal, id=new_id())).goals[0]
            same = _named(definitions.goals, made, "goals")
            if same is None:
                definitions = definitions.with_goal(made)
            ids[goal.id] = (same or made).id
        for funnel in settings.funnels:
            steps = tuple(_id_here(each, ids, "funnels") for each in funnel.goals)
            alone = evolve(definitions, funnels=())
            new = alone.with_funnel(Funnel(new_id(), funnel.name, steps)).funnels[0]
            if _named(definitions.funnels, new, "funnels") is None:
                definitions = definitions.with_funnel(new)
        definitions = _with_exclusions(definitions, settings.exclusions, ids)
        annotations = self.annotations.with_those_of(
            evolve(each, id=new_id()) for each in settings.annotations
        )
        rules = [_rule(each, ids) for each in settings.alerts]
        usable = [each for each in rules if each.report is None or each.report in reports]
        alerts, missing = self.alerts, len(rules) - len(usable)
        for rule in _missing(usable, self.alerts.rules):
            alerts = alerts.with_rule(rule)
        try:
            own = self.settings.with_those_of(changed_settings(DEFAULTS, settings.settings.made))
        except (BadRequest, Conflict) as error:
            raise type(error)(f"settings: {error}") from None
        counts = {
            "goals": len(definitions.goals) - len(self.definitions.goals),
            "funnels": len(definitions.funnels) - len(self.definitions.funnels),
            "exclusions": len(definitions.exclusions) - len(self.definitions.exclusions),
            "annotations": len(annotations.all) - len(self.annotations.all),
            "alerts": len(alerts.rules) - len(self.alerts.rules),
            "settings": sum(
                value != self.settings.made.get(name) for name, value in own.made.items()
            ),
        }
        listed_here = sum(map(len, sizes)) + len(settings.settings.made)
        known = listed_here - sum(counts.values()) - missing
        imported = Imported(**counts, known=known, without_report=missing)
        return Defined(definitions, annotations, alerts, own), imported


def _with_exclusions(
    definitions: Definitions, exclusions: Sequence[ListedExclusion], ids: Mapping[str, str]
) -> Definitions:
    """Return the definitions with the exclusions that are not there yet."""
    for listed in exclusions:
        new = listed.exclusion.with_goals(lambda goal: _id_here(goal, ids, "exclusions"))
        (new,) = evolve(definitions, exclusions=()).with_exclusion(new).exclusions
        there = [evolve(each, created=new.created) for each in definitions.exclusions]
        if _named(there, new, "exclusions") is None:
            definitions = definitions.with_exclusion(new)
    return definitions


def _listed(exclusion: Exclusion) -> ListedExclusion:
    return ListedExclusion(
        name=exclusion.name,
        filters=exclusion.query,
        start=exclusion.start,
        end=exclusion.end,
        created=exclusion.created,
    )


def _named(there: Sequence[D], new: D, field: str) -> D | None:
    """Return what has the name of a definition. Raises Conflict if it is another one."""
    for each in there:
        if each.name == new.name:
            if evolve(new, id=each.id) != each:
                raise Conflict(f"{field}: {each.name} is there already, and is different")
            return each
    return None


def _id_here(goal: str, ids: Mapping[str, str], field: str) -> str:
    """Return the id that a goal of the file has here. Raises BadRequest if there is none."""
    if goal not in ids:
        raise BadRequest(f"{field}: the file has no goal {goal}")
    return ids[goal]


def _rule(listed: ListedRule, ids: Mapping[str, str]) -> Rule:
    members = asdict(listed)
    if listed.goal is not None:
        members["goal"] = _id_here(listed.goal, ids, "alerts")
    try:
        return checked_rule(Rule(id=new_id(), **members), WEBSITE_KINDS)
    except BadRequest as error:
        raise BadRequest(f"alerts: {error}") from None


def _missing(wanted: Iterable[Rule], there: Iterable[Rule]) -> list[Rule]:
    """Return the alerts of a file for which there is none, each being one of the file's at most.

    A URL that is not its host alone is that of one webhook; the host alone, which is all that is
    exported, can be that of any webhook there. What is the same throughout is found first.
    """
    left = list(there)

    def is_there(rule: Rule, *, as_shown: bool) -> bool:
        for each in left:
            if _exported(each) == _exported(rule) and (as_shown or each.url == rule.url):
                left.remove(each)
                return True
        return False

    others = [rule for rule in wanted if not is_there(rule, as_shown=False)]
    return [
        rule
        for rule in others
        if rule.url.rstrip("/") != rule.shown_url.rstrip("/") or not is_there(rule, as_shown=True)
    ]


def _exported(rule: Rule) -> dict[str, Any]:
    return {name: value for name, value in shown(rule).items() if name != "id"}
