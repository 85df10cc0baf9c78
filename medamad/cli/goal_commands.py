"""What `medamad goal` and `medamad funnel` have in common: `list` and `remove`."""

import json
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic

from attrs import frozen

from medamad.cli.support import add_data, add_json, print_table
from medamad.domain.errors import NotFound
from medamad.domain.goals import D, Definitions, members_of
from medamad.storage.offline import change_value, value_of
from medamad.storage.website_values import GOALS_AND_FUNNELS


def chosen(definitions: Sequence[D], text: str, what: str) -> D:
    """Return the goal or funnel with an id, else the one with a name. Raises NotFound."""
    found = [each for each in definitions if text in (each.id, each.name)]
    if not found:
        raise NotFound(f"there is no {what} {text}")
    return min(found, key=lambda each: each.id != text)


@frozen
class GoalCommands(Generic[D]):
    """The commands `list` and `remove` for goals or funnels, called `one` in messages."""

    one: str
    all_of: Callable[[Definitions], Sequence[D]]
    without: Callable[[Definitions, str], Definitions]
    heads: tuple[str, ...]
    row: Callable[[D, Definitions], tuple[str, ...]]
    """Return the table cells of a goal or funnel, one for each of `heads`."""

    def add_to(
        self,
        what: "_SubParsersAction[ArgumentParser]",
        add: ArgumentParser,
        work: Callable[[Namespace, Path], int],
    ) -> None:
        """Add both commands, and complete the command `add`, which runs `work`."""
        add_json(add)
        add.set_defaults(work=work)
        listing = what.add_parser("list", help=f"list the {self.one}s of a website")
        listing.add_argument("hostname", metavar="HOSTNAME", help="the website")
        add_json(listing)
        listing.set_defaults(work=self._list)
        remove = what.add_parser("remove", help=f"remove a {self.one}")
        remove.add_argument("hostname", metavar="HOSTNAME", help="the website")
        remove.add_argument(
            "chosen", metavar=self.one.upper(), help=f"the name of the {self.one}, or its ID"
        )
        remove.set_defaults(work=self._remove)
        for each in (add, listing, remove):
            add_data(each)

    def print_new(self, new: D, what: str, *, as_json: bool) -> None:
        """Print a new goal or funnel: `what` says what it is; or all of it as JSON."""
        if as_json:
            print(json.dumps(members_of(new), indent=1))
        else:
            print(f"Added the {self.one} {new.name} (ID {new.id}): {what}")

    def _list(self, arguments: Namespace, data_dir: Path) -> int:
        definitions = value_of(data_dir, GOALS_AND_FUNNELS, arguments.hostname)
        listed = self.all_of(definitions)
        if arguments.json:
            print(json.dumps([members_of(each) for each in listed], indent=1))
        elif listed:
            rows = [self.heads]
            rows += [self.row(each, definitions) for each in listed]
            print_table(rows)
        else:
            print(f"There are no {self.one}s.")
        return 0

    def _remove(self, arguments: Namespace, data_dir: Path) -> int:
        removed = []

        def remove(old: Definitions) -> Definitions:
            found = chosen(self.all_of(old), arguments.chosen, self.one)
            removed.append(found.name)
            return self.without(old, found.id)

        change_value(data_dir, GOALS_AND_FUNNELS, arguments.hostname, remove)
        print(f"The {self.one} {removed[0]} is removed.")
        return 0
