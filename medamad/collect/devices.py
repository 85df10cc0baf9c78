"""The kind of device behind a User-Agent, by rules in a fixed order."""

import re
from typing import Final

from medamad.collect.crawlers import is_crawler
from medamad.model.dimensions import UNKNOWN

_CONSOLE: Final = r"PlayStation|Nintendo|Xbox|OculusBrowser|\bQuest\b|Steam Deck"
_TV: Final = (
    r"Smart-?TV|Google ?TV|Apple ?TV|Android ?TV|HbbTV|NetCast|Web0S|Roku|BRAVIA|AQUOS|Viera|"
    r"Vizio|CrKey|MiTV|MiBOX|DLNADOC|LG Browser|InettvBrowser|\bTV\b|Android.*\bAFT[A-Z0-9]{1,5}\b"
)
_TABLET: Final = (
    r"iPad|Tablet(?! PC)|PlayBook|Kindle(?!.*Mobile)|\bSilk/(?!.*Mobile)|"
    r"Android(?!.*(?:Mobi|Opera Mini|Fennec))"
)
_MOBILE: Final = r"Mobi|Android|iPhone|iPod|Phone|Opera Mini|BlackBerry|\bBB10|Symbian|KAIOS|Nokia"
_DESKTOP: Final = r"Windows|Macintosh|Mac OS X|X11|CrOS|Linux|BSD"

_RULES: Final = tuple(
    (name, re.compile(rule, re.IGNORECASE))
    for name, rule in (
        ("Console", _CONSOLE),
        ("TV", _TV),
        ("Tablet", _TABLET),
        ("Mobile", _MOBILE),
        ("Desktop", _DESKTOP),
    )
)
"""The first that matches counts."""


def device_of(user_agent: str) -> str:
    """Give "Desktop", "Mobile", "Tablet", "TV", "Console" or "Unknown" for a browser's agent.

    A crawler's is Unknown, whatever it passes itself off as. Android tablets are those that leave
    out "Mobile".
    """
    if is_crawler(user_agent):
        return UNKNOWN
    return next((name for name, rule in _RULES if rule.search(user_agent)), UNKNOWN)
