"""Counts the lines of an access log that is followed: what robots read, and page loads or views.

Page loads are counted by browser: GET requests for a page that were answered with 200. Views are
what an import takes for them; see `sources.access_log`, also for what a page is and which requests
are robots'. No line and no address is kept.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from secrets import token_bytes
from typing import Final, NamedTuple, TypeAlias

from attrs import define, field
from msgspec.structs import replace

from medamad.domain.zones import DAY_S, day_at
from medamad.ingest.networks import address_of, prefix_of
from medamad.ingest.page import source_of
from medamad.ingest.user_agent import describe, robot_name
from medamad.ingest.website_rules import WebsiteRules
from medamad.lookup.languages import locale_of
from medamad.lookup.robots import HOSTING_NETWORK, is_listed
from medamad.storage.followed_logs import FollowedWebsite, LogCounts, LoggedView
from medamad.storage.request_totals import merge_counts
from medamad.transfer.import_context import ImportTarget, SkipReason
from medamad.transfer.sources.access_log import ViewedPage, is_program, viewed_page
from medamad.transfer.sources.log_lines import LINE, LoggedRequest, LogLineError, parse_log_line

_KEPT: Final = 1 << 16
"""What is kept of lines that were counted, as most repeat: all of it is forgotten at this size."""
_TO_MINUTE: Final = len("10/Oct/2000:13:55")
_ZONE: Final = len(" +0000")
_HASH_BYTES: Final = 16
_NETWORK_BYTES: Final = 8

new_key: Final = partial(token_bytes, _HASH_BYTES)
"""Returns a key for hashes of visitors."""

_Key: TypeAlias = tuple[bytes | str | bool | None, ...]
"""What decides what a line counts as, but its day and its address."""


class _Counted(NamedTuple):
    """What a line counts as: a request of a robot, of a browser, or both that and a page load."""

    website: int
    name: str
    """Of the robot; "" for people."""
    browser: str
    path: str
    is_load: bool


class _Viewed(NamedTuple):
    """What a line of a person counts as: a view, without what differs from line to line."""

    website: int
    own_hosts: tuple[str, str]
    view: LoggedView


@define(eq=False)
class LineCounter:
    """Counts lines until `take`. All of them belong to `hostname`, "" for what their hosts say."""

    target: ImportTarget
    websites: Mapping[str, FollowedWebsite]
    """The websites by hostname; may be replaced."""
    _clock: Callable[[], float] = time.time
    visitor_key: bytes | None = None
    """The key of visitors' hashes; None to count page loads rather than views."""
    invalid: int = 0
    """How many lines are not in a known format, of those that were not seen before."""
    reason: str = ""
    """What is wrong with the last of these, without anything that is in it."""
    _counts: Counter[tuple[_Counted, int]] = field(factory=Counter)
    """By what a line counts as, and by day."""
    _views: list[LoggedView] = field(factory=list)
    _known: dict[_Key, _Counted | _Viewed | None] = field(factory=dict)
    _rules: dict[int, WebsiteRules] = field(factory=dict)
    """The compiled settings of the websites, by number."""
    _blocking: frozenset[int] = frozenset()
    """The websites that have blocked networks of their own."""
    _days: dict[bytes, int] = field(factory=dict)
    """Days by the times of lines, up to the minute."""
    _networks: dict[bytes, bool | None] = field(factory=dict)
    """Whether addresses are of hosting providers; None for those that are blocked."""
    _blocked: dict[tuple[int, bytes], bool] = field(factory=dict)
    """Whether a website blocks an address."""

    def __attrs_post_init__(self) -> None:
        self.use_websites(self.websites)

    def count(self, lines: bytes) -> None:
        """Count some lines."""
        rules = self.target.rules
        has_networks = len(rules.blocked) > 0 or len(rules.hosting) > 0
        for line in lines.split(b"\n"):
            if not line:
                continue
            match = LINE.match(line)
            if match is None:
                self._count_other(line)
                continue
            host, address, moment, request, status, _, agent = match.groups()
            is_hosting = self._is_hosting(address) if has_networks else False
            if is_hosting is None:
                continue
            key = (host, request, status, agent, is_hosting)
            try:
                counted = self._known[key]
            except KeyError:
                counted = self._learn(key, line, is_hosting=is_hosting)
            if counted is not None and not self._is_blocked(counted.website, address):
                if isinstance(counted, _Viewed):
                    self._add_view(counted, self._parsed(line))
                    continue
                day = self._days.get(moment[:_TO_MINUTE] + moment[-_ZONE:])
                if day is None and (day := self._learn_day(moment, line)) is None:
                    continue
                self._counts[counted, day] += 1

    def take(self) -> LogCounts:
        """Return what was counted, and begin anew."""
        counts, self._counts = self._counts, Counter()
        taken = LogCounts(robots={}, loads={}, views=tuple(self._views))
        self._views.clear()
        for (counted, day), number in counts.items():
            more = {counted.path: number}
            if counted.name:
                of_day = taken.robots.setdefault(counted.website, {}).setdefault(day, {})
                merge_counts(of_day, {counted.name: more}, is_listed=is_listed)
            if counted.is_load:
                of_day = taken.loads.setdefault(counted.website, {}).setdefault(day, {})
                merge_counts(of_day, {counted.browser: more})
        return taken

    def use_websites(self, websites: Mapping[str, FollowedWebsite]) -> None:
        """Replace the websites."""
        self.websites = websites
        self._known.clear()
        self._blocked.clear()
        self._rules = {each.number: WebsiteRules.of(each.settings) for each in websites.values()}
        self._blocking = frozenset(
            number for number, rules in self._rules.items() if len(rules.blocked)
        )

    def _count_other(self, line: bytes) -> None:
        """Count a line that is not in the common or combined format."""
        if not line.strip():
            return
        request = self._parsed(line)
        if request is None:
            return
        is_hosting = self._is_hosting(request.address.encode())
        if is_hosting is None:
            return
        key = (
            *(request.host, request.method, request.target, request.user_agent),
            *(str(request.status), request.content_type, is_hosting),
        )
        try:
            counted = self._known[key]
        except KeyError:
            counted = self._keep(key, self._counted(request, is_hosting=is_hosting))
        if counted is None or self._is_blocked(counted.website, request.address.encode()):
            return
        if isinstance(counted, _Viewed):
            self._add_view(counted, request)
            return
        day = self._day(request)
        if day is not None:
            self._counts[counted, day] += 1

    def _learn(self, key: _Key, line: bytes, *, is_hosting: bool) -> _Counted | _Viewed | None:
        request = self._parsed(line)
        if request is None:
            return None
        return self._keep(key, self._counted(request, is_hosting=is_hosting))

    def _keep(self, key: _Key, counted: _Counted | _Viewed | None) -> _Counted | _Viewed | None:
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[key] = counted
        return counted

    def _learn_day(self, moment: bytes, line: bytes) -> int | None:
        request = self._parsed(line)
        day = None if request is None else self._day(request)
        if day is not None:
            if len(self._days) >= _KEPT:
                self._days.clear()
            self._days[moment[:_TO_MINUTE] + moment[-_ZONE:]] = day
        return day

    def _day(self, request: LoggedRequest) -> int | None:
        """Return the day of a request, None if it is too far in the future."""
        time_s = request.time_ms // 1000
        return None if time_s > self._clock() + DAY_S else day_at(self.target.rules.zone, time_s)

    def _parsed(self, line: bytes) -> LoggedRequest | None:
        try:
            return parse_log_line(line)
        except LogLineError as error:
            self.invalid += 1
            self.reason = f"{error.field}: {error}"
            return None

    def _counted(self, request: LoggedRequest, *, is_hosting: bool) -> _Counted | _Viewed | None:
        viewed = viewed_page(request, self.target)
        if isinstance(viewed, SkipReason):
            return None
        path = viewed.page.path
        website = self._website(self.target.hostname or viewed.host)
        if website is None:
            return None
        own = self._rules[website.number]
        agent, bots = request.user_agent, own.settings.bots
        name, rule = "", self.target.rules.hosting_rule_of(own) if is_hosting else "count"
        if is_program(agent, self.target.rules.bots if bots is None else bots):
            name = robot_name(agent or "")
        elif rule == "count apart":
            name = HOSTING_NETWORK
        elif rule == "ignore" or own.excludes(path):
            return None
        elif self.visitor_key is not None:
            return self._viewed(website.number, viewed, agent or "", is_hosting=is_hosting)
        is_load = request.status == HTTPStatus.OK and self.visitor_key is None
        if not name and not is_load:
            return None
        return _Counted(
            website.number,
            name,
            "" if name else describe(agent or "").browser,
            own.stored_path(path, viewed.url),
            is_load,
        )

    def _viewed(self, website: int, viewed: ViewedPage, agent: str, *, is_hosting: bool) -> _Viewed:
        page = self._rules[website].stored(viewed.page, viewed.url)
        described = describe(agent)
        view = LoggedView(
            website=website,
            time_ms=0,
            visitor="",
            network=b"",
            path=page.path,
            host=viewed.host,
            referrer="",
            from_page=None,
            utm_source=page.utm_source,
            utm_medium=page.utm_medium,
            utm_campaign=page.utm_campaign,
            utm_term=page.utm_term,
            utm_content=page.utm_content,
            browser=described.browser,
            browser_version=described.browser_version,
            os=described.os,
            os_version=described.os_version,
            device=described.device,
            locale="",
            hosting=is_hosting,
        )
        return _Viewed(website, (self.target.hostname, page.host), view)

    def _add_view(self, viewed: _Viewed, request: LoggedRequest | None) -> None:
        if request is None or self._day(request) is None:
            return
        own = self._rules[viewed.website]
        source = source_of(request.referrer, viewed.own_hosts)
        if source.referrer.partition("/")[0] in self.target.rules.spam:
            return
        referrer, from_page = source.referrer, source.own_page
        if other := self._website(referrer.partition("/")[0]):
            referrer = self._rules[other.number].as_referrer(referrer, request.referrer)
        if from_page is not None:
            from_page = own.stored_path(from_page, request.referrer.strip())
        address = address_of(request.address)
        network = b"" if address is None else self._hash(prefix_of(address))[:_NETWORK_BYTES]
        visitor = f"{request.address}\0{request.user_agent or ''}"
        self._views.append(
            replace(
                viewed.view,
                time_ms=request.time_ms,
                visitor=self._hash(visitor.encode()).hex(),
                network=network,
                referrer=own.referrer(referrer),
                from_page=from_page,
                locale=locale_of(request.accept_language),
            )
        )

    def _hash(self, what: bytes) -> bytes:
        return blake2b(what, digest_size=_HASH_BYTES, key=self.visitor_key or b"").digest()

    def _website(self, host: str) -> FollowedWebsite | None:
        bare = host.removeprefix("www.")
        other = bare if bare != host else f"www.{host}"
        return self.websites.get(host, self.websites.get(other))

    def _is_blocked(self, website: int, address: bytes) -> bool:
        if website not in self._blocking:
            return False
        known = self._blocked.get((website, address))
        if known is None:
            if len(self._blocked) >= _KEPT:
                self._blocked.clear()
            packed = address_of(address.decode("ascii", "replace"))
            known = packed is not None and packed in self._rules[website].blocked
            self._blocked[website, address] = known
        return known

    def _is_hosting(self, address: bytes) -> bool | None:
        try:
            return self._networks[address]
        except KeyError:
            pass
        if len(self._networks) >= _KEPT:
            self._networks.clear()
        packed, rules = address_of(address.decode("ascii", "replace")), self.target.rules
        is_hosting = None
        if packed is None or packed not in rules.blocked:
            is_hosting = packed is not None and packed in rules.hosting
        self._networks[address] = is_hosting
        return is_hosting
