"""`medamad share`: add, list or revoke share links, whether the daemon runs or not."""

import sys
import time
from argparse import ArgumentParser, Namespace
from getpass import getpass
from pathlib import Path
from typing import Final

from medamad.accounts.credentials import check_password, hash_password
from medamad.accounts.shares import make_share
from medamad.cli.grants import GrantCommands, Hostnames, run_subcommand
from medamad.cli.support import day, effective_config
from medamad.domain.accounts import Share
from medamad.storage.grants import SHARES
from medamad.storage.offline import add_grant, website_numbers

_PAGE = "/share/"

EXAMPLES: Final = (
    ("medamad share add example.com club --password", "prompts for the password of the link"),
    (
        "medamad share add example.com widget --embed https://www.example.com",
        "that website may show it in a frame",
    ),
    ("medamad share list", "list them"),
    ("medamad share revoke ID", "the list shows the ID"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="create a share link and print its address")
    add.add_argument("hostname", metavar="HOSTNAME", help="the website to show")
    add.add_argument("name", metavar="NAME", help="the name of the link")
    add.add_argument(
        "--password",
        action="store_true",
        help="protect it with a password, read from the terminal or standard input",
    )
    add.add_argument(
        "--embed",
        action="append",
        default=[],
        metavar="ORIGIN",
        help='an origin that may show it in a frame, such as "https://www.example.com",'
        ' or "*" for any (default: none); may be repeated',
    )
    _LIST_AND_REVOKE.add_to(what, add, _add)


run: Final = run_subcommand


def _add(arguments: Namespace, data_dir: Path) -> int:
    (number,) = website_numbers(data_dir, [arguments.hostname])
    encoded = hash_password(check_password(_password())) if arguments.password else ""
    share = make_share(arguments.name, number, arguments.embed, encoded, int(time.time()))
    # Found first: a link whose address cannot be printed would be of no use.
    url = effective_config(data_dir, arguments.config).public_url() + _PAGE + share.id
    add_grant(data_dir, SHARES, share.id.encode("ascii"), share)
    if arguments.json:
        _LIST_AND_REVOKE.print_new(share, data_dir, {"path": _PAGE + share.id, "url": url})
    else:
        print(url)
    return 0


def _password() -> str:
    if sys.stdin.isatty():
        return getpass("Password of the link: ")
    return sys.stdin.readline().removesuffix("\n").removesuffix("\r")


def _as_json(share: Share, hostnames: Hostnames) -> dict[str, object]:
    return {
        "id": share.id,
        "name": share.name,
        "hostname": hostnames.get(share.website),
        "protected": bool(share.password_hash),
        "embed": share.embed,
        "dateCreated": share.created,
    }


def _row(share: Share, hostnames: Hostnames) -> tuple[str, ...]:
    return (
        share.id,
        hostnames.get(share.website, "-"),
        share.name,
        "yes" if share.password_hash else "no",
        " ".join(share.embed) or "-",
        day(share.created),
    )


_LIST_AND_REVOKE: Final = GrantCommands(
    kind=SHARES,
    one="share link",
    as_json=_as_json,
    heads=("ID", "WEBSITE", "NAME", "PASSWORD", "EMBED", "MADE"),
    row=_row,
)
