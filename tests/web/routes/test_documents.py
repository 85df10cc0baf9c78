from pathlib import Path

import pytest
import pytest_twisted
from browser import Browser
from house import House

import medamad

PACKAGE = Path(medamad.__file__).parent
SCRIPT = (PACKAGE / "frontend" / "tracker" / "script.js").read_bytes()
PAGES = {path.name: path.read_bytes() for path in (PACKAGE / "frontend" / "dashboard").iterdir()}


@pytest_twisted.ensureDeferred
async def test_the_tracker_is_served_to_every_page(stranger: Browser) -> None:
    answer = await stranger.ask("GET", "/script.js", headers={"Origin": "https://example.com"})
    assert answer.status == 200
    assert answer.body == SCRIPT
    assert answer.header("Content-Type") == "text/javascript; charset=utf-8"
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert answer.header("Cross-Origin-Resource-Policy") == "cross-origin"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Cache-Control") == "public, max-age=3600"
    assert answer.header("Set-Cookie") is None
    etag = answer.header("ETag") or ""
    for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        answer = await stranger.ask("GET", "/script.js", headers={"If-None-Match": known})
        assert (answer.status, answer.body) == (304, b"")
        assert answer.header("ETag") == etag
        assert answer.header("Access-Control-Allow-Origin") == "*"
    answer = await stranger.ask("GET", "/script.js", headers={"If-None-Match": '"x"'})
    assert (answer.status, answer.body) == (200, SCRIPT)
    answer = await stranger.ask("HEAD", "/script.js")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Length") == str(len(SCRIPT))


@pytest.mark.parametrize("name", ["count.js", "lib-2.min.js", "stats"])
@pytest_twisted.ensureDeferred
async def test_the_tracker_has_a_further_name(house: House, stranger: Browser, name: str) -> None:
    assert (await stranger.ask("GET", f"/{name}")).status == 404
    house.set(script_name=name)
    for target in (f"/{name}", "/script.js"):
        answer = await stranger.ask("GET", target)
        assert (answer.status, answer.body) == (200, SCRIPT)
    assert (await stranger.ask("POST", f"/{name}")).status == 405


@pytest.mark.parametrize("target", ["/", "/dashboard"])
@pytest_twisted.ensureDeferred
async def test_the_root_leads_to_the_dashboard(stranger: Browser, target: str) -> None:
    answer = await stranger.ask("GET", target, headers={"Host": "evil.example"})
    assert answer.status == 302
    assert answer.header("Location") == "/dashboard/"
    assert answer.body == b""


@pytest_twisted.ensureDeferred
async def test_the_dashboard_is_a_page(stranger: Browser) -> None:
    answer = await stranger.ask("GET", "/dashboard/")
    assert answer.status == 200
    assert answer.header("Content-Type") == "text/html; charset=utf-8"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Referrer-Policy") == "no-referrer"
    assert "frame-ancestors 'none'" in (answer.header("Content-Security-Policy") or "")
    assert b"medamad" in answer.body


@pytest.mark.parametrize(("name", "content"), sorted(PAGES.items()))
@pytest_twisted.ensureDeferred
async def test_the_dashboards_files_are_served(
    stranger: Browser, name: str, content: bytes
) -> None:
    answer = await stranger.ask("GET", f"/dashboard/{name}")
    assert (answer.status, answer.body) == (200, content)


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_the_description_is_served(stranger: Browser, prefix: str) -> None:
    answer = await stranger.ask("GET", f"{prefix}/openapi.yaml")
    assert answer.status == 200
    assert answer.header("Content-Type") == "application/yaml"
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.body.startswith(b"# ")
    assert b"\n  version: 0.5.0\n" in answer.body
