"""Taking a URL apart that a stranger has written, in a time that its length bounds."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

MAX_AUTHORITY: Final = 512
"""Characters of user, host and port that are looked at. The longest host has half of them."""

_LONG_AUTHORITY: Final = re.compile(rf"[^/]*+/[\t\n\r]*+/[^/?#]{{{MAX_AUTHORITY + 1}}}")
"""As `urlsplit` finds it, which passes over tabs and line ends."""


def split_url(url: str) -> SplitResult:
    """Take a URL apart as `urlsplit` does. Raises ValueError for what is none.

    That normalises what stands for the host unless it is ASCII, and the time for this grows with
    the square of the combining characters in a row: so nothing long is normalised.
    """
    if not url.isascii() and _LONG_AUTHORITY.match(url):
        raise ValueError("a host is not that long")
    return urlsplit(url)
