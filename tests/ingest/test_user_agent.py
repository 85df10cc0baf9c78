from collections.abc import Callable

import pytest
from crawleruseragents import CRAWLER_USER_AGENTS_DATA
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.hits import BotRule
from medamad.ingest.user_agent import (
    MAX_LENGTH,
    Agent,
    describe,
    device_type_of,
    is_bot,
    is_crawler,
    is_library,
    robot_name,
)

WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
LINUX = "Mozilla/5.0 (X11; Linux x86_64)"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X)"
PHONE = "Mozilla/5.0 (Linux; Android 10; K)"
WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)"
CHROME = "Chrome/120.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("user_agent", "agent"),
    [
        (f"{WINDOWS} {BLINK} {CHROME}", "Chrome 120, Windows 10, Desktop"),
        (f"{MAC} {WEBKIT} Version/17.1 Safari/605.1.15", "Safari 17, macOS 10, Desktop"),
        (
            "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0",
            "Firefox 120, Linux, Desktop",
        ),
        (
            "Mozilla/5.0 (X11; Fedora; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0",
            "Firefox 120, Linux, Desktop",
        ),
        (f"{LINUX} {BLINK} {CHROME} Vivaldi/6.5.3206.39", "Vivaldi 6, Linux, Desktop"),
        (
            "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " + f"{BLINK} {CHROME}",
            "Chrome 120, Chrome OS 14541, Desktop",
        ),
        (f"{WINDOWS} {BLINK} {CHROME} Edg/120.0.2210.61", "Edge 120, Windows 10, Desktop"),
        (f"{WINDOWS} {BLINK} {CHROME} OPR/104.0.0.0", "Opera 104, Windows 10, Desktop"),
        (
            "Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko",
            "Internet Explorer 11, Windows 7, Desktop",
        ),
        (
            f"{PHONE} {BLINK} Chrome/120.0.0.0 Mobile Safari/537.36",
            "Chrome 120, Android 10, Mobile",
        ),
        (
            (
                "Mozilla/5.0 (Linux; Android 13; Pixel 7 Build/TQ3A; wv) "
                f"{BLINK} Version/4.0 Chrome/120.0.0.0 Mobile Safari/537.36"
            ),
            "Chrome 120, Android 13, Mobile",
        ),
        (
            f"{PHONE} {BLINK} SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36",
            "Samsung Internet 23, Android 10, Mobile",
        ),
        (
            f"{PHONE} {BLINK} Chrome/117.0.0.0 Mobile Safari/537.36 OPR/77.5",
            "Opera 77, Android 10, Mobile",
        ),
        (
            "Mozilla/5.0 (Android 13; Mobile; rv:120.0) Gecko/120.0 Firefox/120.0",
            "Firefox 120, Android 13, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} Version/17.1 Mobile/15E148 Safari/604.1",
            "Safari 17, iOS 17, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} CriOS/120.0.6099.50 Mobile/15E148 Safari/604.1",
            "Chrome 120, iOS 17, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} FxiOS/120.0 Mobile/15E148 Safari/605.1.15",
            "Firefox 120, iOS 17, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} Version/17.0 EdgiOS/120.0.2210.61 Mobile/15E148 Safari/604.1",
            "Edge 120, iOS 17, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} GSA/291.0.585835110 Mobile/15E148 Safari/604.1",
            "Google App 291, iOS 17, Mobile",
        ),
        (
            (
                "Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) "
                f"{WEBKIT} Version/16.6 Mobile/15E148 Safari/604.1"
            ),
            "Safari 16, iPadOS 16, Tablet",
        ),
        (
            (
                "Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) "
                f"{WEBKIT} Version/12.1 Mobile/15E148 Safari/604.1"
            ),
            "Safari 12, iOS 12, Tablet",
        ),
        (f"{PHONE} {BLINK} {CHROME}", "Chrome 120, Android 10, Tablet"),
        (
            "Mozilla/5.0 (PlayStation; PlayStation 5/5.50) " + f"{WEBKIT} Version/13.0 Safari/605",
            "Safari 13, PlayStation, Console",
        ),
        (
            "Mozilla/5.0 (Web0S; Linux/SmartTV) " + f"{BLINK} {CHROME} WebAppManager",
            "Chrome 120, webOS, TV",
        ),
        (f"{MAC} {WEBKIT}", "Safari, macOS 10, Desktop"),
        # Not a person's browser.
        ("", "Unknown, Unknown, Unknown"),
        ("curl/8.0.1", "Unknown, Unknown, Unknown"),
        ("python-requests/2.31.0", "Unknown, Unknown, Unknown"),
        ("MyScript/1.0 (Windows NT 10.0)", "Unknown, Unknown, Unknown"),
        ("Mozilla/4.5 (compatible; HTTrack 3.0x; Windows 98)", "Unknown, Unknown, Unknown"),
        ("Mozilla/5.0", "Unknown, Unknown, Unknown"),
    ],
)
def test_browsers_and_systems_have_their_common_names(user_agent: str, agent: str) -> None:
    found = describe(user_agent)
    browser = f"{found.browser} {found.browser_version}".strip()
    system = f"{found.os} {found.os_version}".strip()
    assert f"{browser}, {system}, {found.device}" == agent


def test_an_implausible_version_is_left_out() -> None:
    agent = describe(f"{WINDOWS} {BLINK} Chrome/12345678901234567890.0.0.0 Safari/537.36")
    assert (agent.browser, agent.browser_version) == ("Chrome", "")


@pytest.mark.parametrize(
    ("stated", "browser"),
    [
        ("Quux Bot", "Quux Bot"),
        ("token-0123456789abcdef0123-Bot", "Unknown"),
        ("6f1c9f2e-3b7a-4d51-9f66-1b2c3d4e5f60 Bot", "Unknown"),
    ],
)
def test_a_browser_is_no_token_that_a_program_states(stated: str, browser: str) -> None:
    assert describe(f"Mozilla/5.0 {stated}/1.0").browser == browser


def test_only_the_beginning_of_a_long_agent_is_parsed() -> None:
    user_agent = f"{WINDOWS} {BLINK} {CHROME} "
    assert describe(user_agent + "x" * 100_000) == describe(user_agent)


@given(st.text(st.characters()) | st.text("Mozila/50(Widwsrn;) ChPA.17\ud800"))
def test_any_user_agent_can_be_parsed(text: str) -> None:
    for user_agent in (text, f"Mozilla/5.0 ({text}) {text}", f"{IPHONE} Version/{text} Safari/1"):
        assert isinstance(describe(user_agent), Agent)


@pytest.mark.parametrize(
    ("device", "platform"),
    [
        ("Desktop", "Windows NT 10.0; Win64; x64"),
        ("Desktop", "Macintosh; Intel Mac OS X 10_15_7"),
        ("Desktop", "X11; CrOS x86_64 14541.0.0"),
        ("Desktop", "X11; FreeBSD amd64; rv:109.0"),
        ("Desktop", "Windows NT 6.1; Trident/7.0; Tablet PC 2.0; rv:11.0"),
        ("Mobile", "iPhone; CPU iPhone OS 17_1 like Mac OS X"),
        ("Mobile", "Linux; Android 10; K) Chrome/120.0.0.0 Mobile Safari/537.36 ("),
        ("Mobile", "Android 13; Mobile; rv:120.0"),
        ("Mobile", "Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) Mobile ("),
        ("Mobile", "Mobile; Nokia_8110_4G; rv:48.0"),
        ("Mobile", "Android; Opera Mini/36.2/191.249; U; en"),
        ("Tablet", "iPad; CPU OS 16_6 like Mac OS X) Mobile/15E148 ("),
        ("Tablet", "Linux; Android 12; SM-X906C"),
        ("Tablet", "Android 13; Tablet; rv:120.0"),
        ("Tablet", "Linux; Android 9; KFMAWI) Silk/108.4.6 like Chrome/108.0.5359.160 ("),
        ("TV", "SMART-TV; Linux; Tizen 5.0"),
        ("TV", "Web0S; Linux/SmartTV"),
        ("TV", "Linux; Android 9; BRAVIA 4K UR2"),
        ("TV", "Linux; Android 7.1.2; AFTMM Build/NS6265; wv) Mobile ("),
        ("TV", "X11; Linux armv7l) CrKey/1.56.500000 ("),
        ("Console", "PlayStation; PlayStation 5/5.50"),
        ("Console", "Nintendo Switch; WifiWebAuthApplet"),
        ("Console", "Windows NT 10.0; Win64; x64; Xbox; Xbox One"),
        ("Unknown", "Googlebot/2.1; iPhone; CPU iPhone OS 17_1 like Mac OS X"),
        ("Unknown", "Toaster"),
    ],
)
def test_the_device_type_is_recognised(device: str, platform: str) -> None:
    assert device_type_of(f"Mozilla/5.0 ({platform})") == device


HUMANS = [
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/120.0.0.0 Safari/537.36"
    ),
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/17.1 Safari/605.1.15"
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/441.0.0.24.109;FBBV/538444618;FBDV/iPhone14,5]"
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Mobile/15E148 Instagram 308.0.2.18.106 (iPhone14,5; iOS 17_1; en_US; scale=3.00)"
    ),
    (
        "Mozilla/5.0 (Linux; Android 11; CUBOT X30) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/120.0.0.0 Mobile Safari/537.36"
    ),
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    (
        "Mozilla/5.0 (Linux; U; Android 12; en-us; M2007) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Version/4.0 Chrome/100.0 Mobile Safari/537.36 XiaoMi/MiuiBrowser/13.28"
    ),
    "",
]


@pytest.mark.parametrize("user_agent", HUMANS)
def test_a_browser_is_neither_a_crawler_nor_a_library(user_agent: str) -> None:
    assert not is_crawler(user_agent)
    assert not is_library(user_agent)


@pytest.mark.parametrize(
    "user_agent",
    [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "HeadlessChrome/120.0.0.0 Safari/537.36"
        ),
        "facebookexternalhit/1.1",
        "UptimeRobot/2.0",
        "GPTBot/1.2",
        # Not on the list, but declares itself.
        "Mozilla/5.0 (compatible; Nowhere-Known-Bot/1.0)",
        "Mozilla/5.0 (compatible; NowhereSpider)",
        "Nowhere/1.0 (+https://nowhere.example/what)",
    ],
)
def test_a_declared_crawler_is_recognised(user_agent: str) -> None:
    assert is_crawler(user_agent)


@pytest.mark.parametrize(
    ("matches", "user_agent"),
    [(is_crawler, "Googlebot/2.1"), (is_library, "python-requests/2.31.0")],
)
def test_only_the_beginning_of_a_user_agent_is_searched(
    matches: Callable[[str], bool], user_agent: str
) -> None:
    assert matches(f"{'x' * (MAX_LENGTH - len(user_agent) - 1)} {user_agent}")
    assert not matches(f"{'x' * MAX_LENGTH} {user_agent}")


@pytest.mark.parametrize(
    "user_agent", ["curl/8.0.1", "python-requests/2.31.0", "Go-http-client/2.0", "axios/1.6.0"]
)
def test_an_http_client_is_a_library_not_a_crawler(user_agent: str) -> None:
    assert is_library(user_agent)
    assert not is_crawler(user_agent)


def test_every_known_crawler_is_recognised() -> None:
    missed = [
        instance
        for entry in CRAWLER_USER_AGENTS_DATA
        for instance in entry["instances"]
        if not (is_library if "http-library" in entry["tags"] else is_crawler)(instance)
    ]
    assert missed == []


def test_a_long_agent_with_odd_characters_is_searched() -> None:
    assert is_crawler("\ud800\x00" * 200 + "Googlebot/2.1")


PERSON = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/120.0.0.0 Safari/537.36"
)
HEADLESS = PERSON.replace("Chrome", "HeadlessChrome")


@pytest.mark.parametrize(
    ("user_agent", "ignored_by"),
    [
        (PERSON, set()),
        ("Googlebot/2.1", {"declared", "strict"}),
        (HEADLESS, {"declared", "strict"}),
        ("curl/8.0.1", {"strict"}),
        ("MyScript/1.0", {"strict"}),
        ("", {"strict"}),
    ],
)
@pytest.mark.parametrize("rule", ["declared", "strict", "off"])
def test_the_bot_rule_decides_which_agents_are_ignored(
    user_agent: str, ignored_by: set[BotRule], rule: BotRule
) -> None:
    assert is_bot(user_agent, rule) is (rule in ignored_by)


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
        ("Googlebot-Image/1.0", "Googlebot-Image"),
        ("ClaudeBot/1.0; +claudebot@anthropic.com", "ClaudeBot"),
        ("curl/8.5.0", "curl"),
        ("FooFetcher/1.0 (+https://foo.example)", "FooFetcher"),
        ("Mozilla/5.0 (compatible; Quuxbot/1.0)", "Quuxbot"),
        ("Mozilla/5.0 (iPhone) Mobile (compatible; +https://x.example)", "Unknown"),
        ("", "Unknown"),
        ("Mozilla/5.0 (compatible; Quux Page Bot 2.1; +https://quux.example)", "Quux Page Bot"),
        ("Quux Page-Bot/2.1", "Quux Page-Bot"),
        # Nothing that may be about somebody is a name.
        ("A" * 41 + "/1", "Unknown"),
        ("A" * 600 + "/1", "Unknown"),
        ("Mozilla/5.0 (compatible; the spider of Ada Lovelace)", "Unknown"),
        ("ada.lovelace@example.org", "Unknown"),
        ("Mozilla/5.0 (compatible; ada.lovelace@example.org bot)", "Unknown"),
        ("ada.lovelace%40example.org-bot/1.0", "Unknown"),
        ("Foo-6f1c9f2e-3b7a-4d51-9f66-1b2c3d4e5f60/1.0", "Foo"),
        ("FooBot 0123456789abcdef0123", "FooBot"),
        ("deadbeefdeadbeef1/1.0", "Unknown"),
        ("x" * 500 + " ada.lovela", "Unknown"),
    ],
)
def test_a_robot_has_the_name_of_the_public_list_or_the_one_it_states(
    user_agent: str, name: str
) -> None:
    assert robot_name(user_agent) == name
