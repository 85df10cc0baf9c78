"""The path of a hit: who sends it, what it says, whether it counts; then into the write queue."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.domain.errors import BadRequest, Forbidden, NotFound, TooMany, Unavailable
from medamad.domain.hits import Event, Hit, Leaving, View, Visitor
from medamad.domain.websites import Website
from medamad.ingest.networks import Networks, Sender, prefix_of
from medamad.ingest.page import OriginRule, host_of, page_of, referrer_of, websites_of
from medamad.ingest.payload import Custom, Load, Stated, Unload, decode, decode_stated
from medamad.ingest.rate_limit import Rates
from medamad.ingest.rejections import Rejections, Tally, UnknownHostnames
from medamad.ingest.user_agent import BotRule, describe, is_bot
from medamad.ingest.write_queue import HitQueue
from medamad.lookup.countries import country_of_zone
from medamad.lookup.languages import locale_of
from medamad.lookup.referrers import SpamHosts
from medamad.storage.wal.journal import Outcome
from medamad.storage.websites import Websites


@frozen(kw_only=True, eq=False)
class Rules:
    """What to ignore, and whose midnight begins a day. Replaced as a whole on a reload.

    `hits_per_minute` holds for each /24 or /48; 0 is no limit.
    """

    bots: BotRule = "declared"
    origins: OriginRule = "website"
    blocked: Networks = field(factory=Networks)
    spam: SpamHosts = field(factory=SpamHosts)
    zone: tzinfo = UTC
    respect_gpc: bool = False
    """Whether hits of browsers that send Global Privacy Control are ignored."""
    hits_per_minute: int = 6_000
    logs_rejections: bool = False
    """Whether the log tells of each hit that does not count."""


BOT: Final = "bot"
SPAM: Final = "spam"
BLOCKED: Final = "blocked"
GPC: Final = "gpc"
ORIGIN: Final = "origin"
"""Reasons for which a hit is answered like any other and not stored."""

RATE: Final = "rate"
MALFORMED: Final = "malformed"
UNKNOWN: Final = "unknown-website"
CAPACITY: Final = "capacity"
"""Reasons for which a hit is refused."""

REASONS: Final = (BOT, SPAM, BLOCKED, GPC, ORIGIN, RATE, MALFORMED, UNKNOWN, CAPACITY)


MAX_AGE_S: Final = 7 * 86_400
"""How long ago a hit may have been that a server states the time of."""
_SKEW_S: Final = 60
"""By how much a server's clock may be ahead of ours."""


@frozen
class _Said:
    """What a server says of a hit, and for which websites it may."""

    websites: frozenset[int] | None = None
    happened_ms: int = 0
    visitor: Visitor | None = None
    country: str | None = None


_NOTHING: Final = _Said()


def _happened_ms(stated: Stated, now: float) -> int:
    """Return when a hit was; 0 for now. Raises BadRequest."""
    if stated.time_ms is None:
        return 0
    happened_s = stated.time_ms / 1000
    if not now - MAX_AGE_S <= happened_s <= now + _SKEW_S:
        raise BadRequest("time: expected one of the last 7 days")
    return min(stated.time_ms, round(now * 1000))


@define(eq=False)
class Pipeline:
    """Takes hits in the reactor's thread. `rules` may be replaced at any time.

    `clock` gives Unix seconds; a hit's time is the server's.
    """

    websites: Websites
    queue: HitQueue
    rejections: Rejections
    rates: Rates
    rules: Rules
    _clock: Callable[[], float]
    accepted: Tally = field(factory=Tally, init=False)
    """The hits that were stored."""
    unknown_hostnames: UnknownHostnames = field(factory=UnknownHostnames, init=False)
    _log = Logger()

    def collect(self, body: bytes, sender: Sender) -> Coroutine[Any, Any, str | None]:
        """Take one hit. Returns once it is stored and synced, or at once when it is ignored.

        Returns the reason for which it was ignored, None when it counts. Raises BadRequest naming
        the field that is malformed, NotFound when no website is registered for it, TooMany and
        Unavailable when it was not stored and may be sent again.
        """
        return self._collect(partial(decode, body), sender)

    def collect_load(self, load: Load, sender: Sender) -> Coroutine[Any, Any, str | None]:
        """Take a view that no tracker told of, in the same way."""
        return self._collect(lambda: load, sender)

    async def collect_stated(
        self, body: bytes, sender: Sender, websites: frozenset[int] | None
    ) -> str | None:
        """Take a hit that a server sends for its visitors, of some websites or, by None, of all.

        The sender's address says nothing of the visitor: neither blocked networks nor rates count.
        Otherwise as `collect`; raises Forbidden for another website.
        """
        now = self._clock()
        try:
            payload, stated = decode_stated(body)
            happened_ms = _happened_ms(stated, now)
        except BadRequest:
            self._refuse(None, MALFORMED, now)
            raise
        visitor = None
        if stated.visitor:
            moment = datetime.fromtimestamp((happened_ms or now * 1000) / 1000, self.rules.zone)
            visitor = Visitor(stated.visitor, moment.toordinal())
        agent, language = stated.user_agent, stated.language
        named = Sender(
            address=None,
            user_agent=sender.user_agent if agent is None else agent,
            accept_language=sender.accept_language if language is None else language,
            gpc=sender.gpc,
            sent_bytes=sender.sent_bytes,
        )
        said = _Said(websites, happened_ms, visitor, stated.country)
        return await self._collect(lambda: payload, named, said)

    async def _collect(
        self,
        read: Callable[[], Load | Unload | Custom],
        sender: Sender,
        said: _Said = _NOTHING,
    ) -> str | None:
        now = self._clock()
        wait_s = 0 if self._is_blocked(sender) else self.rates.take(sender.address, now)
        if wait_s:
            self._refuse(None, RATE, now)
            raise TooMany("too many hits from your network", retry_after=wait_s)
        try:
            payload = read()
            match payload:
                case Load():
                    return await self._load(payload, sender, now, said)
                case Custom():
                    return await self._custom(payload, sender, now, said)
                case Unload():
                    return await self._unload(payload, sender, now, said)
        except BadRequest:
            self._refuse(None, MALFORMED, now)
            raise
        except NotFound:
            self._refuse(None, UNKNOWN, now)
            raise

    async def _load(self, load: Load, sender: Sender, now: float, said: _Said) -> str | None:
        page = page_of(load.url)
        website = self._website("u", page.host, now, said)
        reason = self._ignored(sender) or self._foreign(website, sender)
        referrer = ""
        if reason is None and load.referrer:
            referrer = referrer_of(load.referrer, (website.hostname, page.host))
            reason = SPAM if referrer.partition("/")[0] in self.rules.spam else None
        if reason is not None:
            self._refuse(website.number, reason, now)
            return reason
        agent = describe(sender.user_agent)
        await self._store(
            View(
                website=website.number,
                time_ms=round(now * 1000),
                beacon=load.beacon,
                first_today=load.first_today,
                first_of_page=load.first_of_page,
                path=page.path,
                referrer=referrer,
                utm_source=page.utm_source,
                utm_medium=page.utm_medium,
                utm_campaign=page.utm_campaign,
                utm_term=page.utm_term,
                utm_content=page.utm_content,
                browser=agent.browser,
                browser_version=agent.browser_version,
                os=agent.os,
                os_version=agent.os_version,
                device=agent.device,
                country=country_of_zone(load.zone) if said.country is None else said.country,
                locale=locale_of(sender.accept_language),
                host=page.host,
                number_today=load.number_today,
                width_px=load.width_px,
                properties=load.properties,
                happened_ms=said.happened_ms,
                visitor=said.visitor,
            ),
            sender,
            now,
        )
        return None

    async def _custom(self, custom: Custom, sender: Sender, now: float, said: _Said) -> str | None:
        website = self._website("g", custom.hostname, now, said)
        reason = self._ignored(sender) or self._foreign(website, sender)
        if reason is not None:
            self._refuse(website.number, reason, now)
            return reason
        await self._store(
            Event(
                website=website.number,
                time_ms=round(now * 1000),
                properties=custom.properties,
                beacon=custom.beacon,
                happened_ms=said.happened_ms,
            ),
            sender,
            now,
        )
        return None

    async def _unload(self, unload: Unload, sender: Sender, now: float, said: _Said) -> str | None:
        reason = self._ignored(sender)
        if reason is not None:
            return reason
        websites = self._reported(sender) if said.websites is None else said.websites
        if websites is not None and not websites:
            return ORIGIN
        await self._store(
            Leaving(
                time_ms=round(now * 1000),
                beacon=unload.beacon,
                duration_ms=unload.duration_ms,
                websites=websites,
            ),
            sender,
            now,
        )
        return None

    def _refuse(self, number: int | None, reason: str, now: float) -> None:
        """Note that a hit does not count; of no website, or the one with a number."""
        self.rejections.count(number, reason, now)
        if self.rules.logs_rejections:
            website = None if number is None else self.websites.by_number(number)
            where = "no website" if website is None else website.hostname
            self._log.debug(
                "a hit of {website} does not count: {reason}", website=where, reason=reason
            )

    def _website(self, field: str, hostname: str, now: float, said: _Said) -> Website:
        website = self.websites.serving(hostname)
        if website is None:
            self.unknown_hostnames.count(hostname, now)
            raise NotFound(f"{field}: no website is registered for {hostname}")
        if said.websites is not None and website.number not in said.websites:
            raise Forbidden(f"{field}: the token is not for {website.hostname}")
        return website

    def _ignored(self, sender: Sender) -> str | None:
        if self._is_blocked(sender):
            return BLOCKED
        if is_bot(sender.user_agent, self.rules.bots):
            return BOT
        if self.rules.respect_gpc and sender.gpc:
            return GPC
        return None

    def _foreign(self, website: Website, sender: Sender) -> str | None:
        """Return the reason for which a page may not report for a website, None when it may."""
        websites = self._reported(sender)
        return None if websites is None or website.number in websites else ORIGIN

    def _reported(self, sender: Sender) -> frozenset[int] | None:
        """Return the websites that the sender's page may report for, None for all."""
        host = host_of(sender.origin) if self.rules.origins == "website" else None
        return None if host is None else websites_of(host, self.websites)

    def _is_blocked(self, sender: Sender) -> bool:
        return sender.address is not None and sender.address in self.rules.blocked

    async def _store(self, hit: Hit, sender: Sender, now: float) -> None:
        network = None if sender.address is None else prefix_of(sender.address)
        try:
            outcome = await self.queue.add(hit, network, sender.sent_bytes)
        except Unavailable:
            website = None if isinstance(hit, Leaving) else hit.website
            self._refuse(website, CAPACITY, now)
            raise
        if outcome is Outcome.STORED:
            self.accepted.count(now)
        if outcome is Outcome.NO_WEBSITE:
            raise NotFound("the website was deleted while the hit was being stored")


_USUAL_USER_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
_LIBRARY_USER_AGENT: Final = "curl/8.5.0"


def load_tables() -> None:
    """Load what hits need, so that none has to wait for it. For any thread.

    It takes more than a tenth of a second, for which the first hit would hold up all others.
    """
    describe(_USUAL_USER_AGENT)
    is_bot(_LIBRARY_USER_AGENT, "strict")
    page_of("https://bücher.example/")
    country_of_zone("Europe/Berlin")
    locale_of("en-GB")
