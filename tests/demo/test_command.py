import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import frozen
from support.daemon import PATIENCE_S, Client, finished_fork, free_port
from support.forked_process import ForkedProcess, fork

from medamad.cli import make_parser
from medamad.demo.sites import SITES

pytestmark = pytest.mark.daemon

VIEWS = 6_000


@frozen
class Demonstration:
    process: ForkedProcess
    greeting: str
    client: Client


@contextmanager
def run_demo(
    temporary: Path, planned: int, *options: str, listen: str = "{}"
) -> Iterator[Demonstration]:
    """Run the command with its temporary folder below `temporary`."""
    port = free_port()
    environ = os.environ | {"TMPDIR": str(temporary)}
    for name in ("MEDAMAD_USERNAME", "MEDAMAD_PASSWORD"):
        environ.pop(name, None)
    where = ["--listen", listen.format(port)]
    command = ["demo", *where, "--days", "1", "--views", str(planned), *options]
    reading, writing = os.pipe()
    with Path(os.devnull).open("r+b") as nothing:
        process = fork(command, (nothing, writing, nothing), environ=environ)
    os.close(writing)
    too_long = threading.Timer(PATIENCE_S, process.kill)
    too_long.start()
    lines: list[str] = []
    with os.fdopen(reading, encoding="utf-8") as said:
        while not lines or (lines[-1] and "Ctrl-C" not in lines[-1]):
            lines.append(said.readline())
    too_long.cancel()
    greeting = "".join(lines)
    words = greeting.split()
    client = Client(port)
    client.log_in(words[words.index("as") + 1], words[words.index("password") + 1])
    yield Demonstration(process, greeting, client)
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    with run_demo(tmp_path_factory.mktemp("demonstration"), VIEWS) as running:
        yield running


def test_the_demo_prints_its_address(demonstration: Demonstration) -> None:
    assert f":{demonstration.client.port}/" in demonstration.greeting


def views_of(demonstration: Demonstration) -> dict[str, int]:
    """Return the number of views of each website."""
    client = demonstration.client
    return {
        website["hostname"]: client.get(f"/api/website/{website['hostname']}/summary")["current"][
            "pageviews"
        ]
        for website in client.get("/api/websites")
    }


def test_every_website_has_all_its_planned_views(demonstration: Demonstration) -> None:
    views = views_of(demonstration)
    assert set(views) == {site.hostname for site in SITES}
    assert min(views.values()) > 50
    assert sum(views.values()) >= VIEWS


def test_views_arrive_while_it_runs(demonstration: Demonstration) -> None:
    """More than eighty arrive per minute."""
    before = sum(views_of(demonstration).values())
    until = time.monotonic() + PATIENCE_S
    while sum(views_of(demonstration).values()) == before:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_visits_begin_while_it_runs(demonstration: Demonstration) -> None:
    since = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    path = f"/api/website/{SITES[0].hostname}/summary?visits=true&start={since}"
    until = time.monotonic() + PATIENCE_S
    while not demonstration.client.get(path)["current"]["visits"]:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_it_shows_visits_goals_and_a_funnel(demonstration: Demonstration) -> None:
    client = demonstration.client
    figures = client.get("/api/website/shop.gardenpost.example/summary?visits=true")["current"]
    assert 0.35 < figures["visit_bounce_percentage"] < 0.55
    assert 2 < figures["views_per_visit"] < 5
    goals = client.get("/api/websites/shop.gardenpost.example/goals")
    (funnel,) = client.get("/api/websites/shop.gardenpost.example/funnels")
    assert funnel["goals"] == [goal["id"] for goal in goals]


def test_everything_can_be_changed_on_this_machine(tmp_path: Path) -> None:
    """Views go on arriving, also those of a website that has been deleted."""
    with run_demo(tmp_path, VIEWS) as running:
        assert "Change what you like; nothing is kept." in running.greeting
        client = running.client
        client.add_website("example.com")
        gone = SITES[0].hostname
        assert client.request("DELETE", f"/api/websites/{gone}").status == 204
        before = sum(views_of(running).values())
        until = time.monotonic() + PATIENCE_S
        while sum(views_of(running).values()) == before:
            assert time.monotonic() < until
            time.sleep(0.5)
    assert running.process.returncode == 0


@pytest.mark.parametrize(
    ("options", "listen"), [(("--read-only",), "{}"), ((), "0.0.0.0:{}"), ((), "tcp:{}")]
)
def test_nothing_can_be_changed_where_others_can_connect_or_if_so_chosen(
    tmp_path: Path, options: tuple[str, ...], listen: str
) -> None:
    with run_demo(tmp_path, 100, *options, listen=listen) as running:
        assert "Nothing can be changed; nothing is kept." in running.greeting
        answer = running.client.request("POST", "/api/websites", {"hostname": "example.com"})
        assert answer.status == 403


def test_the_demo_leaves_no_files_behind(tmp_path: Path) -> None:
    with run_demo(tmp_path, 100) as running:
        assert len(list(tmp_path.iterdir())) == 1
    assert running.process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_the_demo_can_be_stopped_while_filling(tmp_path: Path) -> None:
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    where = f"--listen=tcp:{free_port()}:interface=127.0.0.1"
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        process = fork(
            ["demo", where, "--views=10000000"], (nothing, writing, writing), environ=environ
        )
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as output:
        assert "made the account" in output.readline()
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
        assert output.read() == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argument", "value"), [("--days", "0"), ("--days", "x"), ("--views", "-1"), ("--views", "1e3")]
)
def test_numbers_out_of_range_are_rejected(argument: str, value: str) -> None:
    refused = finished_fork(["demo", f"{argument}={value}"])
    assert refused.returncode == 64
    assert f"{argument}: expected a whole number from 1 to" in refused.stderr


def test_the_default_is_ninety_days_of_four_websites() -> None:
    assert make_parser(["demo"]).parse_args(["demo"]).days == 90
    assert len(SITES) == 4
