"""API tokens: what stands in for the account where a program asks."""

from enum import StrEnum
from typing import Final

from attrs import frozen

MAX_TOKENS: Final = 100
"""How many tokens there may be."""


class Scope(StrEnum):
    """What a token may be used for."""

    READ = "read"
    """To read figures."""
    SEND = "send"
    """To send hits from a server."""
    FULL = "full"
    """Both, and to register, rename and delete websites."""


@frozen
class Token:
    """A token, known by the SHA-256 of its text. Times in Unix seconds, None for never.

    `id` names it and opens nothing; `websites` are their numbers, None for all of them.
    """

    id: str
    name: str
    scope: Scope
    websites: tuple[int, ...] | None
    created: int
    expires: int | None = None
    last_used: int | None = None
    """The beginning of the day (UTC) on which it was used last."""
    number: int = 0
    """Which one it was of those that were made in the same second."""
