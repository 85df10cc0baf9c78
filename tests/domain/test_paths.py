import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.paths import MAX_PATH, PathPattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("/", ["/"], ["", "/a"]),
        ("/thanks", ["/thanks"], ["/thanks/you", "/Thanks", "/a/thanks"]),
        ("/blog/*", ["/blog/", "/blog/a", "/blog/a/b"], ["/blog", "/a/blog/b"]),
        ("*/thanks", ["/thanks", "/de/thanks"], ["/thanks/you"]),
        ("/shop/*/order", ["/shop/1/order", "/shop/a/b/order"], ["/shop/order"]),
        ("/a*a", ["/aa", "/aba"], ["/a"]),
        ("*", ["", "/", "/a"], []),
        ("**", ["", "/a"], []),
        ("/*b*b", ["/bb", "/abab"], ["/b", "/ba"]),
        ("/*ab*ba", ["/abba", "/xabxba"], ["/aba", "/ba"]),
        ("/a.c", ["/a.c"], ["/abc"]),
        ("/a%2Ac", ["/a*c"], ["/abc", "/ac", "/a%2Ac"]),
        ("/%2A*%2A", ["/**", "/*a*"], ["/*", "/aa"]),
    ],
)
def test_a_wildcard_stands_for_any_characters(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    compiled = PathPattern.of(pattern)
    assert [path for path in matching if not compiled.matches(path)] == []
    assert [path for path in others if compiled.matches(path)] == []
    assert compiled.matching(matching + others) == [True] * len(matching) + [False] * len(others)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_patterns_match_as_a_regular_expression_does(pattern: str, path: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path)
    assert PathPattern.of(pattern).matches(path) is (expected is not None)
    assert PathPattern.of(pattern).matching([path]) == [expected is not None]


def test_matching_never_goes_back() -> None:
    pattern = PathPattern.of("/" + "*a" * 1_000 + "*b")
    begun = time.process_time()
    assert not pattern.matches("/" + "a" * (MAX_PATH - 1))
    assert time.process_time() - begun < 1
