"""`medamad funnel`: define, list or remove funnels, whether the daemon runs or not."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from medamad.cli.goal_commands import GoalCommands, chosen
from medamad.cli.grants import run_subcommand
from medamad.domain.goals import Definitions, Funnel, new_id
from medamad.storage.offline import change_value
from medamad.storage.website_values import GOALS_AND_FUNNELS

EXAMPLES: Final = (
    (
        "medamad funnel add example.com Checkout Cart Payment Order",
        "the names of goals, or their IDs, in the order in which a visit is to reach them",
    ),
    ("medamad funnel list example.com", "list them"),
    ("medamad funnel remove example.com Checkout", "by its name, or the ID that the list shows"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="define a funnel")
    add.add_argument("hostname", metavar="HOSTNAME", help="the website")
    add.add_argument("name", metavar="NAME", help="the name of the funnel")
    add.add_argument(
        "goals",
        metavar="GOAL",
        nargs="+",
        help="the name of a goal, or its ID; two to eight, in order",
    )
    _COMMANDS.add_to(what, add, _add)


run: Final = run_subcommand


def _add(arguments: Namespace, data_dir: Path) -> int:
    new = new_id()

    def add(old: Definitions) -> Definitions:
        goals = (chosen(old.goals, each, "goal").id for each in arguments.goals)
        return old.with_funnel(Funnel(new, arguments.name, tuple(goals)))

    definitions = change_value(data_dir, GOALS_AND_FUNNELS, arguments.hostname, add)
    added = definitions.funnel(new)
    _COMMANDS.print_new(added, _steps(added, definitions), as_json=arguments.json)
    return 0


def _steps(funnel: Funnel, definitions: Definitions) -> str:
    return ", ".join(definitions.goal(each).name for each in funnel.goals)


def _row(funnel: Funnel, definitions: Definitions) -> tuple[str, ...]:
    return (funnel.id, funnel.name, _steps(funnel, definitions))


_COMMANDS: Final = GoalCommands(
    one="funnel",
    all_of=lambda definitions: definitions.funnels,
    without=Definitions.without_funnel,
    heads=("ID", "NAME", "GOALS"),
    row=_row,
)
