"""Invented robots: how many pages each reads of a website on a day, the same for the same seed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from medamad.demo.people import Weighted
from medamad.demo.sites import DemoWebsite
from medamad.domain.zones import DAY_MS

_PER_VIEW: Final = 0.55
"""Pages that robots read, for each view of a person."""
_SPREAD: Final = (0.7, 1.3)
"""How much less or more it is on a day."""
_GROWING: Final = {"GPTBot": 2.0, "ClaudeBot": 3.0, "ChatGPT-User": 4.0}
"""Robots that read so many times as much on the last day as on the first."""
_NAMES: Final = {
    "Googlebot": 21.0,
    "GPTBot": 12.0,
    "bingbot": 9.0,
    "ClaudeBot": 9.0,
    "AhrefsBot": 7.0,
    "meta-externalagent": 5.0,
    "ChatGPT-User": 4.0,
    "Applebot": 4.0,
    "Bytespider": 4.0,
    "UptimeRobot": 4.0,
    "SEMrushBot": 3.0,
    "PerplexityBot": 2.5,
    "CCBot": 2.0,
    "OAI-SearchBot": 2.0,
    "Claude-User": 1.5,
    "facebookexternalhit": 1.5,
    "python-requests": 1.5,
    "DuckDuckBot": 1.0,
    "Perplexity-User": 1.0,
    "Slackbot": 0.7,
    "curl": 0.7,
    "Unknown": 0.7,
    "HeadlessChrome": 0.5,
}


def robots(
    until_ms: int, days: int, views: int, numbers: Mapping[str, int], sites: Sequence[DemoWebsite]
) -> dict[tuple[int, int], dict[str, dict[str, int]]]:
    """Return what robots read on the days until a moment, by website and day, for so many views."""
    found = {}
    last = until_ms // DAY_MS
    whole_share = sum(site.share for site in sites)
    for site in sites:
        random = Random(site.hostname)  # noqa: S311 - not used for security
        per_day = _PER_VIEW * views / days * site.share / whole_share
        for place in range(days):
            age = (place + 1) / days
            names = Weighted(
                {
                    name: share * (1 + (_GROWING.get(name, 1) - 1) * age)
                    for name, share in _NAMES.items()
                }
            )
            pages = Counter(
                (names.draw(random), site.pages.draw(random))
                for _ in range(round(per_day * random.uniform(*_SPREAD)))
            )
            counts: dict[str, dict[str, int]] = {}
            for (name, path), count in pages.items():
                counts.setdefault(name, {})[path] = count
            found[numbers[site.hostname], last - days + 1 + place] = counts
    return found
