import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.ingest.user_agent import Agent, describe

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
        (f"{MAC} {WEBKIT} Version/17.1 Safari/605.1.15", "Safari 17.1, macOS 10.15, Desktop"),
        (
            "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0",
            "Firefox 120, Linux, Desktop",
        ),
        (
            "Mozilla/5.0 (X11; Fedora; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0",
            "Firefox 120, Linux, Desktop",
        ),
        (f"{LINUX} {BLINK} {CHROME} Vivaldi/6.5.3206.39", "Vivaldi 6.5, Linux, Desktop"),
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
            "Opera 77.5, Android 10, Mobile",
        ),
        (
            "Mozilla/5.0 (Android 13; Mobile; rv:120.0) Gecko/120.0 Firefox/120.0",
            "Firefox 120, Android 13, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} Version/17.1 Mobile/15E148 Safari/604.1",
            "Safari 17.1, iOS 17.1, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} CriOS/120.0.6099.50 Mobile/15E148 Safari/604.1",
            "Chrome 120, iOS 17.1, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} FxiOS/120.0 Mobile/15E148 Safari/605.1.15",
            "Firefox 120, iOS 17.1, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} Version/17.0 EdgiOS/120.0.2210.61 Mobile/15E148 Safari/604.1",
            "Edge 120, iOS 17.1, Mobile",
        ),
        (
            f"{IPHONE} {WEBKIT} GSA/291.0.585835110 Mobile/15E148 Safari/604.1",
            "Google App 291, iOS 17.1, Mobile",
        ),
        (
            (
                "Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) "
                f"{WEBKIT} Version/16.6 Mobile/15E148 Safari/604.1"
            ),
            "Safari 16.6, iPadOS 16.6, Tablet",
        ),
        (
            (
                "Mozilla/5.0 (iPad; CPU OS 12_5 like Mac OS X) "
                f"{WEBKIT} Version/12.1 Mobile/15E148 Safari/604.1"
            ),
            "Safari 12.1, iOS 12.5, Tablet",
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
        (f"{MAC} {WEBKIT}", "Safari, macOS 10.15, Desktop"),
        # No browser of a person.
        ("", "Unknown, Unknown, Unknown"),
        ("curl/8.0.1", "Unknown, Unknown, Unknown"),
        ("python-requests/2.31.0", "Unknown, Unknown, Unknown"),
        ("MyScript/1.0 (Windows NT 10.0)", "Unknown, Unknown, Unknown"),
        ("Mozilla/4.5 (compatible; HTTrack 3.0x; Windows 98)", "Unknown, Unknown, Unknown"),
        ("Mozilla/5.0", "Unknown, Unknown, Unknown"),
    ],
)
def test_an_agent_has_the_names_that_people_know(user_agent: str, agent: str) -> None:
    found = describe(user_agent)
    browser = f"{found.browser} {found.browser_version}".strip()
    system = f"{found.os} {found.os_version}".strip()
    assert f"{browser}, {system}, {found.device}" == agent


def test_a_version_out_of_the_ordinary_is_let_go() -> None:
    agent = describe(f"{WINDOWS} {BLINK} Chrome/12345678901234567890.0.0.0 Safari/537.36")
    assert (agent.browser, agent.browser_version) == ("Chrome", "")


def test_a_long_agent_is_read_from_its_beginning() -> None:
    user_agent = f"{WINDOWS} {BLINK} {CHROME} "
    assert describe(user_agent + "x" * 100_000) == describe(user_agent)


@given(st.text(st.characters()) | st.text("Mozila/50(Widwsrn;) ChPA.17\ud800"))
def test_no_agent_raises(text: str) -> None:
    for user_agent in (text, f"Mozilla/5.0 ({text}) {text}", f"{IPHONE} Version/{text} Safari/1"):
        assert isinstance(describe(user_agent), Agent)
