import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.build import shipped_file
from medamad.lookup.referrers import Sources, read_names


@pytest.fixture(scope="module")
def shipped() -> Sources:
    return Sources.shipped({"intern.example.com": "Intranet", "www.bing.com": "Bing!"})


@pytest.mark.parametrize(
    ("referrer", "name"),
    [
        ("", ""),
        ("google.co.uk/search", "Google"),
        ("google.com", "Google"),
        ("google.com/imgres", "Google Images"),
        ("gemini.google.com/app", "Gemini"),
        ("mail.google.com", "Gmail"),
        ("com.google.android.gm", "Gmail"),
        ("search.brave.com/search", "Brave Search"),
        ("chatgpt.com", "ChatGPT"),
        ("claude.ai/chat/1", "Claude"),
        ("perplexity.ai/search/x", "Perplexity"),
        ("kagi.com/search", "Kagi"),
        ("l.threads.net", "Threads"),
        ("bsky.app/profile/x", "Bluesky"),
        ("mastodon.social/@a/1", "Mastodon"),
        ("t.co/abc", "X"),
        ("old.reddit.com/r/python", "Reddit"),
        ("en.m.wikipedia.org/wiki/Bounce", "Wikipedia"),
        ("news.ycombinator.com/item", "Hacker News"),
        # Without a name: the host.
        ("unknown.example/page", "unknown.example"),
        ("example.co.uk", "example.co.uk"),
        ("notgoogle.com/search", "notgoogle.com"),
        ("someone.github.io/project", "someone.github.io"),
        ("localhost/x", "localhost"),
        # The operator's names win.
        ("intern.example.com/wiki", "Intranet"),
        ("bing.com/search", "Bing!"),
    ],
)
def test_referrers_get_their_common_names(shipped: Sources, referrer: str, name: str) -> None:
    assert shipped.name_of(referrer) == name


@pytest.mark.parametrize(
    ("referrer", "name"),
    [
        ("a.com", "A"),
        ("a.com/x", "A"),
        ("a.com/x/y", "XY"),
        ("a.com/x/y/z", "XY"),
        ("a.com/X/Y", "XY"),
        ("a.com/x/y" + "/z" * 1_000, "XY"),
        ("a.com//x/y", "A"),
        ("a.com/x/yz", "A"),
        ("sub.a.com/x/y", "XY"),
        ("b.a.com/x/y", "B"),
        ("c.com", "c.com"),
        ("c.com/mail", "Mail"),
        ("ba.com", "ba.com"),
        ("com", "com"),
    ],
)
def test_the_most_specific_name_wins(referrer: str, name: str) -> None:
    names = {"www.A.com/": "A", "a.com/x/y/": "XY", "b.a.com": "B", "c.com/mail": "Mail"}
    assert Sources(names).name_of(referrer) == name


@given(st.text())
def test_no_referrer_raises(referrer: str) -> None:
    assert isinstance(Sources({"a.b": "A", "a.b/c": "C"}).name_of(referrer), str)


def test_the_shipped_names_are_valid() -> None:
    names = read_names(shipped_file("referrers.toml").read_text("utf-8"))
    assert len(names) > 300
    assert [place for place in names if place.startswith("www.") or place != place.lower()] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('example.com = "Example"', "example: expected a line"),
        ('"example.com" = ""', "example.com: expected a line"),
        ('"example.com" = 1', "example.com: expected a line"),
        ('"example.com"', "Expected '='"),
    ],
)
def test_invalid_tables_of_names_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_names(text)
