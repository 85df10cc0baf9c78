import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("example.com", "example.com"),
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("localhost", "localhost"),
        ("a-b.c1.example", "a-b.c1.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("日本語.jp", "xn--wgv71a119e.jp"),
        (".".join(["a" * 63] * 3 + ["b" * 61]), ".".join(["a" * 63] * 3 + ["b" * 61])),
    ],
)
def test_hostnames_are_canonical(text: str, kept: str) -> None:
    assert canonical_hostname(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a..b",
        "-a.example",
        "a-.example",
        "a_b.example",
        "a b.example",
        "example.com:8080",
        "https://example.com",
        "example.com/path",
        "192.168.1.1",
        "[::1]",
        "a" * 64,
        "a." * 127,
        ".".join(["a" * 63] * 3 + ["b" * 62]),
        "example.com\n",
        "example\x00.com",
        "\ud800.example",
        "exämple..com",
    ],
)
def test_a_bad_hostname_is_rejected_naming_the_field(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^g: "):
        canonical_hostname(text, "g")


def test_the_loopback_address_is_rejected_with_the_name_to_use() -> None:
    with pytest.raises(BadRequest, match="use localhost"):
        canonical_hostname("127.0.0.1", "hostname")


@given(st.text(max_size=300))
def test_any_text_is_canonical_or_rejected(text: str) -> None:
    try:
        kept = canonical_hostname(text)
    except BadRequest:
        return
    assert canonical_hostname(kept) == kept
    assert 1 <= len(kept) <= 253
