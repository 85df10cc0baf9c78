"""The operator's commands: `medamad NAME …`, a module each.

Each module has `configure(parser)`, which adds its arguments, `run(arguments)`, which gives the
exit status, and EXAMPLES, pairs of a command line and what it does. What else its help should say
it puts before the parser's epilog. Only the module of the command that is called is imported.
"""

import errno
import faulthandler
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from keyword import iskeyword
from typing import Any, Final, NoReturn

from medamad.build import told_version
from medamad.cli.exit_statuses import INTERRUPTED_STATUS, UNREAD_STATUS, USAGE_STATUS, statuses
from medamad.cli.support import ended_in_order
from medamad.daemon.install import SERVICE_PATHS, ServicePaths
from medamad.daemon.logs import complain, reason_of

COMMANDS: Final = {
    "run": "run the daemon in the foreground",
    "demo": "run a daemon with invented traffic, for looking around",
    "status": "say what state the daemon is in",
    "check": "read all of a store and say what is wrong with it",
    "check-config": "read a configuration and say what is wrong with it",
    "backup": "write a backup of the store",
    "restore": "put a backup in the place of the store",
    "export": "write out what is stored of a website",
    "import": "take what was exported into a website, or take that back",
    "passwd": "change the password of the account",
    "retention": "say how long views are kept, and what would go",
    "token": "make, list and revoke tokens, by which programs make themselves known",
    "share": "make, list and revoke links that show a website's figures to others",
    "service": "install the daemon as a service of systemd, or remove it",
    "completion": "write what completes commands in a shell",
    "version": "say which version this is",
}

_UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What the system says where standard output takes no more."""


class Parser(ArgumentParser):
    """A parser of arguments that ends with our own status."""

    def error(self, message: str) -> NoReturn:
        """Return what is wrong and leave."""
        self.print_usage(sys.stderr)
        complain(message, sys.stderr, os.environ, self.prog)
        self.exit(USAGE_STATUS)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Say it, and let whoever runs us hear of it where that fails."""
        (file or sys.stderr).write(message)


def main(argv: Sequence[str] | None = None, service: ServicePaths = SERVICE_PATHS) -> int:
    """Run a command and give its exit status."""
    given = sys.argv[1:] if argv is None else argv
    _open_what_is_closed()
    # A disk that fails below the mapped file ends the process: then at least it is said.
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
    status: int = 0
    try:
        try:
            arguments = make_parser(given[:1]).parse_args(given, Namespace(service_paths=service))
            may_be_interrupted = INTERRUPTED_STATUS in statuses(arguments.command)
            with ended_in_order() if may_be_interrupted else nullcontext():
                status = arguments.run(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # Whoever reads it has had enough.
        _write_no_more()
        return UNREAD_STATUS
    except OSError as error:
        if error.errno not in _UNWRITTEN or error.filename is not None:
            raise
        _write_no_more()
        if status != 1:  # else it has been said
            complain(f"standard output: {reason_of(error)}", sys.stderr, os.environ)
        return 1
    return status


def _open_what_is_closed() -> None:
    """Have something in the place of streams that are closed, which Python has nothing for.

    What is written to standard output then fails, as it does for other programs.
    """
    streams: Any = sys
    if streams.stdout is None:
        streams.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if streams.stderr is None:
        streams.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _write_no_more() -> None:
    """Let what Python would still write at the end go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser(commands: Iterable[str]) -> Parser:
    """Make the parser of the program; only the named commands get their arguments."""
    wanted = set(commands)
    parser = Parser(
        prog="medamad",
        description="Self-hosted, cookie-free web analytics.",
        epilog="`medamad COMMAND --help` tells of each.\n\n" + epilog("", ()),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=told_version(), help="say which version this is"
    )
    adding = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        command = adding.add_parser(
            name,
            help=purpose,
            description=f"{purpose.capitalize()}.",
            formatter_class=RawDescriptionHelpFormatter,
        )
        if name in wanted:
            module = module_of(name)
            command.epilog = epilog(name, module.EXAMPLES)
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser


def module_of(command: str) -> Any:
    """Import the module of a command."""
    name = command.replace("-", "_")
    return import_module(f"{__name__}.{name}_" if iskeyword(name) else f"{__name__}.{name}")


def epilog(command: str, examples: Iterable[tuple[str, str]]) -> str:
    """Return what stands below the arguments in the help of each command."""
    return "\n".join(_epilog(command, examples))


def _epilog(command: str, examples: Iterable[tuple[str, str]]) -> Iterator[str]:
    for number, (line, purpose) in enumerate(examples):
        if not number:
            yield "examples:"
        yield f"  {line}"
        yield f"      {purpose}"
    if examples:
        yield ""
    yield "exit status:"
    for status, meaning in statuses(command).items():
        yield f"  {status:<4}{meaning}"
