import json
from functools import partial
from pathlib import Path

import pytest
from support.daemon import configure, finished, running, until
from support.transfer.day_files import HOST, Plausible

from medamad.admin.client import RequestFailed
from medamad.admin.protocol import SOCKET_NAME
from medamad.cli.support import effective_config, min_free_disk
from medamad.config.schema import Config, ConfigError

pytestmark = pytest.mark.daemon

TOKYO = '[events]\ntimezone = "Asia/Tokyo"\n'
KEPT = "[retention]\nraw_days = 400\n"

retention = partial(finished, "retention")


def test_commands_use_the_configuration_of_a_running_daemon(tmp_path: Path) -> None:
    export = Plausible()
    file = str(export.zip(tmp_path / "export.zip"))
    with running(tmp_path / "there", configuration=TOKYO + KEPT) as daemon:
        client = daemon.client()
        client.add_website(HOST)
        result = retention(daemon.data)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith(f"{HOST}: views are kept for 400 days, then daily")
        # A different configuration than the daemon's is used and reported.
        other = tmp_path / "other.toml"
        other.write_text("[retention]\nraw_days = 7\n", "utf-8")
        tried = retention(daemon.data, "--config", str(other))
        assert tried.stdout.startswith(f"{HOST}: views are kept for 7 days, then")
        theirs = daemon.folder / "medamad.toml"
        assert tried.stderr == f"medamad: {other}: the daemon uses {theirs} instead\n"
        # Days are not to be those of another zone.
        taken = partial(finished, "import", daemon.data, file, "--website", HOST)
        refused = taken("--config", str(other))
        reason = f"{other} says UTC, and the daemon uses Asia/Tokyo: their days differ"
        assert refused.stderr == f"medamad: events.timezone: {reason}\n"
        assert refused.returncode == 1
        taken = taken("--json")
        assert (taken.returncode, taken.stderr) == (0, "")
        views = json.loads(taken.stdout)["views"]
        period = {"start": "2024-03-01T00:00:00+09:00", "end": "2024-04-30T23:59:59+09:00"}
        series = client.get(
            f"/api/website/{HOST}/summary", interval="day", timezone="Asia/Tokyo", **period
        )["interval"]
        assert sum(row["pageviews"] for row in series) == views > 0
        # What was written and not read yet does not hold.
        (daemon.folder / "medamad.toml").write_text(KEPT, "utf-8")
        refused = finished("import", daemon.data, file, "--website", HOST, "--dry-run")
        assert "says UTC, and the daemon uses Asia/Tokyo" in refused.stderr
        configure(daemon, KEPT)
        until(lambda: effective_config(daemon.data, None).daemon.timezone == "UTC")


def test_a_backup_beside_a_daemon_does_not_need_the_file(tmp_path: Path) -> None:
    with running(tmp_path / "there", configuration='[store]\nmin_free_disk = "1 GiB"\n') as daemon:
        file = daemon.folder / "medamad.toml"
        file.write_text('[log]\nlevel = "loud"\n', "utf-8")
        assert min_free_disk(daemon.data, None) == min_free_disk(daemon.data, file) == 1 << 30
        file.write_text('[store]\nmin_free_disk = "2 GiB"\n', "utf-8")
        assert min_free_disk(daemon.data, file) == 2 << 30


def test_without_a_daemon_the_named_file_is_used(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(KEPT, "utf-8")
    assert effective_config(tmp_path, None).config.retention.raw_days == 0
    effective = effective_config(tmp_path, file)
    assert effective.config.retention.raw_days == 400
    assert effective.another is None
    effective.check_zone()
    file.write_text("[retention]\nraw_day = 400\n", "utf-8")
    with pytest.raises(ConfigError, match=r"retention\.raw_day: unknown key"):
        effective_config(tmp_path, file)
    assert min_free_disk(tmp_path, file) == Config().store.min_free_disk


def test_the_daemon_is_queried_only_if_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / SOCKET_NAME).symlink_to(SOCKET_NAME)
    file = tmp_path / "own.toml"
    file.write_text(KEPT, "utf-8")
    assert effective_config(tmp_path, file).config.retention.raw_days == 400
    with pytest.raises(RequestFailed):
        effective_config(tmp_path, None)
