import gzip
import re
from pathlib import Path

import pytest
import pytest_twisted
from support.web.client import Browser

from medamad.build import GENERATED, check_frontend

FRONTEND = GENERATED / "frontend"
DASHBOARD = FRONTEND / "dashboard"
PAGE = (DASHBOARD / "index.html").read_bytes()
FILES = sorted(
    file.relative_to(DASHBOARD).as_posix()
    for file in DASHBOARD.rglob("*")
    if file.is_file() and file.suffix not in (".br", ".gz")
)
ASSETS = [name for name in FILES if name.startswith("assets/")]
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


@pytest.mark.parametrize("target", ["/", "/dashboard"])
@pytest_twisted.ensureDeferred
async def test_the_root_redirects_to_the_dashboard(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target, headers={"Host": "evil.example"})
    assert answer.status == 302
    assert answer.header("Location") == "/dashboard/"
    assert answer.body == b""


@pytest.mark.parametrize(
    "target",
    [
        "/dashboard/",
        "/dashboard/index.html",
        "/dashboard/websites",
        "/dashboard/websites/",
        "/dashboard/websites/example.com",
        "/dashboard/websites/example.com?period=7d&path=%2Fa",
        "/dashboard/websites/example.com/a/b/c/d",
        "/dashboard/settings/tracker",
        "/dashboard/assets",
        "/dashboard/../../etc/passwd",
        "/dashboard/%2e%2e%2fetc%2fpasswd",
        "/dashboard/index.html.br",
    ],
)
@pytest_twisted.ensureDeferred
async def test_every_path_of_the_dashboard_is_the_page(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert (answer.status, answer.body) == (200, PAGE)
    assert answer.header("Content-Type") == "text/html; charset=utf-8"
    assert answer.header("Cache-Control") == "no-cache"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Referrer-Policy") == "no-referrer"
    assert answer.header("Cross-Origin-Opener-Policy") == "same-origin"
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.header("Set-Cookie") is None
    policy = answer.header("Content-Security-Policy") or ""
    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == POLICY


def test_the_page_has_a_content_security_policy() -> None:
    text = PAGE.decode("utf-8")
    assert text.count("<script") == text.count('<script src="/dashboard/assets/') + text.count(
        '<script type="module" src="/dashboard/assets/'
    )
    assert "<style" not in text
    assert " style=" not in text


@pytest.mark.parametrize("name", FILES)
@pytest_twisted.ensureDeferred
async def test_the_dashboards_files_are_served(visitor: Browser, name: str) -> None:
    answer = await visitor.ask("GET", f"/dashboard/{name}")
    assert (answer.status, answer.body) == (200, (DASHBOARD / name).read_bytes())
    assert answer.header("X-Content-Type-Options") == "nosniff"
    forever = "public, max-age=31536000, immutable"
    assert answer.header("Cache-Control") == (forever if name in ASSETS else "no-cache")


@pytest.mark.parametrize(
    "target",
    [
        "/dashboard/assets/",
        "/dashboard/assets/main-00000000.js",
        f"/dashboard/{ASSETS[0]}.br",
        f"/dashboard/{ASSETS[0]}/x",
        f"/api/dashboard/{ASSETS[0]}",
        "/api/dashboard/",
        "/dashboards",
        "/dashboard//x",
    ],
)
@pytest_twisted.ensureDeferred
async def test_an_unknown_file_is_404(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert answer.status == 404
    assert answer.error == "there is nothing at this address"


@pytest.mark.parametrize("target", ["/dashboard/%zz", "/dashboard/%ff"])
@pytest_twisted.ensureDeferred
async def test_a_badly_encoded_path_is_400(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert answer.status == 400
    assert answer.error.startswith("path: ")


@pytest_twisted.ensureDeferred
async def test_pages_support_only_get(visitor: Browser) -> None:
    answer = await visitor.ask("POST", "/dashboard/websites/example.com")
    assert answer.status == 405
    assert answer.header("Allow") == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_the_openapi_document_is_served(visitor: Browser, prefix: str) -> None:
    answer = await visitor.ask("GET", f"{prefix}/openapi.yaml")
    assert answer.status == 200
    assert answer.header("Content-Type") == "application/yaml"
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.body.startswith(b"# ")
    assert b"\n  version: 0.5.0\n" in answer.body
    accepting = {"Accept-Encoding": "gzip"}
    packed = await visitor.ask("GET", f"{prefix}/openapi.yaml", headers=accepting)
    assert packed.header("Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == answer.body


@pytest.mark.parametrize("missing", ["index.html", "share.html", "scripts"])
def test_a_missing_part_of_the_front_end_prevents_the_start(tmp_path: Path, missing: str) -> None:
    for part in ("index.html", "share.html", "scripts"):
        (tmp_path / part).touch()
    check_frontend(tmp_path, tmp_path / "scripts")
    (tmp_path / missing).unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / missing))):
        check_frontend(tmp_path, tmp_path / "scripts")
