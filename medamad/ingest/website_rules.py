"""Which hits of a website count, and what of a page's address is stored: its settings, compiled."""

from functools import lru_cache
from ipaddress import ip_network
from operator import attrgetter
from typing import Final, Self
from urllib.parse import unquote_plus

from attrs import evolve, frozen

from medamad.domain.paths import (
    MAX_PATH,
    PathPattern,
    decoded_path,
    stored_pattern,
    without_empty_segments,
)
from medamad.domain.redaction import Redaction
from medamad.domain.website_settings import DEFAULTS, WebsiteSettings
from medamad.ingest.networks import Networks
from medamad.ingest.page import CACHED, CACHED_TO, MAX_UTM, Page, split_url

_UTM: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_campaign_of: Final = attrgetter(*_UTM)


@frozen(eq=False)
class WebsiteRules:
    """The settings of a website in the form in which hits are compared with them."""

    settings: WebsiteSettings
    blocked: Networks
    countries: frozenset[str]
    excluded: tuple[PathPattern, ...]
    redaction: Redaction

    @classmethod
    def of(cls, settings: WebsiteSettings) -> Self:
        """Compile settings."""
        return cls(
            settings,
            Networks(map(ip_network, settings.blocked_networks)),
            frozenset(settings.blocked_countries),
            tuple(
                PathPattern.of(without_empty_segments(stored_pattern(each)))
                for each in settings.excluded_paths
            ),
            settings.redaction,
        )

    def allows(self, host: str) -> bool:
        """Return whether a page on a host may send hits, by the list of these."""
        return is_on(host, self.settings.allowed_hosts)

    def excludes(self, path: str) -> bool:
        """Return whether the hits of a page are ignored."""
        if not self.excluded:
            return False
        path = without_empty_segments(path)
        return any(pattern.matches(path) for pattern in self.excluded)

    def stored_path(self, path: str, url: str) -> str:
        """Return the path of one of the website's pages as it is stored, with what its URL adds."""
        is_cached = "?" not in url and len(url) <= CACHED_TO
        return (_known_stored_path if is_cached else _stored_path)(self, path, url)

    def stored_anew(self, path: str) -> str | None:
        """Return what a stored path would be if its page were shown now; None if it did not count.

        What of its query was not stored is unknown.
        """
        page, _, query = path.partition("?")
        if "=" not in query:
            # It is part of the path.
            page, query = path, ""
        if self.excludes(page):
            return None
        pairs = [pair.partition("=") for pair in query.split("&")] if query else []
        values = {name: value for name, _, value in pairs[::-1]}
        kept = "&".join(
            f"{name}={self.redaction.text(values[name], is_cut=len(path) >= MAX_PATH)}"
            for name in self.settings.kept_parameters
            if name in values
        )
        redacted = self.redaction.path(page, is_cut=not query and len(path) >= MAX_PATH)
        return f"{redacted}?{kept}" if kept else redacted

    def kept(self, url: str) -> str:
        """Return the parameters of a URL that are kept, in the order of the settings."""
        query = url.partition("#")[0].partition("?")[2]
        first: dict[str, str] = {}
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            first.setdefault(unquote_plus(name), value)
        return "&".join(
            f"{name}={self.redaction.text(decoded_path(first[name].replace('+', ' ')))}"
            for name in self.settings.kept_parameters
            if name in first
        )

    def stored(self, page: Page, url: str) -> Page:
        """Return a page, given with its URL, with what is stored of it."""
        path = self.stored_path(page.path, url)
        page = page if path == page.path else evolve(page, path=path)
        if "?" not in url or not self.redaction.is_of_texts:
            return page
        campaign = _campaign_of(page)
        return self.with_campaign(page, **dict(zip(_UTM, campaign, strict=True)))

    def with_campaign(self, page: Page, **campaign: str) -> Page:
        """Return a page with what is stored of some UTM fields, "" for those that it has itself."""
        changes = {name: self.utm(text) for name, text in campaign.items() if text}
        is_changed = any(getattr(page, name) != text for name, text in changes.items())
        return evolve(page, **changes) if is_changed else page

    def utm(self, text: str) -> str:
        """Return a UTM field as it is stored, given all of it or what MAX_UTM leaves."""
        return self.redaction.text(text[:MAX_UTM], is_cut=len(text) >= MAX_UTM)

    def as_referrer(self, referrer: str, url: str) -> str:
        """Return a referrer that is a page of this website, given with its URL, as it is stored.

        The segments of the path are those of the URL, as in `stored_path`.
        """
        host, slash, _ = referrer.partition("/")
        path = self.redaction.url_path(split_url(url.strip()).path) if slash else ""
        return f"{host}{path}"[:MAX_PATH].rstrip("/")

    def referrer(self, referrer: str) -> str:
        """Return the address of another website's page as it is stored."""
        return self.redaction.text(referrer, is_cut=len(referrer) >= MAX_PATH)


def _stored_path(own: WebsiteRules, path: str, url: str) -> str:
    if own.redaction.patterns:
        path = own.redaction.url_path(split_url(url).path)
    else:
        path = own.redaction.text(path, is_cut=len(path) >= MAX_PATH)
    if own.settings.kept_parameters and (kept := own.kept(url)):
        return f"{path}?{kept}"[:MAX_PATH]
    return path


_known_stored_path: Final = lru_cache(CACHED)(_stored_path)


NO_RULES: Final = WebsiteRules.of(DEFAULTS)
"""Those of a website without settings of its own."""


def is_on(host: str, hosts: tuple[str, ...]) -> bool:
    """Return whether a host is one of some hosts, or on a subdomain of one."""
    return any(host == each or host.endswith(f".{each}") for each in hosts)
