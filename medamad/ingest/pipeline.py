"""The path of a hit, from its bytes to the write queue.

Every hit takes it, whether it comes from the tracker, from the pixel or from a server with a token:

    receive         counts it against the rate limit and decodes it (`payload`), then one of
    _view           for a page that was shown: `_website`, `_reason_to_ignore`, `page`, `user_agent`
    _event          for something that happened on a website
    _unload         for a page that was left
    _error_behind   counts it by its outcome, once the write queue has stored it

`web/routes/hits.py` calls `receive` and turns what it returns or raises into a response.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Final, Protocol, TypeAlias

import msgspec
from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.domain.accounts import Scope, Token
from medamad.domain.dimensions import WidthClass
from medamad.domain.errors import BadRequest, Forbidden, NotFound, TooMany, Unavailable
from medamad.domain.hits import BotRule, Event, Hit, HostingRule, OriginRule, Unload, View, Visitor
from medamad.domain.websites import Website
from medamad.ingest.hit_counts import (
    RecentCount,
    RecentHits,
    RecentSenders,
    UncountedHits,
    UnknownHostnames,
)
from medamad.ingest.networks import Networks, Sender, host_prefix_of
from medamad.ingest.page import Source, host_of, page_of, source_of, websites_of, websites_on
from medamad.ingest.payload import (
    CustomPayload,
    LoadPayload,
    Payload,
    ServerFields,
    UnloadPayload,
    decode_payload,
    decode_server_hit,
)
from medamad.ingest.rate_limit import RateLimiter
from medamad.ingest.robot_counts import PendingRobots
from medamad.ingest.user_agent import describe, is_bot, robot_name
from medamad.ingest.website_rules import NO_RULES, WebsiteRules, is_on
from medamad.ingest.write_queue import Stored, WriteQueue
from medamad.lookup.countries import country_of_zone
from medamad.lookup.languages import locale_of
from medamad.lookup.referrers import SpamHosts
from medamad.lookup.robots import HOSTING_NETWORK
from medamad.storage.wal.log import Outcome
from medamad.storage.websites import Websites


@frozen(kw_only=True, eq=False)
class Rules:
    """Which hits to ignore, and the time zone of a day. Replaced as a whole on a reload.

    `hits_per_minute` is the rate limit of each /24 or /48; 0 means no limit.
    """

    bots: BotRule = "declared"
    origins: OriginRule = "website"
    blocked: Networks = field(factory=Networks)
    hosting: Networks = field(factory=Networks)
    """The networks of hosting providers."""
    hosting_rule: HostingRule = "count"
    spam: SpamHosts = field(factory=SpamHosts)
    zone: tzinfo = UTC
    respect_gpc: bool = False
    """Whether hits of browsers that send Global Privacy Control are ignored."""
    is_exempt: bool = False
    """Whether no website may ignore `respect_gpc`, or count hits of pages on other hosts."""
    hits_per_minute: int = 6_000
    has_visits: bool = True
    """Whether the store assigns views to visits, for which it needs to know the sender."""
    has_visitors: bool = True
    """Whether visitors are counted, for which browsers or servers remember or say who was here."""
    has_returning: bool = False
    """Whether browsers remember when their visitor was here last, and views are stored with it."""
    logs_uncounted: bool = False
    """Whether each hit that does not count is logged."""

    def hosting_rule_of(self, own: WebsiteRules) -> HostingRule:
        """Return what becomes of hits from hosting providers' networks, on a website."""
        return own.settings.hosting or self.hosting_rule

    def check_own(self, respect_gpc: bool | None) -> None:
        """Raise BadRequest if a website may not have this as its setting."""
        if self.is_exempt and respect_gpc is False:
            raise BadRequest("respect_gpc: the configuration's preset for privacy requires it")


BOT: Final = "bot"
HOSTING: Final = "hosting"
SPAM: Final = "spam"
BLOCKED: Final = "blocked"
GPC: Final = "gpc"
ORIGIN: Final = "origin"
COUNTRY: Final = "country"
PATH: Final = "path"
"""Reasons to ignore a hit: it gets the same response as any other, and is not stored."""

RATE: Final = "rate"
MALFORMED: Final = "malformed"
UNKNOWN_WEBSITE: Final = "unknown-website"
CAPACITY: Final = "capacity"
"""Reasons to reject a hit: it gets an error."""

REASONS: Final = (
    BOT,
    HOSTING,
    SPAM,
    BLOCKED,
    GPC,
    ORIGIN,
    COUNTRY,
    PATH,
    RATE,
    MALFORMED,
    UNKNOWN_WEBSITE,
    CAPACITY,
)
"""Why a hit does not count: it is ignored or rejected."""

Received: TypeAlias = Callable[[str | Exception | None], object]
"""Called once with the reason why a hit is ignored; with Unavailable if it was not stored and may
be sent again, or NotFound if its website was deleted meanwhile; with None if it is stored, and also
for a load that was stored before and an unload whose view is unknown."""


class OtherCollectors(Protocol):
    """The other collectors of a cluster. They call `stored` as the write queue does."""

    def take(self, view: View, visitor_name: str, stored: Stored, /) -> bool:
        """Pass a view on if its visitor is another collector's; return whether it is."""

    def offer(self, hit: Unload | Event, stored: Stored, /) -> None:
        """Pass a hit on to the collector that has its view, which is unknown here."""


_NO_SOURCE: Final = Source()

_KEPT_BEACONS: Final = 20_000
"""Of how many views that do not count events are recognised."""

MAX_HIT_AGE_S: Final = 7 * 86_400
"""The greatest age of a hit whose time a server states."""
_SKEW_S: Final = 60
"""How far a server's clock may be ahead of ours."""


class _Arrival(msgspec.Struct, frozen=True):
    """How a hit arrived: who sent it and when, and what a server with a token states about it."""

    sender: Sender
    now: float
    websites: frozenset[int] | None = None
    """The numbers of the websites that the token is for, None for all or without a token."""
    happened_ms: int = 0
    visitor: Visitor | None = None
    country: str | None = None
    visitor_name: str | None = None
    """The server's id of the visitor, "" for none; None without a token."""

    @property
    def identity(self) -> bytes:
        """Who sent a view, for the table of live visits, which hashes it; b"" if nobody knows.

        It stays in memory, and is never stored or logged.
        """
        sender, name = self.sender, self.visitor_name
        if name is not None:
            return f"\0{name}\0{sender.accept_language}".encode() if name else b""
        address = b"" if sender.address is None else host_prefix_of(sender.address)
        browser = f"{sender.user_agent}\0{sender.accept_language}".encode()
        return b"%c%b%b" % (1 + len(address), address, browser)


@frozen
class _Ignored:
    """Why a hit is ignored, and the number of its website, None if that is not known."""

    reason: str
    website: int | None = None


@define(eq=False)
class Pipeline:
    """Takes hits in the reactor's thread. `rules` may be replaced at any time.

    `clock` returns Unix seconds; the time of a hit is when it arrived.
    """

    websites: Websites
    queue: WriteQueue
    robots: PendingRobots
    rules: Rules
    _clock: Callable[[], float]
    rate_limiter: RateLimiter = field(factory=RateLimiter)
    others: OtherCollectors | None = None
    """The other collectors of a cluster; None without any."""
    uncounted: UncountedHits = field(factory=UncountedHits, init=False)
    accepted: RecentCount = field(factory=RecentCount, init=False)
    """The hits that were stored."""
    unknown_hostnames: UnknownHostnames = field(factory=UnknownHostnames, init=False)
    senders: RecentSenders = field(factory=RecentSenders, init=False)
    last_views_s: dict[int, float] = field(factory=dict, init=False)
    """When the last view of each website arrived as a hit, by its number."""
    _website_rules: dict[int, WebsiteRules] = field(factory=dict, init=False)
    _ignored_views: dict[str, str] = field(factory=dict, init=False)
    """Why views were ignored for what only they say, by their beacons, the oldest first."""
    _log = Logger()

    def receive(
        self,
        sent: bytes | LoadPayload,
        sender: Sender,
        received: Received,
        token: Token | None = None,
    ) -> None:
        """Take one hit. Call `received` once it is on disk, or at once if it is ignored.

        `sent` is the body of the request, or the view that the pixel counts. With a `token`, the
        hit comes from a server on behalf of its visitors: it may state things that no tracker may,
        and as its address is not the visitor's, neither blocked networks nor the rate limit apply.

        Raises BadRequest naming the malformed field, Unauthorised and Forbidden for what the token
        does not permit, NotFound if no website is registered for the hit, TooMany if there are too
        many.
        """
        now = self._clock()
        try:
            payload: Payload
            if token is None or isinstance(sent, LoadPayload):
                self._check_rate(sender, now)
                self.senders.count(sender)
                payload = sent if isinstance(sent, LoadPayload) else decode_payload(sent)
                arrival = _Arrival(sender, now)
            else:
                if token.scope not in (Scope.SEND, Scope.FULL):
                    raise Forbidden("this takes a token whose scope is full or send")
                payload, fields = decode_server_hit(sent)
                arrival = self._server_arrival(sender, fields, token, now)
            hit = self._hit_of(payload, arrival)
        except BadRequest:
            self._count_out(None, MALFORMED, now)
            raise
        except NotFound:
            self._count_out(None, UNKNOWN_WEBSITE, now)
            raise
        if isinstance(hit, _Ignored):
            if hit.website is not None:
                self._count_out(hit.website, hit.reason, now)
            received(hit.reason)
            return
        taken = hit

        def stored(outcome: Outcome | Exception) -> None:
            received(self._error_behind(outcome, taken, now))

        if self.others is None:
            self.queue.add(hit, stored, arrival.sender.network, arrival.sender.sent_bytes)
        else:
            self._store_or_pass_on(hit, arrival, stored, self.others)

    def recent_hits(self, now: float) -> RecentHits:
        """Return the hits of the last 24 hours, or since the start."""
        return RecentHits(
            self.accepted.last_day(now),
            self.uncounted.of_all(now),
            self.unknown_hostnames.newest(now),
        )

    def _store_or_pass_on(
        self, hit: Hit, arrival: _Arrival, stored: Stored, others: OtherCollectors
    ) -> None:
        """Store a hit here, or have another collector of the cluster store it."""
        wanted, sender = stored, arrival.sender
        if isinstance(hit, View):
            if arrival.visitor_name and others.take(hit, arrival.visitor_name, stored):
                return
        elif hit.beacon:
            offered = hit
            if isinstance(hit, Event):
                hit = msgspec.structs.replace(hit, needs_view=True)

            def stored_or_elsewhere(outcome: Outcome | Exception) -> None:
                if outcome is Outcome.NO_VIEW:
                    others.offer(offered, stored)
                else:
                    stored(outcome)

            wanted = stored_or_elsewhere
        self.queue.add(hit, wanted, sender.network, sender.sent_bytes)

    def _hit_of(self, payload: Payload, arrival: _Arrival) -> Hit | _Ignored:
        match payload:
            case LoadPayload():
                return self._view(payload, arrival)
            case CustomPayload():
                return self._event(payload, arrival)
            case UnloadPayload():
                return self._unload(payload, arrival)

    def _check_rate(self, sender: Sender, now: float) -> None:
        """Raise TooMany if the sender's network is over its rate; blocked networks do not count."""
        if self._is_blocked(sender):
            return
        wait_s = self.rate_limiter.take(sender.network, self.rules.hits_per_minute, now)
        if wait_s:
            self._count_out(None, RATE, now)
            raise TooMany("too many hits from your network", retry_after=wait_s)

    def _server_arrival(
        self, sender: Sender, fields: ServerFields, token: Token, now: float
    ) -> _Arrival:
        """Return the visitor as a server describes it. Raises BadRequest."""
        happened_ms = _happened_ms(fields, now)
        visitor = None
        if fields.visitor and not fields.has_flags and self.rules.has_visitors:
            moment = datetime.fromtimestamp((happened_ms or now * 1000) / 1000, self.rules.zone)
            visitor = Visitor(fields.visitor, moment.toordinal())
        agent, language = fields.user_agent, fields.language
        described = Sender(
            address=None,
            user_agent=sender.user_agent if agent is None else agent,
            accept_language=sender.accept_language if language is None else language,
            gpc=sender.gpc,
            sent_bytes=sender.sent_bytes,
        )
        websites = None if token.websites is None else frozenset(token.websites)
        return _Arrival(
            described, now, websites, happened_ms, visitor, fields.country, fields.visitor
        )

    def _view(self, load: LoadPayload, arrival: _Arrival) -> View | _Ignored:
        sender, rules = arrival.sender, self.rules
        page = page_of(load.url)
        website = self._website("u", page.host, arrival)
        own = self._rules_of(website)
        country = country_of_zone(load.zone) if arrival.country is None else arrival.country
        reason = self._reason_to_ignore(sender, website)
        if reason is None and (country in own.countries or own.excludes(page.path)):
            reason = COUNTRY if country in own.countries else PATH
            self._remember_ignored(load.beacon, reason)
        source = _NO_SOURCE
        if reason is None and load.referrer:
            source = source_of(load.referrer, (website.hostname, page.host))
            if source.referrer and source.referrer.partition("/")[0] in rules.spam:
                reason = SPAM
        if reason is not None:
            self._count_robot(reason, load, arrival, website)
            return _Ignored(reason, website.number)
        agent = describe(sender.user_agent)
        page = own.stored(page, load.url)
        view = View.__new__(View)
        # One by one: a call with so many keywords takes a microsecond longer.
        view.website = website.number
        view.time_ms = round(arrival.now * 1000)
        view.beacon = load.beacon
        view.path = page.path
        view.referrer = self._stored_referrer(source.referrer, load.referrer, own)
        view.utm_source = page.utm_source
        view.utm_medium = page.utm_medium
        view.utm_campaign = page.utm_campaign
        view.utm_term = page.utm_term
        view.utm_content = page.utm_content
        view.browser = agent.browser
        view.browser_version = agent.browser_version
        view.os = agent.os
        view.os_version = agent.os_version
        view.device = agent.device
        view.country = country
        view.locale = locale_of(sender.accept_language)
        view.host = page.host
        view.since = load.since if rules.has_returning else ""
        view.width_class = WidthClass.of(load.width_px)
        view.first_today = load.first_today and rules.has_visitors
        view.first_of_page = load.first_of_page and rules.has_visitors
        # Where they do not count, the view is from elsewhere.
        view.hosting = rules.hosting_rule_of(own) == "count" and self._is_hosting(sender)
        view.happened_ms = arrival.happened_ms
        view.visitor = arrival.visitor
        view.properties = own.redaction.properties(load.properties)
        view.network = sender.network
        view.identity = arrival.identity if rules.has_visits else b""
        view.number_today = load.number_today if rules.has_visitors else 0
        # A name tells visitors apart, so no width has to.
        view.width_px = 0 if arrival.visitor_name else load.width_px
        view.from_page = (
            None
            if source.own_page is None
            else own.stored_path(source.own_page, load.referrer.strip())
        )
        return view

    def _count_robot(
        self, reason: str, load: LoadPayload, arrival: _Arrival, website: Website
    ) -> None:
        """Count a view that is ignored among those of robots, if it is by one."""
        rules, own, agent = self.rules, self._rules_of(website), arrival.sender.user_agent
        if reason == BOT or (reason == HOSTING and rules.hosting_rule_of(own) == "count apart"):
            time_s = arrival.happened_ms / 1000 or arrival.now
            name = robot_name(agent) if reason == BOT else HOSTING_NETWORK
            path = own.stored_path(page_of(load.url).path, load.url)
            self.robots.count(website.number, time_s, rules.zone, name, path)

    def _stored_referrer(self, referrer: str, url: str, own: WebsiteRules) -> str:
        """Return a referrer without what the website never stores.

        Nor what another website of this daemon never stores, if the referrer is a page of that one.
        """
        if not referrer:
            return ""
        website = self.websites.serving(referrer.partition("/")[0])
        if website is not None:
            referrer = self._rules_of(website).as_referrer(referrer, url)
        return own.referrer(referrer)

    def _event(self, custom: CustomPayload, arrival: _Arrival) -> Event | _Ignored:
        website = self._website("g", custom.hostname, arrival)
        reason = self._reason_to_ignore(arrival.sender, website)
        reason = reason or self._ignored_views.get(custom.beacon)
        if reason is not None:
            return _Ignored(reason, website.number)
        return Event(
            website=website.number,
            time_ms=round(arrival.now * 1000),
            properties=self._rules_of(website).redaction.properties(custom.properties),
            beacon=custom.beacon,
            happened_ms=arrival.happened_ms,
            network=arrival.sender.network,
        )

    def _unload(self, unload: UnloadPayload, arrival: _Arrival) -> Unload | _Ignored:
        """Return the end of a view. Only the store knows, by the beacon, which website it is of."""
        host = host_of(arrival.sender.origin)
        websites = arrival.websites
        if websites is None:
            websites = self._websites_from(host)
        candidates: Iterable[Website | None] = ()
        if websites is not None:
            candidates = map(self.websites.by_number, sorted(websites))
        elif host is not None:
            candidates = websites_on(host, self.websites)
        # It counts if it does for one of the websites that its view may be of.
        reasons = [self._reason_to_ignore(arrival.sender, each) for each in candidates if each]
        reason = (reasons or [self._reason_to_ignore(arrival.sender)])[0]
        reason = reason if all(reasons) else None
        if reason := reason or self._ignored_views.get(unload.beacon):
            return _Ignored(reason)
        if websites is not None and not websites:
            return _Ignored(ORIGIN)
        return Unload(
            time_ms=round(arrival.now * 1000),
            beacon=unload.beacon,
            duration_ms=unload.duration_ms,
            websites=websites,
        )

    def _website(self, field: str, hostname: str, arrival: _Arrival) -> Website:
        """Return the website of a hostname. Raises NotFound, Forbidden."""
        website = self.websites.serving(hostname)
        if website is None:
            self.unknown_hostnames.count(hostname, arrival.now)
            raise NotFound(f"{field}: no website is registered for {hostname}")
        if arrival.websites is not None and website.number not in arrival.websites:
            raise Forbidden(f"{field}: the token is not for {website.hostname}")
        return website

    def _reason_to_ignore(self, sender: Sender, website: Website | None = None) -> str | None:
        """Return why a sender's hit is ignored, None if it is not."""
        rules, address = self.rules, sender.address
        own = NO_RULES if website is None else self._rules_of(website)
        if address is not None and (address in rules.blocked or address in own.blocked):
            return BLOCKED
        if is_bot(sender.user_agent, own.settings.bots or rules.bots):
            return BOT
        if rules.hosting_rule_of(own) != "count" and self._is_hosting(sender):
            return HOSTING
        if sender.gpc and self.respects_gpc(website):
            return GPC
        if website is not None:
            host = host_of(sender.origin)
            if host is not None and not self._may_send(host, website, own):
                return ORIGIN
        return None

    def respects_gpc(self, website: Website | None) -> bool:
        """Return whether hits with Global Privacy Control are ignored, of a known website."""
        own = None if website is None else website.settings.respect_gpc
        return self.rules.respect_gpc if own is None or self.rules.is_exempt else own

    def _may_send(self, host: str, website: Website, own: WebsiteRules) -> bool:
        """Return whether a page on a host may send hits for a website."""
        rules, allowed = self.rules, own.settings.allowed_hosts
        if allowed and not own.allows(host):
            return False
        if (allowed or rules.origins == "any") and not rules.is_exempt:
            return True
        return self.websites.serving(host) is website or website in websites_on(host, self.websites)

    def _websites_from(self, host: str | None) -> frozenset[int] | None:
        """Return the websites whose views a page on a host may end by number, None for all."""
        if host is None or self.rules.origins == "any":
            return None
        others = [
            website.number
            for website in self.websites.with_allowed_hosts
            if is_on(host, website.settings.allowed_hosts)
        ]
        found = websites_of(host, self.websites)
        return found.union(others) if others else found

    def _rules_of(self, website: Website) -> WebsiteRules:
        """Return the compiled settings of a website."""
        known = self._website_rules.get(website.number)
        if known is None or known.settings is not website.settings:
            known = WebsiteRules.of(website.settings)
            self._website_rules[website.number] = known
        return known

    def is_ignored(self, beacon: str) -> bool:
        """Return whether a view came here and was ignored for what only it says."""
        return beacon in self._ignored_views

    def _remember_ignored(self, beacon: str, reason: str) -> None:
        """Remember why a view is ignored, so that its events are ignored, too."""
        self._ignored_views[beacon] = reason
        if len(self._ignored_views) > _KEPT_BEACONS:
            del self._ignored_views[next(iter(self._ignored_views))]

    def _is_blocked(self, sender: Sender) -> bool:
        return sender.address is not None and sender.address in self.rules.blocked

    def _is_hosting(self, sender: Sender) -> bool:
        return sender.address is not None and sender.address in self.rules.hosting

    def _error_behind(self, outcome: Outcome | Exception, hit: Hit, now: float) -> Exception | None:
        """Count a hit by its outcome. Return why it was not stored, None if it is not an error."""
        if outcome is Outcome.STORED:
            self.accepted.count(now)
            if isinstance(hit, View):
                self.last_views_s[hit.website] = now
        elif outcome is Outcome.NO_WEBSITE:
            self._count_out(None, UNKNOWN_WEBSITE, now)
            return NotFound("the website was deleted while the hit was being stored")
        elif isinstance(outcome, Exception):
            if isinstance(outcome, Unavailable):
                self._count_out(None if isinstance(hit, Unload) else hit.website, CAPACITY, now)
            return outcome
        return None

    def _count_out(self, number: int | None, reason: str, now: float) -> None:
        """Count a hit that does not count, for the website of that number or for none."""
        self.uncounted.count(number, reason, now)
        if self.rules.logs_uncounted:
            website = None if number is None else self.websites.by_number(number)
            hostname = "no website" if website is None else website.hostname
            self._log.debug(
                "a hit of {website} does not count: {reason}", website=hostname, reason=reason
            )


def _happened_ms(fields: ServerFields, now: float) -> int:
    """Return when a hit happened, in Unix milliseconds; 0 for now. Raises BadRequest."""
    if fields.time_ms is None:
        return 0
    happened_s = fields.time_ms / 1000
    if not now - MAX_HIT_AGE_S <= happened_s <= now + _SKEW_S:
        raise BadRequest("time: expected one of the last 7 days")
    return min(fields.time_ms, round(now * 1000))


_USUAL_USER_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
_LIBRARY_USER_AGENT: Final = "curl/8.5.0"


def load_tables() -> None:
    """Load the tables that hits need, which takes a tenth of a second. For any thread."""
    describe(_USUAL_USER_AGENT)
    is_bot(_LIBRARY_USER_AGENT, "strict")
    robot_name(_LIBRARY_USER_AGENT)
    page_of("https://bücher.example/")
    country_of_zone("Europe/Berlin")
    locale_of("en-GB")
