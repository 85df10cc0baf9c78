"""Settings that are exported and imported: what is there already, and what is in the way."""

from typing import Any

import msgspec
import pytest
from attrs import evolve

from medamad.domain.alerts import Alerts, Rule
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.errors import BadRequest, Conflict
from medamad.domain.exported_settings import Defined, ExportedSettings, Imported
from medamad.domain.goals import Definitions, Exclusion, Funnel, Goal
from medamad.domain.website_settings import WebsiteSettings

CART = Goal(id="cart", name="Cart", path="/cart")
PAID = Goal(id="paid", name="Paid", event="order", revenue="total", currency="EUR")
FLOOD = Exclusion(
    id="flood",
    name="Flood",
    filters=(("path[contains]", "/a&b"), ("utm_term", "")),
    start="2026-01-31T00:00:00Z",
    end="2026-01-31T23:59:59+01:00",
    created=7,
)
PAYING = Exclusion(id="paying", name="Paying", filters=(("goal[eq]", "paid"),), created=8)
NOTE = Annotation(id="note", time="2026-01-31", text="New prices", link="https://a.example/")
QUIET = Rule(id="quiet", kind="quiet", url="https://hooks.example.com/T0P/secret", fired=5)
UNPAID = Rule(id="unpaid", kind="no-goal", goal="paid", hours=24, format="mail", report="mailed")
ALL = Defined(
    Definitions(
        (CART, PAID),
        (Funnel("buy", "Checkout", ("cart", "paid")),),
        (FLOOD, PAYING),
    ),
    Annotations((NOTE,)),
    Alerts((QUIET, UNPAID)),
    WebsiteSettings(
        bots="strict",
        respect_gpc=False,
        blocked_networks=("192.0.2.0/24",),
        excluded_paths=("/admin/*",),
        redact_emails=True,
        kept_parameters=("t",),
    ),
)
NONE = Defined(Definitions(), Annotations(), Alerts())


def read(members: Any) -> ExportedSettings:
    return msgspec.json.decode(msgspec.json.encode(members), type=ExportedSettings)


def without_ids(defined: Defined) -> str:
    """Return what is exported, with the names of goals in place of their ids."""
    text = msgspec.json.encode(defined.exported()).decode()
    for goal in defined.definitions.goals:
        text = text.replace(f'"{goal.id}"', f'"{goal.name}"').replace(f"={goal.id}", "=a goal")
    for each in (*defined.definitions.funnels, *defined.annotations.all):
        text = text.replace(f'"{each.id}"', '""')
    return text


def test_nothing_secret_is_exported() -> None:
    exported = ALL.exported()
    assert exported["alerts"] == [
        {"kind": "quiet", "url": "https://hooks.example.com/", "format": "json"},
        {"kind": "no-goal", "goal": "paid", "hours": 24, "report": "mailed", "format": "mail"},
    ]
    assert "secret" not in str(exported)


def test_what_was_exported_is_imported_once() -> None:
    settings = read(ALL.exported())
    made, imported = NONE.with_imported(settings, {"mailed"})
    assert imported == Imported(
        goals=2,
        funnels=1,
        exclusions=2,
        annotations=1,
        alerts=2,
        settings=6,
        known=0,
        without_report=0,
    )
    assert without_ids(made) == without_ids(ALL)
    assert not {goal.id for goal in made.definitions.goals} & {"cart", "paid"}
    for there in (made, ALL):
        again, nothing = there.with_imported(settings, {"mailed"})
        assert again == there
        assert nothing == Imported(
            **dict.fromkeys(("goals", "funnels", "exclusions", "annotations", "alerts"), 0),
            settings=0,
            known=14,
            without_report=0,
        )


def test_what_is_missing_is_added_to_what_is_there() -> None:
    there = Defined(Definitions((evolve(PAID, id="own"),)), Annotations(), Alerts())
    made, imported = there.with_imported(read(ALL.exported()), ())
    assert (imported.goals, imported.funnels, imported.alerts) == (1, 1, 1)
    assert (imported.known, imported.without_report) == (1, 1)
    (funnel,) = made.definitions.funnels
    assert funnel.goals == (made.definitions.goals[1].id, "own")
    assert [rule.kind for rule in made.alerts.rules] == ["quiet"]


def test_settings_get_what_they_lack() -> None:
    own = WebsiteSettings(
        bots="strict", blocked_networks=("198.51.100.1", "192.0.2.0/24"), redact_uuids=True
    )
    there = Defined(Definitions(), Annotations(), Alerts(), own)
    settings = {
        "bots": "strict",
        "respect_gpc": None,
        "blocked_networks": ["192.0.2.0/24", "203.0.113.9"],
        "blocked_countries": ["de"],
        "allowed_hosts": ["Shop.Example"],
        "redact_uuids": False,
    }
    made, imported = there.with_imported(read({"settings": settings}), ())
    assert made.settings == WebsiteSettings(
        bots="strict",
        blocked_networks=("198.51.100.1", "192.0.2.0/24", "203.0.113.9"),
        blocked_countries=("DE",),
        allowed_hosts=("shop.example",),
        redact_uuids=True,
    )
    assert (imported.settings, imported.known) == (3, 1)


SLACK = "https://hooks.slack.example/"


def quiet(*paths: str) -> list[Rule]:
    return [Rule(id=path, kind="quiet", url=SLACK + path, format="slack") for path in paths]


@pytest.mark.parametrize(
    ("there", "listed", "added"),
    [
        # Two that post to two channels are two, although both are exported with their host alone.
        ([], ["", ""], ["", ""]),
        (["a"], ["", ""], [""]),
        (["a", "b"], ["", ""], []),
        (["a", "b"], ["", "", ""], [""]),
        # Which one is meant is known if the file has the whole address.
        (["a"], ["b"], ["b"]),
        (["a"], ["a"], []),
        (["a", "b"], ["", "a"], []),
        (["a"], ["", "a"], [""]),
        ([""], ["a"], ["a"]),
        ([""], ["a", ""], ["a"]),
    ],
)
def test_an_alert_is_that_of_one_webhook(
    there: list[str], listed: list[str], added: list[str]
) -> None:
    before = evolve(NONE, alerts=Alerts(tuple(quiet(*there))))
    members = [{"kind": "quiet", "url": SLACK + path, "format": "slack"} for path in listed]
    made, imported = before.with_imported(read({"alerts": members}), ())
    assert made.alerts.rules[: len(there)] == before.alerts.rules
    made_urls = [rule.url for rule in made.alerts.rules[len(there) :]]
    assert made_urls == [SLACK + path for path in added]
    assert (imported.alerts, imported.known) == (len(added), len(listed) - len(added))


def test_an_address_without_a_slash_is_a_host_alone() -> None:
    before = evolve(NONE, alerts=Alerts(tuple(quiet("a"))))
    members = [{"kind": "quiet", "url": SLACK.rstrip("/"), "format": "slack"}]
    made, _ = before.with_imported(read({"alerts": members}), ())
    assert made == before


@pytest.mark.parametrize(
    ("there", "members", "error"),
    [
        (
            Definitions((evolve(CART, path="/other"),)),
            {"goals": [{"id": "c", "name": " Cart", "path": "/cart"}]},
            Conflict("goals: Cart is there already, and is different"),
        ),
        (
            Definitions((CART, PAID), (Funnel("f", "Checkout", ("paid", "cart")),)),
            {
                "goals": [
                    {"id": "c", "name": "Cart", "path": "/cart"},
                    {"id": "d", "name": "Done", "path": "/done"},
                ],
                "funnels": [{"id": "f", "name": "Checkout", "goals": ["c", "d"]}],
            },
            Conflict("funnels: Checkout is there already, and is different"),
        ),
        (
            Definitions((CART,)),
            {"funnels": [{"id": "f", "name": "Checkout", "goals": ["cart", "paid"]}]},
            BadRequest("funnels: the file has no goal cart"),
        ),
        (
            Definitions(),
            {"alerts": [{"kind": "no-goal", "goal": "x", "hours": 1, "url": "https://a.example/"}]},
            BadRequest("alerts: the file has no goal x"),
        ),
        (
            Definitions(),
            {"alerts": [{"kind": "disk", "threshold": 5, "url": "https://a.example/"}]},
            BadRequest("alerts: kind: expected one of quiet, spike, drop, referrer, goal, no-goal"),
        ),
        (
            Definitions(),
            {"annotations": [{"id": "n", "time": "yesterday", "text": "x"}]},
            BadRequest("time: expected a day such as 2026-01-31, or an RFC 3339 date-time such as"),
        ),
        (
            Definitions(),
            {"annotations": [{"id": "n", "time": "2026-01-31", "text": "x"}] * 2_001},
            BadRequest("expected at most 2,000 entries"),
        ),
        (
            Definitions(),
            {
                "alerts": [
                    {"kind": "referrer", "threshold": n, "url": "https://a.example/"}
                    for n in range(1, 102)
                ]
            },
            BadRequest("alerts: there can be 100, remove one first"),
        ),
        (
            Definitions(),
            {"settings": {"bots": "off"}},
            Conflict("settings: bots: it is there already, and is different"),
        ),
        (
            Definitions(),
            {"settings": {"blocked_networks": ["192.0.2.300"]}},
            BadRequest("settings: blocked_networks: '192.0.2.300' does not appear to be an IPv4"),
        ),
        (
            Definitions(),
            {"settings": {"allowed_hosts": ["https://a.example"]}},
            BadRequest("settings: allowed_hosts: expected a hostname"),
        ),
        (
            Definitions(),
            {"settings": {"excluded_paths": [f"/{n}" for n in range(100)]}},
            BadRequest("settings: excluded_paths: expected at most 100 entries"),
        ),
    ],
)
def test_what_cannot_be_added_is_named(
    there: Definitions, members: dict[str, Any], error: Exception
) -> None:
    own = WebsiteSettings(bots="strict", excluded_paths=("/admin/*",))
    before = Defined(there, Annotations(), Alerts(), own)
    with pytest.raises(type(error)) as caught:
        before.with_imported(read(members), ())
    assert str(caught.value).startswith(str(error))
