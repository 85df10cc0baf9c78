import gzip
from itertools import chain, combinations
from zoneinfo import ZoneInfo

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import Server

from medamad.build import GENERATED
from medamad.domain.accounts import SCRIPT_TYPES
from medamad.web.routes.files import OPT_OUT, file_name

FOLDER = GENERATED / "frontend" / "scripts"
FEATURES = SCRIPT_TYPES[1:]
DEFAULT = (FOLDER / "default.js").read_bytes()
EVERY_SET = list(
    chain.from_iterable(combinations(FEATURES, size) for size in range(len(FEATURES) + 1))
)


def script(name: str) -> bytes:
    return (FOLDER / f"{name}.js").read_bytes()


def test_every_set_of_features_was_built() -> None:
    for folder in (FOLDER, FOLDER / "returning", FOLDER / "uncounted"):
        for files in (folder, folder / "named"):
            made = {file.name for file in files.glob("*.js")} - {OPT_OUT}
            assert made == {file_name(features) for features in EVERY_SET}
            assert len(made) == 128


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_the_opt_out_is_beside_the_hits(
    server: Server, visitor: Browser, prefix: str
) -> None:
    """Under their other name, too, and under any hostname, as the tracker is."""
    server.set(event_name="pulse", hostnames=frozenset({"stats.example.com"}))
    for name in ("event", "pulse"):
        target = f"{prefix}/{name}/opt-out.js"
        answer = await visitor.ask("GET", target, headers={"Host": "example.com"})
        assert (answer.status, answer.body) == (200, script("opt-out"))
        assert answer.header("Content-Type") == "text/javascript; charset=utf-8"
        assert answer.header("Access-Control-Allow-Origin") == "*"
        assert answer.header("Cache-Control") == "public, max-age=3600"


@pytest_twisted.ensureDeferred
async def test_the_tracker_is_served_to_every_page(visitor: Browser) -> None:
    answer = await visitor.ask("GET", "/script.js", headers={"Origin": "https://example.com"})
    assert answer.status == 200
    assert answer.body == DEFAULT
    assert answer.header("Content-Type") == "text/javascript; charset=utf-8"
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert answer.header("Cross-Origin-Resource-Policy") == "cross-origin"
    assert answer.header("X-Content-Type-Options") == "nosniff"
    assert answer.header("Cache-Control") == "public, max-age=3600"
    assert answer.header("Vary") == "Accept-Encoding"
    assert answer.header("Set-Cookie") is None
    known = {"If-None-Match": answer.header("ETag") or ""}
    again = await visitor.ask("GET", "/script.js", headers=known)
    assert (again.status, again.body) == (304, b"")
    assert again.header("Access-Control-Allow-Origin") == "*"
    head = await visitor.ask("HEAD", "/script.js")
    assert (head.status, head.body) == (200, b"")
    assert head.header("Content-Length") == str(len(DEFAULT))


@pytest.mark.parametrize("name", ["count.js", "lib-2.min.js", "stats"])
@pytest_twisted.ensureDeferred
async def test_the_name_of_the_tracker_is_configurable(
    server: Server, visitor: Browser, name: str
) -> None:
    assert (await visitor.ask("GET", f"/{name}")).status == 404
    server.set(script_name=name)
    for target in (f"/{name}", "/script.js"):
        answer = await visitor.ask("GET", target)
        assert (answer.status, answer.body) == (200, DEFAULT)
    assert (await visitor.ask("POST", f"/{name}")).status == 405
    assert (await visitor.ask("GET", f"/api/{name}")).status == 404


@pytest.mark.parametrize(
    ("script_type", "name"),
    [
        (["default"], "default"),
        ([], "default"),
        (["default", "click-events"], "click-events"),
        (["hash-routing", "page-events"], "page-events.hash-routing"),
        (list(reversed(SCRIPT_TYPES)), ".".join(FEATURES)),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_account_chooses_the_trackers_features(
    server: Server, owner: Browser, visitor: Browser, script_type: list[str], name: str
) -> None:
    server.set(script_name="s.js")
    before = await visitor.ask("GET", "/script.js")
    change = {"settings": {"script_type": script_type}}
    assert (await owner.ask("PATCH", "/api/user", change)).status == 200
    for target in ("/script.js", "/s.js"):
        answer = await visitor.ask("GET", target)
        assert (answer.status, answer.body) == (200, script(name))
        assert (answer.header("ETag") == before.header("ETag")) is (name == "default")


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("default", "default"),
        ("default.click-events", "click-events"),
        ("click-events.default", "click-events"),
        ("hash-routing.click-events", "click-events.hash-routing"),
        (".".join(FEATURES), ".".join(FEATURES)),
    ],
)
@pytest_twisted.ensureDeferred
async def test_each_script_has_its_own_path(visitor: Browser, asked: str, name: str) -> None:
    answer = await visitor.ask("GET", f"/scripts/{asked}.js")
    assert (answer.status, answer.body) == (200, script(f"named/{name}"))
    assert answer.body == script(name).replace(b"'api'", b"'../api'") != script(name)
    assert answer.header("Access-Control-Allow-Origin") == "*"


@pytest.mark.parametrize(
    "target",
    [
        "/scripts",
        "/scripts/",
        "/scripts/.js",
        "/scripts/default",
        "/scripts/nothing.js",
        "/scripts/default.js.br",
        "/scripts/default..js",
        "/scripts/click-events.nothing.js",
        "/scripts/default.js/x",
        "/scripts/..%2Fdefault.js",
        "/api/scripts/default.js",
        "/api/script.js",
        "/script.js/x",
    ],
)
@pytest_twisted.ensureDeferred
async def test_other_scripts_are_404(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert answer.status == 404
    assert answer.error


@pytest_twisted.ensureDeferred
async def test_scripts_send_to_the_configured_path(server: Server, visitor: Browser) -> None:
    before = await visitor.ask("GET", "/script.js")
    assert b"event/" in before.body
    for name in ("pulse", "a.b-c_d"):
        server.set(event_name=name)
        for target, plain in (
            ("/script.js", DEFAULT),
            ("/scripts/not-found.js", script("named/not-found")),
        ):
            answer = await visitor.ask("GET", target)
            assert answer.body == plain.replace(b"event/", name.encode() + b"/")
            assert answer.header("ETag") != before.header("ETag")
            packed = await visitor.ask("GET", target, headers={"Accept-Encoding": "br, gzip"})
            assert packed.header("Content-Encoding") == "gzip"
            assert gzip.decompress(packed.body) == answer.body
    server.set(event_name="event")
    assert (await visitor.ask("GET", "/script.js")).body == DEFAULT


@pytest.mark.parametrize(
    ("target", "file"),
    [
        ("/script.js", "default.js"),
        ("/scripts/default.js", "named/default.js"),
        ("/scripts/page-events.click-events.js", "named/click-events.page-events.js"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_tracker_asks_the_cache_for_what_is_configured(
    server: Server, visitor: Browser, target: str, file: str
) -> None:
    assert (await visitor.ask("GET", target)).body == (FOLDER / file).read_bytes()
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=True)
    found = (await visitor.ask("GET", target)).body
    assert found == (FOLDER / "returning" / file).read_bytes()
    assert b"since" in found
    assert b"since" not in (FOLDER / file).read_bytes()
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=False, has_visitors=False)
    found = (await visitor.ask("GET", target)).body
    assert found == (FOLDER / "uncounted" / file).read_bytes()
    assert b"ping" not in found


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("UTC", b""),
        ("Europe/Berlin", b"+7200/86400"),
        ("America/New_York", b"-14400/86400"),
        ("Asia/Kathmandu", b"+20700/86400"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_tracker_knows_the_day_of_the_configured_zone(
    server: Server, visitor: Browser, zone: str, offset: bytes
) -> None:
    assert DEFAULT.count(b"/864e5|0") == 1
    server.pipeline.rules = evolve(server.pipeline.rules, zone=ZoneInfo(zone))
    for target, plain in (
        ("/script.js", DEFAULT),
        ("/scripts/not-found.js", script("named/not-found")),
    ):
        answer = await visitor.ask("GET", target)
        assert answer.body == plain.replace(b"/864e5|0", b"/864e5%b|0" % offset)
