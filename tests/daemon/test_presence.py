import os
from pathlib import Path

import pytest

from medamad.daemon.presence import BREAK_MS, Presence
from medamad.storage.environment.folder import PRESENCE_NAME

NOW_MS = 1_750_000_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("away_ms", "goes_on"),
    [(0, True), (BREAK_MS, True), (BREAK_MS + 1, False), (-1, False), (DAY_MS, False)],
)
def test_a_short_absence_is_ignored(tmp_path: Path, away_ms: int, goes_on: bool) -> None:
    first = Presence.begin(tmp_path, NOW_MS)
    first.record(NOW_MS)
    first.end(NOW_MS + DAY_MS)
    back_ms = NOW_MS + DAY_MS + away_ms
    again = Presence.begin(tmp_path, back_ms)
    assert again.since_ms == (NOW_MS if goes_on else back_ms)
    again.end(back_ms + DAY_MS)
    assert Presence.begin(tmp_path, back_ms + DAY_MS).since_ms == again.since_ms


def test_after_a_kill_the_recorded_time_is_used(tmp_path: Path) -> None:
    first = Presence.begin(tmp_path, NOW_MS)
    written = []
    for minute in range(31):
        first.record(NOW_MS + minute * 60_000)
        written.append((tmp_path / PRESENCE_NAME).read_bytes())
    assert len(set(written)) == 7
    assert Presence.begin(tmp_path, NOW_MS + 1_800_000 + BREAK_MS).since_ms == NOW_MS
    assert os.listdir(tmp_path) == [PRESENCE_NAME]  # noqa: PTH208 - names are shorter
    assert (tmp_path / PRESENCE_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"[]", b'{"since_ms": 1}', b"\xff", b'{"since_ms": "x"}'])
def test_an_invalid_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    assert Presence.begin(tmp_path, NOW_MS).since_ms == NOW_MS
    (tmp_path / PRESENCE_NAME).write_bytes(content)
    assert Presence.begin(tmp_path, NOW_MS).since_ms == NOW_MS


def test_a_failing_write_is_not_fatal(tmp_path: Path) -> None:
    (tmp_path / PRESENCE_NAME).mkdir()
    presence = Presence.begin(tmp_path, NOW_MS)
    presence.record(NOW_MS)
    presence.end(NOW_MS + 1)
    assert presence.since_ms == NOW_MS
