"""Share links: what shows the figures of one website to whoever has the link."""

from typing import Final

from attrs import frozen

MAX_SHARES: Final = 1_000
"""How many share links there may be."""

ANY_ORIGIN: Final = "*"


@frozen
class Share:
    """A share link. `created` in Unix seconds.

    `id` is the part of its address that nobody can guess; `website` a number; `password_hash`
    Argon2's encoded form, "" where no password is asked for; `embed` the origins whose pages may
    show it in a frame, or ANY_ORIGIN alone.
    """

    id: str
    name: str
    website: int
    created: int
    password_hash: str = ""
    embed: tuple[str, ...] = ()
    number: int = 0
    """Which one it was of those that were made in the same second."""
