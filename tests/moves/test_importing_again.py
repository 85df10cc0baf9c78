"""What came, went, or was added up meanwhile is neither counted twice nor torn apart."""

from collections.abc import Callable
from pathlib import Path

import pytest_twisted
from held import rows, settled
from moved import answers, files_of, take_in
from views import DAY_MS, NOW_MS, event, views

from medamad.store.settings import Keep, Retention
from medamad.store.store import Store

OpenStore = Callable[..., Store]
KEEP = Retention(others=Keep(3, "sums"))


def make_new(file: Path) -> None:
    """Let a file be another one that says the same."""
    with file.open("ab") as opened:
        opened.write(b"\n")


@pytest_twisted.ensureDeferred
async def test_what_was_added_up_meanwhile_is_left_out(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """Whether it was counted there in the first place, or imported."""
    origin = open_store(name="origin", retention=KEEP)
    website = await origin.add_website("example.com", 1)
    await origin.append([*views(1, 30), event("b3")])
    await origin.append([*views(31, 40, NOW_MS + 9 * DAY_MS)])
    files = files_of(origin, website, tmp_path / "out", "csv")
    there = open_store(name="there", retention=KEEP)
    twin = await there.add_website("example.org", 1)
    await take_in(there, twin, files)
    for store, site in ((origin, website), (there, twin)):
        before = answers(store, site)
        await settled(store, NOW_MS + 9 * DAY_MS)
        assert len(store.ask(site, rows)[0]) == 10
        summed = answers(store, site)
        assert summed != before
        make_new(files[0])
        taken = await take_in(store, site, files)
        assert (taken.ended.views, taken.ended.events) == (0, 0)
        assert (taken.gathering.there, taken.gathering.counted) == (41, 31)
        assert answers(store, site) == summed
        # What had not come yet of a day that was added up does come.
        late = tmp_path / f"late-{site.hostname}.csv"
        late.write_text(
            "store,view,time,path\n"
            f"{store.imports.origins(website).store},900,2026-09-21T14:13:20Z,/late\n"
        )
        taken = await take_in(store, site, [late])
        assert (taken.ended.views, taken.gathering.counted) == (1, 0)
        make_new(files[0])
        taken = await take_in(store, site, files, overlapping=True)
        assert (taken.ended.views, taken.ended.events) == (30, 1)
        await store.close()
