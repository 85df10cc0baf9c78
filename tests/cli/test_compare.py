"""`medamad compare`: its table, its JSON, and its exit status."""

import json
import time
from functools import partial
from pathlib import Path

import pytest
from support.daemon import Daemon, finished, running

from medamad.domain.instants import second_as_text

pytestmark = pytest.mark.daemon

compare = partial(finished, "compare")
WEEK_S = 7 * 86_400
HEAD = (
    "store,view,time,path,referrer,utm_source,utm_medium,utm_campaign,utm_term,utm_content,browser,"
    "browser_version,os,os_version,device,country,locale,host,first_today,first_of_page,"
    "number_today,width_px,duration_ms\n"
)


def visited(folder: Path, daemon: Daemon, since: int, now: int) -> None:
    """Import 30 views in the minutes after a moment in each of six weeks, and some since it."""
    daemon.client().add_website("example.com")
    rows = [
        f"00000000000000aa,{{}},{second_as_text(since - week * WEEK_S + number)},/,,,,,,,Firefox,"
        "140.0,Linux,,Desktop,AT,de-AT,example.com,true,true,1,1280,9000\n"
        for week in range(6, -1, -1)
        for number in range(30 if week else now)
    ]
    file = folder / "views.csv"
    file.write_text(HEAD + "".join(row.format(id_) for id_, row in enumerate(rows, 1)))
    imported = finished("import", daemon.data, "--website", "example.com", str(file))
    assert imported.returncode == 0, imported.stderr


def test_it_fails_if_a_metric_is_worse_than_stated(tmp_path: Path) -> None:
    since = int(time.time()) - 3_600
    with running(tmp_path) as daemon:
        visited(tmp_path, daemon, since, 4)
        data = daemon.data
        deploy = ("add", "example.com", "deploy 1.4", "--time", second_as_text(since))
        assert finished("annotate", data, *deploy).returncode == 0
        chosen = ("--website", "example.com", "--metric", "pageviews,time")
        at = ("--since", second_as_text(since))
        told = compare(data, *chosen, *at)
        assert (told.returncode, told.stderr) == (0, "")
        first, *table = told.stdout.splitlines()
        assert first.startswith(f"From {second_as_text(since)} to ")
        assert first.endswith(", and the mean of 6 earlier weeks:")
        assert [line.split() for line in table] == [
            ["METRIC", "NOW", "BEFORE", "CHANGE"],
            ["pageviews", "4", "30.0", "-87%", "changed"],
            ["time", "9.0", "s", "9.0", "s", "+0%"],
        ]
        worse = compare(data, *chosen, "--annotation", "deploy", "--worse-than", "20%")
        assert (worse.returncode, worse.stderr) == (
            1,
            "medamad: worse by more than 20%: pageviews\n",
        )
        assert worse.stdout.splitlines()[2].split() == [
            *("pageviews", "4", "30.0", "-87%", "worse"),
        ]
        fine = compare(data, *chosen, *at, "--worse-than", "0.9", "--json")
        assert (fine.returncode, fine.stderr) == (0, "")
        assert json.loads(fine.stdout)["metrics"][0] == {
            "metric": "pageviews",
            "now": 4,
            "before": 30.0,
            "change": -0.8667,
            "by_chance": False,
            "is_worse": False,
        }


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        ((), 64, "one of the arguments --since --annotation is required"),
        (("--since", "2026-01-01", "--annotation", "a"), 64, "not allowed with argument"),
        (("--since", "noon"), 1, "--since: expected an RFC 3339 date-time"),
        (("--since", "2020-01-01"), 1, "since: expected a time in the last seven days"),
        (("--annotation", "deploy"), 1, "annotation: there is none named deploy until now"),
        (("--since", "2020-01-01", "--worse-than", "x"), 64, "expected a share such as 20% or 0.2"),
        (("--since", "2020-01-01", "--metric", "x"), 1, "metric: expected some of visits,"),
    ],
)
def test_errors_are_reported(
    tmp_path_factory: pytest.TempPathFactory,
    arguments: tuple[str, ...],
    status: int,
    reason: str,
) -> None:
    folder = tmp_path_factory.getbasetemp() / "one for all errors of comparisons"
    if not folder.exists():
        with running(folder) as daemon:
            daemon.client().add_website("example.com")
    refused = compare(folder / "data", "--website", "example.com", *arguments)
    assert (refused.returncode, refused.stdout) == (status, "")
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr
