from collections.abc import Callable

import pytest
from crawleruseragents import CRAWLER_USER_AGENTS_DATA

from medamad.ingest.user_agent import MAX_LENGTH, is_crawler, is_library

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
def test_no_person_s_browser_is_a_program(user_agent: str) -> None:
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
        # Not on the list, and says so all the same.
        "Mozilla/5.0 (compatible; Nowhere-Known-Bot/1.0)",
        "Mozilla/5.0 (compatible; NowhereSpider)",
        "Nowhere/1.0 (+https://nowhere.example/what)",
    ],
)
def test_a_declared_program_is_a_crawler(user_agent: str) -> None:
    assert is_crawler(user_agent)


@pytest.mark.parametrize(
    ("tells", "user_agent"),
    [(is_crawler, "Googlebot/2.1"), (is_library, "python-requests/2.31.0")],
)
def test_only_the_beginning_is_looked_at(tells: Callable[[str], bool], user_agent: str) -> None:
    assert tells(f"{'x' * (MAX_LENGTH - len(user_agent) - 1)} {user_agent}")
    assert not tells(f"{'x' * MAX_LENGTH} {user_agent}")


@pytest.mark.parametrize(
    "user_agent", ["curl/8.0.1", "python-requests/2.31.0", "Go-http-client/2.0", "axios/1.6.0"]
)
def test_a_plain_http_client_is_a_library_and_no_crawler(user_agent: str) -> None:
    assert is_library(user_agent)
    assert not is_crawler(user_agent)


def test_every_known_instance_is_told() -> None:
    missed = [
        instance
        for entry in CRAWLER_USER_AGENTS_DATA
        for instance in entry["instances"]
        if not (is_library if "http-library" in entry["tags"] else is_crawler)(instance)
    ]
    assert missed == []


def test_a_long_agent_with_odd_characters_is_searched() -> None:
    assert is_crawler("\ud800\x00" * 200 + "Googlebot/2.1")
