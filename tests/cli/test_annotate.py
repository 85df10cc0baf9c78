"""Annotations by command, beside a running daemon and without one."""

import json
import re
import time
from functools import partial
from pathlib import Path

import pytest
from support.daemon import finished, running

from medamad.domain.instants import second_as_text

pytestmark = pytest.mark.daemon

annotate = partial(finished, "annotate")
LINK = "https://example.com/changes"


def test_annotations_are_added_listed_changed_and_removed(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client, data = daemon.client(), daemon.data
        client.add_website("example.com")
        path = "/api/websites/example.com/annotations"
        assert annotate(data, "list", "example.com").stdout == "There are no annotations.\n"
        made = annotate(data, "add", "Example.com", "Launch", "--time", "2026-01-31")
        assert (made.returncode, made.stderr) == (0, "")
        said = re.fullmatch(
            r"Added the annotation Launch \(ID ([\w-]{8})\) at 2026-01-31\.\n", made.stdout
        )
        assert said is not None
        launch = {"id": said[1], "time": "2026-01-31", "text": "Launch"}
        began = int(time.time())
        deploy = json.loads(
            annotate(data, "add", "example.com", "Deploy", "--link", LINK, "--json").stdout
        )
        assert second_as_text(began) <= deploy["time"] <= second_as_text(int(time.time()))
        assert deploy == deploy | {"text": "Deploy", "link": LINK}
        assert client.get(path) == [launch, deploy]
        changed = annotate(
            data, "change", "example.com", deploy["id"], "--time", "2026-01-30T12:00:00+01:00"
        )
        assert changed.stdout == (
            f"Changed the annotation Deploy (ID {deploy['id']}) at 2026-01-30T11:00:00Z.\n"
        )
        deploy["time"] = "2026-01-30T11:00:00Z"
        assert client.get(path) == [deploy, launch]
    listed = annotate(data, "list", "example.com").stdout
    assert [line.split() for line in listed.splitlines()] == [
        ["ID", "TIME", "TEXT", "LINK"],
        [deploy["id"], deploy["time"], "Deploy", LINK],
        [launch["id"], "2026-01-31", "Launch", "-"],
    ]
    unlinked = annotate(
        data, "change", "example.com", deploy["id"], "--text", "Rollback", "--link", "", "--json"
    )
    del deploy["link"]
    assert json.loads(unlinked.stdout) == deploy | {"text": "Rollback"}
    removed = annotate(data, "remove", "example.com", deploy["id"])
    assert (removed.returncode, removed.stdout) == (
        0,
        f"The annotation {deploy['id']} is removed.\n",
    )
    assert json.loads(annotate(data, "list", "example.com", "--json").stdout) == [launch]


def test_what_is_listed_can_be_imported_elsewhere(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        for hostname in ("example.com", "new.example"):
            daemon.client().add_website(hostname)
    data = daemon.data
    annotate(data, "add", "example.com", "Launch", "--time", "2026-01-31", "--link", LINK)
    annotate(data, "add", "example.com", "Deploy", "--time", "2026-02-01T09:00:00Z")
    annotate(data, "add", "new.example", "Launch", "--time", "2026-01-31", "--link", LINK)
    exported = annotate(data, "list", "example.com", "--json").stdout
    imported = annotate(data, "import", "new.example", given=exported)
    assert (imported.returncode, imported.stdout) == (
        0,
        "Added 1 annotation; 1 were there already.\n",
    )
    assert without_ids(annotate(data, "list", "new.example", "--json").stdout) == without_ids(
        exported
    )


def without_ids(listed: str) -> list[dict[str, str]]:
    return [{**each, "id": ""} for each in json.loads(listed)]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "[",
        '[{"text": "a"}]',
        '[{"time": 1, "text": "a"}]',
        '[{"time": "2026-01-31", "text": "a", "lnik": "https://a.example/"}]',
    ],
)
def test_only_what_is_listed_can_be_imported(tmp_path: Path, given: str) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
    refused = annotate(daemon.data, "import", "example.com", given=given)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(
        "medamad: standard input: expected what `medamad annotate list --json` prints: "
    )


def test_an_import_beyond_the_limit_adds_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
    many = [{"time": "2026-01-31", "text": f"{number}"} for number in range(1_001)]
    refused = annotate(daemon.data, "import", "example.com", given=json.dumps(many))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "medamad: annotations: a website can have 1,000, remove one first\n"
    assert json.loads(annotate(daemon.data, "list", "example.com", "--json").stdout) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("list", "nowhere.example"), "hostname: no website nowhere.example is registered"),
        (("add", "nowhere.example", "a"), "hostname: no website nowhere.example is registered"),
        (("add", "example.com", ""), "text: expected 1 to 200 characters, got 0"),
        (("add", "example.com", "a", "--time", "today"), "time: expected a day such as"),
        (("add", "example.com", "a", "--link", "file:///x"), "link: expected an address"),
        (("change", "example.com", "x"), "there is no annotation x"),
        (("remove", "example.com", "x"), "there is no annotation x"),
    ],
)
def test_errors_are_reported(
    tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], reason: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "one for all errors about annotations"
    if not folder.exists():
        with running(folder) as daemon:
            daemon.client().add_website("example.com")
    refused = annotate(folder / "data", *arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"medamad: {reason}")
    assert "Traceback" not in refused.stderr
