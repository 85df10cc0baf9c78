"""What `medamad token` and `medamad share` have in common: `list`, `revoke` and how they run."""

import json
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

from medamad.cli.support import add_data, add_json, on_data, print_table
from medamad.domain.accounts import Share, Token
from medamad.domain.errors import NotFound
from medamad.storage.grants import GrantKind
from medamad.storage.offline import list_grants, revoke_grant

G = TypeVar("G", Token, Share)

Hostnames: TypeAlias = Mapping[int, str]
"""The hostnames of websites by number."""


@frozen
class GrantCommands(Generic[G]):
    """The commands `list` and `revoke` for one kind of grant, called `one` in messages."""

    kind: GrantKind[G]
    one: str
    as_json: Callable[[G, Hostnames], dict[str, object]]
    """Return the JSON members of a grant."""
    heads: tuple[str, ...]
    row: Callable[[G, Hostnames], tuple[str, ...]]
    """Return the table cells of a grant, one for each of `heads`."""

    def add_to(
        self,
        what: "_SubParsersAction[ArgumentParser]",
        add: ArgumentParser,
        work: Callable[[Namespace, Path], int],
    ) -> None:
        """Add both commands, and complete the command `add`, which runs `work`."""
        add_json(add)
        add.set_defaults(work=work)
        listing = what.add_parser("list", help=f"list the {self.kind.what}")
        add_json(listing)
        listing.set_defaults(work=self._list)
        revoke = what.add_parser("revoke", help=f"revoke a {self.one} at once")
        revoke.add_argument("id", metavar="ID", help="the ID shown by list")
        revoke.set_defaults(work=self._revoke)
        for each in (add, listing, revoke):
            add_data(each)

    def print_new(self, grant: G, data_dir: Path, opens: dict[str, str]) -> None:
        """Print a new grant as JSON, with the secret that opens it."""
        hostnames = list_grants(data_dir, self.kind).hostnames
        print(json.dumps({**self.as_json(grant, hostnames), **opens}, indent=1))

    def _list(self, arguments: Namespace, data_dir: Path) -> int:
        listed = list_grants(data_dir, self.kind)
        hostnames = listed.hostnames
        if arguments.json:
            listing = [self.as_json(grant, hostnames) for _, grant in listed.grants]
            print(json.dumps(listing, indent=1))
        elif listed.grants:
            rows = [self.heads]
            rows += [self.row(grant, hostnames) for _, grant in listed.grants]
            print_table(rows)
        else:
            print(f"There are no {self.kind.what}.")
        return 0

    def _revoke(self, arguments: Namespace, data_dir: Path) -> int:
        for key, grant in list_grants(data_dir, self.kind).grants:
            if grant.id == arguments.id and revoke_grant(data_dir, self.kind, key):
                print(f"The {self.one} {grant.name} is revoked.")
                return 0
        raise NotFound(f"there is no {self.one} {arguments.id}")


def run_subcommand(arguments: Namespace) -> int:
    """Run the subcommand; return its exit status."""
    return on_data(arguments, partial(arguments.work, arguments))
