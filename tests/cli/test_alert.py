"""Alerts by command, beside a running daemon and without one."""

import json
from functools import partial
from pathlib import Path

import pytest
from support.daemon import finished, running

pytestmark = pytest.mark.daemon

alert, goal = partial(finished, "alert"), partial(finished, "goal")
URL = "https://hooks.example.com/T0P/secret"
OF_WEBSITE = ("--website", "example.com")


def id_in(output: str) -> str:
    """Return the ID of what was added."""
    return output.partition("(ID ")[2].partition(")")[0]


def test_alerts_are_defined_listed_and_removed(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client, data = daemon.client(), daemon.data
        client.add_website("example.com")
        for of in ((), OF_WEBSITE):
            assert alert(data, "list", *of).stdout == "There are no alerts.\n"
        disk = alert(data, "add", "disk", "--threshold", "5", "--url", "-", given=URL)
        assert (disk.returncode, disk.stderr) == (0, "")
        disk_id = id_in(disk.stdout)
        assert disk.stdout == (
            f"Added the alert disk (ID {disk_id}), sent to https://hooks.example.com/\n"
        )
        made = goal(data, "add", "example.com", "Cart", "--path", "/cart", "--json")
        cart = json.loads(made.stdout)["id"]
        details = ("--goal", cart, "--hours", "24", "--format", "ntfy", "--url", URL, *OF_WEBSITE)
        missed = json.loads(alert(data, "add", "no-goal", *details, "--json").stdout)
        (listed,) = client.get("/api/websites/example.com/alerts")
        assert listed == missed | {"dateFired": None, "dateBegan": None, "failure": None}
        (listed,) = client.get("/api/user/alerts")
        assert (listed["id"], listed["url"]) == (disk_id, "https://hooks.example.com/")
        refused = alert(data, "add", "no-goal", "--goal", "other", *details[2:])
        assert (refused.returncode, refused.stderr) == (1, "medamad: there is no goal other\n")
        mailed = ("--format", "mail", "--report", "0123456789ab")
        refused = alert(data, "add", "backup", *mailed)
        assert (refused.returncode, refused.stderr) == (
            1,
            "medamad: there is no report 0123456789ab\n",
        )
        refused = alert(data, "add", "quiet", "--url", URL)
        assert (refused.returncode, refused.stderr) == (
            1,
            "medamad: kind: expected one of disk, backup, limits, damage, import\n",
        )
    # What is exported has no secret.
    assert json.loads(alert(data, "list", *OF_WEBSITE, "--json").stdout) == [missed]
    assert "secret" not in alert(data, "list", "--json").stdout
    assert [line.split() for line in alert(data, "list").stdout.splitlines()] == [
        ["ID", "KIND", "THRESHOLD", "GOAL", "HOURS", "URL", "FORMAT", "LAST", "FIRED"],
        [disk_id, "disk", "5", "-", "-", "https://hooks.example.com/", "json", "-"],
    ]
    assert alert(data, "remove", disk_id).stdout == f"The alert {disk_id} is removed.\n"
    assert alert(data, "remove", disk_id).stderr == f"medamad: there is no alert {disk_id}\n"
    assert alert(data, "remove", missed["id"], *OF_WEBSITE).returncode == 0
    assert alert(data, "list", *OF_WEBSITE).stdout == "There are no alerts.\n"
