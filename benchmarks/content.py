"""The website of the benchmarks: its pages, their properties, and its referrers and campaigns."""

from random import Random
from typing import Final, Self

import numpy as np
from attrs import frozen
from audience import PLANS
from numpy.typing import NDArray
from weighted_draws import Odds, coded, most_common, zipf

from medamad.demo.sites import NO_CAMPAIGN, SITES, Campaign
from medamad.domain.dimensions import Dimension, property_text

HOSTNAME: Final = SITES[0].hostname

_UTM: Final = (
    Dimension.UTM_SOURCE,
    Dimension.UTM_MEDIUM,
    Dimension.UTM_CAMPAIGN,
    Dimension.UTM_TERM,
    Dimension.UTM_CONTENT,
)
_REFERRERS: Final = 2_000
_SMALL_REFERRERS_SHARE: Final = 0.1
_CAMPAIGNS_SHARE: Final = 0.07
_FIRST_NAMES: Final = ("Ada", "Ben")
_AUTHORS: Final = 40
_TOPICS: Final = 110
_PAIRS: Final = 500
_ARTICLES: Final = 4
"""One page in this many is an article, with an author and a topic."""
# fmt: off
_WORDS: Final = (
    "soil", "frost", "seed", "hedge", "apple", "willow", "rain", "compost", "lantern", "orchard",
    "meadow", "bramble", "thyme", "fennel", "barrow", "spade", "trellis", "pond", "moss", "fern",
    "harvest", "winter", "spring", "summer", "autumn", "beekeeping", "pruning", "grafting",
    "mulch", "greenhouse", "terrace", "balcony",
)
# fmt: on
_DONE: Final = ("subscribe", "share", "print", "listen", "rate", "download")
_NETWORKS: Final = ("mastodon", "copy link", "mail", "bluesky", "reddit")
_PRODUCTS: Final = 30


@frozen(eq=False)
class Patterns:
    """The properties of views and events: row k of `properties` has those of pattern k.

    `properties` has shape (k, 2), indices into `texts`, -1 for none; pattern 0 has nothing.
    `plans` are the patterns of PLANS, `events` those of what happens on a page.
    """

    texts: tuple[str, ...]
    properties: NDArray[np.int16]
    of_articles: slice
    plans: NDArray[np.uint16]
    events: NDArray[np.uint16]

    @classmethod
    def of(cls, random: Random) -> Self:
        """Draw the authors and topics of articles, and list the other patterns."""
        authors = [("author", f"{name} {word.title()}") for word in _WORDS for name in _FIRST_NAMES]
        topics = [("topic", f"{word} {n}" if n else word) for n in range(4) for word in _WORDS]
        articles = [
            [random.choice(authors[: random.randint(1, _AUTHORS)]), random.choice(topics[:_TOPICS])]
            for _ in range(_PAIRS)
        ]
        plans = [[("plan", plan)] for plan in PLANS]
        events = [[("action", done)] for done in _DONE]
        events += [[("action", "share"), ("network", network)] for network in _NETWORKS]
        events += [[("action", "order"), ("product", f"tool-{n}")] for n in range(_PRODUCTS)]
        numbers: dict[str, int] = {}
        rows = [[-1, -1]]
        for pattern in (*articles, *plans, *events):
            row = [numbers.setdefault(property_text(*pair), len(numbers)) for pair in pattern]
            rows.append([*row, -1][:2])
        first_plan = 1 + len(articles)
        first_event = first_plan + len(plans)
        return cls(
            texts=tuple(numbers),
            properties=np.array(rows, np.int16),
            of_articles=slice(1, first_plan),
            plans=np.arange(first_plan, first_event, dtype=np.uint16),
            events=np.arange(first_event, len(rows), dtype=np.uint16),
        )


@frozen(eq=False)
class Content:
    """The texts of the dimensions that depend on the visited page, and how often each is drawn.

    `texts` has those of the paths, referrers, UTM fields and properties, by code. Path p was
    published on day `published_day[p]`, 0 for always, and has the pattern `pattern[p]`; campaign c
    has the codes `campaigns[dimension][c]`.
    """

    texts: dict[Dimension, tuple[str, ...]]
    path_odds: Odds
    landing_odds: Odds
    published_day: NDArray[np.uint16]
    pattern: NDArray[np.uint16]
    patterns: Patterns
    referrer_odds: Odds
    campaigns: dict[Dimension, NDArray[np.unsignedinteger]]
    campaign_odds: Odds

    @classmethod
    def of(cls, seed: int, days: int, paths: int, steepness: float) -> Self:
        """Return a website with `paths` paths, half of them published within those days."""
        random = Random(seed)
        numbers = np.random.default_rng(seed)
        patterns = Patterns.of(random)
        published_day = numbers.integers(0, days, paths).astype(np.uint16)
        published_day[: (paths + 1) // 2] = 0
        pattern = np.zeros(paths, np.uint16)
        articles = np.arange(1, paths, _ARTICLES)
        pattern[articles] = numbers.integers(
            patterns.of_articles.start, patterns.of_articles.stop, len(articles)
        )
        referrers, referrer_weights = _referrers(random)
        campaigns, campaign_weights = _campaigns()
        texts = {
            Dimension.PATH: _paths(random, paths),
            Dimension.REFERRER: referrers,
            Dimension.PROPERTY: patterns.texts,
        }
        codes = {}
        for dimension, values in zip(_UTM, zip(*campaigns, strict=True), strict=True):
            texts[dimension], codes[dimension] = coded(values)
        return cls(
            texts=texts,
            path_odds=Odds.of(zipf(paths, steepness)),
            landing_odds=Odds.of(zipf(paths, steepness * 1.1)),
            published_day=published_day,
            pattern=pattern,
            patterns=patterns,
            referrer_odds=Odds.of(referrer_weights),
            campaigns=codes,
            campaign_odds=Odds.of(campaign_weights),
        )


def _paths(random: Random, count: int) -> tuple[str, ...]:
    found = dict.fromkeys(path for path, _ in most_common(SITES[0].pages, random))
    while len(found) < count:
        folder = random.choice(("journal", "journal", "guides", "shop", "letters", "tags"))
        words = "-".join(random.choices(_WORDS, k=random.randint(2, 4)))
        found[f"/{folder}/{words}-{len(found)}"] = None
    return tuple(found)[:count]


def _referrers(random: Random) -> tuple[tuple[str, ...], list[float]]:
    known = most_common(SITES[0].referrers, random)
    weights = {referrer: float(times) for referrer, times in known}
    small = zipf(_REFERRERS - len(weights), 0.9)
    small *= sum(weights.values()) * _SMALL_REFERRERS_SHARE / small.sum()
    for n, weight in enumerate(small.tolist()):
        host = f"{random.choice(_WORDS)}{n // 3}.example"
        weights[f"{host}/{random.choice(_WORDS)}-{n}"] = weight
    return tuple(weights), list(weights.values())


def _campaigns() -> tuple[list[Campaign], NDArray[np.float64]]:
    """Return campaigns: mostly none, else a newsletter, an advertisement or a post."""
    found: list[Campaign] = [
        ("newsletter", "email", f"letter-{n}", "", place)
        for n in range(24)
        for place in ("header", "footer")
    ]
    found += [
        ("google", "cpc", f"{season}-{n}", term, f"text-{n}")
        for season in ("spring", "summer", "autumn")
        for n in range(4)
        for term in ("garden tools", "watering can", "apple tree")
    ]
    found += [
        (site, "social", f"{word}-week", "", "")
        for site in ("mastodon", "facebook", "bluesky", "partner.example")
        for word in _WORDS[:12]
    ]
    weights = zipf(len(found), 0.8)
    weights *= _CAMPAIGNS_SHARE / (1 - _CAMPAIGNS_SHARE) / weights.sum()
    return [NO_CAMPAIGN, *found], np.concatenate(([1.0], weights))
