import re
from urllib.parse import quote, unquote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.call_counts import calls_of

from medamad.domain.errors import BadRequest
from medamad.ingest.page import MAX_PATH, MAX_UTM, Page, page_of, stored_path


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://example.com", Page("example.com", "/")),
        ("http://example.com/", Page("example.com", "/")),
        ("HTTPS://WWW.Example.com:8443/A/b/?q#f", Page("www.example.com", "/A/b")),
        ("https://user:pw@example.com/a", Page("example.com", "/a")),
        ("https://bücher.example./", Page("xn--bcher-kva.example", "/")),
        ("http://localhost:3000/x", Page("localhost", "/x")),
        # No website is there, but that is for others to say.
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
        # What gives no UTF-8 stays as it was sent.
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
def test_a_path_is_kept_decoded_where_it_can_be(path: str, stored: str) -> None:
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
def test_the_five_utm_fields_are_taken(query: str, fields: str) -> None:
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
def test_a_utm_value_is_decoded_and_cut(value: str, kept: str) -> None:
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
        # What browsers take for an address, none of which they write so.
        "http://<script>alert(1)<!-- .1/",
        "http://a_b.1/",
        "http://0x7f.1/",
        "http://" + "1" * 300 + "/",
        "http://[fe80::1%<script>]/",
    ],
)
def test_what_is_no_url_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(BadRequest, match=r"^u: "):
        page_of(url)


@given(st.text(), st.text("/:?#@[]%.\\ \t\nhtps0123456789é\u2100\x00"))
def test_no_url_raises_anything_but_bad_request(text: str, more: str) -> None:
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
def test_what_a_browser_escapes_comes_back(path: str, source: str) -> None:
    page = page_of(f"https://a.test/{quote(path)}?{urlencode({'utm_source': source})}")
    assert page.path == (f"/{path}".rstrip("/") or "/")
    assert page.utm_source == source


def plainly_decoded(path: str) -> str:
    """Decode a path character by character, as the contract says it."""
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
def test_escapes_are_decoded_as_utf8_is_defined(escapes: list[str]) -> None:
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
def test_utm_fields_are_found_as_their_decoded_names_are(pieces: list[str]) -> None:
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
def test_what_is_kept_of_a_long_path_is_decoded_and_no_more(piece: str) -> None:
    path = "/" + piece * (16_000 // len(piece))
    assert stored_path(path) == plainly_decoded(path)
    # A match object, its text, what becomes of it: a few calls for each run of escapes.
    assert calls_of(lambda: page_of(f"https://calls.test{path}")) < 3 * MAX_PATH


@pytest.mark.parametrize(
    "piece", ["&%=", "&", "&utm_source=%41x", "&utm%5fterm=", "&%75tm_x", "&utm_", "%75", "%41x"]
)
def test_a_long_query_is_little_work(piece: str) -> None:
    query = "?utm_term=" + piece * (16_000 // len(piece))
    assert (
        page_of(f"https://a.test/{query}").utm_term
        == unquote_plus(piece * 600)[: MAX_UTM if "&" not in piece else 0]
    )
    assert calls_of(lambda: page_of(f"https://calls.test/{query}")) < 3 * MAX_PATH
