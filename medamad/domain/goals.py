"""What an owner defines of visits: goals, funnels of goals in order, and what is left out."""

import re
import secrets
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, Inexact
from functools import cache
from math import isinf
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from attrs import AttrsInstance, asdict, evolve, frozen
from babel.core import get_global

from medamad.domain.dimensions import MAX_PROPERTY_NAME, MAX_PROPERTY_VALUE
from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.paths import MAX_PATH, WILDCARD, stored_pattern
from medamad.domain.texts import UNFIT, UNFIT_NAME

MAX_GOALS: Final = 100
MAX_FUNNELS: Final = 50
MAX_EXCLUSIONS: Final = 100
"""How many goals, funnels and exclusions a website may have."""
MAX_GOAL_NAME: Final = 100
"""Characters of the name of a goal, funnel or exclusion."""
FUNNEL_GOALS: Final = (2, 8)
"""How many goals a funnel has, at least and at most."""

_ID_BYTES: Final = 6


@frozen(kw_only=True)
class Goal:
    """A goal, reached by the views of a page (`path`) or by events with a property (`event`).

    Exactly one of the two is set.
    """

    id: str
    name: str
    path: str | None = None
    """A pattern of paths, as `paths.stored_pattern` returns it."""
    event: str | None = None
    """The name of the property."""
    value: str | None = None
    """The value of the property, None for any."""
    revenue: str | None = None
    """The name of the property that has the amount, None if the goal brings in no revenue."""
    currency: str | None = None
    """The amount's currency (ISO 4217); set if `revenue` is."""


@frozen
class Funnel:
    """Goals that are to be reached in this order within a visit, by their ids."""

    id: str
    name: str
    goals: tuple[str, ...]


@frozen(kw_only=True)
class Exclusion:
    """What is left out of all figures: what matches filters in a period, whole visits if it can be.

    Visits match as in statistics of visits under these filters, and their period is that of their
    beginning. Nothing is deleted.
    """

    id: str
    name: str
    filters: tuple[tuple[str, str], ...]
    """The parameters of statistics, such as `path[eq]` and `/x`."""
    start: str | None = None
    end: str | None = None
    """The bounds of the period, as in statistics."""
    created: int
    """Unix seconds."""

    @property
    def goals(self) -> frozenset[str]:
        """The ids of the goals in its filters."""
        return frozenset(value for key, value in self.filters if _names_goal(key))

    @property
    def query(self) -> str:
        """Its filters as a query string."""
        return urlencode(self.filters, safe="[]/")

    def with_goals(self, id_of: Callable[[str], str]) -> "Exclusion":
        """Return the exclusion with other ids of the goals in its filters."""
        filters = [
            (key, id_of(value) if _names_goal(key) else value) for key, value in self.filters
        ]
        return evolve(self, filters=tuple(filters))


def _names_goal(parameter: str) -> bool:
    return parameter.partition("[")[0] == "goal"


@frozen
class Definitions:
    """The goals, funnels and exclusions of a website, each in order of creation."""

    goals: tuple[Goal, ...] = ()
    funnels: tuple[Funnel, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()

    def goal(self, goal_id: str) -> Goal:
        """Return a goal. Raises NotFound."""
        return _found(self.goals, goal_id, "goal")

    def funnel(self, funnel_id: str) -> Funnel:
        """Return a funnel. Raises NotFound."""
        return _found(self.funnels, funnel_id, "funnel")

    def with_goal(self, goal: Goal) -> "Definitions":
        """Return the definitions with a new goal. Raises BadRequest, Conflict."""
        _check_room(self.goals, MAX_GOALS, "goals")
        return evolve(self, goals=_named_once((*self.goals, _named(checked_goal(goal)))))

    def with_changed_goal(self, goal_id: str, change: Callable[[Goal], Goal]) -> "Definitions":
        """Return the definitions with a goal changed. Raises NotFound, BadRequest, Conflict.

        A goal that a funnel or an exclusion uses may only be renamed.
        """
        old = self.goal(goal_id)
        new = _named(checked_goal(change(old)))
        if new != evolve(old, name=new.name):
            self._check_unused(old, "can be renamed, but not changed otherwise")
        return evolve(self, goals=_named_once(_replaced(self.goals, new)))

    def without_goal(self, goal_id: str) -> "Definitions":
        """Return the definitions without a goal. Raises NotFound, and Conflict if it is used."""
        goal = self.goal(goal_id)
        self._check_unused(goal, "cannot be removed")
        return evolve(self, goals=tuple(each for each in self.goals if each != goal))

    def with_funnel(self, funnel: Funnel) -> "Definitions":
        """Return the definitions with a new funnel. Raises BadRequest, Conflict."""
        _check_room(self.funnels, MAX_FUNNELS, "funnels")
        return evolve(self, funnels=_named_once((*self.funnels, self._checked_funnel(funnel))))

    def with_changed_funnel(
        self, funnel_id: str, change: Callable[[Funnel], Funnel]
    ) -> "Definitions":
        """Return the definitions with a funnel changed. Raises NotFound, BadRequest, Conflict."""
        new = self._checked_funnel(change(self.funnel(funnel_id)))
        return evolve(self, funnels=_named_once(_replaced(self.funnels, new)))

    def without_funnel(self, funnel_id: str) -> "Definitions":
        """Return the definitions without a funnel. Raises NotFound."""
        funnel = self.funnel(funnel_id)
        return evolve(self, funnels=tuple(each for each in self.funnels if each != funnel))

    def with_exclusion(self, exclusion: Exclusion) -> "Definitions":
        """Return the definitions with a new exclusion, whose filters have been checked.

        Raises BadRequest if there are as many as there may be, NotFound for an unknown goal and
        Conflict for a name that is taken.
        """
        if len(self.exclusions) >= MAX_EXCLUSIONS:
            raise BadRequest(
                f"name: a website has at most {MAX_EXCLUSIONS} exclusions, remove one first"
            )
        for goal_id in exclusion.goals:
            self.goal(goal_id)
        return evolve(self, exclusions=_named_once((*self.exclusions, _named(exclusion))))

    def exclusion(self, exclusion_id: str) -> Exclusion:
        """Return an exclusion. Raises NotFound."""
        return _found(self.exclusions, exclusion_id, "exclusion")

    def without_exclusion(self, exclusion_id: str) -> "Definitions":
        """Return the definitions without an exclusion. Raises NotFound."""
        exclusion = self.exclusion(exclusion_id)
        return evolve(self, exclusions=tuple(e for e in self.exclusions if e != exclusion))

    def _check_unused(self, goal: Goal, what: str) -> None:
        for funnel in self.funnels:
            if goal.id in funnel.goals:
                raise Conflict(f"the funnel {funnel.name} uses the goal {goal.name}, which {what}")
        for exclusion in self.exclusions:
            if goal.id in exclusion.goals:
                raise Conflict(
                    f"the exclusion {exclusion.name} uses the goal {goal.name}, which {what}"
                )

    def check_steps(self, goal_ids: Sequence[str]) -> None:
        """Raise BadRequest for goals that no funnel can have."""
        least, most = FUNNEL_GOALS
        if not least <= len(goal_ids) <= most:
            raise BadRequest(
                f"goals: expected {least} to {most} goals in order, got {len(goal_ids)}"
            )
        known = {goal.id for goal in self.goals}
        for goal_id in goal_ids:
            if goal_id not in known:
                raise BadRequest(f"goals: there is no goal {goal_id}")
        if len(set(goal_ids)) < len(goal_ids):
            raise BadRequest("goals: expected each goal once")

    def _checked_funnel(self, funnel: Funnel) -> Funnel:
        self.check_steps(funnel.goals)
        return _named(funnel)


D = TypeVar("D", Goal, Funnel, Exclusion)


def _found(definitions: Sequence[D], wanted: str, what: str) -> D:
    for definition in definitions:
        if definition.id == wanted:
            return definition
    raise NotFound(f"there is no {what} {wanted}")


def _check_room(definitions: Sequence[D], most: int, what: str) -> None:
    if len(definitions) >= most:
        raise Conflict(f"the website has {most} {what} already, remove one first")


def _replaced(definitions: Sequence[D], new: D) -> tuple[D, ...]:
    return tuple(new if each.id == new.id else each for each in definitions)


def _named_once(definitions: tuple[D, ...]) -> tuple[D, ...]:
    names = set()
    for definition in definitions:
        if definition.name in names:
            raise Conflict(f"name: {definition.name} is taken")
        names.add(definition.name)
    return definitions


def members_of(definition: AttrsInstance) -> dict[str, Any]:
    """Return the JSON members of a definition; those that do not apply are missing."""
    return asdict(definition, filter=lambda _field, value: value is not None)


def new_id() -> str:
    """Return an id for what an owner defines. A command would take a first hyphen for an option."""
    while (made := secrets.token_urlsafe(_ID_BYTES)).startswith("-"):
        pass
    return made


def _named(definition: D) -> D:
    """Return a definition with its name as it is stored. Raises BadRequest."""
    name = definition.name.strip()
    if not 1 <= len(name) <= MAX_GOAL_NAME:
        raise BadRequest(f"name: expected 1 to {MAX_GOAL_NAME} characters, got {len(name)}")
    if UNFIT_NAME.search(name):
        raise BadRequest("name: expected text of one line, without control characters")
    return evolve(definition, name=name)


def checked_goal(goal: Goal) -> Goal:
    """Return a goal with its texts as they are stored, whatever its name.

    Raises BadRequest naming the field.
    """
    if (goal.path is None) == (goal.event is None):
        raise BadRequest("path: expected exactly one of path and event")
    if goal.value is not None and goal.event is None:
        raise BadRequest("value: expected only with event")
    if (goal.revenue is None) != (goal.currency is None):
        missing = "revenue" if goal.revenue is None else "currency"
        raise BadRequest(f"{missing}: expected both revenue and currency, or neither")
    if goal.currency is not None and goal.currency not in _currencies():
        raise BadRequest("currency: expected the code of a currency (ISO 4217), such as EUR")
    return evolve(
        goal,
        path=None if goal.path is None else _checked_path(goal.path),
        event=_property_name("event", goal.event),
        value=_fit("value", goal.value, 0, MAX_PROPERTY_VALUE),
        revenue=_property_name("revenue", goal.revenue),
    )


@cache
def _currencies() -> frozenset[str]:
    """Return the codes (ISO 4217) of what is, or was, the tender of a country, as CLDR has them."""
    of_countries = get_global("territory_currencies").values()
    return frozenset(
        code for used in of_countries for code, _begin, _end, is_tender in used if is_tender
    )


def _checked_path(text: str) -> str:
    path = _fit("path", text, 1, MAX_PATH) or ""
    if not path.startswith(("/", WILDCARD)):
        raise BadRequest(f"path: expected a path that begins with / or {WILDCARD}")
    return stored_pattern(path)


def _property_name(field: str, text: str | None) -> str | None:
    return _fit(field, text, 1, MAX_PROPERTY_NAME)


def _fit(field: str, text: str | None, least: int, most: int) -> str | None:
    """Return a text without the white space around it, as it is stored; None for None."""
    if text is None:
        return None
    stripped = text.strip()
    if not least <= len(stripped) <= most:
        raise BadRequest(f"{field}: expected {least} to {most} characters, got {len(stripped)}")
    if UNFIT.search(stripped):
        raise BadRequest(f"{field}: expected text without NUL")
    return stripped


EXACT: Final = Context(prec=1_000, traps=[Inexact])
"""Adds and multiplies amounts without rounding: it has room for what `amount_of` returns."""

_NUMBER: Final = re.compile(r"[+-]?(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")


def amount_of(text: str) -> Decimal | None:
    """Return the exact amount in the value of a property, None if it is not a finite number.

    A number that is too large for a browser, or so small that it takes it for zero, is none either.
    """
    number = _NUMBER.match(text)
    if number is None:
        return None
    rounded = float(text)
    if not rounded:
        return None if number["digits"].strip("0.") else Decimal(0)
    return None if isinf(rounded) else Decimal(text)
