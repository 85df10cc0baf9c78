"""Random hits around the moments at which clocks change, and random queries of them."""

import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from attrs import define
from support.query.hits import HIT_OF_ITS_OWN
from support.query.naive_filters import ENTRIES, EPOCH, EXITS, NUMBERS
from support.query.oracle import Entry

from medamad.domain.goals import Definitions, Funnel, Goal

MOMENTS = [
    datetime.fromisoformat(text)
    for text in (
        "2018-03-25T01:00:00Z",  # Berlin forward
        "2018-10-28T01:00:00Z",  # Berlin back
        "2018-11-04T03:00:00Z",  # São Paulo forward, over midnight
        "2018-02-18T02:00:00Z",  # São Paulo back, over midnight
        "2018-11-04T05:00:00Z",  # Havana back, to midnight
        "2018-03-31T15:00:00Z",  # Lord Howe back, by half an hour
        "2011-12-30T10:00:00Z",  # Apia leaves a day out
        "1969-12-31T23:59:59Z",
    )
]
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "America/Havana",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
)
VALUES = {
    "path": ("/", "/a", "/A", "/a/b", "/straße", "/with,comma"),
    "referrer": ("", "google.com", "google.de/search", "t.co", "other.example/a", "(other)"),
    "utm_source": ("", "news", "News", "(other)"),
    "utm_medium": ("", "mail"),
    "utm_campaign": ("", "x", "y"),
    "utm_term": ("", "x"),
    "utm_content": ("", "x"),
    "browser": ("Unknown", "Firefox", "Chrome"),
    "os": ("Unknown", "Linux"),
    "device": ("Unknown", "Mobile", "Desktop"),
    "country": ("", "DE", "GB", "(other)"),
    "locale": ("", "en-GB", "en-US", "de-DE", "en", "(other)"),
}
SINCE = ("", "new", "month", "midweek", "week", "day")
NAMES = ("plan", "Plan", "logged_in", "(other)")
PROPERTY_VALUES = ("free", "pro", "true", "", "(other)", "12.50", "1e3", "-0.125", "3")
GOALS = Definitions(
    (
        Goal(id="a", name="A", path="/a"),
        Goal(id="below", name="Below a", path="/a*", revenue="Plan", currency="EUR"),
        Goal(id="any", name="Any page", path="*"),
        Goal(id="plan", name="Plan", event="plan", revenue="plan", currency="EUR"),
        Goal(id="pro", name="Pro", event="plan", value="pro", revenue="logged_in", currency="JPY"),
        Goal(id="login", name="Login", event="logged_in"),
        Goal(id="none", name="None", event="unknown", revenue="plan", currency="EUR"),
    ),
    (
        Funnel("pages", "Pages", ("any", "below", "a")),
        Funnel("buys", "Buys", ("any", "plan", "login")),
        Funnel("mixed", "Mixed", ("login", "a", "pro", "plan", "any")),
        Funnel("never", "Never", ("none", "any")),
    ),
)
FILTERED = {
    **{field: values for field, values in VALUES.items() if field not in ("country", "locale")},
    "country": ("Germany", "unknown", "DE", ""),
    "language": ("English", "british english", "Unknown", ""),
    "prop_name": NAMES,
    "prop_value": PROPERTY_VALUES,
}
FILTERED["referrer"] += ("google", "Twitter")
FILTERED |= {name: FILTERED[field] for name, field in {**ENTRIES, **EXITS}.items()}
DURATIONS_MS = (0, 0, 1, 2, 4999, 5000, 5001, 86_400_000)
OPTIONS = {
    "limit": ("1", "2", "5000"),
    "offset": ("1", "3", "5000"),
    "summary": ("true", "false"),
    "views": ("true", "false"),
    "visits": ("true", "false"),
    "total": ("true", "false"),
    "order": ("visitors", "pageviews", "visits"),
    "grouped": ("false",),
    "locale": ("true",),
}
OPERATORS = ("eq", "contains", "starts_with", "ends_with", "in")
INTERVALS = ("minute", "hour", "day", "week", "month")
REACH_MS = {
    "minute": 3_600_000,
    "hour": 2 * 86_400_000,
    "day": 5 * 86_400_000,
    "week": 30 * 86_400_000,
    "month": 70 * 86_400_000,
}


@define
class RandomTraffic:
    """Hits, and queries that may name goals, within `REACH_MS[interval]` of a moment."""

    rng: random.Random
    moment: datetime
    interval: str
    goals: Definitions = GOALS

    @property
    def reach_ms(self) -> int:
        return REACH_MS[self.interval]

    @property
    def now_ms(self) -> int:
        """A moment before the last hits: a clock can be set back."""
        return int(self.moment.timestamp() * 1000) + self.reach_ms // 2

    def time_ms(self) -> int:
        around_ms = int(self.moment.timestamp() * 1000)
        return around_ms + self.rng.randint(-self.reach_ms, self.reach_ms)

    def views(self, count: int) -> list[Entry]:
        rng = self.rng
        views = [
            {
                "id": number,
                "time_ms": self.time_ms(),
                "p": rng.random() < 0.5,
                "q": rng.random() < 0.7,
                "duration_ms": rng.choice((*DURATIONS_MS, rng.randrange(9999))),
                **{field: rng.choice(values) for field, values in VALUES.items()},
            }
            for number in sorted(rng.sample(range(1, 3 * count + 2), count))
        ]
        known = rng.random() < 0.7
        for view in views:
            view["since"] = rng.choice(SINCE[known:])
            view["hosting"] = rng.random() < 0.3
        live: list[int] = []
        for view in views:
            kind = rng.random()
            if live and kind < 0.6:
                view["visit"] = rng.choice(live)
            elif kind < 0.9:
                view["visit"] = view["id"]
                live = [*live[-3:], view["id"]]
        if rng.random() < 0.3:
            # What began earlier may be deleted while the rest of it remains.
            del views[: rng.randint(0, 3)]
        return views

    def events(self, count: int, views: list[Entry]) -> list[Entry]:
        rng = self.rng
        known = [None, 10**9, *(view["id"] for view in views)]
        loading = {view["id"]: view["time_ms"] for view in views}

        def event(number: int) -> Entry:
            view = rng.choice(known)
            # The properties of a load are one event; others may have its time, too.
            of_load = view in loading and rng.random() < 0.5
            time_ms = loading.pop(view) if of_load else self.time_ms()
            if view in loading and rng.random() < 0.2:
                time_ms = loading[view]
            return {
                "time_ms": time_ms,
                "view": view,
                "of_load": of_load,
                "number": view + 1 if of_load else HIT_OF_ITS_OWN + number,
                "properties": [
                    (rng.choice(NAMES), rng.choice(PROPERTY_VALUES))
                    for _ in range(rng.randint(1, 4))
                ],
            }

        return [event(number) for number in range(count)]

    def query(self, endpoint: str) -> list[tuple[str, str]]:
        rng = self.rng
        query = self._period()
        query += [self._filter() for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        if endpoint in ("summary", "goals"):
            if rng.random() < 0.8:
                query.append(("interval", self.interval))
            if rng.random() < 0.6:
                query.append(("timezone", rng.choice(ZONES)))
        if endpoint == "summary":
            if dict(query).keys() >= {"start", "end"} and rng.random() < 0.5:
                query.append(("previous", "true"))
            if rng.random() < 0.6:
                query.append(("visits", "true"))
            return query
        if endpoint in ("next", "previous"):
            query.append(("of", rng.choice(VALUES["path"])))
        if self.goals.goals and rng.random() < 0.2:
            query.append(("conversions", rng.choice(self.goals.goals).id))
        return query + [
            (name, rng.choice(values)) for name, values in OPTIONS.items() if rng.random() < 0.3
        ]

    def rule(self) -> list[tuple[str, str]]:
        """Return the filters and the period of a rule that leaves out what matches."""
        return [*self._period(), *(self._filter() for _ in range(self.rng.choice((0, 1, 1, 2))))]

    def _period(self) -> list[tuple[str, str]]:
        start_ms, end_ms = sorted((self.time_ms(), self.time_ms()))
        # A second more, since whole seconds are cut off: the order has to stay.
        bounds = {"start": self.written(start_ms), "end": self.written(end_ms + 1000)}
        return [(name, text) for name, text in bounds.items() if self.rng.random() < 0.75]

    def written(self, time_ms: int) -> str:
        """Return a time as a parameter."""
        zone = ZoneInfo(self.rng.choice(ZONES))
        moment = (EPOCH + timedelta(milliseconds=time_ms)).astimezone(zone)
        text = moment.isoformat(timespec=self.rng.choice(("seconds", "milliseconds")))
        return self.rng.choice((text, text.replace("+", " ")))

    def _filter(self) -> tuple[str, str]:
        if self.rng.random() < 0.1:
            return self.rng.choice(("hosting", "hosting[eq]")), self.rng.choice(("true", "false"))
        if self.rng.random() < 0.2:
            return self._filter_on_behaviour()
        if self.goals.goals and self.rng.random() < 0.1:
            if self.rng.random() < 0.5:
                field = self.rng.choice(("visitor", "visitor[eq]"))
                return field, self.rng.choice(("new", "returning"))
            return self.rng.choice(("goal", "goal[eq]")), self.rng.choice(self.goals.goals).id
        field = self.rng.choice(tuple(FILTERED))
        operator = self.rng.choice(OPERATORS)
        value = self.value_of(field, operator)
        if self.rng.random() < 0.4:
            operator = "neq" if operator == "eq" else f"not_{operator}"
        bare = operator == "eq" and self.rng.random() < 0.5
        return field if bare else f"{field}[{operator}]", value

    def _filter_on_behaviour(self) -> tuple[str, str]:
        rng = self.rng
        field = rng.choice(("visit_bounce", *NUMBERS))
        if field == "visit_bounce":
            return rng.choice((field, f"{field}[eq]")), rng.choice(("true", "false"))
        numbers = (0, 1, 2, 3) if field == "visit_views" else (*DURATIONS_MS, 6000)
        return f"{field}[{rng.choice(('gte', 'lte'))}]", str(rng.choice(numbers))

    def value_of(self, field: str, operator: str) -> str:
        """Return a value for a filter."""
        rng = self.rng
        if operator == "in":
            return ",".join(rng.choice(FILTERED[field]) for _ in range(rng.randint(1, 3)))
        value = rng.choice(FILTERED[field])
        if operator != "eq" and rng.random() < 0.7:
            low = rng.randint(0, len(value))
            value = value[low : rng.randint(low, len(value))]
        return rng.choice((value, value.upper(), value.lower()))
