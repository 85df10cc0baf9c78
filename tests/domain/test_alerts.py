import pytest
from attrs import evolve

from medamad.domain.alerts import (
    MAX_CAUSES,
    MAX_NOTICES,
    SERVICE_KINDS,
    WEBSITE_KINDS,
    Alerts,
    Cause,
    Notice,
    Rule,
    checked_rule,
    shown,
)
from medamad.domain.errors import BadRequest, NotFound

QUIET = Rule(id="quiet", kind="quiet", url="https://hooks.example.com/T0P/secret")
NEW = Rule(id="new", kind="referrer", threshold=5, url="https://hooks.example.com/")
A, B = {"referrer": "a"}, {"referrer": "b"}


def ids() -> list[str]:
    return [f"n{number}" for number in range(100)]


def test_a_cause_is_noted_when_it_begins_and_when_it_ends() -> None:
    old = Alerts((QUIET, NEW))
    begun = old.with_findings(NEW, {"a": A, "b": B}, [], now=10, ids=ids())
    assert begun == Alerts(
        (QUIET, evolve(NEW, fired=10, causes=(Cause("a", 10, A), Cause("b", 10, B)))),
        (
            Notice(id="n0", rule="new", event="began", time=10, facts=A),
            Notice(id="n1", rule="new", event="began", time=10, facts=B),
        ),
    )
    ended = begun.with_findings(NEW, {}, ["a"], now=20, ids=["n2"])
    assert ended == Alerts(
        (QUIET, evolve(NEW, fired=10, causes=(Cause("b", 10, B),))),
        (*begun.notices, Notice(id="n2", rule="new", event="ended", time=20, facts=A)),
    )
    # What began, ended or was removed in the meantime changes nothing.
    assert begun.with_findings(NEW, {"a": A}, ["c"], now=20, ids=ids()) == begun
    assert begun.with_findings(evolve(NEW, id="gone"), {"a": A}, [], now=20, ids=ids()) == begun
    # Nor does what was found when the rule looked at something else.
    assert (
        begun.with_findings(evolve(NEW, threshold=6), {"c": A}, ["a"], now=20, ids=ids()) == begun
    )
    elsewhere = begun.with_findings(evolve(NEW, url="https://b/"), {}, ["a"], now=20, ids=["n2"])
    assert elsewhere == ended
    assert begun.without_notice("n0").notices == begun.notices[1:]


def test_a_removed_rule_has_no_notices() -> None:
    begun = Alerts((QUIET, NEW)).with_findings(NEW, {"a": A}, [], now=10, ids=ids())
    begun = begun.with_findings(QUIET, {"": {"last": 1}}, [], now=10, ids=["other"])
    left = begun.without_rule("new")
    assert [rule.id for rule in left.rules] == ["quiet"]
    assert [notice.id for notice in left.notices] == ["other"]
    with pytest.raises(NotFound, match=r"^there is no alert new$"):
        left.without_rule("new")


def test_a_rule_that_looks_at_something_else_begins_anew() -> None:
    made = Alerts((QUIET, NEW)).with_findings(NEW, {"a": A}, [], now=1, ids=["first"])
    made = made.with_findings(QUIET, {"": {"last": 1}}, [], now=1, ids=["second"])
    elsewhere = made.with_changed_rule(
        "new", lambda old: evolve(old, url="https://b.example/", format="ntfy")
    )
    assert elsewhere.notices == made.notices
    assert elsewhere.rule("new").causes == made.rule("new").causes
    assert elsewhere.rule("new").url == "https://b.example/"
    other = made.with_changed_rule("new", lambda old: evolve(old, threshold=7))
    assert [notice.id for notice in other.notices] == ["second"]
    assert other.rule("new") == evolve(NEW, threshold=7, fired=1)
    assert other.rule("quiet") == made.rule("quiet")
    with pytest.raises(NotFound, match=r"^there is no alert nothing$"):
        made.with_changed_rule("nothing", lambda old: old)


def test_there_are_at_most_a_hundred_rules() -> None:
    alerts = Alerts()
    for number in range(100):
        alerts = alerts.with_rule(evolve(QUIET, id=str(number)))
    with pytest.raises(BadRequest, match=r"^alerts: there can be 100, remove one first$"):
        alerts.with_rule(QUIET)


def test_a_rule_has_few_causes_and_a_website_few_notices() -> None:
    many = {str(number): A for number in range(MAX_CAUSES + 5)}
    alerts = Alerts((NEW,)).with_findings(NEW, many, [], now=1, ids=ids())
    assert [cause.key for cause in alerts.rules[0].causes] == list(many)[:MAX_CAUSES]
    for turn in range(2 * MAX_NOTICES):
        began, ended = ({"x": A}, []) if turn % 2 else ({}, ["x", "0"])
        alerts = alerts.with_findings(NEW, began, ended, now=turn, ids=[f"t{turn}", f"u{turn}"])
    assert len(alerts.notices) == MAX_NOTICES
    assert alerts.notices[-1].id == f"t{2 * MAX_NOTICES - 1}"


URL = (
    "url: expected an address that begins with https:// or http://, without a user name,"
    " of at most 2,048 characters of ASCII"
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "disk"}, f"kind: expected one of {', '.join(WEBSITE_KINDS)}"),
        ({"threshold": 1}, "threshold: not expected with kind quiet"),
        ({"hours": 1}, "hours: not expected with kind quiet"),
        ({"goal": "a"}, "goal: not expected with kind quiet"),
        ({"kind": "spike"}, "threshold: expected 1 to 10,000 with kind spike"),
        ({"kind": "spike", "threshold": 10_001}, "threshold: expected 1 to 10,000 with kind spike"),
        ({"kind": "drop", "threshold": 101}, "threshold: expected 1 to 100 with kind drop"),
        (
            {"kind": "referrer", "threshold": 0},
            "threshold: expected 1 to 1,000,000 with kind referrer",
        ),
        ({"kind": "goal", "threshold": 1, "goal": "a"}, "hours: expected 1 to 168 with kind goal"),
        (
            {"kind": "no-goal", "hours": 169, "goal": "a"},
            "hours: expected 1 to 168 with kind no-goal",
        ),
        ({"kind": "no-goal", "hours": 1}, "goal: required with kind no-goal, the id of a goal"),
        ({"format": "teams"}, "format: expected one of json, slack, discord, ntfy, mail"),
        ({"format": "mail"}, "url: not expected with format mail"),
        (
            {"format": "mail", "url": ""},
            "report: required with format mail, the id of a mailed report",
        ),
        ({"report": "r"}, "report: not expected with format json"),
        ({"url": "hooks.example.com"}, URL),
        ({"url": "ftp://hooks.example.com/"}, URL),
        ({"url": "https://hooks*.example.com/"}, URL),
        ({"url": "https:///path"}, URL),
        ({"url": "https://me:secret@hooks.example.com/"}, URL),
        ({"url": "https://hooks.example.com:99999/"}, URL),
        ({"url": "https://hooks.example.com:0/"}, URL),
        ({"url": "https://hooks.example.com:/"}, URL),
        ({"url": "https://hooks..example.com/"}, URL),
        ({"url": f"https://{'a' * 64}.example.com/"}, URL),
        ({"url": "https://[::1/"}, URL),
        ({"url": "https://hööks.example/"}, URL),
        ({"url": "https://hooks.example.com/a b"}, URL),
        ({"url": "https://hooks.example.com/\r\nHost: other"}, URL),
        ({"url": f"https://hooks.example.com/{'a' * 2_048}"}, URL),
    ],
)
def test_bad_rules(change: dict[str, object], reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        checked_rule(evolve(QUIET, **change), WEBSITE_KINDS)
    assert str(refused.value) == reason


def test_good_rules() -> None:
    rules = [
        QUIET,
        NEW,
        evolve(NEW, kind="spike", threshold=10_000),
        evolve(NEW, kind="goal", goal="a", hours=168),
        evolve(NEW, kind="no-goal", goal="a", hours=1, threshold=None, format="ntfy"),
    ]
    for rule in rules:
        assert checked_rule(rule, WEBSITE_KINDS) == rule
    mailed = evolve(QUIET, url="", format="mail", report="r")
    assert checked_rule(mailed, WEBSITE_KINDS) == mailed
    disk = evolve(NEW, kind="disk", url=" http://127.0.0.1:8080/hook ")
    assert checked_rule(disk, SERVICE_KINDS) == evolve(disk, url="http://127.0.0.1:8080/hook")


def test_what_is_shown_leaves_out_the_secret_part_of_the_url() -> None:
    assert shown(QUIET) == {
        "id": "quiet",
        "kind": "quiet",
        "url": "https://hooks.example.com/",
        "format": "json",
    }
