"""The alerts of a website, and those of the service: never for a share link."""

from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec
from attrs import evolve
from msgspec import UNSET, UnsetType

from medamad.domain.alerts import (
    FORMATS,
    SERVICE,
    SERVICE_KINDS,
    WEBSITE_KINDS,
    Rule,
    checked_rule,
    shown,
)
from medamad.domain.errors import BadRequest, NotFound, Unavailable
from medamad.domain.goals import new_id
from medamad.web.auth import Access
from medamad.web.backend import AlertWatching
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response, no_content
from medamad.web.routes.goals import sent

NumberOf: TypeAlias = Callable[[Call, str | None], int]
"""Returns the number of the website that a path names, or SERVICE. Raises as `Call.website`."""

_RETRY_AFTER_S: Final = 1


class RuleDetails(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body that makes a rule."""

    kind: str
    threshold: int | None = None
    goal: str | None = None
    hours: int | None = None
    url: str = ""
    report: str | None = None
    format: str = FORMATS[0]


class RuleChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body that changes a rule: the members that it has; null removes one."""

    kind: str | UnsetType = UNSET
    threshold: int | UnsetType | None = UNSET
    goal: str | UnsetType | None = UNSET
    hours: int | UnsetType | None = UNSET
    url: str | UnsetType | None = UNSET
    report: str | UnsetType | None = UNSET
    format: str | UnsetType = UNSET


_CHANGE: Final = msgspec.json.Decoder(RuleChange)
_RULE: Final = msgspec.json.Decoder(RuleDetails)


def _of_website(call: Call, hostname: str | None) -> int:
    return call.website(hostname or "").number


def _of_service(call: Call, _hostname: str | None) -> int:
    call.caller.check_all()
    return SERVICE


def _watching(call: Call) -> AlertWatching:
    alerts = call.backend.alerts
    if alerts is None:
        raise Unavailable("the daemon is still starting", retry_after=_RETRY_AFTER_S)
    return alerts


def _members(call: Call, rule: Rule) -> dict[str, Any]:
    watching = _watching(call)
    members, failure = shown(rule), watching.failure_of(rule)
    if rule.format == FORMATS[0]:
        try:
            members["secret"] = watching.secret_of(rule.url)
        except Unavailable as error:
            failure = str(error)
    return {
        **members,
        "dateFired": rule.fired,
        "dateBegan": min((cause.since for cause in rule.causes), default=None),
        "failure": failure or None,
    }


def list_alerts(call: Call, hostname: str | None = None, *, number_of: NumberOf) -> Response:
    """Return the rules, when each last reported something, and whether that goes on."""
    alerts = call.backend.store.alerts.of(number_of(call, hostname))
    return json_response([_members(call, rule) for rule in alerts.rules])


async def add_alert(
    call: Call, hostname: str | None = None, *, number_of: NumberOf, kinds: Iterable[str]
) -> Response:
    """Make a rule."""
    number = number_of(call, hostname)
    rule = Rule(id=new_id(), **msgspec.structs.asdict(call.body(_RULE)))
    rule = checked_rule(rule, kinds)
    _check_goal(call, number, rule)
    _check_report(call, rule)
    await call.backend.store.alerts.change(number, lambda old: old.with_rule(rule))
    return json_response(_members(call, rule), HTTPStatus.CREATED)


def _check_goal(call: Call, number: int, rule: Rule) -> None:
    """Raise BadRequest for a goal that the website does not have."""
    if rule.goal is None:
        return
    try:
        call.backend.store.goals.of(number).goal(rule.goal)
    except NotFound as error:
        raise BadRequest(f"goal: {error}") from None


def _check_report(call: Call, rule: Rule) -> None:
    """Raise BadRequest for a mailed report that there is not."""
    known = (each.id for _, each in call.backend.store.reports.all())
    if rule.report is not None and rule.report not in known:
        raise BadRequest(f"report: there is no report {rule.report}")


async def change_alert(
    call: Call,
    alert: str,
    hostname: str | None = None,
    *,
    number_of: NumberOf,
    kinds: Iterable[str],
) -> Response:
    """Change a rule."""
    number = number_of(call, hostname)
    members = sent(call.body(_CHANGE))
    if "url" in members:
        members = {**members, "url": members["url"] or ""}

    def change(old: Rule) -> Rule:
        return checked_rule(evolve(old, **members), kinds)

    alerts = call.backend.store.alerts
    wanted = change(alerts.of(number).rule(alert))
    _check_goal(call, number, wanted)
    _check_report(call, wanted)
    changed = await alerts.change(number, lambda old: old.with_changed_rule(alert, change))
    return json_response(_members(call, changed.rule(alert)))


async def remove_alert(
    call: Call, alert: str, hostname: str | None = None, *, number_of: NumberOf
) -> Response:
    """Remove a rule."""
    number = number_of(call, hostname)
    await call.backend.store.alerts.change(number, lambda old: old.without_rule(alert))
    return no_content()


async def try_alert(
    call: Call, alert: str, hostname: str | None = None, *, number_of: NumberOf
) -> Response:
    """Look at a rule now, and send what it finds as a test."""
    trial = await _watching(call).try_now(number_of(call, hostname), alert)
    return json_response(
        {"text": trial.text, "firing": trial.is_firing, "failure": trial.error or None}
    )


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    for path, number_of, kinds in (
        ("/websites/<hostname>/alerts", _of_website, WEBSITE_KINDS),
        ("/user/alerts", _of_service, SERVICE_KINDS),
    ):
        add = partial(add_alert, number_of=number_of, kinds=kinds)
        routes.add("GET", path, partial(list_alerts, number_of=number_of), Access.CHANGE)
        routes.add("POST", path, add, Access.CHANGE)
        change = partial(change_alert, number_of=number_of, kinds=kinds)
        routes.add("PATCH", f"{path}/<alert>", change, Access.CHANGE)
        remove = partial(remove_alert, number_of=number_of)
        routes.add("DELETE", f"{path}/<alert>", remove, Access.CHANGE)
        try_it = partial(try_alert, number_of=number_of)
        routes.add("POST", f"{path}/<alert>/test", try_it, Access.CHANGE)
