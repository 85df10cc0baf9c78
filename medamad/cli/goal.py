"""`medamad goal`: define, list or remove goals, whether the daemon runs or not."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from medamad.cli.goal_commands import GoalCommands
from medamad.cli.grants import run_subcommand
from medamad.domain.goals import Definitions, Goal, new_id
from medamad.storage.offline import change_value
from medamad.storage.website_values import GOALS_AND_FUNNELS

EXAMPLES: Final = (
    (
        'medamad goal add example.com Newsletter --path "/newsletter/thanks"',
        "reached by the views of a page",
    ),
    (
        'medamad goal add example.com Blog --path "/blog/*"',
        '"*" stands for any characters',
    ),
    (
        (
            "medamad goal add example.com Order --event event --value order"
            " --revenue total --currency EUR"
        ),
        'reached by medamad("order", {total: 49.9})',
    ),
    ("medamad goal list example.com", "list them"),
    ("medamad goal remove example.com Order", "by its name, or the ID that the list shows"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="define a goal")
    add.add_argument("hostname", metavar="HOSTNAME", help="the website")
    add.add_argument("name", metavar="NAME", help="the name of the goal")
    reached_by = add.add_mutually_exclusive_group(required=True)
    reached_by.add_argument(
        "--path",
        metavar="PATH",
        help='the path of a page; "*" stands for any characters, "%%2A" for an asterisk',
    )
    reached_by.add_argument(
        "--event", metavar="PROPERTY", help="the name of a property that events have"
    )
    add.add_argument(
        "--value", metavar="TEXT", help="the value that the property must have (default: any)"
    )
    add.add_argument(
        "--revenue", metavar="PROPERTY", help="the name of the property that has the amount"
    )
    add.add_argument(
        "--currency", metavar="CODE", help='the currency of the amount (ISO 4217), such as "EUR"'
    )
    _COMMANDS.add_to(what, add, _add)


run: Final = run_subcommand


def _add(arguments: Namespace, data_dir: Path) -> int:
    goal = Goal(
        id=new_id(),
        name=arguments.name,
        path=arguments.path,
        event=arguments.event,
        value=arguments.value,
        revenue=arguments.revenue,
        currency=arguments.currency,
    )
    definitions = change_value(
        data_dir, GOALS_AND_FUNNELS, arguments.hostname, lambda old: old.with_goal(goal)
    )
    added = definitions.goal(goal.id)
    _COMMANDS.print_new(added, _described(added), as_json=arguments.json)
    return 0


def _described(goal: Goal) -> str:
    reached_by = f"views of {goal.path}" if goal.event is None else f"events with {_event(goal)}"
    revenue = f", revenue from {goal.revenue} in {goal.currency}" if goal.revenue else ""
    return f"reached by {reached_by}{revenue}"


def _event(goal: Goal) -> str | None:
    return goal.event if goal.value is None else f"{goal.event} = {goal.value}"


def _row(goal: Goal, _definitions: Definitions) -> tuple[str, ...]:
    event = _event(goal)
    revenue = "-" if goal.revenue is None else f"{goal.revenue} ({goal.currency})"
    return (goal.id, goal.name, goal.path or "-", event or "-", revenue)


_COMMANDS: Final = GoalCommands(
    one="goal",
    all_of=lambda definitions: definitions.goals,
    without=Definitions.without_goal,
    heads=("ID", "NAME", "PATH", "EVENT", "REVENUE"),
    row=_row,
)
