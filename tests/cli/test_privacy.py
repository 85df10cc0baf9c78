import json
import time
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.hits import NOW_MS
from twisted.internet import reactor

from medamad.cli import main
from medamad.domain.hits import View
from medamad.storage.environment.environment import open_as_guest
from medamad.storage.environment.meta import MARKS
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

DAY_MS = 86_400_000


@pytest_twisted.async_fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four visits of yesterday, of which two are alike, and one each of today and of a year ago."""
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)
    store = start_store(tmp_path, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)
    website = await store.add_website("example.com", 1)
    await store.add_website("empty.example", 1)
    visits = [
        (-366, "Firefox", "DE"),
        (-1, "Firefox", "DE"),
        (-1, "Firefox", "DE"),
        (-1, "Firefox", "AT"),
        (-1, "Chrome", "AT"),
        (0, "Opera", "CH"),
    ]
    for number, (day, browser, country) in enumerate(visits):
        hit = View(
            website=website.number,
            time_ms=NOW_MS + day * DAY_MS,
            beacon=f"b{number}",
            path="/",
            browser=browser,
            country=country,
            identity=f"{number}".encode(),
        )
        await store.append([hit])
    await store.close()
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> str:
    assert main(["privacy", "--data", str(folder), *arguments]) == 0
    return capsys.readouterr().out


def test_it_shows_how_many_are_alone_and_what_each_column_adds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, folder).splitlines()
    assert lines[:4] == [
        "empty.example: 0 visits",
        "example.com: 4 visits",
        "  alone on their day: 2 (50.0%)",
        "    browser and version adds 2 (50.0%)",
    ]
    assert "    country adds 1 (25.0%)" in lines
    assert "    last visit adds 0 (0.0%)" in lines
    assert "    hosting network adds 0 (0.0%)" in lines
    assert len(lines) == 12


def test_it_shows_one_website_and_other_days(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = printed(capsys, folder, "--days", "366", "example.com", "example.com")
    assert one.startswith("example.com: 5 visits\n  alone on their day: 3 (60.0%)\n")
    found = json.loads(printed(capsys, folder, "--json", "example.com"))
    assert [(each["hostname"], each["visits"], each["alone"]) for each in found] == [
        ("example.com", 4, 2)
    ]
    assert found[0]["without"]["browser"] == 0


def test_it_is_refused_where_the_hits_are_in_a_cluster(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = open_as_guest(folder)
    with environment.lmdb.begin(write=True) as txn:
        txn.put(MARKS, b"any", db=environment.databases.meta)
    environment.close()
    assert main(["privacy", "--data", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "the hits are in a cluster, and only those of the last days are here" in error


def test_an_unknown_website_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["privacy", "--data", str(folder), "other.example"]) == 1
    assert "other.example" in capsys.readouterr().err
