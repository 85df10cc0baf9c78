"""`medamad completion`: print a completion script for bash or zsh."""

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from typing import Any, Final

import shtab

from medamad.cli import COMMANDS, make_parser

_COMPLETED: Final = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY}
"""What to complete, by the metavar."""

EXAMPLES: Final = (
    (
        "medamad completion bash > /usr/share/bash-completion/completions/medamad",
        "for every user's bash, which needs the package bash-completion",
    ),
    (
        "medamad completion zsh > /usr/local/share/zsh/site-functions/_medamad",
        "for every user's zsh",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell to complete in")


def run(arguments: Namespace) -> int:
    """Print the script for a shell."""
    parser = make_parser(COMMANDS)
    for action in actions(parser):
        if action.metavar in _COMPLETED:
            action.complete = _COMPLETED[action.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    return 0


def actions(parser: ArgumentParser) -> Iterator[Action]:
    """Return the arguments of a parser and of its subparsers."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way
        yield action
        if isinstance(action, _SubParsersAction):
            choices: dict[str, Any] = action.choices
            for below in choices.values():
                yield from actions(below)
