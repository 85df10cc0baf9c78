"""Share links by command, beside a running daemon."""

import json
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.daemon import Client, finished, running

pytestmark = pytest.mark.daemon

PASSWORD = "open sesame"

share = partial(finished, "share")


def test_links_are_created_listed_and_revoked_beside_a_daemon(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        made = share(daemon.data, "add", "example.com", "club", "--embed", "https://a.example")
        assert (made.returncode, made.stderr) == (0, "")
        url = made.stdout.strip()
        assert url.startswith(f"{daemon.base.replace('127.0.0.1', 'localhost')}/share/")
        path = urlsplit(url).path
        reader = Client(daemon.port)
        page = reader.request("GET", path)
        assert page.status == 200
        assert page.headers["content-security-policy"].endswith("frame-ancestors https://a.example")
        locked = share(
            *(daemon.data, "add", "example.com", "locked", "--password"), given=f"{PASSWORD}\n"
        )
        key = locked.stdout.strip().rpartition("/")[2]
        assert reader.get(f"/api/shared/{key}") == {"protected": True}
        opened = reader.request("POST", f"/api/shared/{key}", {"password": PASSWORD})
        assert (opened.status, opened.json["hostname"]) == (200, "example.com")
        third = json.loads(share(daemon.data, "add", "example.com", "third", "--json").stdout)
        assert third.pop("url").endswith(third["path"])
        assert reader.request("GET", third.pop("path")).status == 200
        assert third in json.loads(share(daemon.data, "list", "--json").stdout)
        assert share(daemon.data, "revoke", third["id"]).returncode == 0
        listed = json.loads(share(daemon.data, "list", "--json").stdout)
        found = [(each["name"], each["hostname"], each["protected"]) for each in listed]
        assert sorted(found) == [("club", "example.com", False), ("locked", "example.com", True)]
        assert PASSWORD not in share(daemon.data, "list").stdout
        revoked = share(daemon.data, "revoke", path.removeprefix("/share/"))
        assert (revoked.returncode, revoked.stdout) == (0, "The share link club is revoked.\n")
        assert reader.request("GET", path).status == 404


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("", "http://localhost:8080/share/"),
        ('listen = "[::1]:8443"', "http://localhost:8443/share/"),
        ('listen = "unix:/run/medamad/http.sock"', "/share/"),
        (
            'hostnames = ["stats.example.com"]\nbase_path = "/s"',
            "https://stats.example.com/s/share/",
        ),
    ],
)
def test_the_address_of_a_link_is_printed_as_configured(
    tmp_path: Path, server: str, url: str
) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
    file = tmp_path / "other.toml"
    file.write_text(f"[server]\n{server}\n")
    made = share(daemon.data, "add", "example.com", "club", "--config", str(file))
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith(url)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("add", "nowhere.example", "a"), "hostname: no website nowhere.example is registered"),
        (("add", "example.com", ""), "name: expected 1 to 64 characters, got 0"),
        (("add", "example.com", "a", "--embed", "a.b"), "embed: expected origins such as"),
        (("add", "example.com", "a", "--password"), "password: expected 5 to 128 characters"),
        (("revoke", "x"), "there is no share link x"),
    ],
)
def test_errors_are_reported(
    tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], reason: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "one for all of them"
    if not folder.exists():
        with running(folder) as daemon:
            daemon.client().add_website("example.com")
    refused = share(folder / "data", *arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("medamad: ")
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr
