"""User agents: browser, operating system, device, and whether it is a bot."""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from medamad.domain.dimensions import UNKNOWN
from medamad.domain.hits import BotRule
from medamad.domain.redaction import Redaction
from medamad.lookup.robots import LIBRARY, public_list

if TYPE_CHECKING:
    from ua_parser import PartialResult

MAX_LENGTH: Final = 512
"""Characters of a User-Agent that are parsed; browsers send half as many, Meta's apps up to all."""

_OTHERS: Final = (r"\+https?://", r"(?i)compatible; ?[^;)]*(?:bot|crawler|spider)\b")
"""How crawlers that are not in the public list declare themselves."""

_MAX_MEMORY: Final = 64 << 20
"""Bytes that matching may use; with too few, re2 matches nothing."""


def is_crawler(user_agent: str) -> bool:
    """Return whether a crawler, previewer, monitor or headless browser declares itself."""
    matches = _matches(user_agent[:MAX_LENGTH])
    return bool(matches) and not _libraries().issuperset(matches)


def is_library(user_agent: str) -> bool:
    """Return whether a plain HTTP client declares itself."""
    return any(number in _libraries() for number in _matches(user_agent[:MAX_LENGTH]))


_WORDS: Final = r"[a-z][\w.-]*+(?: [a-z][\w.-]*+){0,2}"
"""A name may have so many words: others are sentences, and may be about somebody."""
_DECLARED: Final = re.compile(
    rf"compatible; ?(?=[^;/)+]*(?:bot|crawler|spider)\b)({_WORDS})(?= ?(?:[;/)+\d]|$))",
    re.ASCII | re.IGNORECASE,
)
_PRODUCT: Final = re.compile(rf"(?!Mozilla/|Opera/)({_WORDS})", re.ASCII | re.IGNORECASE)
_MAX_STATED: Final = 40
"""Characters of a name that is in no list. Longer ones are rather tokens than names."""
_REDACTION: Final = Redaction(uuids=True, hexadecimal=True, emails=True)


def robot_name(user_agent: str) -> str:
    """Return the name of a robot: that of the public list, else the one that it states.

    UNKNOWN for one that states none, as one does that pretends to be a browser, or nothing short.
    Of email addresses, UUIDs and hexadecimal numbers nothing is part of it.
    """
    return _robot_name(user_agent[:MAX_LENGTH])


@lru_cache(4_096)
def _robot_name(text: str) -> str:
    matches = _matches(text)
    names = [public_list()[number].name for number in matches if number < len(public_list())]
    if names:
        return max(names, key=len)
    text = _REDACTION.text(text, is_cut=len(text) >= MAX_LENGTH)
    stated = _DECLARED.search(text) or _PRODUCT.match(text)
    name = stated[1].rstrip(" .-_") if stated else ""
    return name if 0 < len(name) <= _MAX_STATED else UNKNOWN


@lru_cache(4_096)
def _matches(user_agent: str) -> tuple[int, ...]:
    """Return the numbers of the entries of the public list that match."""
    return tuple(_patterns().Match(user_agent.encode("utf-8", "replace")) or ())


@cache
def _patterns() -> Any:
    import re2  # noqa: PLC0415 - the daemon starts without it

    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    patterns = re2.Set.SearchSet(options)
    for crawler in public_list():
        patterns.Add(crawler.pattern)
    for pattern in _OTHERS:
        patterns.Add(pattern)
    patterns.Compile()
    return patterns


@cache
def _libraries() -> frozenset[int]:
    return frozenset(
        number for number, crawler in enumerate(public_list()) if LIBRARY in crawler.tags
    )


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


def device_type_of(user_agent: str) -> str:
    """Return "Desktop", "Mobile", "Tablet", "TV", "Console" or "Unknown" for a User-Agent.

    Crawlers are Unknown, whatever they claim to be. An Android without "Mobile" is a tablet.
    """
    if is_crawler(user_agent):
        return UNKNOWN
    return next((name for name, rule in _RULES if rule.search(user_agent)), UNKNOWN)


@frozen
class Agent:
    """The parts of a User-Agent: common names; major versions such as "17", "" if unknown."""

    browser: str = UNKNOWN
    browser_version: str = ""
    os: str = UNKNOWN
    os_version: str = ""
    device: str = UNKNOWN


def describe(user_agent: str) -> Agent:
    """Return the parts of a User-Agent, all Unknown unless it is a browser's."""
    return _describe(user_agent[:MAX_LENGTH])


@lru_cache(4_096)
def _describe(user_agent: str) -> Agent:
    if not user_agent.startswith(("Mozilla/", "Opera/")) or is_library(user_agent):
        return Agent()
    text = user_agent.encode("utf-8", "replace").decode("utf-8")
    parsed = _parse()(text)
    browser, browser_version = _browser(text, parsed)
    os, os_version = _os(text, parsed)
    return Agent(browser, browser_version, os, os_version, device_type_of(text))


def forget_user_agents() -> None:
    """Forget which User-Agents have been seen."""
    _matches.cache_clear()
    _robot_name.cache_clear()
    _describe.cache_clear()


@cache
def _parse() -> "Callable[[str], PartialResult]":
    from ua_parser import Domain, load_lazy_builtins  # noqa: PLC0415 - the daemon starts without it
    from ua_parser.re2 import Resolver  # noqa: PLC0415 - the same

    browsers, systems, _ = load_lazy_builtins()
    resolver = Resolver((browsers, systems, []))
    return lambda text: resolver(text, Domain.USER_AGENT | Domain.OS)


_TOKENS: Final = re.compile(r"\b(OPR|OPT|MiuiBrowser|GSA|Whale|SamsungBrowser)/(\d+)")
"""Tokens that identify a browser, although the public list misses some of their forms."""

_BROWSERS: Final = {
    "OPR": "Opera",
    "OPT": "Opera",
    "MiuiBrowser": "Mi Browser",
    "GSA": "Google App",
    "SamsungBrowser": "Samsung Internet",
    "AOL Shield Browser": "AOL Shield",
    "Amazon Silk": "Silk",
    "Android": "Android Browser",
    "Apple Mail": "Safari",
    "Chrome Mobile": "Chrome",
    "Chrome Mobile WebView": "Chrome",
    "Chrome Mobile iOS": "Chrome",
    "DuckDuckGo Mobile": "DuckDuckGo",
    "Ecosia Android": "Ecosia",
    "Ecosia iOS": "Ecosia",
    "Edge Mobile": "Edge",
    "Facebook Messenger": "Messenger",
    "Firefox Alpha": "Firefox",
    "Firefox Beta": "Firefox",
    "Firefox Focus": "Firefox",
    "Firefox Mobile": "Firefox",
    "Firefox iOS": "Firefox",
    "Google": "Google App",
    "HeadlessChrome": "Headless Chrome",
    "IE": "Internet Explorer",
    "IE Large Screen": "Internet Explorer",
    "IE Mobile": "Internet Explorer",
    "Mobile Safari": "Safari",
    "Mobile Safari UI/WKWebView": "Safari",
    "Oculus Browser": "Meta Quest Browser",
    "Opera GX": "Opera",
    "Opera Mobile": "Opera",
    "Opera Neon": "Opera",
    "Opera Touch": "Opera",
    "QQ Browser Mini": "QQ Browser",
    "QQ Browser Mobile": "QQ Browser",
    "WeChat Browser": "WeChat",
    "WebKit Nightly": "Safari",
}
"""The common name of a browser, by ua-parser's name or by its token."""

_ENGINE_ALONE: Final = "Apple Mail"
"""ua-parser's name for an Apple browser that sends no version but its engine's."""

_SYSTEMS: Final = {
    "ATV OS X": "tvOS",
    "Mac OS": "macOS",
    "Mac OS X": "macOS",
    "Web0S": "webOS",
    "WatchOS": "watchOS",
    "Windows Mobile": "Windows Phone",
    "Chromecast Android": "Chromecast",
    "Chromecast Fuchsia": "Chromecast",
    "Chromecast Linux": "Chromecast",
    "Chromecast SmartSpeaker": "Chromecast",
}
"""The common name of a system, by ua-parser's name."""

_DISTRIBUTIONS: Final = re.compile(
    r"(?:\w*ubuntu|debian|fedora|red ?hat|centos|gentoo|(?:open)?suse|arch ?linux|slackware|"
    r"(?:linux )?mint|mandriva|mageia|pclinuxos|vectorlinux|puppy|oracle|raspbian)\b.*",
    re.IGNORECASE,
)

_SYSTEM_WORDS: Final = {
    "HarmonyOS": "HarmonyOS",
    "PlayStation": "PlayStation",
    "PLAYSTATION": "PlayStation",
    "Nintendo": "Nintendo",
}
"""Systems that ua-parser does not know, by the word that identifies them."""

_IPADOS_FROM: Final = 13
_VERSION: Final = re.compile(r"[0-9A-Za-z]{1,6}\Z", re.ASCII)


def _browser(text: str, parsed: "PartialResult") -> tuple[str, str]:
    """Return the name and the version of the browser."""
    token = _TOKENS.search(text)
    if token is not None:
        name, version = token.groups()
        return _BROWSERS.get(name, name), _version(version)
    agent = parsed.user_agent
    if agent is None or agent.family == "Other":
        return UNKNOWN, ""
    if _REDACTION.text(agent.family) != agent.family:
        # Programs that are in no list have whatever name they state.
        return UNKNOWN, ""
    name = _BROWSERS.get(agent.family, agent.family)
    if agent.family == _ENGINE_ALONE:
        return name, ""
    return name, _version(agent.major)


def _os(text: str, parsed: "PartialResult") -> tuple[str, str]:
    """Return the name and the version of the operating system."""
    for word, name in _SYSTEM_WORDS.items():
        if word in text:
            return name, ""
    found = parsed.os
    if found is None or found.family == "Other":
        return UNKNOWN, ""
    version = _version(found.major)
    if found.family == "iOS" and "iPad" in text and int(found.major or 0) >= _IPADOS_FROM:
        return "iPadOS", version
    if _DISTRIBUTIONS.fullmatch(found.family):
        return "Linux", ""
    return _SYSTEMS.get(found.family, found.family), version


def _version(major: str | None) -> str:
    """Return a major version, or "" for one that is missing or unusual."""
    return "" if major is None or not _VERSION.match(major) else major


def is_bot(user_agent: str, rule: BotRule) -> bool:
    """Return whether a hit with this User-Agent is ignored.

    A plain HTTP client or an unknown agent does not run a tracker by accident: it is a script that
    sends hits on purpose, and only the strict rule ignores it.
    """
    match rule:
        case "off":
            return False
        case "declared":
            return is_crawler(user_agent)
        case "strict":
            return (
                is_crawler(user_agent)
                or is_library(user_agent)
                or describe(user_agent).browser == UNKNOWN
            )
