"""`medamad token`: add, list or revoke API tokens, whether the daemon runs or not."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from medamad.accounts.tokens import make_token
from medamad.cli.grants import GrantCommands, Hostnames, run_subcommand
from medamad.cli.support import day, days
from medamad.domain.accounts import Scope, Token
from medamad.storage.grants import TOKENS
from medamad.storage.offline import add_grant, website_numbers

_ALL = "all websites"

EXAMPLES: Final = (
    (
        "medamad token add reports --website example.com --days 90",
        "reads one website, for 90 days",
    ),
    ("medamad token add shop --scope send --json", "print JSON, with its ID"),
    ("medamad token list --json", "list them as JSON"),
    ("medamad token revoke ID", "the list shows the ID"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="create a token and print it; it is shown only once")
    add.add_argument("name", metavar="NAME", help="the name of the token")
    add.add_argument(
        "--scope",
        choices=[scope.value for scope in Scope],
        default=Scope.READ.value,
        help="read figures; send hits; annotate: add annotations; full: all of this, and change"
        " websites (default: read)",
    )
    add.add_argument(
        "--website",
        action="append",
        metavar="HOSTNAME",
        help="a website that it is valid for (default: all); may be repeated",
    )
    add.add_argument(
        "--days", type=days, metavar="N", help="how long it is valid (default: forever)"
    )
    _LIST_AND_REVOKE.add_to(what, add, _add)


run: Final = run_subcommand


def _add(arguments: Namespace, data_dir: Path) -> int:
    now = int(time.time())
    numbers = arguments.website and website_numbers(data_dir, arguments.website)
    expires = None if arguments.days is None else now + arguments.days
    text, key, token = make_token(arguments.name, Scope(arguments.scope), numbers, expires, now)
    add_grant(data_dir, TOKENS, key, token)
    if arguments.json:
        _LIST_AND_REVOKE.print_new(token, data_dir, {"token": text})
        return 0
    print(text)
    if sys.stdout.isatty():
        print(f"Keep it: it is shown only once. `medamad token revoke {token.id}` revokes it.")
    return 0


def _as_json(token: Token, hostnames: Hostnames) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "websites": None if token.websites is None else _hosts(token, hostnames),
        "dateCreated": token.created,
        "dateExpires": token.expires,
        "dateLastUsed": token.last_used,
    }


def _row(token: Token, hostnames: Hostnames) -> tuple[str, ...]:
    return (
        token.id,
        token.name,
        str(token.scope),
        _ALL if token.websites is None else ", ".join(_hosts(token, hostnames)) or "-",
        day(token.created),
        day(token.last_used),
        day(token.expires),
    )


def _hosts(token: Token, hostnames: Hostnames) -> list[str]:
    return sorted(hostnames[each] for each in token.websites or () if each in hostnames)


_LIST_AND_REVOKE: Final = GrantCommands(
    kind=TOKENS,
    one="token",
    as_json=_as_json,
    heads=("ID", "NAME", "SCOPE", "WEBSITES", "MADE", "LAST USED", "ENDS"),
    row=_row,
)
