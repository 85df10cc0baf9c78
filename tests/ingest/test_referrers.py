import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.ingest.page import referrer_of

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
def test_a_referrer_is_kept_as_host_and_path(url: str, referrer: str) -> None:
    assert referrer_of(url, OWN) == referrer


@given(st.text(), st.text("/:?#@[]%.\\ \t\nhtps0123456789é\u2100\x00"))
def test_no_referrer_raises(text: str, more: str) -> None:
    for url in (text, more, f"http://{text}", f"https://{more}", f"http://a.test/{text}{more}"):
        assert len(referrer_of(url, OWN)) <= 2_048
