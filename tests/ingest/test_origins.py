import pytest
from attrs import define

from medamad.domain.websites import Website
from medamad.ingest.page import host_of, websites_of
from medamad.storage.websites import Websites


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://example.com", "example.com"),
        ("http://www.example.com:8080", "www.example.com"),
        ("https://xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("http://[::1]:8080", "[::1]"),
        ("https://example.com.", "example.com"),
        ("https://example.com.:8443", "example.com"),
        ("https://", ""),
        ("https://example.com:", "example.com:"),
        ("", None),
        ("null", None),
        ("file://", None),
        ("chrome-extension://abcdefgh", None),
        ("capacitor://localhost", None),
    ],
)
def test_an_origin_tells_the_host_of_a_page(origin: str, host: str | None) -> None:
    assert host_of(origin) == host


@define
class Registered:
    """Websites by hostname."""

    numbers: dict[str, int]
    asked: int = 0

    def serving(self, hostname: str) -> Website | None:
        self.asked += 1
        number = self.numbers.get(hostname)
        return None if number is None else Website(number, hostname, created=1, updated=1)


@pytest.mark.parametrize(
    ("host", "numbers"),
    [
        ("example.com", {1}),
        ("shop.example.com", {1, 2}),
        ("a.b.shop.example.com", {1, 2}),
        ("blog.example.com", {1}),
        ("notexample.com", set()),
        ("example.com.evil.example", set()),
        ("com", set()),
        ("", set()),
        ("[::1]", set()),
    ],
)
def test_a_page_may_report_for_its_host_and_those_above(host: str, numbers: set[int]) -> None:
    websites: Websites = Registered({"example.com": 1, "shop.example.com": 2})  # type: ignore[assignment]
    assert websites_of(host, websites) == numbers


def test_pages_of_the_same_websites_share_what_tells_of_them() -> None:
    websites: Websites = Registered({"example.com": 1_000, "shop.example.com": 2_000})  # type: ignore[assignment]
    found = [websites_of(f"{name}.shop.example.com", websites) for name in ("a", "b")]
    assert found[0] is found[1]


def test_a_long_host_makes_no_work() -> None:
    websites = Registered({})
    assert websites_of("a." * 8_000, websites) == frozenset()  # type: ignore[arg-type]
    assert websites.asked == 0
