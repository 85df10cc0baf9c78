import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.dimensions import MAX_PROPERTY_VALUE
from medamad.domain.paths import MAX_PATH
from medamad.domain.redaction import Redaction

UUID = "6f1c9f2e-3b7a-4d51-9f66-1b2c3d4e5f60"
EVERYTHING = Redaction.of((), uuids=True, hexadecimal=True, emails=True)


def by(*patterns: str) -> Redaction:
    return Redaction.of(patterns, uuids=False, hexadecimal=False, emails=False)


@pytest.mark.parametrize(
    ("pattern", "path", "stored"),
    [
        ("/reset/*", "/reset/kQ2", "/reset/…"),
        ("/reset/*", "/RESET/kQ2", "/RESET/…"),
        ("/Reset/*", "/reset/kQ2", "/reset/…"),
        ("/reset/*", "//reset//kQ2", "//reset//…"),
        ("/reset/*", "/reset/kQ2/confirm", "/reset/…/confirm"),
        ("/reset/*", "/reset", "/reset"),
        ("/reset/*", "/", "/"),
        ("/reset/*", "/preset/kQ2", "/preset/kQ2"),
        ("/*/invite/*", "/team/invite/kQ2", "/…/invite/…"),
        ("/*/invite/*", "/team/join/kQ2", "/team/join/kQ2"),
        ("/files/**", "/files/a/b/c", "/files/…"),
        ("/files/**", "/files", "/files"),
        ("/u/*/**", "/u/ada/a/b", "/u/…/…"),
        ("/u/*/**", "/u/ada", "/u/ada"),
    ],
)
def test_segments_are_replaced_where_a_path_begins_like_a_pattern(
    pattern: str, path: str, stored: str
) -> None:
    assert by(pattern).path(path) == stored
    assert by("/none/*", pattern).path(stored) == stored


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        (f"/order/{UUID}", "/order/…"),
        (f"/order/{UUID.upper()}/pay", "/order/…/pay"),
        (f"/order/no-{UUID}-x", "/order/no-…-x"),
        ("/s/0123456789abcdef", "/s/…"),
        ("/s/0123456789ABCDEF0", "/s/…"),
        ("/s/item-0123456789abcdef.html", "/s/item-….html"),
        ("/s/0123456789abcde", "/s/0123456789abcde"),
        ("/s/0123456789abcdefg", "/s/0123456789abcdefg"),
        ("/s/" + "abcdef" * 5, "/s/" + "abcdef" * 5),
        ("/s/20240131120000123", "/s/…"),
        ("/u/ada@example.com", "/u/…"),
        ("/u/ada%40example.com/edit", "/u/…/edit"),
        ("/u/mail=ada@example.com;x", "/u/mail=…;x"),
        ("/@ada", "/@ada"),
        ("/@ada@social.example", "/…"),
        ("/ada@home", "/ada@home"),
        ("/journal/frost", "/journal/frost"),
    ],
)
def test_identifiers_are_replaced_wherever_they_are(path: str, stored: str) -> None:
    assert EVERYTHING.path(path) == stored
    assert by().path(path) == path


@pytest.mark.parametrize("identifier", [UUID, "0123456789abcdef", "a@b.c"])
def test_a_text_that_is_nothing_but_an_identifier_is_replaced(identifier: str) -> None:
    assert EVERYTHING.text(identifier) == "…"


def test_each_kind_is_replaced_by_itself() -> None:
    path = f"/{UUID}/0123456789abcdef/ada@example.com"
    for kind, stored in (
        ("uuids", "/…/0123456789abcdef/ada@example.com"),
        ("hexadecimal", f"/{UUID}/…/ada@example.com"),
        ("emails", f"/{UUID}/0123456789abcdef/…"),
    ):
        chosen = dict.fromkeys(("uuids", "hexadecimal", "emails"), False) | {kind: True}
        assert Redaction.of((), **chosen).path(path) == stored


def test_what_was_cut_off_at_the_longest_path_is_replaced() -> None:
    path = ("/a/" + "x" * MAX_PATH)[: MAX_PATH - 20] + "/" + UUID
    cut = path[:MAX_PATH]
    assert EVERYTHING.path(cut, is_cut=True).endswith("x/…")
    assert by("/b/*").path(cut, is_cut=True) == cut
    assert EVERYTHING.url_path(path).endswith("x/…")


@pytest.mark.parametrize("token", [UUID, "0123456789abcdef" * 2, "ada.lovelace@example.com"])
@pytest.mark.parametrize("before", ["a ", "a=", "a&", "/", "?a,", "x/a:"])
def test_nothing_is_left_of_what_a_limit_cuts(token: str, before: str) -> None:
    for length in range(1, len(token)):
        stored = EVERYTHING.text(before + token[:length], is_cut=True)
        assert stored == f"{before}…"


@pytest.mark.parametrize(
    ("pattern", "path", "stored"),
    [
        ("/reset/*", "/reset/%61bc", "/reset/…"),
        ("/reset/*", "/%72eset/abc", "/reset/…"),
        ("/reset/*", "/reset/ab%2Fcd%3D/confirm", "/reset/…/confirm"),
        ("/reset/*", "/reset%2Fabcd", "/reset/…"),
        ("/zurücksetzen/*", "/zur%C3%BCcksetzen/abc", "/zurücksetzen/…"),
        ("/zur%C3%BCcksetzen/*", "/ZUR%c3%9cCKSETZEN/abc", "/ZURÜCKSETZEN/…"),
        ("/reset/*", "/reset/a%FFb", "/reset/…"),
        ("/none/*", "/n%6Fte/%61bc/", "/note/abc"),
    ],
)
def test_patterns_compare_the_segments_of_the_url(pattern: str, path: str, stored: str) -> None:
    assert by(pattern).url_path(path) == stored


def test_a_pattern_may_match_what_is_cut_off() -> None:
    long = "x" * MAX_PATH
    assert by("/*/invite/*").url_path(f"/{long}/invite/kQ2") == "/…/invite/…"
    assert by("/*/invite/*").path(f"/{long}"[:MAX_PATH], is_cut=True) == "/…"
    assert by("/*/invite/*").path("/team/inv", is_cut=True) == "/…/inv"
    assert by("/*/invite/*").path("/team/join", is_cut=True) == "/team/join"
    assert by("/team/*/**").path("/team/a", is_cut=True) == "/team/…"


def test_properties_that_the_tracker_makes_of_addresses_are_replaced() -> None:
    redaction = Redaction.of(("/reset/*",), uuids=True, hexadecimal=False, emails=False)
    properties = (
        ("404", "/reset/kQ2"),
        ("download", f"files.example/{UUID}.pdf"),
        ("outbound", "other.example/reset/kQ2"),
        ("order", UUID),
    )
    assert redaction.properties(properties) == (
        ("404", "/reset/…"),
        ("download", "files.example/….pdf"),
        ("outbound", "other.example/reset/…"),
        ("order", UUID),
    )


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("/%72eset/kQ2", "/reset/…"),
        ("/u/ada%40example.com", "/u/…"),
        ("/caf%C3%A9/a", "/caf%C3%A9/a"),
        (f"/u/{UUID.replace('-', '%2D')}", "/u/…"),
        (("/" + "a" * 240 + "/ada@example.com")[:MAX_PROPERTY_VALUE], "/" + "a" * 240 + "/…"),
        (("/x/" + "a" * 300 + "/reset")[:MAX_PROPERTY_VALUE], "/x/…"),
    ],
)
def test_properties_have_paths_as_urls_have_them(value: str, stored: str) -> None:
    redaction = Redaction.of(("/reset/*",), uuids=True, hexadecimal=True, emails=True)
    assert redaction.properties((("404", value),)) == (("404", stored),)
    if len(value) < MAX_PROPERTY_VALUE:
        address, becomes = f"files.example{value}", f"files.example{stored}"
        assert redaction.properties((("outbound", address),)) == (("outbound", becomes),)


@given(st.text(alphabet="/ab0-@.%4…", max_size=60))
def test_what_is_stored_stays_as_it_is(path: str) -> None:
    redaction = Redaction.of(("/a/*", "/b/**"), uuids=True, hexadecimal=True, emails=True)
    once = redaction.path(path)
    assert redaction.path(once) == once
