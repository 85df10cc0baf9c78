"""Events of servers, which state whole seconds: an event may have the time of its view."""

import time
from pathlib import Path
from typing import Any

import pytest
from support.daemon import Client, Daemon, finished, running

pytestmark = pytest.mark.daemon

MOMENT = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3_600))


def sent(client: Client, token: str, hit: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    answer = client.request("POST", "/api/event/hit", hit | {"time": MOMENT}, headers)
    assert answer.status == 204


def load(name: str, **more: object) -> dict[str, Any]:
    url = f"https://example.com/{name}"
    return {"e": "load", "b": name, "u": url, "visitor": name} | more


def event(name: str) -> dict[str, Any]:
    return {"e": "custom", "b": name, "g": "example.com", "d": {"event": "order"}}


def bounces(daemon: Daemon, hostname: str) -> dict[str, float]:
    rows = daemon.client().get(f"/api/website/{hostname}/pages?visits=true")
    return {row["path"]: row["visit_bounce_percentage"] for row in rows}


def test_an_event_with_the_time_of_its_view_is_later_than_its_load(tmp_path: Path) -> None:
    """Unlike the properties with which a page loads; an export and an import keep that."""
    expected = {"/alone": 1, "/states": 1, "/acts": 0, "/states-and-acts": 0, "/acts-early": 0}
    with running(tmp_path) as daemon:
        client = daemon.client()
        for hostname in ("example.com", "copy.example"):
            client.add_website(hostname)
        token = finished("token", daemon.data, "add", "shop", "--scope", "send").stdout.strip()
        sent(client, token, load("alone"))
        sent(client, token, load("states", d={"plan": "pro"}))
        sent(client, token, load("acts"))
        sent(client, token, event("acts"))
        sent(client, token, load("states-and-acts", d={"plan": "pro"}))
        sent(client, token, event("states-and-acts"))
        sent(client, token, event("acts-early"))
        sent(client, token, load("acts-early"))
        assert bounces(daemon, "example.com") == expected
        daemon.kill()
        daemon.start()
        assert bounces(daemon, "example.com") == expected
        files = []
        for what in ("views", "events"):
            files.append(str(tmp_path / f"{what}.csv"))
            exported = finished(
                *("export", daemon.data, "example.com", "--what", what, "-o", files[-1])
            )
            assert exported.returncode == 0
        imported = finished("import", daemon.data, "--website", "copy.example", *files)
        assert imported.returncode == 0, imported.stderr
        assert bounces(daemon, "copy.example") == expected
