"""The operator's commands: `medamad NAME …`, with one module for each.

A module has `configure(parser)`, which adds the arguments, `run(arguments)`, which returns the exit
status, and EXAMPLES, pairs of a command line and its description. Further help text goes before the
parser's epilog. Only the module of the command that is called is imported.
"""

import errno
import faulthandler
import gc
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from keyword import iskeyword
from typing import Any, Final, NoReturn

from medamad.build import version_text
from medamad.cli.exit_statuses import INTERRUPTED_STATUS, UNREAD_STATUS, USAGE_STATUS, statuses
from medamad.cli.signals import interruptible
from medamad.daemon.messages import complain, reason_of
from medamad.daemon.service_paths import SERVICE_PATHS, ServicePaths

COMMANDS: Final = {
    "run": "run the daemon in the foreground",
    "demo": "run a daemon with sample traffic, to look around",
    "status": "show the state of the daemon",
    "check": "read the whole store and report damage",
    "check-config": "read a configuration and report errors",
    "backup": "write a backup of the store",
    "restore": "replace the store with a backup",
    "compact": "write the store anew, without what was deleted",
    "export": "export the data of a website",
    "report": "print the report of a week or month, as it is mailed",
    "mail": "send a test mail",
    "import": "import exported data into a website, or undo an import",
    "follow": "count the robots in a web server's log as it grows",
    "passwd": "change the password of the account",
    "retention": "show how long views are kept, and what would be removed",
    "privacy": "show how many visits are alone in what is stored of their browsers",
    "token": "create, list and revoke API tokens",
    "share": "create, list and revoke links that show a website's figures to others",
    "goal": "define, list and remove the goals of a website",
    "funnel": "define, list and remove the funnels of a website: goals in order",
    "alert": "define, list and remove alerts of a website or the service",
    "settings": "export or import what is defined for a website, such as goals and exclusions",
    "annotate": "add, list, import, change and remove the annotations of a website",
    "compare": "compare the hours since a deploy with the same hours of earlier weeks",
    "cluster": "make the tables of a ClickHouse cluster, load it, and show what was sent to it",
    "service": "install the daemon as a systemd service, or remove it",
    "completion": "print a shell completion script",
    "version": "show the version",
}

_UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""The errors of a standard output that cannot be written to."""


class Parser(ArgumentParser):
    """An argument parser that exits with our own status."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit."""
        self.print_usage(sys.stderr)
        complain(message, sys.stderr, os.environ, self.prog)
        self.exit(USAGE_STATUS)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a message, and let errors propagate."""
        (file or sys.stderr).write(message)


def main(argv: Sequence[str] | None = None, service: ServicePaths = SERVICE_PATHS) -> int:
    """Run a command; return its exit status."""
    given = sys.argv[1:] if argv is None else argv
    _open_what_is_closed()
    # A disk error under the memory-mapped file kills the process: leave a traceback then.
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
    status: int = 0
    try:
        try:
            with _frozen_heap():
                parser = make_parser(given[:1])
                arguments = parser.parse_args(given, Namespace(service_paths=service))
            may_be_interrupted = INTERRUPTED_STATUS in statuses(arguments.command)
            with interruptible() if may_be_interrupted else nullcontext():
                status = arguments.run(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # The reader of the output has exited.
        _write_no_more()
        return UNREAD_STATUS
    except OSError as error:
        if error.errno not in _UNWRITTEN or error.filename is not None:
            raise
        _write_no_more()
        if status != 1:  # else the error was printed already
            complain(f"standard output: {reason_of(error)}", sys.stderr, os.environ)
        return 1
    return status


@contextmanager
def _frozen_heap() -> Iterator[None]:
    """Exempt all that is made within from garbage collection: modules live to the end.

    Scanning them, several times and once more at exit, takes a quarter of a short command.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _open_what_is_closed() -> None:
    """Replace closed standard streams, for which Python has None.

    Writing to standard output then fails, as in other programs.
    """
    streams: Any = sys
    if streams.stdout is None:
        streams.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if streams.stderr is None:
        streams.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _write_no_more() -> None:
    """Discard what Python would still flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser(commands: Iterable[str]) -> Parser:
    """Return the parser of the program; only the named commands get their arguments."""
    wanted = set(commands)
    parser = Parser(
        prog="medamad",
        description="Self-hosted, cookie-free web analytics.",
        epilog="`medamad COMMAND --help` describes each.\n\n" + epilog("", ()),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=version_text(), help="show the version"
    )
    adding = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        command = adding.add_parser(
            name,
            help=purpose,
            description=f"{purpose[0].upper()}{purpose[1:]}.",
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
    """Return the text below the arguments in a command's help."""
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
