import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.call_counts import calls_of

from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname
from medamad.ingest.page import MAX_AUTHORITY, page_of, referrer_of, split_url

MARKS = "\u0301\u0316" * 2_000
"""Marks that a normal form puts into another order."""


@given(st.text("/:?#@[]%\\ \t\nhtps019é\u2100\u0301\x00"))
def test_a_url_is_taken_apart_as_urlsplit_does(url: str) -> None:
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
def test_only_the_host_has_to_be_short(url: str) -> None:
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
def test_nothing_long_is_normalised(url: str) -> None:
    assert normalised(split_url, url) == (ValueError, 0)
    assert normalised(page_of, url) == (BadRequest, 0)
    assert normalised(lambda url: referrer_of(url, ()), url) == (None, 0)
    assert normalised(canonical_hostname, url) == (BadRequest, 0)


def test_a_short_host_is_normalised() -> None:
    # What the tests above count is there to be counted.
    assert normalised(split_url, "http://e\u0301.example/1") == (None, 1)


def normalised(take: Callable[[str], object], text: str) -> tuple[type[Exception] | None, int]:
    """Return what is raised for a text, and how often anything is normalised for it."""
    raised: list[type[Exception]] = []

    def attempt() -> None:
        try:
            take(text)
        except (ValueError, BadRequest) as error:
            raised.append(type(error))

    count = calls_of(attempt, unicodedata.normalize)
    return next(iter(raised), None), count
