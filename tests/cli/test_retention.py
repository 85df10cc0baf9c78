import json
import time
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.hits import NOW_MS
from twisted.internet import reactor

from medamad.cli import main
from medamad.domain.hits import View
from medamad.storage.environment.environment import open_environment
from medamad.storage.environment.trusted_clock import TrustedTime, write_trusted
from medamad.storage.settings import Keep, Retention, StoreSettings
from medamad.storage.startup import start_store

DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def now_ms(monkeypatch: pytest.MonkeyPatch) -> int:
    """Stop the clock, so that no day ends during a test."""
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)
    return NOW_MS


@pytest_twisted.async_fixture
async def folder(tmp_path: Path, now_ms: int) -> Path:
    """Views of each of the last ten days, but of the first three only sums."""
    settings = StoreSettings(
        map_size=64 << 20, min_free_disk=0, retention=Retention(others=Keep(6))
    )
    store = start_store(tmp_path, settings, reactor)
    website = await store.add_website("example.com", 1)
    for day in range(9, -1, -1):
        at_ms = now_ms - day * DAY_MS
        first = {"first_today": True, "first_of_page": True, "path": "/"}
        await store.append([View(website=website.number, time_ms=at_ms, beacon=f"b{day}", **first)])
    await store.maintain(now_ms)
    await store.close()
    trust(tmp_path, TrustedTime(now_ms))
    return tmp_path


def trust(folder: Path, trusted: TrustedTime) -> None:
    environment = open_environment(folder, 64 << 20)
    with environment.lmdb.begin(write=True) as txn:
        write_trusted(txn, environment, trusted)
    environment.close()


def printed(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> list[str]:
    assert main(["retention", "--data", str(folder), *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_it_reports_what_is_kept_and_what_would_be_removed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, there = printed(capsys, folder)
    assert rule == "example.com: views are kept forever"
    assert there.startswith("  stored: 7 views since 20")
    assert "daily totals of 3 days (" in there
    assert printed(capsys, folder, "--dry-run")[2:] == []
    rule, _, gone, made = printed(capsys, folder, "--dry-run", "--raw-days", "4")
    assert rule == "example.com: views would be kept for 4 days, then daily totals"
    assert gone.startswith("  would be removed: 2 views and 0 events (")
    assert made.startswith("  would be added: daily totals of 2 days (")
    trial = ("--dry-run", "--raw-days", "4", "--after", "nothing")
    rule, _, gone = printed(capsys, folder, *trial)
    assert rule.endswith("for 4 days, then nothing")
    assert ", daily totals of 3 days (" in gone
    (found,) = json.loads("".join(printed(capsys, folder, *trial, "--json")))
    assert (found["hostname"], found["raw_days"], found["after"]) == ("example.com", 4, "nothing")
    assert (found["views"], found["due_views"], found["due_days"]) == (7, 2, 3)


@pytest.mark.parametrize("trial", [("--raw-days", "4"), ("--after", "nothing")])
def test_trying_another_limit_is_a_dry_run(
    folder: Path, capsys: pytest.CaptureFixture[str], trial: tuple[str, str]
) -> None:
    config = folder / "medamad.toml"
    config.write_text("[retention]\nraw_days = 5\n")
    given = (*trial, "--config", str(config))
    found = printed(capsys, folder, *given)
    assert found[0].startswith("example.com: views would be kept for ")
    assert found[2].startswith("  would be removed: ")
    assert found == printed(capsys, folder, "--dry-run", *given)
    without = printed(capsys, folder, "--dry-run", "--config", str(config))
    assert without[0] == "example.com: views are kept for 5 days, then daily totals"


def test_it_follows_the_configuration(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = folder / "medamad.toml"
    config.write_text(
        '[retention.websites."example.com"]\nraw_days = 1\n'
        '[retention.websites."exmaple.com"]\nraw_days = 1\n'
    )
    assert main(["retention", "--data", str(folder), "--config", str(config)]) == 0
    written = capsys.readouterr()
    assert written.out.startswith("example.com: views are kept for 1 day, then daily")
    assert written.err == (
        "medamad: retention.websites.exmaple.com: no website of this name is registered;"
        " websites without a table keep their views for at least as long as it says\n"
    )


@pytest.mark.parametrize(
    ("doubted_ms", "hours"),
    [(0, "24 more hours"), (DAY_MS // 2, "12 more hours"), (DAY_MS - 1, "1 more hour")],
)
def test_retention_waiting_for_the_clock_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], now_ms: int, doubted_ms: int, hours: str
) -> None:
    trust(folder, TrustedTime(now_ms - 10 * DAY_MS, doubted_ms, 10 * DAY_MS))
    config = folder / "medamad.toml"
    for days, waits in ((5, True), (30, False)):
        config.write_text(f"[retention]\nraw_days = {days}\n")
        for arguments in ((), ("--dry-run",)):
            assert (
                main(["retention", "--data", str(folder), "--config", str(config), *arguments]) == 0
            )
            reason = (
                "the clock is not trusted yet: [retention] removes nothing until the daemon has"
            )
            message = f"medamad: {reason} run for {hours}\n"
            assert capsys.readouterr().err == (message if waits else "")


@pytest.mark.parametrize("days", ["-1", "x", "1.5"])
def test_an_invalid_number_of_days_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], days: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["retention", "--data", str(tmp_path), f"--raw-days={days}"])
    assert left.value.code == 64
    message = capsys.readouterr().err
    assert "--raw-days: expected a whole number from 0 to 36500" in message
