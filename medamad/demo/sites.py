"""The invented websites: their pages, referrers, campaigns and events."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from attrs import field, frozen

from medamad.demo.people import Weighted, skewed
from medamad.domain.hits import Properties

Campaign: TypeAlias = tuple[str, str, str, str, str]
"""utm_source, utm_medium, utm_campaign, utm_term, utm_content."""

NO_CAMPAIGN: Final[Campaign] = ("", "", "", "", "")


@frozen(kw_only=True, eq=False)
class DemoWebsite:
    """An invented website. `share` is its share of all visitors, relative to the others."""

    hostname: str
    share: float
    pages: Weighted[str]
    landing_pages: Weighted[str]
    referrers: Weighted[str]
    campaigns: Weighted[Campaign]
    view_properties: Weighted[Properties]
    events: Weighted[Properties]
    event_probability: float = 0.06
    """The probability that a view has an event."""
    depth: float = 2.4
    """The average number of views in a visit."""
    reading_ms: float = 35_000
    """The median time on a page, bounces aside."""
    hosts: tuple[str, ...] = field(default=())


_SEARCH: Final = {
    "": 44.0,
    "google.com/search": 24.0,
    "google.de/search": 4.0,
    "google.co.uk/search": 3.0,
    "bing.com/search": 4.0,
    "duckduckgo.com": 4.0,
    "ecosia.org/search": 1.0,
    "chatgpt.com": 2.0,
    "perplexity.ai": 0.7,
}

_SOCIAL: Final = {
    "reddit.com/r/selfhosted": 3.0,
    "news.ycombinator.com/item": 4.0,
    "t.co/kd83Ja0q": 2.0,
    "facebook.com": 2.0,
    "l.instagram.com": 1.0,
    "linkedin.com/feed": 1.5,
    "bsky.app/profile/example.com/post/3k": 0.8,
    "mastodon.social/@example": 0.8,
    "youtube.com/watch": 1.0,
}

_CAMPAIGNS: Final[Mapping[Campaign, float]] = {
    NO_CAMPAIGN: 86.0,
    ("newsletter", "email", "spring-letter", "", "header"): 3.0,
    ("newsletter", "email", "spring-letter", "", "footer"): 1.0,
    ("newsletter", "email", "release-notes", "", ""): 2.0,
    ("google", "cpc", "brand", "garden tools", "text-a"): 2.5,
    ("google", "cpc", "brand", "watering can", "text-b"): 1.5,
    ("facebook", "social", "summer-sale", "", "carousel"): 2.0,
    ("partner.example", "referral", "summer-sale", "", ""): 1.0,
}

_NOTHING: Final[Properties] = ()


def _paths(prefix: str, slugs: str) -> tuple[str, ...]:
    return tuple(f"{prefix}/{slug}" for slug in slugs.split())


_JOURNAL: Final = _paths(
    "/journal",
    "slow-mornings a-shed-of-ones-own compost-for-beginners the-weight-of-tools autumn-sowing "
    "what-bees-want reading-the-soil twelve-small-fields frost rain-barrels letters-from-readers "
    "the-last-apple winter-light hedges-and-edges seed-saving",
)
_PRODUCTS: Final = _paths(
    "/shop",
    "trowel watering-can seed-box gloves secateurs hose dibber twine fork rake propagator "
    "hori-hori bird-feeder kneeler apron lantern",
)
_DOCS: Final = _paths(
    "/docs",
    "install quick-start configuration storage backups metrics api/authentication api/events "
    "api/statistics upgrading troubleshooting faq glossary release-notes",
)

SITES: Final = (
    DemoWebsite(
        hostname="gardenpost.example",
        share=46,
        pages=skewed(("/", *_JOURNAL, "/about", "/archive", "/subscribe", "/contact")),
        landing_pages=skewed(("/", *_JOURNAL), 0.9),
        referrers=Weighted(_SEARCH | _SOCIAL),
        campaigns=Weighted(_CAMPAIGNS),
        view_properties=Weighted(
            {
                _NOTHING: 70.0,
                (("author", "Ada Moss"), ("topic", "soil")): 12.0,
                (("author", "Ben Hollow"), ("topic", "tools")): 10.0,
                (("author", "Ben Hollow"), ("topic", "seasons")): 8.0,
            }
        ),
        events=Weighted(
            {
                (("action", "subscribe"),): 4.0,
                (("action", "share"), ("network", "mastodon")): 2.0,
                (("action", "share"), ("network", "copy link")): 3.0,
            }
        ),
        depth=1.8,
        reading_ms=62_000,
        hosts=("gardenpost.example", "gardenpost.example", "www.gardenpost.example"),
    ),
    DemoWebsite(
        hostname="shop.gardenpost.example",
        share=30,
        pages=skewed(("/", *_PRODUCTS, "/cart", "/checkout", "/thanks", "/returns"), 0.8),
        landing_pages=skewed(("/", *_PRODUCTS)),
        referrers=Weighted(_SEARCH | {"gardenpost.example": 14.0, "pinterest.com/pin": 4.0}),
        campaigns=Weighted(dict(_CAMPAIGNS) | {NO_CAMPAIGN: 60.0}),
        view_properties=Weighted({_NOTHING: 8.0, (("logged_in", "true"),): 2.0}),
        events=Weighted(
            {
                (("action", "add to cart"), ("product", "trowel")): 5.0,
                (("action", "add to cart"), ("product", "watering-can")): 3.0,
                (("action", "order"), ("total", "34.5"), ("items", "2")): 1.5,
                (("action", "order"), ("total", "12"), ("items", "1")): 2.0,
            }
        ),
        event_probability=0.12,
        depth=3.6,
        reading_ms=24_000,
    ),
    DemoWebsite(
        hostname="docs.tinydaemon.example",
        share=18,
        pages=skewed(("/", *_DOCS), 0.7),
        landing_pages=skewed((*_DOCS[:8], "/", *_DOCS[8:])),
        referrers=Weighted(
            _SEARCH | _SOCIAL | {"github.com/tinydaemon": 16.0, "stackoverflow.com/questions": 6.0}
        ),
        campaigns=Weighted({NO_CAMPAIGN: 1.0}),
        view_properties=Weighted(
            {(("version", "2.1"),): 6.0, (("version", "2.0"),): 3.0, (("version", "1.9"),): 1.0}
        ),
        events=Weighted({(("action", "copy code"),): 6.0, (("search", "backup"),): 1.0}),
        event_probability=0.15,
        depth=3.0,
        reading_ms=48_000,
    ),
    DemoWebsite(
        hostname="adas-photos.example",
        share=6,
        pages=skewed(("/", *(f"/photo/{n}" for n in range(1, 61)), "/bio"), 0.6),
        landing_pages=skewed(("/", *(f"/photo/{n}" for n in range(1, 21)))),
        referrers=Weighted({"": 20.0, "gardenpost.example/about": 6.0} | _SOCIAL),
        campaigns=Weighted({NO_CAMPAIGN: 1.0}),
        view_properties=Weighted({_NOTHING: 1.0}),
        events=Weighted({(("action", "enlarge"),): 1.0}),
        depth=4.5,
        reading_ms=11_000,
    ),
)
