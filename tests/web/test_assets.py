import gzip
from pathlib import Path

import msgspec
import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.build import GENERATED
from medamad.domain.hits import View
from medamad.web.assets import best_coding, files_below

DASHBOARD = GENERATED / "frontend" / "dashboard"
STYLE = next(
    file
    for file in sorted(DASHBOARD.rglob("*.css"))
    if file.with_name(file.name + ".br").exists() and file.with_name(file.name + ".gz").exists()
)
TARGET = f"/dashboard/{STYLE.relative_to(DASHBOARD).as_posix()}"
FORMS = {
    None: STYLE.read_bytes(),
    "gzip": STYLE.with_name(STYLE.name + ".gz").read_bytes(),
    "br": STYLE.with_name(STYLE.name + ".br").read_bytes(),
}


def test_starting_without_the_front_end_fails(tmp_path: Path) -> None:
    (tmp_path / "main.js.br").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="medamad was installed without"):
        files_below(tmp_path)
    with pytest.raises(FileNotFoundError, match="medamad was installed without"):
        files_below(tmp_path / "absent")


def test_all_encodings_have_the_same_content() -> None:
    assert gzip.decompress(FORMS["gzip"] or b"") == FORMS[None]
    assert len({*FORMS.values()}) == 3


@pytest.mark.parametrize("coding", FORMS)
@pytest_twisted.ensureDeferred
async def test_each_encoding_has_its_own_etag(visitor: Browser, coding: str | None) -> None:
    accepting = {"Accept-Encoding": coding or "identity"}
    answer = await visitor.ask("GET", TARGET, headers=accepting)
    assert (answer.status, answer.body) == (200, FORMS[coding])
    assert answer.header("Content-Encoding") == coding
    assert answer.header("Vary") == "Accept-Encoding"
    assert answer.header("Content-Type") == "text/css; charset=utf-8"
    etag = answer.header("ETag") or ""
    assert etag.startswith('"')
    assert etag.endswith('"')
    for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        again = await visitor.ask("GET", TARGET, headers=accepting | {"If-None-Match": known})
        assert (again.status, again.body) == (304, b"")
        assert again.header("ETag") == etag
        assert again.header("Vary") == "Accept-Encoding"
        assert again.header("Cache-Control") == answer.header("Cache-Control")
    for other in FORMS.keys() - {coding}:
        accepting = {"Accept-Encoding": other or "identity", "If-None-Match": etag}
        again = await visitor.ask("GET", TARGET, headers=accepting)
        assert (again.status, again.body) == (200, FORMS[other])


@pytest_twisted.ensureDeferred
async def test_head_returns_the_length_of_the_encoding(visitor: Browser) -> None:
    answer = await visitor.ask("HEAD", TARGET, headers={"Accept-Encoding": "br"})
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Length") == str(len(FORMS["br"] or b""))


BOTH = ("br", "gzip")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("GZIP", "gzip"),
        ("*", "br"),
        ("br;q=0.5, gzip;q=0.9", "gzip"),
        ("br;q=0, *", "gzip"),
        ("gzip;q=0.001", "gzip"),
        ("*;q=0.1, br;q=0", "gzip"),
        ("gzip;q=0.5, identity", ""),
        ("gzip;q=0.5, identity;q=0.5", "gzip"),
        ("gzip;q=0, br;q=0.0", ""),
        ("identity", ""),
        ("identity;q=0", ""),
        ("*;q=0", ""),
        ("deflate, zstd", ""),
        ("", ""),
        (',;q=x=,"', ""),
        ("gzipped", ""),
    ],
)
def test_the_preferred_encoding_is_sent(accepted: str, coding: str) -> None:
    assert best_coding(accepted.encode("latin-1"), BOTH) == coding
    assert best_coding(accepted.encode("latin-1"), ()) == ""


@pytest_twisted.ensureDeferred
async def test_long_responses_are_compressed_if_the_client_accepts_it(
    server: Server, owner: Browser, website: str
) -> None:
    number = server.store.websites.all()[0].number
    await server.store.append(
        [
            View(
                website=number,
                time_ms=NOW * 1000,
                beacon=f"b{page}",
                first_today=True,
                first_of_page=True,
                path=f"/page-{page}",
            )
            for page in range(100)
        ]
    )
    target = f"/api/website/{website}/pages"
    plain = await owner.ask("GET", target)
    assert plain.header("Content-Encoding") is None
    for accepted in ("br", "gzip;q=0"):
        answer = await owner.ask("GET", target, headers={"Accept-Encoding": accepted})
        assert answer.header("Content-Encoding") is None
        assert answer.json == plain.json
    packed = await owner.ask("GET", target, headers={"Accept-Encoding": "gzip, br"})
    assert packed.header("Content-Encoding") == "gzip"
    assert packed.header("Vary") == "Accept-Encoding"
    assert packed.header("Cache-Control") == "no-store"
    assert packed.header("Content-Type") == "application/json"
    assert len(packed.body) < len(plain.body) / 3
    assert msgspec.json.decode(gzip.decompress(packed.body)) == plain.json
    assert len(plain.json) == 100
    accepting = {"Accept-Encoding": "gzip"}
    short = await owner.ask("GET", f"{target}?limit=1", headers=accepting)
    assert short.header("Content-Encoding") is None
    assert short.json == plain.json[:1]
    wrong = await owner.ask("GET", f"{target}?limit=x", headers=accepting)
    assert (wrong.status, wrong.header("Content-Encoding")) == (400, None)
