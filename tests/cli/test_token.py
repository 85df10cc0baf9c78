"""Tokens by command, with and without a running daemon."""

import json
from functools import partial
from pathlib import Path

import pytest
from support.daemon import Client, finished, running

pytestmark = pytest.mark.daemon

token = partial(finished, "token")


def status(port: int, text: str, path: str = "/api/websites") -> int:
    return Client(port).request("GET", path, headers={"Authorization": f"Bearer {text}"}).status


def test_tokens_are_created_listed_and_revoked_beside_a_daemon(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        made = token(daemon.data, "add", "report", "--website", "Example.com", "--days", "30")
        assert (made.returncode, made.stderr) == (0, "")
        text = made.stdout.strip()
        assert status(daemon.port, text) == 200
        assert status(daemon.port, text, "/api/user/usage") == 403
        (listed,) = json.loads(token(daemon.data, "list", "--json").stdout)
        assert (listed["name"], listed["scope"], listed["websites"]) == (
            *("report", "read"),
            ["example.com"],
        )
        assert listed["dateExpires"] - listed["dateCreated"] == 30 * 86_400
        revoked = token(daemon.data, "revoke", listed["id"])
        assert (revoked.returncode, revoked.stdout) == (0, "The token report is revoked.\n")
        assert status(daemon.port, text) == 401
        again = token(daemon.data, "revoke", listed["id"])
        assert (again.returncode, again.stderr) == (
            1,
            f"medamad: there is no token {listed['id']}\n",
        )


def test_json_has_the_id_of_a_new_token(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        made = token(daemon.data, "add", "report", "--website", "example.com", "--json")
        shown = json.loads(made.stdout)
        text = shown.pop("token")
        assert [shown] == json.loads(token(daemon.data, "list", "--json").stdout)
        assert status(daemon.port, text) == 200
        assert token(daemon.data, "revoke", shown["id"]).returncode == 0


def test_tokens_created_without_a_daemon_work_in_the_next_one(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.stop()
        assert token(daemon.data, "list").stdout == "There are no tokens.\n"
        text = token(daemon.data, "add", "all", "--scope", "full").stdout.strip()
        heads, row = token(daemon.data, "list").stdout.splitlines()
        assert heads.split() == ["ID", "NAME", "SCOPE", "WEBSITES", "MADE", "LAST", "USED", "ENDS"]
        assert row.split()[1:5] == ["all", "full", "all", "websites"]
        assert row.split()[6:] == ["-", "-"]
        assert text.removeprefix("medamad_") not in row
        refused = token(daemon.data, "add", "x", "--website", "nowhere.example")
        assert (refused.returncode, refused.stdout, refused.stderr) == (
            *(1, ""),
            "medamad: hostname: no website nowhere.example is registered\n",
        )
        daemon.start()
        assert status(daemon.port, text) == 200


@pytest.mark.parametrize(
    ("arguments", "exit_status", "reason"),
    [
        (("add", ""), 1, "medamad: name: expected 1 to 64 characters, got 0\n"),
        (("add", "a", "--days", "0"), 64, "expected a whole number from 1 to 36500"),
        (("add", "a", "--scope", "some"), 64, "choose from 'read', 'send', 'annotate', 'full')"),
        (("list",), 1, "there is no store here"),
        ((), 64, "WHAT"),
    ],
)
def test_errors_are_reported(
    tmp_path: Path, arguments: tuple[str, ...], exit_status: int, reason: str
) -> None:
    refused = token(tmp_path, *arguments)
    assert (refused.returncode, refused.stdout) == (exit_status, "")
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr
    assert list(tmp_path.iterdir()) == []
