import re
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, unquote_plus, urlencode, urlsplit

import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st
from support.call_counts import calls_of

from medamad.domain.errors import BadRequest
from medamad.domain.paths import MAX_PATH, stored_path
from medamad.domain.websites import Website, canonical_hostname
from medamad.ingest.page import (
    MAX_AUTHORITY,
    MAX_UTM,
    Page,
    host_of,
    page_of,
    referrer_of,
    split_url,
    websites_of,
)
from medamad.storage.websites import Websites


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://example.com", Page("example.com", "/")),
        ("http://example.com/", Page("example.com", "/")),
        ("HTTPS://WWW.Example.com:8443/A/b/?q#f", Page("www.example.com", "/A/b")),
        ("https://user:pw@example.com/a", Page("example.com", "/a")),
        ("https://bücher.example./", Page("xn--bcher-kva.example", "/")),
        ("http://localhost:3000/x", Page("localhost", "/x")),
        # No website can be there, but that is checked elsewhere.
        ("http://192.0.2.1/x", Page("192.0.2.1", "/x")),
        ("http://[2001:DB8::1]:80/", Page("2001:db8::1", "/")),
    ],
)
def test_a_url_has_a_host_and_a_path(url: str, page: Page) -> None:
    assert page_of(url) == page


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("", "/"),
        ("/", "/"),
        ("//", "/"),
        ("/a/", "/a"),
        ("/a//", "/a"),
        ("/a;b=1", "/a;b=1"),
        ("/a b", "/a b"),
        ("/a%20b", "/a b"),
        ("/caf%C3%A9", "/café"),
        ("/caf%c3%a9", "/café"),
        ("/%F0%9F%98%80", "/\N{GRINNING FACE}"),
        ("/a%2Fb%3F%23", "/a/b?#"),
        ("/a%2F", "/a"),
        ("/a+b", "/a+b"),
        ("/100%25", "/100%"),
        # Escapes that are not UTF-8 stay as they were sent.
        ("/%", "/%"),
        ("/%zz%41", "/%zzA"),
        ("/%e4", "/%e4"),
        ("/%E4x%C3%A4", "/%E4xä"),
        ("/%C3%A4%fF%C3%A4", "/ä%fFä"),
        ("/%ED%A0%80", "/%ED%A0%80"),
        ("/%C0%80", "/%C0%80"),
        ("/a%00b%0a%1F%7f%c2%85", "/a\x00b\n\x1f\x7f\x85"),
        ("/" + "a" * 3_000, "/" + "a" * (MAX_PATH - 1)),
        ("/" + "a" * (MAX_PATH - 2) + "/b", "/" + "a" * (MAX_PATH - 2)),
        ("/" + "%C3%A9" * 3_000, "/" + "é" * (MAX_PATH - 1)),
    ],
)
def test_a_path_is_decoded_where_possible(path: str, stored: str) -> None:
    assert stored_path(path) == stored
    assert page_of(f"https://a.test{path}").path == stored


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("utm_source=a&utm_medium=b&utm_campaign=c&utm_term=d&utm_content=e", "a b c d e"),
        ("UTM_Source=a", "a - - - -"),
        ("utm%5Fsource=a", "a - - - -"),
        ("utm_source=a&utm_source=b", "a - - - -"),
        ("utm_source=&utm_source=b", "- - - - -"),
        ("utm_source", "- - - - -"),
        ("x=utm_source&utm_id=1&q=%", "- - - - -"),
        ("utm_term=x=y", "- - - x=y -"),
        ("utm_term&utm_term=x", "- - - - -"),
        ("utm_terms=x&xutm_term=y&utm_content=z", "- - - - z"),
        ("%75%54m%5F%4dEdium=a&%ff&=", "- a - - -"),
    ],
)
def test_the_five_utm_parameters_are_extracted(query: str, fields: str) -> None:
    page = page_of(f"https://a.test/?{query}")
    found = (
        page.utm_source,
        page.utm_medium,
        page.utm_campaign,
        page.utm_term,
        page.utm_content,
    )
    assert found == tuple(field.strip("-") for field in fields.split(" "))


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("a+b%20c", "a b c"),
        ("caf%C3%A9", "café"),
        ("%FF", "\N{REPLACEMENT CHARACTER}"),
        ("a%00b%0Ac", "a\x00b\nc"),
        ("x" * 600, "x" * 512),
        ("%C3%A9" * 600, "é" * 512),
    ],
)
def test_a_utm_value_is_decoded_and_truncated(value: str, kept: str) -> None:
    assert page_of(f"https://a.test/?utm_campaign={value}").utm_campaign == kept


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/path",
        "example.com/path",
        "//example.com/path",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "about:blank",
        "http://",
        "http:///path",
        "http:example.com",
        "http://[::1",
        "http://[nonsense]/",
        "http://example.com:port/",
        "http://example.com:99999/",
        "http://a b.com/",
        "http://-a.com/",
        "http://a..b/",
        "http://" + "a." * 127 + "com/",
        "http://\u2100.com/",
        "http://ex\\ample.com/",
        # Browsers accept these but never write them this way.
        "http://<script>alert(1)<!-- .1/",
        "http://a_b.1/",
        "http://0x7f.1/",
        "http://" + "1" * 300 + "/",
        "http://[fe80::1%<script>]/",
    ],
)
def test_a_url_that_is_not_a_page_is_rejected(url: str) -> None:
    with pytest.raises(BadRequest, match=r"^u: "):
        page_of(url)


@given(st.text(), st.text("/:?#@[]%.\\ \t\nhtps0123456789é\u2100\x00"))
def test_any_text_parses_or_raises_bad_request(text: str, more: str) -> None:
    for url in (text, more, f"http://{text}", f"https://{more}", f"http://a.test/{text}{more}"):
        try:
            page = page_of(url)
        except BadRequest as refusal:
            assert str(refusal).startswith("u: ")  # noqa: PT017 - it need not be refused
        else:
            assert page.host
            assert page.path.startswith("/")
            assert len(page.path) <= MAX_PATH


PRINTABLE = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=100)


@given(PRINTABLE, PRINTABLE)
def test_a_path_escaped_by_a_browser_is_decoded(path: str, source: str) -> None:
    page = page_of(f"https://a.test/{quote(path)}?{urlencode({'utm_source': source})}")
    assert page.path == (f"/{path}".rstrip("/") or "/")
    assert page.utm_source == source


def plainly_decoded(path: str) -> str:
    """Return a path decoded character by character, as the contract defines it."""
    decoded, at = "", 0
    while at < len(path):
        for octets in (1, 2, 3, 4):
            escape = re.fullmatch("(%[0-9A-Fa-f]{2})+", path[at : at + 3 * octets])
            if escape is None:
                continue
            try:
                decoded += bytes.fromhex(escape[0].replace("%", "")).decode()
            except UnicodeDecodeError:
                continue
            at += 3 * octets
            break
        else:
            decoded += path[at]
            at += 1
    return decoded[:MAX_PATH].rstrip("/") or "/"


ESCAPES = st.sampled_from([f"%{octet:02x}" for octet in range(256)]) | st.sampled_from(
    [
        "%F0%9f%98%80",
        "%C3%A9",
        "%41",
        "%e2%82",
        "%ED%A0%80",
        "%F4%90%80%80",
        "%E0%80",
        "a",
        "/",
        "%",
    ]
)


@given(st.lists(ESCAPES, max_size=12))
def test_percent_escapes_are_decoded_as_strict_utf8(escapes: list[str]) -> None:
    path = "/" + "".join(escapes)
    assert stored_path(path) == plainly_decoded(path)


PIECES = st.sampled_from(
    [
        "utm_source",
        "UTM_Term",
        "%75tm_medium",
        "utm%5Fcampaign",
        "utm",
        "x",
        "%",
        "+",
        "=",
        "&",
        "é",
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_utm_parameters_with_escaped_names_are_found(pieces: list[str]) -> None:
    query = "".join(pieces)
    expected: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        expected.setdefault(unquote_plus(name).lower(), unquote_plus(value))
    page = page_of(f"https://a.test/?{query}")
    for name in ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"):
        assert getattr(page, name) == expected.get(name, "")


@pytest.mark.parametrize(
    "piece", ["%e4x", "%41x", "%41%e4", "%F0%9F%98%80x", "%C3%A9%e4", "%f0%9f%98x"]
)
def test_only_the_kept_part_of_a_long_path_is_decoded(piece: str) -> None:
    path = "/" + piece * (16_000 // len(piece))
    assert stored_path(path) == plainly_decoded(path)
    # A few calls for each run of escapes.
    assert calls_of(lambda: page_of(f"https://calls.test{path}")) < 3 * MAX_PATH


@pytest.mark.parametrize(
    "piece", ["&%=", "&", "&utm_source=%41x", "&utm%5fterm=", "&%75tm_x", "&utm_", "%75", "%41x"]
)
def test_a_long_query_string_is_cheap_to_parse(piece: str) -> None:
    query = "?utm_term=" + piece * (16_000 // len(piece))
    assert (
        page_of(f"https://a.test/{query}").utm_term
        == unquote_plus(piece * 600)[: MAX_UTM if "&" not in piece else 0]
    )
    assert calls_of(lambda: page_of(f"https://calls.test/{query}")) < 3 * MAX_PATH


MARKS = "\u0301\u0316" * 2_000
"""Marks that normalisation reorders."""


@given(st.text("/:?#@[]%\\ \t\nhtps019é\u2100\u0301\x00"))
def test_urls_are_split_like_urlsplit(url: str) -> None:
    try:
        expected = urlsplit(url)
    except ValueError:
        with pytest.raises(ValueError, match=r".+"):
            split_url(url)
    else:
        assert split_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://é.test/" + MARKS,
        "http://é.test?q=" + MARKS,
        "http://é.test#" + MARKS,
        "http://é" + "a" * (MAX_AUTHORITY - 1),
        "/é//" + MARKS,
        MARKS,
    ],
)
def test_a_url_may_be_long_if_its_host_is_short(url: str) -> None:
    assert split_url(url).geturl() == url


@pytest.mark.parametrize(
    "url",
    [
        f"http://a{MARKS}",
        f"http://a{MARKS}/path",
        f"http://{MARKS}@a.test:80/",
        f"//a{MARKS}?q",
        f" \x00http:\n/\t\r/\na{MARKS}#x",
    ],
)
def test_long_hosts_are_not_normalised(url: str) -> None:
    assert normalised(split_url, url) == (ValueError, 0)
    assert normalised(page_of, url) == (BadRequest, 0)
    assert normalised(lambda url: referrer_of(url, ()), url) == (None, 0)
    assert normalised(canonical_hostname, url) == (BadRequest, 0)


def test_a_short_host_is_normalised() -> None:
    # Otherwise the tests above would count nothing.
    assert normalised(split_url, "http://e\u0301.example/1") == (None, 1)


def normalised(take: Callable[[str], object], text: str) -> tuple[type[Exception] | None, int]:
    """Return the error that a text raises, and how often parsing it normalises anything."""
    raised: list[type[Exception]] = []

    def attempt() -> None:
        try:
            take(text)
        except (ValueError, BadRequest) as error:
            raised.append(type(error))

    count = calls_of(attempt, unicodedata.normalize)
    return next(iter(raised), None), count


OWN = ("example.com", "www.shop.example")


@pytest.mark.parametrize(
    ("url", "referrer"),
    [
        ("https://www.google.co.uk/search?q=x#y", "google.co.uk/search"),
        ("https://t.co/AbC", "t.co/AbC"),
        ("http://Other.Example/", "other.example"),
        ("http://other.example", "other.example"),
        ("HTTPS://WWW.other.example:8080//a//", "other.example//a"),
        ("https://user:pw@other.example/a%20b/", "other.example/a b"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://my_blog.other.example/", "my_blog.other.example"),
        ("https://other.example:99999/a", "other.example/a"),
        ("android-app://com.google.android.gm/", "com.google.android.gm"),
        ("android-app://com.some_app.x", "com.some_app.x"),
        ("https://other.example/" + "a" * 5_000, "other.example/" + "a" * 2_034),
        # None.
        ("", ""),
        ("   ", ""),
        ("about:blank", ""),
        ("garbage", ""),
        ("other.example/a", ""),
        ("//other.example/a", ""),
        ("file:///home/x", ""),
        ("https://", ""),
        ("https://[", ""),
        ("https://\u2100.example/", ""),
        ("https://a b/", ""),
        # The site itself.
        ("https://example.com/a", ""),
        ("https://www.example.com/a", ""),
        ("https://EXAMPLE.com.:8080/a", ""),
        ("http://shop.example/", ""),
        ("http://www.shop.example/", ""),
        ("https://blog.example.com/a", "blog.example.com/a"),
        # Addresses.
        ("http://192.0.2.1/a", ""),
        ("http://192.0.2.1.:8080/a", ""),
        ("http://[2001:db8::1]:80/a", ""),
        ("http://[::ffff:192.0.2.1]/", ""),
        ("http://2130706433/", ""),
        ("http://0x7f.0.0.1/", ""),
        ("http://017700000001/", ""),
    ],
)
def test_a_referrer_becomes_host_and_path(url: str, referrer: str) -> None:
    assert referrer_of(url, OWN) == referrer


@given(st.text(), st.text("/:?#@[]%.\\ \t\nhtps0123456789é\u2100\x00"))
def test_any_referrer_can_be_parsed(text: str, more: str) -> None:
    for url in (text, more, f"http://{text}", f"https://{more}", f"http://a.test/{text}{more}"):
        assert len(referrer_of(url, OWN)) <= 2_048


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
def test_the_host_of_a_page_is_taken_from_its_origin(origin: str, host: str | None) -> None:
    assert host_of(origin) == host


@define
class Registered:
    """Websites by hostname."""

    numbers: dict[str, int]
    lookups: int = 0

    def serving(self, hostname: str) -> Website | None:
        self.lookups += 1
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
def test_a_page_may_report_for_its_host_and_parent_domains(host: str, numbers: set[int]) -> None:
    websites: Websites = Registered({"example.com": 1, "shop.example.com": 2})  # type: ignore[assignment]
    assert websites_of(host, websites) == numbers


def test_pages_of_the_same_websites_share_one_frozenset() -> None:
    websites: Websites = Registered({"example.com": 1_000, "shop.example.com": 2_000})  # type: ignore[assignment]
    found = [websites_of(f"{name}.shop.example.com", websites) for name in ("a", "b")]
    assert found[0] is found[1]


def test_a_long_host_is_rejected_without_lookups() -> None:
    websites = Registered({})
    assert websites_of("a." * 8_000, websites) == frozenset()  # type: ignore[arg-type]
    assert websites.lookups == 0
