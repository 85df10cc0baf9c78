"""The list of imports."""

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import pytest_twisted
from support.transfer.day_files import HOST, Plausible
from support.transfer.day_imports import take_days
from twisted.internet import reactor

from medamad.cli.import_ import list_imports
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest_twisted.ensureDeferred
async def test_imported_days_are_listed_by_their_dates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], zone: str
) -> None:
    """By their dates there, wherever they begin and end."""
    store = start_store(tmp_path / "data", StoreSettings(min_free_disk=0), reactor)
    website = await store.add_website(HOST, 1)
    export = Plausible().zip(tmp_path / "export.zip")
    taken = await take_days(store, website, [export], zone=ZoneInfo(zone))
    await store.close()
    assert list_imports(tmp_path / "data", as_json=True) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["first"], listed["last"]) == ("2024-03-28", "2024-04-02")
    assert taken.ended is not None
    assert listed["views"] == taken.ended.views
