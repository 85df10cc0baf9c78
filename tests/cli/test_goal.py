"""Goals and funnels by command, beside a running daemon and without one."""

import json
from functools import partial
from pathlib import Path

import pytest
from support.daemon import finished, running

pytestmark = pytest.mark.daemon

goal, funnel = partial(finished, "goal"), partial(finished, "funnel")
ORDER = ("--event", "order", "--value", "paid", "--revenue", "total", "--currency", "EUR")


def id_in(output: str) -> str:
    """Return the ID of what was added."""
    return output.partition("(ID ")[2].partition(")")[0]


def test_goals_and_funnels_are_defined_listed_and_removed(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client, data = daemon.client(), daemon.data
        client.add_website("example.com")
        assert goal(data, "list", "example.com").stdout == "There are no goals.\n"
        assert funnel(data, "list", "example.com").stdout == "There are no funnels.\n"
        made = goal(data, "add", "example.com", "Cart", "--path", "/cart/*")
        assert (made.returncode, made.stderr) == (0, "")
        cart = {"id": id_in(made.stdout), "name": "Cart", "path": "/cart/*"}
        assert made.stdout == (
            f"Added the goal Cart (ID {cart['id']}): reached by views of /cart/*\n"
        )
        order = json.loads(goal(data, "add", "Example.com", "Order", *ORDER, "--json").stdout)
        goals = "/api/websites/example.com/goals"
        assert client.get(goals) == [cart, order]
        made = funnel(data, "add", "example.com", "Checkout", "Cart", order["id"])
        assert (made.returncode, made.stderr) == (0, "")
        checkout = {
            "id": id_in(made.stdout),
            "name": "Checkout",
            "goals": [cart["id"], order["id"]],
        }
        assert made.stdout == f"Added the funnel Checkout (ID {checkout['id']}): Cart, Order\n"
        assert client.get("/api/websites/example.com/funnels") == [checkout]
        paid = goal(data, "add", "example.com", "Paid", *ORDER)
        assert paid.stdout == (
            f"Added the goal Paid (ID {id_in(paid.stdout)}): reached by events with order = paid,"
            " revenue from total in EUR\n"
        )
        assert goal(data, "remove", "example.com", "Paid").returncode == 0
        refused = goal(data, "remove", "example.com", "Cart")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == (
            "medamad: the funnel Checkout uses the goal Cart, which cannot be removed\n"
        )
    assert json.loads(goal(data, "list", "example.com", "--json").stdout) == [cart, order]
    assert json.loads(funnel(data, "list", "example.com", "--json").stdout) == [checkout]
    assert [line.split() for line in goal(data, "list", "example.com").stdout.splitlines()] == [
        ["ID", "NAME", "PATH", "EVENT", "REVENUE"],
        [cart["id"], "Cart", "/cart/*", "-", "-"],
        [order["id"], "Order", "-", "order", "=", "paid", "total", "(EUR)"],
    ]
    assert [line.split() for line in funnel(data, "list", "example.com").stdout.splitlines()] == [
        ["ID", "NAME", "GOALS"],
        [checkout["id"], "Checkout", "Cart,", "Order"],
    ]
    removed = funnel(data, "remove", "example.com", "Checkout")
    assert (removed.returncode, removed.stdout) == (0, "The funnel Checkout is removed.\n")
    removed = goal(data, "remove", "example.com", cart["id"])
    assert (removed.returncode, removed.stdout) == (0, "The goal Cart is removed.\n")
    assert json.loads(goal(data, "list", "example.com", "--json").stdout) == [order]


@pytest.mark.parametrize(
    ("command", "arguments", "reason"),
    [
        ("goal", ("list", "nowhere.example"), "hostname: no website nowhere.example is registered"),
        (
            "goal",
            ("add", "nowhere.example", "a", "--path", "/"),
            "hostname: no website nowhere.example is registered",
        ),
        ("goal", ("add", "example.com", "", "--path", "/"), "name: expected 1 to 100 characters"),
        ("goal", ("add", "example.com", "a", "--path", "a"), "path: expected a path that begins"),
        ("goal", ("add", "example.com", "a", "--event", "a", "--revenue", "b"), "currency: "),
        ("goal", ("remove", "example.com", "x"), "there is no goal x"),
        ("funnel", ("add", "example.com", "a", "x", "y"), "there is no goal x"),
        ("funnel", ("remove", "example.com", "x"), "there is no funnel x"),
    ],
)
def test_errors_are_reported(
    tmp_path_factory: pytest.TempPathFactory,
    command: str,
    arguments: tuple[str, ...],
    reason: str,
) -> None:
    folder = tmp_path_factory.getbasetemp() / "one for all errors about goals"
    if not folder.exists():
        with running(folder) as daemon:
            daemon.client().add_website("example.com")
    refused = finished(command, folder / "data", *arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("medamad: ")
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("kinds", [(), ("--path", "/", "--event", "a")])
def test_a_goal_is_a_page_or_an_event(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    refused = goal(tmp_path, "add", "example.com", "a", *kinds)
    assert (refused.returncode, refused.stdout) == (64, "")


def test_an_id_goes_before_a_name(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
    add = ("add", "example.com")
    first = id_in(goal(daemon.data, *add, "First", "--path", "/").stdout)
    assert goal(daemon.data, *add, first, "--path", "/").returncode == 0
    assert goal(daemon.data, "remove", "example.com", first).returncode == 0
    listed = json.loads(goal(daemon.data, "list", "example.com", "--json").stdout)
    assert [each["name"] for each in listed] == [first]
