"""A damaged store: the daemon keeps running, returns 503 and says what to do."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.daemon import HIT, Client, Daemon, finished
from support.storage.page_damage import PAGE

from medamad.storage.environment.environment import FILE_NAME
from medamad.storage.environment.folder import STATE_NAME

pytestmark = pytest.mark.daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Return a daemon that was killed, whose store has a website and some views."""
    daemon = Daemon(tmp_path)
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    for number in range(40):
        page = {"b": str(number), "u": f"https://example.com/{number}"}
        assert client.request("POST", "/api/event/hit", HIT | page).status == 204
    daemon.kill()
    yield daemon
    if daemon.is_running:
        daemon.stop()


def zero_pages(content: bytearray) -> None:
    end = len(bytes(content).rstrip(b"\0")) // PAGE * PAGE
    content[3 * PAGE : end] = bytes(end - 3 * PAGE)


def cut_short(content: bytearray) -> None:
    del content[5 * PAGE :]


def zero_the_first_page(content: bytearray) -> None:
    content[:PAGE] = bytes(PAGE)


def start_damaged(daemon: Daemon, change: Callable[[bytearray], None]) -> None:
    """Change the store and start the daemon, which returns 503 to pings."""
    file = daemon.data / FILE_NAME
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(content)
    start_in_outage(daemon)


def start_in_outage(daemon: Daemon) -> None:
    daemon.start(status=503)


@pytest.mark.parametrize("change", [zero_pages, cut_short, zero_the_first_page])
def test_a_damaged_store_means_503_and_is_reported(
    daemon: Daemon, change: Callable[[bytearray], None]
) -> None:
    start_damaged(daemon, change)
    client = Client(daemon.port)
    for method, path, body in (
        ("POST", "/api/event/hit", HIT),
        ("GET", "/api/website/example.com/summary", None),
        ("POST", "/api/auth/login", {"username": "a", "password": "b"}),
        ("GET", "/", None),
        ("GET", "/health", None),
        ("GET", "/metrics", None),
    ):
        answer = client.request(method, path, body)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "60"
        assert answer.json["error"]["code"] == 503
    reason = client.request("GET", "/health").json["error"]["message"]
    assert reason.startswith("not ready: the store is damaged: ")
    assert f"`medamad restore FILE --data {daemon.data}`" in reason
    assert client.request("GET", "/health/live").status == 200
    status = finished("status", daemon.data)
    assert status.returncode == 1
    assert "no hits are accepted: the store is damaged: " in status.stdout
    assert "no hits are taken and no statistics returned: the store is damaged" in daemon.log
    checked = finished("check", daemon.data)
    assert checked.returncode == 1
    assert "1 problem found" in checked.stdout
    assert finished("import", daemon.data, "--list").returncode == 1
    assert daemon.stop() == 0
    # No start begins a crash loop, and none takes the damage for repaired.
    start_in_outage(daemon)
    assert daemon.stop() == 0


def test_a_restored_backup_ends_it(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    backup = tmp_path / "backup"
    assert finished("backup", daemon.data, str(backup)).returncode == 0
    daemon.kill()
    start_damaged(daemon, zero_pages)
    refused = finished("restore", daemon.data, str(backup))
    assert (refused.returncode, "stop it first" in refused.stderr) == (1, True)
    daemon.stop()
    assert finished("restore", daemon.data, str(backup)).returncode == 0
    daemon.start()
    daemon.client()
    daemon.stop()
    assert (daemon.data / STATE_NAME).read_text() == "clean\n"


def test_only_a_start_after_an_unclean_shutdown_reads_the_store(daemon: Daemon) -> None:
    message = "the last shutdown was not clean: the store is checked"
    daemon.start()
    assert daemon.log.count(message) == 1
    daemon.stop()
    daemon.start()
    assert daemon.log.count(message) == 1


def test_a_damaged_value_does_not_stop_the_service(daemon: Daemon) -> None:
    """Its checksum tells, and it alone is left out."""

    def damage_a_record(content: bytearray) -> None:
        content[content.rindex(b"/39") + 1] ^= 1

    file = daemon.data / FILE_NAME
    content = bytearray(file.read_bytes())
    damage_a_record(content)
    file.write_bytes(content)
    daemon.start()
    assert daemon.client().request("POST", "/api/event/hit", HIT | {"b": "new"}).status == 204
