"""The dashboard and the tracker below a path of another website, by the examples of proxies."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.browser.example_site import served
from support.browser.visitors import Statistics, Visitor
from support.daemon import PASSWORD, PATIENCE_S, USERNAME, Client, Daemon, free_port, running, until

pytestmark = pytest.mark.browser

EXAMPLES = Path(__file__).parents[2] / "etc" / "proxies"
CONFIGURATION = """
[server]
base_path = "/stats"
trusted_proxies = ["127.0.0.1"]
hostnames = ["localhost"]
"""


def example(name: str, daemon: Daemon, **changes: str) -> str:
    text = (EXAMPLES / name).read_text("utf-8")
    for old, new in {"127.0.0.1:8080": f"127.0.0.1:{daemon.port}", **changes}.items():
        assert old in text
        text = text.replace(old, new)
    return text


def nginx_of(folder: Path, port: int, daemon: Daemon) -> Sequence[str]:
    """Write nginx's configuration around the example; return the command."""
    kept = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    lines = (EXAMPLES / "nginx-subpath.conf").read_text("utf-8").splitlines()
    of_http = " ".join(line.strip("# ") for line in lines if "_zone $binary" in line)
    assert of_http.count(";") == 2
    server = f"listen 127.0.0.1:{port}; {example('nginx-subpath.conf', daemon)}"
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; {kept} {of_http}\nserver {{ {server}\n}} }}\n",
        "utf-8",
    )
    return ("nginx", "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/nginx.conf")


def caddy_of(folder: Path, port: int, daemon: Daemon) -> Sequence[str]:
    """Write Caddy's configuration around the example; return the command."""
    changes = {"example.com {": f"http://localhost:{port} {{", "/var/www/html": str(folder)}
    text = example("Caddyfile-subpath", daemon, **changes)
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text, "utf-8")
    home = ("env", f"XDG_DATA_HOME={folder}/caddy", f"XDG_CONFIG_HOME={folder}/caddy")
    return (*home, "caddy", "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile")


@pytest.fixture(params=["nginx", "caddy"])
def below(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Daemon, int]]:
    """A daemon, and the port of a website that has it below /stats."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    port = free_port()
    with running(tmp_path / "medamad", configuration=CONFIGURATION) as daemon:
        command = {"nginx": nginx_of, "caddy": caddy_of}[request.param](tmp_path, port, daemon)
        with (tmp_path / "proxy.txt").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            until(lambda: answers(port) or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "proxy.txt").read_text("utf-8")
            yield daemon, port
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def status(port: int, path: str) -> int:
    # Caddy has no website of another name.
    return Client(port).request("GET", path, headers={"Host": f"localhost:{port}"}).status


def answers(port: int) -> bool:
    try:
        return status(port, "/stats/api/event/ping") == 200
    except OSError:
        return False


def test_everything_works_below_a_path(
    below: tuple[Daemon, int],
    dashboard_of: Callable[..., Dashboard],
    someone: Callable[..., Visitor],
) -> None:
    daemon, port = below
    for path in ("/stats/health", "/stats/metrics"):
        assert status(port, path) == 404
    daemon.client().add_website("shop.localhost")
    dashboard = dashboard_of(Client(port), fresh=True)
    page, asked = dashboard.page, list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{dashboard.base}/stats")
    page.get_by_label("Username", exact=True).fill(USERNAME)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Websites")
    assert page.url == f"{dashboard.base}/stats/dashboard/"
    device = next(one for one in page.context.cookies() if one["name"] == "_me_device")
    assert device["path"] == "/stats/api/auth/login"

    page.get_by_role("link", name="shop.localhost").click()
    page.get_by_role("link", name="Script and setup").click()
    tag = page.locator("code, pre, textarea").filter(has_text="<script").first.inner_text()
    assert f'src="{dashboard.base}/stats/script.js"' in tag
    with served(tag) as site:
        visitor = someone()
        visitor.page.goto(site.address("shop.localhost"))
        statistics = Statistics(daemon.client(), "shop.localhost")
        until(lambda: statistics.visitors_and_views == (1, 1))

    page.locator(".setup-head").get_by_role("link", name="View statistics").click()
    expect(heading).to_contain_text("shop.localhost")
    assert page.url.startswith(f"{dashboard.base}/stats/dashboard/websites/shop.localhost")
    page.reload()
    expect(heading).to_contain_text("shop.localhost")
    expect(page.locator(".tile-figure").first).to_have_text("1")

    share = daemon.client().request(
        "POST", "/api/websites/shop.localhost/shares", {"name": "for all"}
    )
    page.goto(f"{dashboard.base}/stats/share/{share.json['id']}")
    expect(heading).to_contain_text("shop.localhost")
    expect(page.locator(".tile-figure").first).to_have_text("1")
    elsewhere = [url for url in asked if not url.startswith(f"{dashboard.base}/stats")]
    assert elsewhere == []
