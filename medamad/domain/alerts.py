"""Alerts: rules of what to report about a website or the service, and what they have found."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from medamad.domain.errors import BadRequest, NotFound

WebsiteKind: TypeAlias = Literal["quiet", "spike", "drop", "referrer", "goal", "no-goal"]
ServiceKind: TypeAlias = Literal["disk", "backup", "limits", "damage", "import"]
WEBSITE_KINDS: Final = get_args(WebsiteKind)
"""What a rule of a website can look at."""
SERVICE_KINDS: Final = get_args(ServiceKind)
"""What a rule of the service can look at."""
Format: TypeAlias = Literal["json", "slack", "discord", "ntfy", "mail"]
FORMATS: Final = get_args(Format)
"""How a webhook is written, or a mail. The first is the default."""
MAIL: Final = "mail"

SERVICE: Final = 0
"""Stands for the service where other rules have the number of their website."""
MAX_RULES: Final = 100
"""How many rules a website may have, and the service."""
MAX_CAUSES: Final = 20
"""How many causes of one rule are reported at a time."""
MAX_NOTICES: Final = 200
"""How many notices of a website wait to be sent; older ones are dropped."""
MAX_URL: Final = 2_048

_THRESHOLDS: Final[Mapping[str, tuple[int, int]]] = {
    "spike": (1, 10_000),
    "drop": (1, 100),
    "referrer": (1, 1_000_000),
    "goal": (1, 1_000_000),
    "disk": (1, 1_000_000),
}
"""The least and the greatest threshold of the kinds that have one."""
_OF_GOALS: Final = ("goal", "no-goal")
_HOURS: Final = (1, 168)
_URL: Final = re.compile(r"https?://[!-~]+\Z")
_HOST: Final = re.compile(r"([0-9a-z-]{1,63}\.)*[0-9a-z-]{1,63}\.?|[0-9a-f:.]*:[0-9a-f:.]*")

Event: TypeAlias = Literal["began", "ended", "test"]
"""That a cause began or ended, or that nothing did."""


@frozen
class Part:
    """A part of a dimension of `query.changes`."""

    dimension: str
    name: str


@frozen(kw_only=True)
class ChangedPart:
    """The visits that belong to each of some parts, before and now."""

    parts: tuple[Part, ...]
    before: int
    now: int


Facts: TypeAlias = dict[str, str | int | list[ChangedPart]]
"""What a rule found, by name."""
PARTS: Final = "parts"
"""The name of those that have changed most."""


class NotDelivered(Exception):
    """A message was not delivered. `str(error)` says why.

    `response` is what the receiver says of it, which is not for the log.
    """

    def __init__(self, reason: str, response: str = "", *, may_have_arrived: bool = False) -> None:
        super().__init__(reason)
        self.response = response
        self.may_have_arrived = may_have_arrived


@frozen
class Cause:
    """What a rule has found and reported, and that has not ended. `since` in Unix seconds.

    `key` tells the causes of a rule apart: the name of a referrer, for instance.
    """

    key: str
    since: int
    facts: Facts


@frozen(kw_only=True)
class Rule:
    """A rule: what to look at, from when on to report it, and to whom.

    `threshold` is a number of percent for a spike or a drop, of visits for a referrer, of
    conversions for a goal, and of GiB for the disk.
    """

    id: str
    kind: str
    threshold: int | None = None
    goal: str | None = None
    """The id of a goal."""
    hours: int | None = None
    """In which the goal is to be reached, or is not."""
    url: str = ""
    """The webhook, "" for a mail."""
    report: str | None = None
    """The id of the mailed report whose address gets a mail."""
    format: str = FORMATS[0]
    fired: int | None = None
    """When it last reported a cause, in Unix seconds."""
    causes: tuple[Cause, ...] = ()

    @property
    def shown_url(self) -> str:
        """The URL without its path, which often is a secret."""
        scheme, host, *_ = urlsplit(self.url)
        return f"{scheme}://{host}/"

    @property
    def looks_at(self) -> tuple[object, ...]:
        """What it looks at, and from when on it reports that."""
        return self.kind, self.threshold, self.goal, self.hours

    @property
    def sends_to(self) -> tuple[object, ...]:
        """Where what it reports is sent, and how."""
        return self.format, self.url, self.report

    def cause(self, key: str) -> Cause | None:
        """Return a cause that has not ended, None for none."""
        return next((each for each in self.causes if each.key == key), None)


@frozen(kw_only=True)
class Notice:
    """What is to be sent about a rule: that a cause began or ended, and when (Unix seconds)."""

    id: str
    rule: str
    event: Event
    time: int
    facts: Facts


@frozen
class Alerts:
    """The rules of a website or of the service in order of creation, and what is still to be sent.

    The oldest notice is first.
    """

    rules: tuple[Rule, ...] = ()
    notices: tuple[Notice, ...] = field(default=())

    def rule(self, rule_id: str) -> Rule:
        """Return a rule. Raises NotFound."""
        for rule in self.rules:
            if rule.id == rule_id:
                return rule
        raise NotFound(f"there is no alert {rule_id}")

    def with_rule(self, rule: Rule) -> "Alerts":
        """Return the alerts with a new rule. Raises BadRequest."""
        if len(self.rules) >= MAX_RULES:
            raise BadRequest(f"alerts: there can be {MAX_RULES}, remove one first")
        return evolve(self, rules=(*self.rules, rule))

    def with_changed_rule(self, rule_id: str, change: Callable[[Rule], Rule]) -> "Alerts":
        """Return the alerts with a rule changed. Raises NotFound, and what `change` does.

        One that looks at something else has not found anything yet, and sends nothing of before.
        """
        old = self.rule(rule_id)
        new, notices = change(old), self.notices
        if new.looks_at != old.looks_at:
            new = evolve(new, causes=())
            notices = tuple(each for each in notices if each.rule != rule_id)
        return Alerts(tuple(new if each == old else each for each in self.rules), notices)

    def without_rule(self, rule_id: str) -> "Alerts":
        """Return the alerts without a rule and its notices. Raises NotFound."""
        self.rule(rule_id)
        return Alerts(
            tuple(each for each in self.rules if each.id != rule_id),
            tuple(each for each in self.notices if each.rule != rule_id),
        )

    def with_findings(
        self,
        looked: Rule,
        began: Mapping[str, Facts],
        ended: Iterable[str],
        *,
        now: int,
        ids: Iterable[str],
    ) -> "Alerts":
        """Return the alerts after some causes of a rule have begun and others ended.

        Each gets a notice, which has one of some ids. Causes that have begun already do not begin
        again. Nothing changes if the rule was removed after it was looked at, or looks at something
        else now.
        """
        rule = next((each for each in self.rules if each.id == looked.id), None)
        if rule is None or rule.looks_at != looked.looks_at:
            return self
        new_ids, notices, causes = iter(ids), list(self.notices), list(rule.causes)
        for key in ended:
            cause = rule.cause(key)
            if cause is not None:
                causes.remove(cause)
                notices.append(_notice(next(new_ids), rule.id, "ended", now, cause.facts))
        fired = rule.fired
        for key, facts in began.items():
            if rule.cause(key) is None and len(causes) < MAX_CAUSES:
                causes.append(Cause(key, now, facts))
                notices.append(_notice(next(new_ids), rule.id, "began", now, facts))
                fired = now
        changed = evolve(rule, causes=tuple(causes), fired=fired)
        rules = tuple(changed if each == rule else each for each in self.rules)
        return Alerts(rules, tuple(notices[-MAX_NOTICES:]))

    def without_notice(self, notice_id: str) -> "Alerts":
        """Return the alerts without a notice, which is sent or given up."""
        return evolve(self, notices=tuple(each for each in self.notices if each.id != notice_id))


def _notice(notice_id: str, rule: str, event: Event, now: int, facts: Facts) -> Notice:
    return Notice(id=notice_id, rule=rule, event=event, time=now, facts=facts)


def shown(rule: Rule) -> dict[str, Any]:
    """Return the JSON members of a rule that may be shown; those that do not apply are missing."""
    members = {
        "id": rule.id,
        "kind": rule.kind,
        "threshold": rule.threshold,
        "goal": rule.goal,
        "hours": rule.hours,
        "url": rule.shown_url if rule.url else None,
        "report": rule.report,
        "format": rule.format,
    }
    return {name: value for name, value in members.items() if value is not None}


def checked_rule(rule: Rule, kinds: Iterable[str]) -> Rule:
    """Return a rule as it is stored. Raises BadRequest naming the field."""
    if rule.kind not in kinds:
        raise BadRequest(f"kind: expected one of {', '.join(kinds)}")
    _check("threshold", rule.threshold, _THRESHOLDS.get(rule.kind), rule.kind)
    _check("hours", rule.hours, _HOURS if rule.kind in _OF_GOALS else None, rule.kind)
    if (rule.goal is None) == (rule.kind in _OF_GOALS):
        raise BadRequest(
            f"goal: required with kind {rule.kind}, the id of a goal"
            if rule.goal is None
            else f"goal: not expected with kind {rule.kind}"
        )
    if rule.format not in FORMATS:
        raise BadRequest(f"format: expected one of {', '.join(FORMATS)}")
    is_mail = rule.format == MAIL
    if is_mail and rule.url:
        raise BadRequest(f"url: not expected with format {MAIL}")
    if (rule.report is None) == is_mail:
        raise BadRequest(
            f"report: required with format {MAIL}, the id of a mailed report"
            if is_mail
            else f"report: not expected with format {rule.format}"
        )
    return rule if is_mail else evolve(rule, url=_checked_url(rule.url.strip()))


def _check(name: str, value: int | None, bounds: tuple[int, int] | None, kind: str) -> None:
    if bounds is None:
        if value is not None:
            raise BadRequest(f"{name}: not expected with kind {kind}")
        return
    least, most = bounds
    if value is None or not least <= value <= most:
        raise BadRequest(f"{name}: expected {least} to {most:,} with kind {kind}")


def _checked_url(url: str) -> str:
    problem = BadRequest(
        "url: expected an address that begins with https:// or http://, without a user name,"
        f" of at most {MAX_URL:,} characters of ASCII"
    )
    if len(url) > MAX_URL or not _URL.match(url):
        raise problem
    try:
        parts = urlsplit(url)
        is_host = _HOST.fullmatch(parts.hostname or "") and not parts.netloc.endswith(":")
        if not is_host or "@" in parts.netloc or parts.port == 0:
            raise problem
    except ValueError:
        raise problem from None
    return url
