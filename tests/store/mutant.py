"""Opens changed copies of a store, each in a process of its own, and tells what came of each.

Called with the file of a sound store, a folder to work in, the first seed and how many. Writes a
line of JSON for each: seed, change, what came of it, and what was said.
"""

import json
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from held import agrees, rows
from pages_changed import change
from told_in_log import told_in_log
from twisted.internet.defer import Deferred
from views import DAY_MS, NOW_MS, a_view

from medamad.store.environment import FILE_NAME
from medamad.store.errors import StoreError
from medamad.store.journal import Outcome
from medamad.store.planning import Sizes
from medamad.store.settings import StoreSettings
from medamad.store.store import Store

SIZES = Sizes(chunk_views=4, group_members=2, counted_from=0)
SETTINGS = StoreSettings(map_size=64 << 20, min_free_disk=0)
LOGIN = b"digest"
LATER_MS = NOW_MS + 365 * DAY_MS


class AtOnce:
    """A reactor to a store: what a thread wants to be called is called there and then."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> None:
        call(*args)


def opened(folder: Path) -> Store:
    return Store.open(folder, SETTINGS, AtOnce(), SIZES)


def close(store: Store) -> None:
    Deferred.fromCoroutine(store.close())


def figures(store: Store) -> dict[str, Any]:
    """Give all that can be asked; what is counted is compared with what is there."""
    found: dict[str, Any] = {
        "account": str(store.account.read()),
        "login": str(store.account.login(LOGIN)),
    }
    for website in store.websites.all():
        store.ask(website, agrees)
        found[website.hostname] = [website.number, store.ask(website, rows)]
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def look(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Open the store; give its figures and what was told in the log. Raises StoreError."""
    with told_in_log() as lines:
        store = opened(folder)
        found = figures(store)
        close(store)
    return found, lines


def check_that_it_takes_hits(folder: Path) -> None:
    """What is acknowledged has to be there after another start."""
    store = opened(folder)
    outcomes: list[Any] = []
    paths = {website.number: f"/late/{website.number}" for website in store.websites.all()}
    hits = [a_view(number, path=path, time_ms=LATER_MS) for number, path in paths.items()]
    Deferred.fromCoroutine(store.append(hits)).addBoth(outcomes.append)
    close(store)
    if outcomes != [[Outcome.STORED] * len(hits)]:
        return
    store = opened(folder)
    for website in store.websites.all():
        views, _ = store.ask(website, rows)
        found = [view["path"] for view in views if view["time_ms"] == LATER_MS]
        assert found == [paths[website.number]], "an acknowledged hit is not there"
    close(store)


def came_of(folder: Path, truth: dict[str, Any]) -> tuple[str, str]:
    try:
        found, lines = look(folder)
        if lines:
            return "told", lines[0]
        if found["login"] == "None":
            found["login"] = truth["login"]  # who was logged in logs in again
        if found != truth:
            return "silently wrong", ""
        check_that_it_takes_hits(folder)
    except StoreError as error:
        return "refused", str(error)
    except BaseException:  # noqa: BLE001 - it is what is looked for
        return "fell over", traceback.format_exc()
    return "no harm", ""


def one(sound: Path, folder: Path, seed: int, truth: dict[str, Any]) -> tuple[str, str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(sound, folder / FILE_NAME)
    changed = change(folder / FILE_NAME, random.Random(seed))  # noqa: S311 - the same each time
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(came_of(folder, truth)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        answer = said.read()
    _, status = os.waitpid(child, 0)
    came, told = json.loads(answer) if answer else ("crashed", f"wait status {status}")
    return changed, came, told


def main() -> None:
    sound, folder = Path(sys.argv[1]), Path(sys.argv[2])
    first, count = int(sys.argv[3]), int(sys.argv[4])
    (folder / "sound").mkdir(parents=True)
    shutil.copyfile(sound, folder / "sound" / FILE_NAME)
    truth, lines = look(folder / "sound")
    assert lines == []
    for seed in range(first, first + count):
        sys.stdout.write(json.dumps([seed, *one(sound, folder / "changed", seed, truth)]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
