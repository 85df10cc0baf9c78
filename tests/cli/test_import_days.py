import json
import subprocess
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from support.daemon import Daemon, finished, running
from support.transfer.day_files import HOST, GoatCounter, Plausible

from medamad.admin.client import connect
from medamad.admin.import_requests import days_request
from medamad.admin.imports import BeginImport, Begun, Ended, FinishImport, HoldImport, Nothing
from medamad.transfer.import_days import DayGatherer, survey_days
from medamad.transfer.import_survey import ImportFile

pytestmark = pytest.mark.daemon


def call(data: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command, *others = map(str, arguments)
    return finished(command, data, *others)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path / "there") as started:
        started.client().add_website(HOST)
        yield started


def summary(daemon: Daemon) -> Any:
    found = daemon.client().get(f"/api/website/{HOST}/summary")["current"]
    return found["pageviews"], found["visitors"]


def test_a_plausible_export_is_imported_and_removed(tmp_path: Path, daemon: Daemon) -> None:
    export = Plausible()
    files = [export.zip(tmp_path / "export.zip")]
    (views, visitors, *_) = export.sums().of["summary"][""]
    planned = call(daemon.data, "import", *files, "--website", HOST, "--dry-run", "--json")
    assert (planned.returncode, planned.stderr) == (0, "")
    plan = json.loads(planned.stdout)
    assert (plan["views"], plan["visitors"], plan["days"]) == (views, visitors, export.days)
    assert (plan["first"], plan["last"]) == ("2024-03-28", "2024-04-02")
    assert summary(daemon) == (0, 0)
    done = call(daemon.data, "import", *files, "--website", HOST, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == plan | {"number": 1, "dry_run": False}
    assert summary(daemon) == (views, visitors)
    headers = daemon.client().request("GET", f"/api/website/{HOST}/languages").headers
    assert headers["x-medamad-partial"] == 'figures="2024-03-28/2024-04-02"'
    twice = call(daemon.data, "import", *files, "--website", HOST)
    assert twice.stderr == "medamad: the same was imported before, as number 1\n"
    other = [Plausible(seed=9).zip(tmp_path / "other.zip")]
    dry = call(daemon.data, "import", *other, "--website", HOST, "--dry-run")
    assert "6 days for which there is data already, left out" in dry.stdout
    again = call(daemon.data, "import", *other, "--website", HOST)
    assert (again.returncode, again.stderr) == (
        1,
        "medamad: nothing was imported: 6 days for which there is data already\n",
    )
    undone = call(daemon.data, "import", "--undo", 1)
    assert f"removed {views:,} views" in undone.stdout
    assert summary(daemon) == (0, 0)
    checked = call(daemon.data, "check")
    assert checked.returncode == 0, checked.stderr


def test_a_goatcounter_export_is_imported_without_bad_rows(tmp_path: Path, daemon: Daemon) -> None:
    more = {"hit_stats": [{"hour": "never", "path_id": 211, "ref_id": 1, "count": 1}]}
    export = GoatCounter(more=more)
    file = export.zip(tmp_path / "export.zip")
    refused = call(daemon.data, "import", file, "--website", HOST)
    line = len(export.files["hit_stats"])
    assert refused.returncode == 1
    assert f"{file}, line {line}: hit_stats.jsonl: hour: expected an hour" in refused.stderr
    assert summary(daemon) == (0, 0)
    done = call(daemon.data, "import", file, "--website", HOST, "--skip-refused")
    assert done.returncode == 0, done.stderr
    assert "6 days, with daily totals only" in done.stdout
    (count, *_) = export.found.of["summary"][""]
    assert summary(daemon) == (count, count)


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_kill_of_the_daemon_leaves_all_or_nothing(
    tmp_path: Path, daemon: Daemon, is_whole: bool
) -> None:
    export = Plausible()
    file = ImportFile.of(export.zip(tmp_path / "export.zip"), None)
    *_, found = survey_days([file])
    with connect(daemon.data) as connection, connect(daemon.data) as holding:
        begun = connection.request(
            BeginImport(website=HOST, source="", digest="d", ranges=(), newest=0), Begun
        )
        holding.send(HoldImport(begun.number))
        for piece in DayGatherer(found.days, UTC, 1 << 20, set()).gather():
            if piece is not None:
                connection.request(days_request(begun.number, piece), Nothing)
        if is_whole:
            connection.request(FinishImport(begun.number), Ended)
        daemon.kill()
    daemon.start()
    (views, visitors, *_) = export.sums().of["summary"][""]
    assert summary(daemon) == ((views, visitors) if is_whole else (0, 0))
    checked = call(daemon.data, "check")
    assert checked.returncode == 0, checked.stderr
