"""A failed write stops the store; reads continue and nothing acknowledged is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from support.storage.limited_file_size import paths_in

from medamad.storage.store import Store

TESTS = Path(__file__).parents[1]


def stored_until_it_failed(folder: Path, most_kib: int) -> dict[str, Any]:
    paths = [str(TESTS), str(TESTS.parent)]
    done = subprocess.run(
        [sys.executable, TESTS / "support/storage/limited_file_size.py", folder, str(most_kib)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        check=True,
        text=True,
    )
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


@pytest.mark.parametrize(
    "most_kib", [0, 200, *(pytest.param(kib, marks=pytest.mark.slow) for kib in (40, 600, 1_500))]
)
@pytest_twisted.ensureDeferred
async def test_a_failed_write_stops_the_store(
    open_store: Callable[..., Store], tmp_path: Path, most_kib: int
) -> None:
    outcome = stored_until_it_failed(tmp_path / "data", most_kib)
    assert "the store has failed" in outcome["refused"]
    assert "the store has failed" in outcome["after"], "it continued after a failed write"
    assert outcome["broken"] == [outcome["refused"]]
    assert outcome["read"] == outcome["acknowledged"]
    store = open_store()
    (website,) = store.websites.all()
    found = store.read(website, paths_in)
    assert found[: len(outcome["acknowledged"])] == outcome["acknowledged"]
    assert len(found) == len(set(found))
    await store.close()
