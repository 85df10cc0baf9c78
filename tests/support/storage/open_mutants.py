"""Opens changed copies of a store, each in a process of its own, and tells what came of each.

Each is looked at as it is, and where it is not refused, once more after it took hits and was
tidied as over some days; then its websites are deleted. Whatever is other than of the store that
was not changed has to be named in the log, and nothing may fail.

Called with the file of a sound store, a folder to work in, the first seed and how many. Writes a
line of JSON for each: seed, change, what came of it, and what was printed.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support.query.snapshots import ENDPOINTS, answer
from support.storage.contents import agrees, rows
from support.storage.hits import DAY_MS, NOW_MS, a_view
from support.storage.log_lines import logged_warnings
from support.storage.page_damage import change
from twisted.internet.defer import Deferred

from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.environment import FILE_NAME
from medamad.storage.environment.folder import StoreState, read_damage, read_state
from medamad.storage.environment.tree_check import damage_of
from medamad.storage.environment.trusted_clock import read_trusted
from medamad.storage.errors import DamagedStore, StoreError
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

SIZES = Sizes(chunk_views=4, merged_members=2, counted_from=0)
SETTINGS = StoreSettings(map_size=64 << 20, min_free_disk=0)
LOGIN = b"digest"
LATER_MS = NOW_MS + 365 * DAY_MS
MOST_S = 60
"""After which an answer counts as none; a sound store takes less than one."""
MOST_BYTES = 2 << 30
"""How much memory may be asked for; a sound store takes far less."""
WITHOUT_NAME = (
    "a part of the store has another name",
    "data that belongs to no website is ignored",
)
"""Reported where the key of something that is found by its name, or of a website, was changed."""
QUERIES = {"summary": [("interval", "day"), ("start", "2026-01-01T00:00:00Z")]}


class AtOnce:
    """A reactor for a store that runs calls from threads at once."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> None:
        call(*args)


def opened(folder: Path) -> Store:
    return start_store(folder, SETTINGS, AtOnce(), SIZES)


def close(store: Store) -> None:
    assert not store.broken.called
    Deferred.fromCoroutine(store.close())


def awaited(store: Store, work: Any) -> Any:
    """Return the result of work, once the writer has finished it."""
    came: list[Any] = []
    Deferred.fromCoroutine(work).addBoth(came.append)
    while not came:
        store.writer._thread.join(0.001)
    return came[0]


def figures(store: Store) -> dict[str, Any]:
    """Return all that can be asked, by what the log calls it where it is damaged.

    What is counted is compared with what is there.
    """
    environment = store.environment
    with environment.reading() as txn:
        trusted = read_trusted(txn, environment)
    found: dict[str, Any] = {
        "account": str(store.account.read()),
        "login": str(store.account.login(LOGIN)),
        "tokens": str(store.tokens.all()),
        "share links": str(store.shares.all()),
        "goals": str([store.goals.of(number) for number in range(1, 9)]),
        "alerts": str([store.alerts.of(number) for number in range(9)]),
        "annotations": str([store.annotations.of(number) for number in range(1, 9)]),
        "time that was trusted": str(trusted),
    }
    for website in store.websites.all():
        store.read(website, agrees)
        found[f"website {website.number}"] = {
            "hostname": website.hostname,
            "rows": store.read(website, rows),
            "answers": store.read(website, answers),
            "import_batches": str(store.imports.batches(website)),
        }
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def answers(snapshot: Snapshot) -> dict[str, Any]:
    """Return every report about all time, so that rollups are included."""
    return {
        endpoint: answer(snapshot, endpoint, QUERIES.get(endpoint, []), now_ms=LATER_MS)
        for endpoint in ENDPOINTS
    }


def silently_wrong(found: dict[str, Any], truth: dict[str, Any], lines: list[str]) -> list[str]:
    """Return what differs and is not named in the log."""
    return [
        what
        for what in sorted(found.keys() | truth.keys())
        if found.get(what) != truth.get(what) and not any(is_named(what, line) for line in lines)
    ]


def is_named(what: str, line: str) -> bool:
    """Return whether a line of the log reports something as damaged."""
    of_any = WITHOUT_NAME[what.startswith("website")]
    return line.startswith(of_any) or bool(re.search(rf"\b{what}\b", line))


def look(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Open the store; return its figures and log lines. Raises StoreError."""
    with logged_warnings() as lines:
        store = opened(folder)
        found = figures(store)
        close(store)
    return found, lines


def go_on(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Let it take hits and run maintenance; return its figures after a restart, and log lines."""
    with logged_warnings() as lines:
        store = opened(folder)
        take_hits(store)
        for days in (0, 3, 6):
            do(store, store.maintain(LATER_MS + days * DAY_MS))
        before = figures(store)
        close(store)
    found, more = look(folder)
    assert found == before, "it is another after a start"
    lines += more
    for website, held in found.items():
        if website.startswith("website"):
            views, _ = held["rows"]
            overlay = [view["path"] for view in views if view["time_ms"] == LATER_MS]
            assert overlay == [f"/late/{website}"], "an acknowledged hit is not there"
    return found, lines


def take_hits(store: Store) -> None:
    websites = [website.number for website in store.websites.all()]
    hits = [
        a_view(number, path=f"/late/website {number}", beacon=f"late-{number}", time_ms=LATER_MS)
        for number in websites
    ]
    outcomes = awaited(store, store.append(hits))
    assert outcomes == [Outcome.STORED] * len(hits), outcomes


def delete_all(folder: Path) -> None:
    """Delete every website."""
    store = opened(folder)
    for website in store.websites.all():
        do(store, store.delete_website(website))
    do(store, store.maintain(LATER_MS + 9 * DAY_MS))
    assert store.websites.all() == []
    close(store)


def do(store: Store, work: Any) -> None:
    came = awaited(store, work)
    assert came is None, came


def came_of(folder: Path, truths: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Return the outcome for a store in a word, and its message.

    `truths`: the figures of one that was not changed, before and after it goes on.
    """
    reported: list[str] = []
    look_at: Callable[..., Any] = look
    try:
        # As the daemon does after an unclean shutdown.
        if damage := damage_of(folder / FILE_NAME):
            raise DamagedStore(damage)
        for look_at, truth in zip((look, go_on), truths, strict=True):
            found, lines = look_at(folder)
            reported += lines
            if found["login"] == "None":
                found["login"] = truth["login"]  # who was logged in logs in again
            if wrong := silently_wrong(found, truth, reported):
                return "silently wrong", ", ".join([look_at.__name__, *wrong, *reported])
        delete_all(folder)
        if reported:
            return "reported", reported[0]
    except StoreError as error:
        return "refused" if look_at is look else "refused too late", str(error)
    except BaseException:  # noqa: BLE001 - it is what is looked for
        is_marked = read_state(folder) is StoreState.DAMAGED
        return (
            ("stopped", read_damage(folder)) if is_marked else ("fell over", traceback.format_exc())
        )
    return "no harm", ""


def one(
    sound: Path, folder: Path, seed: int, truths: Sequence[dict[str, Any]]
) -> tuple[str, str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(sound, folder / FILE_NAME)
    changed = change(folder / FILE_NAME, random.Random(seed))  # noqa: S311 - the same each time
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(MOST_S)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        os.write(writing, json.dumps(came_of(folder, truths)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as results:
        answer = results.read()
    _, status = os.waitpid(child, 0)
    came, reported = json.loads(answer) if answer else ("crashed", f"wait status {status}")
    return changed, came, reported


def main() -> None:
    sound, folder = Path(sys.argv[1]), Path(sys.argv[2])
    first, count = int(sys.argv[3]), int(sys.argv[4])
    (folder / "sound").mkdir(parents=True)
    shutil.copyfile(sound, folder / "sound" / FILE_NAME)
    before, lines = look(folder / "sound")
    after, more = go_on(folder / "sound")
    assert lines + more == []
    assert before != after
    for seed in range(first, first + count):
        came = one(sound, folder / "changed", seed, (before, after))
        sys.stdout.write(json.dumps([seed, *came]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
