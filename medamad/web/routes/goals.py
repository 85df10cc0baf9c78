"""The goals and funnels of a website: who sees its figures may list them."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
from attrs import evolve
from msgspec import UNSET, UnsetType

from medamad.domain.annotations import Annotation
from medamad.domain.goals import Definitions, Funnel, Goal, members_of, new_id
from medamad.domain.websites import Website
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response, no_content

T = TypeVar("T", Goal, Funnel, Annotation)


class GoalDefinition(msgspec.Struct, kw_only=True):
    """What reaches a goal, and what it brings in."""

    path: str | None = None
    event: str | None = None
    value: str | None = None
    revenue: str | None = None
    currency: str | None = None


class GoalDetails(GoalDefinition, kw_only=True, forbid_unknown_fields=True):
    """The body that defines a goal."""

    name: str


class GoalChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body that changes a goal: the members that it has; null removes one."""

    name: str | UnsetType = UNSET
    path: str | UnsetType | None = UNSET
    event: str | UnsetType | None = UNSET
    value: str | UnsetType | None = UNSET
    revenue: str | UnsetType | None = UNSET
    currency: str | UnsetType | None = UNSET


class FunnelDefinition(msgspec.Struct, kw_only=True):
    """The steps of a funnel."""

    goals: tuple[str, ...]


class FunnelDetails(FunnelDefinition, kw_only=True, forbid_unknown_fields=True):
    """The body that defines a funnel."""

    name: str


class FunnelChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body that changes a funnel: the members that it has."""

    name: str | UnsetType = UNSET
    goals: tuple[str, ...] | UnsetType = UNSET


_GOAL: Final = msgspec.json.Decoder(GoalDetails)
_GOAL_CHANGE: Final = msgspec.json.Decoder(GoalChange)
_FUNNEL: Final = msgspec.json.Decoder(FunnelDetails)
_FUNNEL_CHANGE: Final = msgspec.json.Decoder(FunnelChange)


def sent(change: msgspec.Struct) -> Mapping[str, Any]:
    """Return the members that a body has."""
    members = msgspec.structs.asdict(change)
    return {name: value for name, value in members.items() if value is not UNSET}


def changed(members: Mapping[str, Any], old: T) -> T:
    """Return a definition with some members changed."""
    return evolve(old, **members)


async def _change(
    call: Call, website: Website, change: Callable[[Definitions], Definitions]
) -> Definitions:
    return await call.backend.store.goals.change(website.number, change)


def list_goals(call: Call, hostname: str) -> Response:
    """Return the goals of a website."""
    definitions = call.backend.store.goals.of(call.website(hostname).number)
    return json_response([members_of(goal) for goal in definitions.goals])


async def add_goal(call: Call, hostname: str) -> Response:
    """Define a goal."""
    website = call.website(hostname)
    goal = Goal(id=new_id(), **msgspec.structs.asdict(call.body(_GOAL)))
    definitions = await _change(call, website, lambda old: old.with_goal(goal))
    return json_response(members_of(definitions.goal(goal.id)), HTTPStatus.CREATED)


async def change_goal(call: Call, hostname: str, goal: str) -> Response:
    """Change a goal."""
    website = call.website(hostname)
    change = partial(changed, sent(call.body(_GOAL_CHANGE)))
    definitions = await _change(call, website, lambda old: old.with_changed_goal(goal, change))
    return json_response(members_of(definitions.goal(goal)))


async def remove_goal(call: Call, hostname: str, goal: str) -> Response:
    """Remove a goal."""
    await _change(call, call.website(hostname), lambda old: old.without_goal(goal))
    return no_content()


def list_funnels(call: Call, hostname: str) -> Response:
    """Return the funnels of a website."""
    definitions = call.backend.store.goals.of(call.website(hostname).number)
    return json_response([members_of(funnel) for funnel in definitions.funnels])


async def add_funnel(call: Call, hostname: str) -> Response:
    """Define a funnel."""
    website = call.website(hostname)
    details = call.body(_FUNNEL)
    funnel = Funnel(new_id(), details.name, details.goals)
    definitions = await _change(call, website, lambda old: old.with_funnel(funnel))
    return json_response(members_of(definitions.funnel(funnel.id)), HTTPStatus.CREATED)


async def change_funnel(call: Call, hostname: str, funnel: str) -> Response:
    """Change a funnel."""
    website = call.website(hostname)
    change = partial(changed, sent(call.body(_FUNNEL_CHANGE)))
    definitions = await _change(call, website, lambda old: old.with_changed_funnel(funnel, change))
    return json_response(members_of(definitions.funnel(funnel)))


async def remove_funnel(call: Call, hostname: str, funnel: str) -> Response:
    """Remove a funnel."""
    await _change(call, call.website(hostname), lambda old: old.without_funnel(funnel))
    return no_content()


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    goals, funnels = "/websites/<hostname>/goals", "/websites/<hostname>/funnels"
    routes.add("GET", goals, list_goals, Access.STATISTICS)
    routes.add("POST", goals, add_goal, Access.CHANGE)
    routes.add("PATCH", f"{goals}/<goal>", change_goal, Access.CHANGE)
    routes.add("DELETE", f"{goals}/<goal>", remove_goal, Access.CHANGE)
    routes.add("GET", funnels, list_funnels, Access.STATISTICS)
    routes.add("POST", funnels, add_funnel, Access.CHANGE)
    routes.add("PATCH", f"{funnels}/<funnel>", change_funnel, Access.CHANGE)
    routes.add("DELETE", f"{funnels}/<funnel>", remove_funnel, Access.CHANGE)
