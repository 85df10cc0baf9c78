"""Reports that are mailed regularly: to whom, of which websites, and when."""

import secrets
from enum import StrEnum
from typing import Final

from attrs import evolve, frozen

MAX_SUBSCRIPTIONS: Final = 100
"""How many of them a website may be in."""
MAX_ALL_SUBSCRIPTIONS: Final = 10_000
_SECRET_BYTES: Final = 18
_ID_BYTES: Final = 6
_REMEMBERED: Final = 53
"""A clock that is set back repeats nothing of so many weeks, a year."""


class Every(StrEnum):
    """How often a report comes, and so what it is of."""

    WEEK = "week"
    MONTH = "month"


LAST_DAY: Final = {Every.WEEK: 7, Every.MONTH: 28}
"""The last day of a week (Sunday), or of any month, on which a report can be mailed."""


@frozen(kw_only=True)
class Subscription:
    """A report that is mailed to an address on a day of each week or month, after what it is of.

    Times in Unix seconds. `websites` are their numbers. `secret` is the part of the addresses that
    confirm and end it.
    """

    id: str
    secret: str
    address: str
    websites: tuple[int, ...]
    every: Every
    day: int
    """1 is Monday, or the first of the month."""
    hour: int
    timezone: str
    language: str
    created: int
    confirmed: int | None = None
    """When the address was confirmed; nothing is mailed before."""
    done: tuple[str, ...] = ()
    """The names of the last weeks or months whose report needs no further attempt."""
    trying: str = ""
    """That of the one which is being mailed, or may have arrived."""
    tries: int = 0
    """How often that one may have arrived."""
    changed: int = 0
    """What was due until then is not mailed, since another schedule holds; 0 for the first one."""
    number: int = 0
    """Which one it was of those that were made in the same second."""

    @property
    def schedule(self) -> tuple[object, ...]:
        """When it is mailed."""
        return self.every, self.day, self.hour, self.timezone

    @property
    def since(self) -> int | None:
        """After when what becomes due is mailed, None before the address is confirmed."""
        return None if self.confirmed is None else self.changed or self.confirmed

    def with_try(self, name: str) -> "Subscription":
        """Return it with one more attempt to mail a report, which is about to be made."""
        return evolve(self, trying=name, tries=self.tries_of(name) + 1)

    def without_try(self) -> "Subscription":
        """Return it without the last attempt, which has certainly failed."""
        return evolve(self, tries=max(self.tries - 1, 0))

    def with_done(self, name: str) -> "Subscription":
        """Return it with a report that needs no further attempt."""
        return evolve(self, done=(*self.done, name)[-_REMEMBERED:], trying="", tries=0)

    def tries_of(self, name: str) -> int:
        """Return how often a report may have arrived."""
        return self.tries if self.trying == name else 0


def new_secret() -> str:
    """Return a text that nobody can guess."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def new_subscription_id() -> str:
    """Return a new id."""
    return secrets.token_hex(_ID_BYTES)
