"""The commands on the pages about operating and moving, run with a real daemon."""

import re
import shlex
from pathlib import Path

import duckdb
import pytest
from support.daemon import HIT, finished_fork, running
from support.transfer.day_files import Plausible

from medamad.build import shipped_file

pytestmark = pytest.mark.daemon

DOCS = Path(__file__).parents[2] / "docs"
FENCED = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CALLED = re.compile(r"^medamad ([^&\n]*)", re.MULTILINE)

LOG_LINE = '192.0.2.1 - - [10/Oct/2025:13:55:36 -0700] "GET / HTTP/1.0" 200 5\n'
OF_MEDAMA = """
CREATE TABLE views (
    hostname TEXT, pathname TEXT, is_unique_user BOOLEAN, is_unique_page BOOLEAN,
    date_created TIMESTAMPTZ
);
INSERT INTO views VALUES ('example.com', '/', true, true, '2025-01-31T12:00:00Z');
"""


def test_every_documented_command_works(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        client.add_website("example.org")
        assert client.request("POST", "/api/event/hit", HIT | {"d": {"a": "b"}}).status == 204
        places = {
            "/etc/medamad/medamad.toml": str(shipped_file("medamad.toml")),
            "/var/lib/medamad": str(daemon.data),
            "/mnt/": f"{tmp_path}/",
            "/var/log/nginx/": f"{tmp_path}/",
        }
        (tmp_path / "access.log").write_text(LOG_LINE, "utf-8")
        Plausible().zip(tmp_path / "export.zip")
        (tmp_path / "medama").mkdir()
        with duckdb.connect(str(tmp_path / "medama" / "analytics.db")) as database:
            database.execute(OF_MEDAMA)
        commands = []
        for page in ("operating.md", "moving.md"):
            for block in FENCED.findall((DOCS / page).read_text("utf-8")):
                commands += CALLED.findall(block)
        before = [each for each in commands if not each.startswith("restore")]
        for command in before:
            typed(command, places, tmp_path)
        assert (tmp_path / "views.csv").read_text("utf-8").count("\n") == 2
        daemon.stop()
        after = [each for each in commands if each.startswith("restore")]
        for command in after:
            typed(command, places, tmp_path)
    assert {each.split()[0] for each in before} == {
        *("check-config", "status", "backup", "retention", "export", "import", "goal", "funnel"),
        "compact",
    }
    assert after


def typed(command: str, places: dict[str, str], folder: Path) -> None:
    for written, meant in places.items():
        command = command.replace(written, meant)
    ran = finished_fork(shlex.split(command), folder)
    assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
