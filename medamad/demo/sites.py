"""The invented websites: pages, referrers, campaigns, events, and what is defined for them."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from attrs import field, frozen

from medamad.demo.people import Weighted, skewed
from medamad.domain.alerts import Rule
from medamad.domain.goals import Definitions, Funnel, Goal
from medamad.domain.hits import Properties
from medamad.domain.subscriptions import Every
from medamad.domain.website_settings import FOR_NEW_WEBSITES, WebsiteSettings

Campaign: TypeAlias = tuple[str, str, str, str, str]
"""utm_source, utm_medium, utm_campaign, utm_term, utm_content."""

NO_CAMPAIGN: Final[Campaign] = ("", "", "", "", "")


@frozen(kw_only=True)
class DemoShop:
    """What a website sells, and how many of its visitors buy it."""

    prices: Mapping[str, int]
    """The price of a product in cents, by the path of its page."""
    add_probability: float
    """The probability that a visitor who sees a product puts it in the cart."""
    steps: tuple[tuple[str, float], ...]
    """The pages from the cart to the order, each with the probability that a visitor goes on to it.

    Someone with a product in the cart goes on to the first, someone on one of them to the next;
    those who do not go on from there give up.
    """

    def added(self, path: str) -> Properties:
        """Return the event of putting a product in the cart."""
        return (("action", "add to cart"), ("product", path.rpartition("/")[2]))

    def order(self, cart: Sequence[str]) -> Properties:
        """Return the event of ordering products, by the paths of their pages."""
        units, cents = divmod(sum(map(self.prices.__getitem__, cart)), 100)
        return (
            ("action", "order"),
            ("total", f"{units}.{cents:02}"),
            ("items", str(len(cart))),
        )


@frozen
class DemoAlert:
    """A rule that nothing of the invented traffic fits, and when it last fired."""

    rule: Rule
    days_ago: int


@frozen
class DemoAnnotation:
    """What happened to an invented website, some days before the last."""

    days_ago: int
    text: str
    clock: str = ""
    """The time of the day in UTC, "" for the day as a whole."""
    link: str | None = None


@frozen(kw_only=True)
class DemoFlood:
    """An hour in which a program reads an invented website, which an exclusion leaves out."""

    days_ago: int
    share: float
    """Its views, relative to those of all invented people."""
    country: str
    name: str
    """The name of the exclusion."""


@frozen(kw_only=True)
class DemoReport:
    """A report that would be mailed to an invented address if this were no demonstration."""

    address: str
    hostnames: tuple[str, ...]
    every: Every
    day: int
    hour: int
    timezone: str
    language: str
    is_confirmed: bool = True


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
    event_probability: float = 0.1
    """The probability that a view has an event, unless its visit bounces."""
    bounce_probability: float = 0.5
    """The probability that a visit has one view and no event."""
    depth: float = 3.0
    """The average number of views in the other visits, at least 2."""
    reading_ms: float = 35_000
    """The median time on a page, bounces aside."""
    hosts: tuple[str, ...] = field(default=())
    shop: DemoShop | None = None
    definitions: Definitions = field(factory=Definitions)
    alerts: tuple[DemoAlert, ...] = ()
    annotations: tuple[DemoAnnotation, ...] = ()
    flood: DemoFlood | None = None
    settings: WebsiteSettings = FOR_NEW_WEBSITES


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
_PRICES: Final[Mapping[str, int]] = {
    f"/shop/{slug}": cents
    for slug, cents in {
        "trowel": 1450,
        "watering-can": 3290,
        "seed-box": 2400,
        "gloves": 1290,
        "secateurs": 4900,
        "hose": 3950,
        "dibber": 990,
        "twine": 450,
        "fork": 5450,
        "rake": 3800,
        "propagator": 6200,
        "hori-hori": 3400,
        "bird-feeder": 2150,
        "kneeler": 1990,
        "apron": 2950,
        "lantern": 2600,
    }.items()
}
_DOCS: Final = _paths(
    "/docs",
    "install quick-start configuration storage backups metrics api/authentication api/events "
    "api/statistics upgrading troubleshooting faq glossary release-notes",
)

_HOOK: Final = "https://hooks.gardenpost.example/alerts"
"""Nobody can have this name."""

SITES: Final = (
    DemoWebsite(
        hostname="gardenpost.example",
        share=50,
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
        bounce_probability=0.56,
        depth=2.9,
        reading_ms=62_000,
        hosts=("gardenpost.example", "gardenpost.example", "www.gardenpost.example"),
        definitions=Definitions(
            (
                Goal(id="article", name="Article read", path="/journal/*"),
                Goal(id="subscribe", name="Subscription", event="action", value="subscribe"),
                Goal(id="share", name="Article shared", event="action", value="share"),
            )
        ),
        annotations=(
            DemoAnnotation(19, "New design"),
            DemoAnnotation(
                6, "Letter to subscribers", "07:00:00", "https://gardenpost.example/archive"
            ),
        ),
    ),
    DemoWebsite(
        hostname="shop.gardenpost.example",
        share=26,
        pages=skewed(("/", *_PRICES, "/delivery", "/returns"), 0.8),
        landing_pages=skewed(("/", *_PRICES)),
        referrers=Weighted(_SEARCH | {"gardenpost.example": 14.0, "pinterest.com/pin": 4.0}),
        campaigns=Weighted(dict(_CAMPAIGNS) | {NO_CAMPAIGN: 60.0}),
        view_properties=Weighted({_NOTHING: 8.0, (("logged_in", "true"),): 2.0}),
        events=Weighted({(("action", "add to wish list"),): 3.0, (("action", "ask"),): 1.0}),
        event_probability=0.04,
        bounce_probability=0.5,
        depth=4.6,
        reading_ms=24_000,
        shop=DemoShop(
            prices=_PRICES,
            add_probability=0.07,
            steps=(("/cart", 0.55), ("/checkout", 0.64), ("/thanks", 0.72)),
        ),
        definitions=Definitions(
            (
                Goal(id="product", name="Product", path="/shop/*"),
                Goal(id="cart", name="Cart", path="/cart"),
                Goal(id="checkout", name="Checkout", path="/checkout"),
                Goal(
                    id="order",
                    name="Order",
                    event="action",
                    value="order",
                    revenue="total",
                    currency="EUR",
                ),
            ),
            (Funnel("purchase", "Purchase", ("product", "cart", "checkout", "order")),),
        ),
        alerts=(
            DemoAlert(Rule(id="shop-quiet", kind="quiet", url=_HOOK), days_ago=61),
            DemoAlert(
                Rule(id="shop-news", kind="referrer", threshold=5_000, url=_HOOK, format="slack"),
                days_ago=9,
            ),
            DemoAlert(
                Rule(id="shop-order", kind="no-goal", goal="order", hours=168, url=_HOOK),
                days_ago=40,
            ),
        ),
        annotations=(
            DemoAnnotation(33, "Spring catalogue"),
            DemoAnnotation(12, "Shop 2.4 deployed", "14:30:00"),
            DemoAnnotation(12, "Shop 2.4.1 deployed", "15:05:00"),
        ),
        settings=FOR_NEW_WEBSITES.with_changes(
            {
                "bots": "strict",
                "respect_gpc": True,
                "blocked_networks": ["192.0.2.0/24"],
                "excluded_paths": ["/admin/*"],
                "redacted_paths": ["/orders/*", "/invoice/**"],
                "kept_parameters": ["category"],
            }
        ),
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
        event_probability=0.2,
        bounce_probability=0.48,
        depth=4.2,
        reading_ms=48_000,
        definitions=Definitions(
            (
                Goal(id="install", name="Installation read", path="/docs/install"),
                Goal(id="copy", name="Code copied", event="action", value="copy code"),
                Goal(id="search", name="Search", event="search"),
            )
        ),
        annotations=(DemoAnnotation(26, "Version 2.1 released", "09:00:00"),),
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
        bounce_probability=0.46,
        depth=6.5,
        reading_ms=11_000,
        definitions=Definitions(
            (Goal(id="enlarge", name="Photo enlarged", event="action", value="enlarge"),)
        ),
        flood=DemoFlood(days_ago=5, share=0.02, country="SG", name="Photos read by a program"),
    ),
)

REPORTS: Final = (
    DemoReport(
        address="ada@gardenpost.example",
        hostnames=("gardenpost.example", "shop.gardenpost.example"),
        every=Every.WEEK,
        day=1,
        hour=8,
        timezone="Europe/Berlin",
        language="en",
    ),
    DemoReport(
        address="team@tinydaemon.example",
        hostnames=("docs.tinydaemon.example",),
        every=Every.MONTH,
        day=1,
        hour=6,
        timezone="America/New_York",
        language="fr",
        is_confirmed=False,
    ),
)
