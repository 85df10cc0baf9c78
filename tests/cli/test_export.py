import csv
import json
import os
from functools import partial
from pathlib import Path

import pytest
from support.daemon import PATIENCE_S, finished, running
from support.forked_process import fork

from medamad.cli import main
from medamad.cli.support import ProgressLine
from medamad.storage.environment.environment import FILE_NAME, open_as_guest

pytestmark = pytest.mark.daemon

HIT = {"e": "load", "b": "1", "u": "https://example.com/a", "p": True, "q": True, "d": {"k": "v"}}


export = partial(finished, "export")


def test_it_is_the_same_with_and_without_a_daemon(tmp_path: Path) -> None:
    file = tmp_path / "views.csv"
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        assert client.request("POST", "/api/event/hit", HIT).status == 204
        before = (daemon.data / FILE_NAME).stat().st_mtime_ns
        beside = export(daemon.data, "example.com", "-o", str(file))
        assert (beside.returncode, beside.stdout, beside.stderr) == (0, "", "")
        assert (daemon.data / FILE_NAME).stat().st_mtime_ns == before
        events = export(daemon.data, "Example.COM.", "--what", "events", "--format", "ndjson")
        assert '"name":"k","value":"v"' in events.stdout
        daemon.stop()
        alone = export(daemon.data, "example.com")
        assert alone.stdout == file.read_bytes().decode()
        (row,) = csv.DictReader(alone.stdout.splitlines())
        assert (row["path"], row["first_today"], row["duration_ms"]) == ("/a", "true", "")
        assert file.stat().st_mode & 0o777 == 0o600
        assert sorted(each.name for each in tmp_path.glob("*views*")) == ["views.csv"]
        statistics = export(daemon.data, "example.com", "--what", "statistics").stdout
        rows = {row["report"]: row for row in csv.DictReader(statistics.splitlines())}
        assert rows["pages"]["name"] == "/a"
        assert rows["summary"]["visitors"] == "1"


def test_exclusions_are_a_file_of_their_own(tmp_path: Path) -> None:
    path = "/api/websites/example.com"
    filters = "country[eq]=Peru&path=/a%26b"
    flood = {"name": "Flood", "filters": filters, "end": "2026-01-31T12:00:00Z"}
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        for name in ("Cart", "Paid"):
            finished("goal", daemon.data, "add", "example.com", name, "--path", f"/{name}")
        paid = client.get(f"{path}/goals")[1]
        paying = {"name": "Paying", "filters": f"goal[eq]={paid['id']}"}
        for body in (flood, paying):
            assert client.request("POST", f"{path}/exclusions", body).status == 201
        file = tmp_path / "exclusions.json"
        made = export(daemon.data, "example.com", "--what", "exclusions", "-o", str(file))
        assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
        found = json.loads(file.read_text("utf-8"))
        assert [each | {"created": 0} for each in found["exclusions"]] == [
            flood | {"created": 0},
            paying | {"created": 0},
        ]
        assert found["goals"] == [paid]
        assert client.get(f"{path}/settings/export/exclusions") == found
        printed = export(daemon.data, "example.com", "--what", "exclusions")
        assert printed.stdout == file.read_text("utf-8")
        for option in (["--format", "csv"], ["--start", "2026-01-01"], ["--end", "2026-01-31"]):
            refused = export(daemon.data, "example.com", "--what", "exclusions", *option)
            assert refused.returncode == 64
            assert f"{option[0]}: not expected with --what exclusions" in refused.stderr


def test_damage_is_reported_and_left_out(tmp_path: Path) -> None:
    with running(tmp_path, configuration="") as daemon:
        client = daemon.client()
        client.add_website("example.com")
        assert client.request("POST", "/api/event/hit", HIT).status == 204
        daemon.stop()
        guest = open_as_guest(daemon.data)
        with guest.lmdb.begin(write=True) as txn:
            txn.put(b"store-id", b"damaged", db=guest.databases.meta)
        guest.close()
        found = export(daemon.data, "example.com")
        assert found.returncode == 1
        assert found.stdout == ""
        assert "store-id" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nobody.example"], "hostname: no website nobody.example is registered"),
        (["not a host"], "hostname: "),
        (
            ["example.com", "--start", "2026-01-02T00:00:00Z", "--end", "2026-01-01T00:00:00Z"],
            "start: expected a date-time that is not after end",
        ),
        (
            ["example.com", "-o", "/nowhere/all.csv"],
            "/nowhere/all.csv: No such file or directory\n",
        ),
    ],
)
def test_errors_are_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        assert main(["export", *arguments, "--data", str(daemon.data)]) == 1
    printed = capfd.readouterr()
    assert printed.err.startswith("medamad: ")
    assert reason in printed.err
    assert "Errno" not in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_period_may_be_of_days(tmp_path: Path) -> None:
    """They are those of the configured zone: Tokyo is nine hours ahead."""
    rows = [f"2026-01-{time}Z,/{n}" for n, time in enumerate(HOURS_AROUND_A_DAY)]
    file = tmp_path / "views.csv"
    file.write_text("\n".join(["time,path", *rows, ""]), "utf-8")
    tokyo = '[events]\ntimezone = "Asia/Tokyo"\n'
    with running(tmp_path / "there", configuration=tokyo) as daemon:
        daemon.client().add_website("example.com")
        data = ["--data", str(daemon.data)]
        assert main(["import", str(file), "--website", "example.com", *data]) == 0
        out = tmp_path / "out.csv"
        for bounds, paths in (
            (("--start", "2026-01-15", "--end", "2026-01-15"), ["/1", "/2"]),
            (("--start", "2026-01-15"), ["/1", "/2", "/3"]),
            (("--end", "2026-01-15"), ["/0", "/1", "/2"]),
            (("--start", "2026-01-15", "--end", "2026-01-15T10:00:00Z"), ["/1"]),
        ):
            assert main(["export", "example.com", "-o", str(out), *bounds, *data]) == 0
            with out.open(newline="") as lines:
                assert [row["path"] for row in csv.DictReader(lines)] == paths


HOURS_AROUND_A_DAY = ("14T14:59:59", "14T15:00:00", "15T14:59:59", "15T15:00:00")
"""In UTC: before, at the beginning, at the end and after January 15th in Tokyo."""


@pytest.mark.parametrize("bound", ["--start", "--end"])
def test_an_invalid_time_is_a_usage_error(capsys: pytest.CaptureFixture[str], bound: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", "example.com", bound, "2026-02-30"])
    assert ended.value.code == 64
    assert capsys.readouterr().err.endswith(
        f"argument {bound}: expected an RFC 3339 date-time such as 2024-01-31T00:00:00Z,"
        " or a day such as 2024-01-31\n"
    )


def test_missing_days_are_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "visitors.csv"
    file.write_text("date,visitors,pageviews\n2024-03-28,5,9\n2024-03-29,1,2\n")
    tokyo = '[events]\ntimezone = "Asia/Tokyo"\n'
    with running(tmp_path / "there", configuration=tokyo) as daemon:
        daemon.client().add_website("example.com")
        data = ["--data", str(daemon.data)]
        assert main(["import", str(file), "--website", "example.com", *data]) == 0
        capsys.readouterr()
        out = tmp_path / "statistics.csv"
        export = ["export", "example.com", "--what", "statistics", "-o", str(out)]
        assert main([*export, *data]) == 0
        printed = capsys.readouterr().err
        for what in ("views", "events"):
            assert main(["export", "example.com", "--what", what, "-o", str(out), *data]) == 0
        assert capsys.readouterr().err == (
            "medamad: views: without 2 days from 2024-03-28 to 2024-03-29, "
            "because only daily totals are kept\n"
        )
        assert main([*export, *data]) == 0
    rows = [row for row in csv.DictReader(out.read_text().splitlines()) if row["report"] == "days"]
    assert [(row["date"], row["pageviews"]) for row in rows[:2]] == [
        ("2024-03-28T00:00:00+09:00", "9"),
        ("2024-03-29T00:00:00+09:00", "2"),
    ]
    assert printed == (
        "medamad: pages, time, referrers, referrer_urls, sources, mediums, campaigns, terms, "
        "contents, browsers, os, devices, countries, languages, locales, hosting: "
        "without 2 days from 2024-03-28 to 2024-03-29, because only daily totals are kept\n"
        "medamad: summary, days: times are without 2 days from "
        "2024-03-28 to 2024-03-29, because only daily totals are kept\n"
        "medamad: summary, days: bounce rates are without 2 days from "
        "2024-03-28 to 2024-03-29, because only daily totals are kept\n"
        "medamad: summary, days, entries, exits, properties, property_values: visits are without "
        "2 days from 2024-03-28 to 2024-03-29, of which they are unknown\n"
    )
    # Days that begin elsewhere than those of which there are sums are not known.
    utc = tmp_path / "utc.toml"
    utc.touch()
    assert main([*export, *data, "--config", str(utc)]) == 0
    rows = [row for row in csv.DictReader(out.read_text().splitlines()) if row["report"] == "days"]
    assert [(row["date"], row["visitors"], row["pageviews"]) for row in rows[1:4]] == [
        ("2024-03-28T00:00:00+00:00", "", ""),
        ("2024-03-29T00:00:00+00:00", "", ""),
        ("2024-03-30T00:00:00+00:00", "0", "0"),
    ]


def test_an_unknown_format_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["export", "example.com", "--format", "xlsx"])
    assert end.value.code == 64
    assert "--format" in capsys.readouterr().err


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        reading, writing = os.pipe()
        os.close(reading)
        command = ["export", "example.com", "--data", str(daemon.data)]
        with (
            Path(os.devnull).open("rb") as nothing,
            os.fdopen(writing, "wb") as pipe,
            (tmp_path / "error.txt").open("wb") as error,
        ):
            assert fork(command, (nothing, pipe, error)).wait(PATIENCE_S) == 141
        assert (tmp_path / "error.txt").read_text("utf-8") == ""


def test_a_stalled_reader_does_not_hold_old_pages(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        path = "x" * 2_000
        for number in range(60):
            hit = HIT | {"b": str(number), "u": f"https://example.com/{number}/{path}"}
            assert client.request("POST", "/api/event/hit", hit).status == 204
        expected = export(daemon.data, "example.com").stdout.encode()
        # More than a pipe takes by itself.
        assert len(expected) > 100_000
        command = ["export", "example.com", "--data", str(daemon.data)]
        reading, writing = os.pipe()
        with Path(os.devnull).open("r+b") as nothing:
            exporting = fork(command, (nothing, writing, nothing))
        os.close(writing)
        with os.fdopen(reading, "rb") as output:
            taken = output.read(1)
            guest = open_as_guest(daemon.data)
            readers = [line.split() for line in guest.lmdb.readers().splitlines()[1:]]
            guest.close()
            assert exporting.poll() is None
            # The id of the process, a thread, and a transaction or "-".
            assert [line[2] for line in readers if int(line[0]) == exporting.pid] in ([], ["-"])
            taken += output.read()
        assert (exporting.wait(PATIENCE_S), taken) == (0, expected)


class Terminal:
    def __init__(self) -> None:
        self.written = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written += text
        return len(text)

    def flush(self) -> None:
        pass


def test_progress_is_shown_on_a_terminal() -> None:
    terminal = Terminal()
    progress = ProgressLine("views", terminal, now=lambda: 0.0)
    for done in (0, 1_000, 2_000):
        progress.update(done, 2_000)
    progress.end()
    assert (
        terminal.written == "\rviews: 0 of 2,000 (0 %)\x1b[K\rviews: 2,000 of 2,000 (100 %)\x1b[K\n"
    )
