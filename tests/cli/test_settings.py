"""The settings of a website by command, beside a running daemon and without one."""

import json
from functools import partial
from pathlib import Path

import pytest
from support.daemon import finished, running

pytestmark = pytest.mark.daemon

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
settings = partial(finished, "settings")


def test_settings_are_exported_and_imported(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client, data = daemon.client(), daemon.data
        for hostname in ("example.com", "new.example"):
            client.add_website(hostname)
        finished("goal", data, "add", "example.com", "Cart", "--path", "/cart")
        finished("goal", data, "add", "example.com", "Paid", "--path", "/paid")
        finished("funnel", data, "add", "example.com", "Checkout", "Cart", "Paid")
        finished("annotate", data, "add", "example.com", "Launch", "--time", "2026-01-31")
        url = "https://hooks.example.com/T0P/secret"
        finished("alert", data, "add", "quiet", "--website", "example.com", "--url", url)
        own = {"bots": "strict", "excluded_paths": ["/x"]}
        client.request("PATCH", "/api/websites/example.com/settings", own)
        exported = settings(data, "export", "example.com")
        assert (exported.returncode, exported.stderr) == (0, "")
        assert "T0P" not in exported.stdout
        assert json.loads(exported.stdout) == client.get(
            "/api/websites/example.com/settings/export"
        )
        added = settings(data, "import", "new.example", given=exported.stdout)
        assert (added.returncode, added.stderr) == (0, "")
        assert added.stdout == (
            "Added 2 goals, 1 funnel, 0 exclusions, 1 annotation, 1 alert and 2 settings of what"
            " counts.\n"
            "Were there already: 3\n"
        )
        hit = {"e": "load", "b": "b", "u": "https://new.example/x", "p": True, "q": True}
        ignored = client.request("POST", "/api/event/hit", hit, {"User-Agent": FIREFOX})
        assert ignored.headers["x-medamad-ignored"] == "path"
        there = client.get("/api/websites/new.example/settings/export")
        assert [goal["name"] for goal in there["goals"]] == ["Cart", "Paid"]
        assert [funnel["name"] for funnel in there["funnels"]] == ["Checkout"]
    mailed = {"kind": "quiet", "format": "mail", "report": "0123456789ab"}
    there["alerts"].append(mailed)
    there["settings"]["kept_parameters"] = ["t"]
    again = settings(data, "import", "new.example", given=json.dumps(there))
    assert again.stdout == (
        "Added 0 goals, 0 funnels, 0 exclusions, 0 annotations, 0 alerts and 1 setting of what"
        " counts.\n"
        "Were there already: 10\n"
        "Alerts by mail left out, since their report is not there: 1\n"
    )
    as_json = settings(data, "import", "new.example", "--json", given=json.dumps(there))
    assert json.loads(as_json.stdout)["without_report"] == 1


@pytest.mark.parametrize(
    ("given", "hostname", "reason"),
    [
        ("[]", "example.com", "standard input: expected what `medamad settings export` prints: "),
        ("{}", "other.example", "hostname: no website other.example is registered"),
        ('{"goals": [{"id": "a", "name": "A", "path": "a"}]}', "example.com", "path: expected a"),
        ('{"gaols": []}', "example.com", "gaols: no such member"),
        (
            '{"goals": [{"id": "a", "name": "A", "paht": "/"}]}',
            "example.com",
            "paht: no such member of goals[0]",
        ),
    ],
)
def test_errors_are_reported(tmp_path: Path, given: str, hostname: str, reason: str) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        refused = settings(daemon.data, "import", hostname, given=given)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"medamad: {reason}")
