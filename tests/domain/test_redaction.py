import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert EVERYTHING.path(cut).endswith("x/…")
    assert by("/b/*").path(cut) == cut


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


@given(st.text(alphabet="/ab0-@.%4…", max_size=60))
def test_what_is_stored_stays_as_it_is(path: str) -> None:
    redaction = Redaction.of(("/a/*", "/b/**"), uuids=True, hexadecimal=True, emails=True)
    once = redaction.path(path)
    assert redaction.path(once) == once
