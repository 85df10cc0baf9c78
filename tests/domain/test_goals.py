from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.goals import (
    EXACT,
    MAX_FUNNELS,
    MAX_GOALS,
    Definitions,
    Funnel,
    Goal,
    amount_of,
    new_id,
)

CART = Goal(id="cart", name="Cart", path="/cart")
PAID = Goal(id="paid", name="Paid", event="order", revenue="total", currency="EUR")
SIGNED_UP = Goal(id="up", name="Signed up", event="plan", value="pro")
CHECKOUT = Funnel("buy", "Checkout", ("cart", "paid"))
DEFINED = Definitions((CART, PAID, SIGNED_UP), (CHECKOUT,))


def added(**changes: Any) -> Goal:
    """Return a goal as it is stored."""
    goal = evolve(Goal(id="new", name="New"), **changes)
    return Definitions().with_goal(goal).goal("new")


def test_goals_and_funnels_are_kept_in_order_of_creation() -> None:
    definitions = reduce(Definitions.with_goal, (CART, PAID, SIGNED_UP), Definitions())
    assert definitions.with_funnel(CHECKOUT) == DEFINED
    assert DEFINED.goal("paid") == PAID
    assert DEFINED.funnel("buy") == CHECKOUT


@pytest.mark.parametrize(
    ("given_path", "stored"),
    [
        ("/thanks/", "/thanks"),
        (" /a ", "/a"),
        ("/", "/"),
        ("/caf%C3%A9", "/café"),
        ("/blog/*", "/blog/*"),
        ("*/thanks", "*/thanks"),
        ("/%2a%C3%A9%2A/*", "/%2Aé%2A/*"),
    ],
)
def test_a_path_is_compared_in_the_form_in_which_pages_are_stored(
    given_path: str, stored: str
) -> None:
    assert added(path=given_path).path == stored


def test_texts_are_stripped_as_those_of_hits() -> None:
    goal = added(name=" a ", event=" b ", value=" c ", revenue=" d ", currency="EUR")
    assert goal == Goal(id="new", name="a", event="b", value="c", revenue="d", currency="EUR")
    assert added(event="a", value="").value == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "path: expected exactly one of path and event"),
        ({"path": "/", "event": "a"}, "path: expected exactly one of path and event"),
        ({"path": "/", "name": " "}, "name: expected 1 to 100 characters, got 0"),
        ({"path": "/", "name": "a" * 101}, "name: expected 1 to 100 characters, got 101"),
        ({"path": "/", "name": "a\nb"}, "name: expected text of one line"),
        ({"path": ""}, "path: expected 1 to 2048 characters, got 0"),
        ({"path": "/" * 2_049}, "path: expected 1 to 2048 characters, got 2049"),
        ({"path": "thanks"}, "path: expected a path that begins with / or *"),
        ({"path": "/\0"}, "path: expected text without NUL"),
        ({"path": "/", "value": "a"}, "value: expected only with event"),
        ({"event": ""}, "event: expected 1 to 64 characters, got 0"),
        ({"event": "a" * 65}, "event: expected 1 to 64 characters, got 65"),
        ({"event": "a", "value": "a" * 257}, "value: expected 0 to 256 characters, got 257"),
        ({"path": "/", "revenue": "a"}, "currency: expected both revenue and currency"),
        ({"path": "/", "currency": "EUR"}, "revenue: expected both revenue and currency"),
        ({"path": "/", "revenue": "a", "currency": "eur"}, "currency: expected the code"),
        ({"path": "/", "revenue": "a", "currency": "EUU"}, "currency: expected the code"),
        ({"path": "/", "revenue": "", "currency": "EUR"}, "revenue: expected 1 to 64 characters"),
    ],
)
def test_an_invalid_goal_is_rejected(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadRequest) as rejected:
        added(**changes)
    assert str(rejected.value).startswith(reason)


@pytest.mark.parametrize(
    ("goals", "reason"),
    [
        (("cart",), "goals: expected 2 to 8 goals in order, got 1"),
        (tuple("abcdefghi"), "goals: expected 2 to 8 goals in order, got 9"),
        (("cart", "x"), "goals: there is no goal x"),
        (("cart", "paid", "cart"), "goals: expected each goal once"),
    ],
)
def test_an_invalid_funnel_is_rejected(goals: tuple[str, ...], reason: str) -> None:
    with pytest.raises(BadRequest) as rejected:
        DEFINED.with_funnel(Funnel("new", "New", goals))
    assert str(rejected.value) == reason
    with pytest.raises(BadRequest):
        DEFINED.with_changed_funnel("buy", lambda old: evolve(old, goals=goals))
    with pytest.raises(BadRequest, match=r"^name: "):
        DEFINED.with_funnel(Funnel("new", "", ("cart", "paid")))


def test_a_name_is_given_once() -> None:
    with pytest.raises(Conflict, match=r"^name: Cart is taken$"):
        DEFINED.with_goal(Goal(id="new", name=" Cart", path="/"))
    with pytest.raises(Conflict, match=r"^name: Cart is taken$"):
        DEFINED.with_changed_goal("paid", lambda old: evolve(old, name="Cart"))
    with pytest.raises(Conflict, match=r"^name: Checkout is taken$"):
        DEFINED.with_funnel(evolve(CHECKOUT, id="new"))
    assert DEFINED.with_goal(Goal(id="new", name="Checkout", path="/")).goal("new")


def test_a_goal_of_a_funnel_can_only_be_renamed() -> None:
    renamed = DEFINED.with_changed_goal("paid", lambda old: evolve(old, name="Bought"))
    assert renamed.goals == (CART, evolve(PAID, name="Bought"), SIGNED_UP)
    uses = "^the funnel Checkout uses the goal Paid, which "
    with pytest.raises(Conflict, match=rf"{uses}can be renamed, but not changed otherwise$"):
        DEFINED.with_changed_goal("paid", lambda old: evolve(old, currency="USD"))
    with pytest.raises(Conflict, match=rf"{uses}cannot be removed$"):
        DEFINED.without_goal("paid")
    without = DEFINED.without_funnel("buy").without_goal("paid")
    assert without == Definitions((CART, SIGNED_UP))


def test_other_goals_and_funnels_can_be_changed() -> None:
    changed = DEFINED.with_changed_goal("up", lambda old: evolve(old, value=None))
    assert changed.goal("up") == evolve(SIGNED_UP, value=None)
    turned = DEFINED.with_changed_funnel("buy", lambda old: evolve(old, goals=old.goals[::-1]))
    assert turned.funnels == (Funnel("buy", "Checkout", ("paid", "cart")),)


def test_what_is_missing_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"^there is no goal buy$"):
        DEFINED.without_goal("buy")
    with pytest.raises(NotFound, match=r"^there is no goal buy$"):
        DEFINED.with_changed_goal("buy", lambda old: old)
    with pytest.raises(NotFound, match=r"^there is no funnel cart$"):
        DEFINED.without_funnel("cart")
    with pytest.raises(NotFound, match=r"^there is no funnel cart$"):
        DEFINED.with_changed_funnel("cart", lambda old: old)


def test_there_is_a_limit_on_goals_and_funnels() -> None:
    goals = tuple(Goal(id=str(n), name=str(n), path="/") for n in range(MAX_GOALS))
    funnels = tuple(Funnel(str(n), str(n), ("0", "1")) for n in range(MAX_FUNNELS))
    full = Definitions(goals, funnels)
    with pytest.raises(Conflict, match=r"^the website has 100 goals already, remove one first$"):
        full.with_goal(CART)
    with pytest.raises(Conflict, match=r"^the website has 50 funnels already, remove one first$"):
        full.with_funnel(Funnel("new", "New", ("0", "1")))
    assert full.without_goal("9").with_goal(CART).goal("cart") == CART


def test_ids_are_not_taken_for_options() -> None:
    ids = {new_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert not any(each.startswith("-") for each in ids)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("19.9", "19.9"),
        ("0.10", "0.10"),
        ("1e3", "1000"),
        ("-5", "-5"),
        ("+5", "5"),
        (".5", "0.5"),
        ("0", "0"),
        ("-0.0e9", "0"),
        ("0e99999999999999999999", "0"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e308"),
    ],
)
def test_an_amount_is_exact(text: str, amount: str) -> None:
    assert amount_of(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "-",
            "e3",
            "1e",
            "1_0",
            " 1",
            "1 ",
            "1,5",
            "€ 5",
            "0x10",
            "\N{ARABIC-INDIC DIGIT ONE}",
        ),
        *("nan", "NaN", "inf", "-Infinity", "true", "1e309", "1e-400", "1e99999999999999999999"),
        "1e-99999999999999999999",
    ],
)
def test_other_texts_have_no_amount(text: str) -> None:
    assert amount_of(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_of_a_browser_is_an_amount(number: float) -> None:
    amount = amount_of(repr(number))
    assert amount is not None
    assert float(amount) == number


def test_sums_of_amounts_are_exact() -> None:
    texts = ["1.7976931348623157e308", "5e-324", "0.1", "0.2", "-1.7976931348623157e308"]
    amounts = [amount for text in texts if (amount := amount_of(text)) is not None]
    total = reduce(EXACT.add, amounts)
    assert EXACT.subtract(total, Decimal("0.3")) == Decimal("5e-324")
