from functools import partial
from pathlib import Path

import pytest
from support.daemon import finished, finished_fork, running

from medamad.cli import main

report = partial(finished, "report")

VIEWS = """\
time,path,referrer,country
2026-10-20T10:00:00Z,/before,,DE
2026-10-26T10:00:00Z,/a,google.com,DE
2026-10-27T10:00:00Z,/a,,DE
2026-11-01T22:59:59Z,/b,,AT
2026-11-01T23:00:00Z,/after,,AT
"""
CONFIGURATION = """\
[server]
public_url = "https://stats.example.com"
base_path = "/stats"
[events]
timezone = "Europe/Berlin"
"""


@pytest.mark.daemon
def test_a_report_is_printed_with_and_without_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "views.csv"
    file.write_text(VIEWS, "utf-8")
    with running(tmp_path, configuration=CONFIGURATION) as daemon:
        client = daemon.client()
        for hostname in ("example.com", "example.org"):
            client.add_website(hostname)
        data = ["--data", str(daemon.data)]
        assert main(["import", str(file), "--website", "example.com", *data]) == 0
        client.request("PATCH", "/api/user", {"settings": {"language": "de"}})
        noted = finished(
            "annotate", daemon.data, "add", "example.com", "Umzug", "--time", "2026-10-28"
        )
        assert noted.returncode == 0
        week = ("--website", "example.com", "--week", "2026-W44")
        beside = report(daemon.data, *week)
        assert (beside.returncode, beside.stderr) == (0, "")
        assert beside.stdout.startswith("Wochenbericht für example.com: 26. Okt.")
        lines = [" ".join(line.split()) for line in beside.stdout.splitlines()]
        assert "Seitenaufrufe 3 zuvor: 1 (+200 %)" in lines
        assert "/a 2" in lines
        assert "Mi., 28. Okt. Umzug" in lines
        assert "/b 1" in lines
        assert (
            "https://stats.example.com/stats/dashboard/websites/example.com"
            "?from=2026-10-26&to=2026-11-01&zone=Europe%2FBerlin" in lines
        )
        page = report(daemon.data, *week, "--format", "html", "--language", "en")
        assert page.stdout.startswith('<!DOCTYPE html>\n<html lang="en">')
        two = report(daemon.data, "--website", "example.org", *week, "--timezone", "UTC")
        assert "/after" in two.stdout
        assert two.stdout.index("example.org\n") < two.stdout.index("example.com\n===")
        month = report(daemon.data, "--website", "example.com", "--month", "2026-10")
        assert month.stdout.startswith("Monatsbericht für example.com: Oktober 2026")
        daemon.stop()
        with_file = ("--config", str(daemon.data.parent / "medamad.toml"))
        assert report(daemon.data, *week, *with_file).stdout == beside.stdout


@pytest.mark.daemon
@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (("--website", "nobody.example"), 1, "hostname: no website nobody.example is registered"),
        (("--website", "example.com", "--week", "2999-W01"), 1, "--week: expected a week that is"),
        (("--website", "example.com", "--month", "2999-01"), 1, "--month: expected a month that"),
        (("--website", "example.com", "--week", "0001-W01"), 1, "--week: expected a year from"),
        (("--website", "example.com", "--timezone", "Mars"), 1, "timezone: expected an IANA"),
        (("--website", "example.com", "--week", "47"), 64, "expected a week such as 2026-W47"),
        (("--website", "example.com", "--month", "2026-13"), 64, "expected a month such as"),
        ((), 64, "--website"),
    ],
)
def test_errors_are_reported(
    tmp_path: Path, arguments: tuple[str, ...], status: int, reason: str
) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        failed = finished_fork(("report", *arguments, "--data", str(daemon.data)))
    assert failed.returncode == status
    assert reason in failed.stderr
    assert failed.stdout == ""
