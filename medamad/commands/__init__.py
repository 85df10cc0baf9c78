"""The operator's commands: `medamad NAME …`, a module each.

Each module has `configure(parser)`, which adds its arguments, and `run(arguments)`, which gives
the exit status. Only the module of the command that is called is imported.
"""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Final, NoReturn

COMMANDS: Final = {
    "run": "run the daemon in the foreground",
    "demo": "run a daemon with invented traffic, for looking around",
    "status": "say what state the daemon is in",
    "check": "read all of a store and say what is wrong with it",
    "check-config": "read a configuration and say what is wrong with it",
    "export": "write out what is stored of a website",
    "import": "take what was exported into a website, or take that back",
    "passwd": "change the password of the account",
    "retention": "say how long views are kept, and what would go",
    "token": "make, list and revoke tokens, by which programs make themselves known",
    "share": "make, list and revoke links that show a website's figures to others",
    "service": "install the daemon as a service of systemd, or remove it",
    "version": "say which version this is",
}
USAGE_STATUS: Final = 64
"""What the program ends with when it is called wrongly (EX_USAGE of sysexits.h)."""

_STATUSES: Final = """\
exit status:
  0   all went well
  1   it did not, and the reason is on standard error
  64  called in a way that is not understood
  78  the configuration cannot be used
"""


def _module_name(command: str) -> str:
    name = command.replace("-", "_")
    return f"{name}_" if iskeyword(name) else name


class Parser(ArgumentParser):
    """A parser of arguments that ends with our own status."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and leave."""
        self.print_usage(sys.stderr)
        self.exit(USAGE_STATUS, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and give its exit status."""
    given = sys.argv[1:] if argv is None else argv
    parser = Parser(
        prog="medamad",
        description="Self-hosted, cookie-free web analytics.",
        epilog=_STATUSES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    called = given[0] if given else ""
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=purpose,
            description=f"{purpose.capitalize()}.",
            epilog=_STATUSES,
            formatter_class=RawDescriptionHelpFormatter,
        )
        if name == called:
            module = import_module(f"medamad.commands.{_module_name(name)}")
            module.configure(command)
            command.set_defaults(run=module.run)
    arguments = parser.parse_args(given)
    status: int = arguments.run(arguments)
    return status
