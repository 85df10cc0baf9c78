"""`medamad token`: makes, lists and revokes API tokens, whether the daemon runs or not."""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Final

from medamad.account.tokens import make_token
from medamad.commands.configured import add_data, on_data
from medamad.commands.writing import add_json, day, days, print_table
from medamad.model.errors import NotFound
from medamad.model.tokens import Scope, Token
from medamad.store.granting import add_grant, list_grants, revoke_grant, website_numbers
from medamad.store.grants import TOKENS

_ALL = "all websites"

EXAMPLES: Final = (
    (
        "medamad token add reports --website example.com --days 90",
        "reads one website, for 90 days",
    ),
    ("medamad token list --json", "which there are, for programs"),
    ("medamad token revoke ID", "at once; the list tells the ID"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="make a token, and write it: it is shown this once")
    add.add_argument("name", metavar="NAME", help="what to call it")
    add.add_argument(
        "--scope",
        choices=tuple(Scope),
        default=Scope.READ,
        help="read figures; send hits; full: both, and change websites (without: read)",
    )
    add.add_argument(
        "--website",
        action="append",
        metavar="HOSTNAME",
        help="what it is for (without: all websites); may be repeated",
    )
    add.add_argument("--days", type=days, metavar="N", help="for how long (without: for good)")
    add.set_defaults(work=_add)
    listing = what.add_parser("list", help="say which tokens there are")
    add_json(listing)
    listing.set_defaults(work=_list)
    revoke = what.add_parser("revoke", help="revoke a token, at once")
    revoke.add_argument("id", metavar="ID", help="as the list says")
    revoke.set_defaults(work=_revoke)
    for each in (add, listing, revoke):
        add_data(each)


def run(arguments: Namespace) -> int:
    """Do what is asked; the exit status tells how it went."""
    return on_data(arguments, partial(arguments.work, arguments))


def _add(arguments: Namespace, data_dir: Path) -> int:
    now = int(time.time())
    numbers = arguments.website and website_numbers(data_dir, arguments.website)
    expires = None if arguments.days is None else now + arguments.days
    text, key, token = make_token(arguments.name, arguments.scope, numbers, expires, now)
    add_grant(data_dir, TOKENS, key, token)
    print(text)
    if sys.stdout.isatty():
        print(f"Keep it: it is shown this once. `medamad token revoke {token.id}` ends it.")
    return 0


def _list(arguments: Namespace, data_dir: Path) -> int:
    listed = list_grants(data_dir, TOKENS)
    tokens = [token for _, token in listed.grants]
    if arguments.json:
        print(json.dumps([_told(token, listed.hostnames) for token in tokens], indent=1))
        return 0
    if not tokens:
        print("There are no tokens.")
        return 0
    heads = ("ID", "NAME", "SCOPE", "WEBSITES", "MADE", "LAST USED", "ENDS")
    rows = [
        (
            *(token.id, token.name, str(token.scope)),
            _ALL if token.websites is None else ", ".join(_hosts(token, listed.hostnames)) or "-",
            *(day(token.created), day(token.last_used), day(token.expires)),
        )
        for token in tokens
    ]
    print_table([heads, *rows])
    return 0


def _told(token: Token, hostnames: dict[int, str]) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "websites": None if token.websites is None else _hosts(token, hostnames),
        "dateCreated": token.created,
        "dateExpires": token.expires,
        "dateLastUsed": token.last_used,
    }


def _hosts(token: Token, hostnames: dict[int, str]) -> list[str]:
    return sorted(hostnames[each] for each in token.websites or () if each in hostnames)


def _revoke(arguments: Namespace, data_dir: Path) -> int:
    for key, token in list_grants(data_dir, TOKENS).grants:
        if token.id == arguments.id and revoke_grant(data_dir, TOKENS, key):
            print(f"The token {token.name} is revoked.")
            return 0
    raise NotFound(f"there is no token {arguments.id}")
