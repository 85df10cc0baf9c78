import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.daemon import MEDAMAD, PATIENCE_S, Client, Daemon, finished, running, until

from medamad.admin.client import AdminConnection, RequestFailed, connect
from medamad.admin.import_requests import rows_request
from medamad.admin.imports import BeginImport, Begun, Ended, FinishImport, HoldImport, Nothing
from medamad.cli import main
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import open_environment, open_to_read
from medamad.storage.environment.writer import Transaction
from medamad.storage.websites import Websites
from medamad.transfer.import_rows import build_chunk
from medamad.transfer.rows import ViewRow

pytestmark = pytest.mark.daemon

ENDPOINTS = (
    *("summary", "pages", "time", "referrers", "sources", "mediums", "campaigns", "terms"),
    *("contents", "browsers", "os", "devices", "countries", "languages", "hosting", "properties"),
)
FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"path[contains]": "/2", "browser[neq]": "Safari"},
    {"prop_name": "plan", "prop_value[in]": "a,b", "start": "2026-01-02T00:00:00Z"},
)
DAY = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-03T23:59:59Z"}


def views_file(folder: Path, views: int = 300) -> list[Path]:
    """Write files of views and events as documented."""
    head = "store,view,time,path,first_today,first_of_page,browser,country,duration_ms\n"
    lines = [
        f"feed,{n * 2 + 1},2026-01-0{n % 3 + 1}T0{n % 7}:00:00.{n:03}Z,/{n % 31},"
        f"{'true' if n % 3 == 0 else 'false'},true,{('Firefox', 'Safari')[n % 2]},DE,{n * 100}\n"
        for n in range(views)
    ]
    events = [
        f"feed,{n * 20 + 2},{n * 20 + 1},2026-01-01T00:00:00Z,plan,{'abc'[n % 3]}\n"
        for n in range(views // 20)
    ]
    folder.mkdir(exist_ok=True)
    (folder / "views.csv").write_text(head + "".join(lines), "utf-8")
    (folder / "events.csv").write_text(
        "store,event,view,time,name,value\n" + "".join(events), "utf-8"
    )
    return [folder / "views.csv", folder / "events.csv"]


def call(data: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command, *others = map(str, arguments)
    return finished(command, data, *others)


def answers(client: Client, hostname: str) -> list[Any]:
    found = []
    for filters in FILTERS:
        for endpoint in ENDPOINTS:
            for more in ({}, {"summary": "true"}):
                parameters = filters | more
                found.append(client.get(f"/api/website/{hostname}/{endpoint}", **parameters))
        for interval in ("hour", "day", "week"):
            parameters = DAY | filters | {"interval": interval, "previous": "true"}
            found.append(client.get(f"/api/website/{hostname}/summary", **parameters))
    return found


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path / "there") as started:
        started.client().add_website("example.org")
        yield started


def imports(daemon: Daemon) -> list[Any]:
    listed = call(daemon.data, "import", "--list", "--json")
    assert listed.returncode == 0, listed.stderr
    return json.loads(listed.stdout)


@pytest.mark.parametrize(
    "formats", [("csv",), pytest.param(("ndjson", "parquet"), marks=pytest.mark.slow)]
)
def test_every_endpoint_responds_alike_after_a_round_trip(
    tmp_path: Path, daemon: Daemon, formats: tuple[str, ...]
) -> None:
    client = daemon.client()
    client.add_website("twin.example")
    before = answers(client, "example.org")
    files = views_file(tmp_path / "made")
    planned = call(daemon.data, "import", *files, "--website", "example.org", "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert (plan["views"], plan["visitors"], plan["events"]) == (300, 100, 15)
    assert (plan["first"], plan["last"]) == ("2026-01-01", "2026-01-03")
    assert (plan["number"], plan["refused"], plan["already_there"]) == (None, 0, 0)
    assert answers(client, "example.org") == before
    done = call(daemon.data, "import", *files, "--website", "example.org", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == plan | {"number": 1, "dry_run": False}
    there = answers(client, "example.org")
    assert there[0]["current"]["pageviews"] == 300
    twice = call(daemon.data, "import", *reversed(files), "--website", "example.org")
    assert twice.returncode == 1
    assert twice.stderr == "medamad: the same was imported before, as number 1\n"
    for name in formats:
        out = [tmp_path / f"{what}.{name}" for what in ("views", "events")]
        for file in out:
            export = ("export", "example.org", "--what", file.stem, "--format", name, "-o", file)
            assert call(daemon.data, *export).returncode == 0
        moved = call(daemon.data, "import", *out, "--website", "twin.example")
        assert moved.returncode == 0, moved.stderr
        assert answers(client, "twin.example") == there
        number = imports(daemon)[-1]["number"]
        undone = call(daemon.data, "import", "--undo", number)
        assert f"removed 300 views and 15 events that were imported as number {number}" in (
            undone.stdout
        )
    assert answers(client, "twin.example") == before
    assert call(daemon.data, "import", "--undo", 1, "--json").returncode == 0
    assert answers(client, "example.org") == before
    assert imports(daemon) == []
    assert call(daemon.data, "import", "--undo", 1).stderr == (
        "medamad: --undo: nothing was imported as number 1\n"
    )


def test_exclusions_come_with_the_hits_that_they_leave_out(tmp_path: Path, daemon: Daemon) -> None:
    client, into = daemon.client(), ("--website", "twin.example")
    client.add_website("twin.example")
    files = views_file(tmp_path / "made")
    assert call(daemon.data, "import", *files, "--website", "example.org").returncode == 0
    whole = answers(client, "example.org")
    finished("goal", daemon.data, "add", "example.org", "Last", "--path", "/30")
    (goal,) = client.get("/api/websites/example.org/goals")
    for name, rule in (
        ("Safari", {"filters": "browser[eq]=Safari", "end": "2026-01-02T12:00:00Z"}),
        ("Last page", {"filters": f"goal[eq]={goal['id']}"}),
    ):
        added = client.request(
            "POST", "/api/websites/example.org/exclusions", {"name": name, **rule}
        )
        assert added.status == 201, added.text
    there = answers(client, "example.org")
    assert there != whole
    out = [tmp_path / f"{what}.out" for what in ("views", "events", "exclusions")]
    for file in out:
        export = ("export", "example.org", "--what", file.stem, "-o", file)
        assert call(daemon.data, *export).returncode == 0
    planned = call(daemon.data, "import", *out, *into, "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert (plan["views"], plan["exclusions"]) == (300, 2)
    assert client.get("/api/websites/twin.example/exclusions") == []
    moved = call(daemon.data, "import", *out, *into)
    assert (moved.returncode, moved.stderr) == (0, "")
    assert "  2 exclusions\n" in moved.stdout
    assert "removes them again, but not the exclusions.\n" in moved.stdout
    assert answers(client, "twin.example") == there
    number = imports(daemon)[-1]["number"]
    assert call(daemon.data, "import", "--undo", number).returncode == 0
    again = call(daemon.data, "import", *out, *into, "--json")
    assert json.loads(again.stdout)["exclusions"] == 0
    assert answers(client, "twin.example") == there
    for rule in client.get("/api/websites/twin.example/exclusions"):
        client.request("DELETE", f"/api/websites/twin.example/exclusions/{rule['id']}")
    assert answers(client, "twin.example") == whole


def test_exclusions_that_cannot_be_added_stop_an_import(tmp_path: Path, daemon: Daemon) -> None:
    client, into = daemon.client(), ("--website", "example.org")
    files = views_file(tmp_path / "made")
    safari = {"name": "Safari", "filters": "browser[eq]=Safari"}
    client.request("POST", "/api/websites/example.org/exclusions", safari)
    file, other = tmp_path / "exclusions.json", tmp_path / "other.json"
    other.write_text('{"exclusions": []}', "utf-8")
    different = {"name": "Safari", "filters": "browser[eq]=Chrome"}
    for rules, given, reason in (
        ([different], [], "exclusions: Safari is there already, and is different"),
        ([{"filters": "pth=/"}], [], f"{file}: not valid exclusions: "),
        ([{"name": "a", "filters": "pth=/"}], [], f"{file}: not valid exclusions: pth: there is"),
        ([safari], [other], f"{other}: expected one file of exclusions, besides {file}"),
    ):
        file.write_text(json.dumps({"exclusions": rules}), "utf-8")
        refused = call(daemon.data, "import", *files, file, *given, *into)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"medamad: {reason}")
        assert imports(daemon) == []
    alone = call(daemon.data, "import", file, *into)
    assert alone.returncode == 1
    assert "`medamad settings import` adds exclusions alone" in alone.stderr
    added = finished("settings", daemon.data, "import", "example.org", given=other.read_text())
    assert added.returncode == 0


def test_a_rejected_file_is_reported_and_nothing_is_stored(tmp_path: Path, daemon: Daemon) -> None:
    (views, _) = views_file(tmp_path / "made")
    with views.open("a") as file:
        file.write("feed,9001,never,/x,true,true,Firefox,DE,1\n")
        file.write("feed,3,2026-01-03T00:00:00Z,/another,true,true,Firefox,DE,1\n")
    planned = call(daemon.data, "import", views, "--website", "example.org", "--dry-run")
    refused = call(daemon.data, "import", views, "--website", "example.org")
    assert planned.returncode == refused.returncode == 1
    assert f"{views}, line 302: time: expected an RFC 3339 date-time" in refused.stderr
    assert f"{views}, line 303: view: 3 occurs more than once, with" in refused.stderr
    assert "2 of 302 rows are rejected, and nothing was stored" in refused.stderr
    assert planned.stderr == refused.stderr.replace("was stored", "would be stored")
    assert imports(daemon) == []
    skipped = call(
        daemon.data, "import", views, "--website", "example.org", "--skip-refused", "--json"
    )
    assert (json.loads(skipped.stdout)["views"], json.loads(skipped.stdout)["refused"]) == (300, 2)


def test_an_alert_reports_the_last_import_if_it_failed(tmp_path: Path, daemon: Daemon) -> None:
    client, url = daemon.client(), "https://hooks.invalid/"
    alert = client.request("POST", "/api/user/alerts", {"kind": "import", "url": url}).json["id"]

    def said() -> str:
        text: str = client.request("POST", f"/api/user/alerts/{alert}/test").json["text"]
        return text.partition("At the moment, the alert ")[2]

    missing = tmp_path / "access.log"
    into = ("--website", "example.org")
    call(daemon.data, "import", missing, *into, "--dry-run")
    assert said() == "has nothing to report."
    refused = call(daemon.data, "import", missing, *into)
    failure = refused.stderr.removeprefix("medamad: ").strip()
    assert str(missing) in failure
    assert said() == f"would say: An import into example.org failed: {failure}"
    assert f"an import into example.org failed: {failure}" in daemon.log
    files = views_file(tmp_path / "made")
    with files[0].open("a") as file:
        file.write("feed,9001,never,/x,true,true,Firefox,DE,1\n")
    assert call(daemon.data, "import", *files, *into).returncode == 1
    assert said().startswith("would say: An import into example.org failed: 1 of 316 rows are")
    assert call(daemon.data, "import", *files, *into, "--skip-refused").returncode == 0
    assert said() == "has nothing to report."


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["/nowhere.csv", "--website", "example.org"], "/nowhere.csv"),
        (["/nowhere.csv", "--website", "other.example"], "no website other.example is registered"),
        (["--undo", "5"], "--undo: nothing was imported as number 5"),
    ],
)
def test_errors_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    environment = open_environment(tmp_path, 64 << 20)
    with environment.lmdb.begin(write=True) as txn:
        Websites(environment.databases).add(Transaction(txn), "example.org", 1)
    environment.close()
    assert main(["import", *arguments, "--data", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("medamad: ")
    assert reason in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "FILE: expected at least one file"),
        (["a.csv"], "--website: expected the website to import into"),
        (["--undo", "1", "--dry-run"], "--dry-run: not expected with --undo"),
        (["--undo", "1", "a.csv"], "FILE: not expected with --undo"),
        (["--undo", "1", "--website", "example.org"], "--website: not expected with --undo"),
        (["--list", "--undo", "1"], "--undo: not expected with --list"),
        (["--list", "--overlapping"], "--overlapping: not expected with --list"),
    ],
)
def test_usage_errors_are_reported(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["import", *arguments])
    assert end.value.code == 64
    assert capsys.readouterr().err.endswith(f"medamad import: {reason}\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store of a website, without a daemon."""
    environment = open_environment(tmp_path, 64 << 20)
    with environment.lmdb.begin(write=True) as txn:
        Websites(environment.databases).add(Transaction(txn), "example.org", 1)
    environment.close()
    return tmp_path


def dry_run(data: Path, content: str, *arguments: str) -> int:
    file = data / "views.csv"
    file.write_text(content)
    made = ["import", str(file), "--website", "example.org", "--dry-run", "--data", str(data)]
    return main([*made, *arguments])


def test_a_dry_run_ends_as_the_import_would(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = datetime.now(UTC) + timedelta(days=3)
    content = f"time,path\n2026-01-01T00:00:00Z,nopath\n{later:%Y-%m-%dT%H:%M:%SZ},/a\n"
    assert dry_run(data, content) == 1
    printed = capsys.readouterr()
    assert "  1 view of 0 visitors, 0 events\n" in printed.out
    assert printed.err == (
        f"medamad: {data}/views.csv, line 3: time: "
        "expected a time at most a day in the future\n"
        "medamad: 1 of 2 rows are rejected, and nothing would be stored; "
        "--skip-refused imports the others\n"
    )
    assert dry_run(data, content, "--skip-refused") == 0
    capsys.readouterr()
    assert dry_run(data, "time,path\n") == 1
    assert capsys.readouterr().err == (
        "medamad: nothing was imported: there is no view or event in it\n"
    )
    goatcounter = (
        "2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,"
        "Screen size,Location,FirstVisit,Date\n"
    )
    assert dry_run(data, goatcounter) == 1
    assert capsys.readouterr().err == (
        "medamad: nothing was imported: there is no view or event in it; GoatCounter exports "
        "single page views only if its setting “Individual pageviews” was on; its JSON export has "
        "the totals of each day\n"
    )


def test_skipped_log_lines_are_reported(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = '192.0.2.1 - - [01/Feb/2026:10:00:00 +0000] "GET'
    program = f'{begin} / HTTP/1.1" 200 1 "-" "curl/8.5.0"\n'
    log = f'{program}{program}{begin} /a.css HTTP/1.1" 200 1 "-" "curl/8.5.0"\n'
    programs = "2 rows of robots (see `[events] bots`)"
    reasons = "1 row without a page view", programs
    log += f'{begin} / HTTP/1.1" 200 1 "-" "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"\n'
    assert dry_run(data, log) == 0
    printed = capsys.readouterr().out
    assert all(f"  {line}, left out\n" in printed for line in reasons)
    assert "  2 requests of robots, counted apart\n" in printed
    assert dry_run(data, log, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["left_out"], found["robots"]) == ({"no_view": 1, "programs": 2}, 2)


def test_a_log_with_nothing_but_robots_is_imported(daemon: Daemon, tmp_path: Path) -> None:
    begin = '192.0.2.1 - - [01/Feb/2026:10:00:00 +0000] "GET'
    missing = f'{begin} /x HTTP/1.1" 404 1 "-" "curl/8.5.0"\n'
    log = tmp_path / "access.log"
    log.write_text(f'{begin} / HTTP/1.1" 200 1 "-" "curl/8.5.0"\n' * 2 + missing)
    arguments = ("--website", "example.org", str(log))
    dry = finished("import", daemon.data, "--dry-run", *arguments)
    assert (dry.returncode, dry.stderr) == (0, "")
    done = finished("import", daemon.data, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  0 views of 0 visitors, 0 events\n  2 requests of robots, counted" in done.stdout
    robots = "/api/website/example.org/robots"
    assert [row["requests"] for row in daemon.client().get(robots)] == [2]
    assert finished("import", daemon.data, "--undo", "1").returncode == 0
    assert daemon.client().get(robots) == []
    log.write_text(missing)
    done = finished("import", daemon.data, *arguments)
    assert done.stderr == "medamad: nothing was imported: 1 row without a page view\n"


def test_pages_of_other_websites_in_a_log_are_redacted_as_their_own(
    daemon: Daemon, tmp_path: Path
) -> None:
    client = daemon.client()
    client.add_website("other.example")
    settings = {"redacted_paths": ["/reset/*"]}
    answer = client.request("PATCH", "/api/websites/other.example/settings", settings)
    assert answer.status == 200
    log = tmp_path / "access.log"
    log.write_text(
        '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1'
        ' "https://other.example/reset/kQ2pX9s"'
        ' "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"\n'
    )
    assert call(daemon.data, "import", log, "--website", "example.org").returncode == 0
    (row,) = client.get("/api/website/example.org/referrers", grouped="false")
    assert row["referrer"] == "other.example/reset/…"


def test_robots_in_logs_are_counted_until_the_import_is_undone(
    tmp_path: Path, daemon: Daemon
) -> None:
    browser = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    gptbot = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
    lines = [
        f'192.0.2.1 - - [0{day}/Feb/2026:10:00:00 +0000] "GET {path} HTTP/1.1" 200 1 "-" "{agent}"'
        for day, path, agent in (
            (1, "/", browser), (1, "/", gptbot), (2, "/a?b=c", gptbot), (2, "/x.css", gptbot),
            (2, "/", "curl/8.5.0"),
        )
    ]  # fmt: skip
    log = tmp_path / "access.log"
    log.write_text("\n".join(lines) + "\n")
    done = call(daemon.data, "import", log, "--website", "example.org")
    assert "  3 requests of robots, counted apart\n" in done.stdout
    client, robots = daemon.client(), "/api/website/example.org/robots"
    assert [
        [tuple(row.values())[:-1] for row in client.get(f"{robots}?by={by}")]
        for by in ("day", "name", "path")
    ] == [
        [("2026-02-01", 1), ("2026-02-02", 2)],
        [("GPTBot", "OpenAI", "ai-training", 2), ("curl", "", "library", 1)],
        [("/", 2), ("/a", 1)],
    ]
    assert client.get("/api/website/example.org/summary")["current"]["pageviews"] == 1
    daemon.stop()
    daemon.start()
    assert len(daemon.client().get(robots)) == 2
    call(daemon.data, "import", "--undo", "1")
    assert daemon.client().get(robots) == []


def test_rows_outside_the_accepted_times_are_reported(tmp_path: Path, daemon: Daemon) -> None:
    head = "time,path,first_today\n"
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(f"{head}2026-01-01T00:00:00Z,a,true\n2026-01-03T00:00:00Z,/b,true\n")
    second.write_text(f"{head}2026-01-02T00:00:00Z,/c,true\n")
    done = call(daemon.data, "import", first, "--website", "example.org")
    assert "  2 views of 2 visitors, 0 events\n" in done.stdout
    pages = daemon.client().get("/api/website/example.org/pages")
    assert sorted(row["path"] for row in pages) == ["/a", "/b"]
    again = call(daemon.data, "import", second, "--website", "example.org")
    assert (again.returncode, again.stderr) == (
        1,
        "medamad: nothing was imported: 1 hit of a time that was already counted\n",
    )
    planned = call(daemon.data, "import", second, "--website", "example.org", "--dry-run", "--json")
    found = json.loads(planned.stdout)
    assert (planned.returncode, found["already_there"], found["already_counted"]) == (1, 1, 1)
    assert (found["first"], found["last"]) == (None, None)
    # The reported days are those of the imported hits.
    second.write_text(f"{head}2026-01-02T00:00:00Z,/c,true\n2026-01-05T00:00:00Z,/d,true\n")
    events = tmp_path / "events.csv"
    events.write_text("time,name,value\n2026-01-02T00:00:00Z,buy,\n2026-01-09T00:00:00Z,buy,\n")
    grown = call(daemon.data, "import", second, events, "--website", "example.org")
    assert "  1 view of 1 visitor, 1 event\n  from 2026-01-05 to 2026-01-09\n" in grown.stdout


def test_it_needs_a_daemon(tmp_path: Path, daemon: Daemon) -> None:
    files = views_file(tmp_path / "made")
    daemon.stop()
    assert (
        call(daemon.data, "import", *files, "--website", "example.org", "--dry-run").returncode == 0
    )
    ended = call(daemon.data, "import", *files, "--website", "example.org")
    assert (ended.returncode, ended.stderr) == (
        1,
        f"medamad: {daemon.data}: no daemon runs on it\n",
    )


def begin(connection: AdminConnection, holding: AdminConnection) -> Begun:
    """Bring a segment, and a little more, of an import."""
    begun = connection.request(
        BeginImport(
            website="example.org", source="", digest="d", ranges=(("feed", 1, 99_999),), newest=99
        ),
        Begun,
    )
    holding.send(HoldImport(begun.number))
    for first in range(1, 80_000, 8_000):
        rows = [ViewRow(time_ms=first + n, path=f"/{n}", number=first + n) for n in range(8_000)]
        numbers = [begun.spans[0].at + row.number - 1 for row in rows]
        piece = build_chunk(numbers, [0] * len(rows), rows, [])
        connection.request(rows_request(begun.number, piece), Nothing)
    return begun


def unfinished(begun: Begun) -> str:
    """Return what the log has to say of an import."""
    return f"import {begun.number} into example.org was not finished: it is removed"


def pageviews(daemon: Daemon) -> int:
    found: int = daemon.client().get("/api/website/example.org/summary")["current"]["pageviews"]
    return found


def test_an_interrupted_import_is_cancelled(daemon: Daemon) -> None:
    with connect(daemon.data) as connection:
        with connect(daemon.data) as holding:
            begun = begin(connection, holding)
            with pytest.raises(
                RequestFailed, match="another import into this website is under way"
            ):
                begin(connection, holding)
        with connect(daemon.data) as holding:
            again = begin_when_it_can(connection, holding)
            assert again.number > begun.number
            until(lambda: unfinished(begun) in daemon.log)
            with pytest.raises(RequestFailed, match=f"import {begun.number} is not in progress"):
                connection.request(FinishImport(begun.number), Ended)
            assert pageviews(daemon) == 0
            assert connection.request(FinishImport(again.number), Ended).views == 80_000
    assert pageviews(daemon) == 80_000


def begin_when_it_can(connection: AdminConnection, holding: AdminConnection) -> Begun:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return begin(connection, holding)
        except RequestFailed:
            if time.monotonic() > deadline:
                raise


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_kill_of_the_daemon_leaves_all_or_nothing(daemon: Daemon, is_whole: bool) -> None:
    with connect(daemon.data) as connection, connect(daemon.data) as holding:
        begun = begin(connection, holding)
        if is_whole:
            connection.request(FinishImport(begun.number), Ended)
        daemon.kill()
    assert unfinished(begun) not in daemon.log
    daemon.start()
    assert pageviews(daemon) == 80_000 * is_whole
    daemon.stop()
    assert (unfinished(begun) in daemon.log) is not is_whole
    environment, txn = open_to_read(daemon.data)
    assert list(StoreCheck(environment, txn).findings()) == []
    txn.abort()
    environment.close()


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["command", "daemon"])
@pytest.mark.parametrize("after_s", [0.8, 1.1, 1.4, 1.8, 2.5])
def test_a_kill_leaves_all_or_nothing(
    tmp_path: Path, daemon: Daemon, killed: str, after_s: float
) -> None:
    """At whatever moment: what is seen is the import as a whole, or none of it."""
    files = views_file(tmp_path / "made", 60_000)
    arguments = ["import", *map(str, files), "--website", "example.org", "--data", str(daemon.data)]
    command = subprocess.Popen([*MEDAMAD, *arguments], stderr=subprocess.PIPE)
    if killed == "daemon":
        time.sleep(after_s)
        daemon.kill()
        command.communicate(timeout=120)
        daemon.start()
    else:
        time.sleep(after_s)
        os.kill(command.pid, signal.SIGKILL)
        command.communicate(timeout=120)
    client = daemon.client()
    seen = client.get("/api/website/example.org/summary")["current"]["pageviews"]
    listed = [each["views"] for each in imports(daemon)]
    assert (seen, listed) in ((0, []), (60_000, [60_000]))
    if not listed:
        again = call(daemon.data, "import", *files, "--website", "example.org")
        assert again.returncode == 0, again.stderr
    assert client.get("/api/website/example.org/summary")["current"]["pageviews"] == 60_000
    daemon.stop()
    environment, txn = open_to_read(daemon.data)
    assert list(StoreCheck(environment, txn).findings()) == []
    txn.abort()
    environment.close()


def test_an_access_log_is_imported_as_counted_by_hand(tmp_path: Path, daemon: Daemon) -> None:
    client = daemon.client()
    before = answers(client, "example.org")
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    seen: list[tuple[str, str, str]] = []
    log = tmp_path / "access.log"
    with log.open("w") as file:
        for n in range(2_000):
            address, path = f"2001:db8::{n % 37}", ("/", "/a", "/b", "/x.css")[n % 7 % 4]
            day, status = f"{n // 500 + 1:02}", (200, 200, 404)[n % 3]
            referrer = "https://www.example.org/" if n % 2 else "https://other.example/"
            file.write(
                f"{address} - - [{day}/Jan/2026:{n // 25 % 20:02}:00:00 +0000] "
                f'"GET {path} HTTP/1.1" {status} 5 "{referrer}" "{agent}"\n'
            )
            if status == 200 and path != "/x.css":
                seen.append((day, address, path))
    done = call(daemon.data, "import", log, "--website", "example.org", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    visitors = len({(day, address) for day, address, _ in seen})
    assert (json.loads(done.stdout)["views"], json.loads(done.stdout)["visitors"]) == (
        len(seen),
        visitors,
    )
    current = client.get("/api/website/example.org/summary")["current"]
    assert (current["pageviews"], current["visitors"]) == (len(seen), visitors)
    pages = {row["path"]: row for row in client.get("/api/website/example.org/pages")}
    assert {path: (row["pageviews"], row["visitors"]) for path, row in pages.items()} == {
        path: (sum(each[2] == path for each in seen), len({e for e in seen if e[2] == path}))
        for path in ("/", "/a", "/b")
    }
    again = call(daemon.data, "import", log, "--website", "example.org")
    assert again.stderr == "medamad: the same was imported before, as number 1\n"
    assert call(daemon.data, "import", "--undo", 1).returncode == 0
    assert answers(client, "example.org") == before
