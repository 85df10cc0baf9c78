import gzip
from pathlib import Path

import pytest
import pytest_twisted
from support.web.client import Browser

from medamad.build import GENERATED
from medamad.web.assets import files_below

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


def test_a_package_without_its_front_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "main.js.br").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="medamad was installed without"):
        files_below(tmp_path)
    with pytest.raises(FileNotFoundError, match="medamad was installed without"):
        files_below(tmp_path / "absent")


def test_the_forms_are_of_one_content() -> None:
    assert gzip.decompress(FORMS["gzip"] or b"") == FORMS[None]
    assert len({*FORMS.values()}) == 3


@pytest.mark.parametrize("coding", FORMS)
@pytest_twisted.ensureDeferred
async def test_each_coding_has_a_validator_of_its_own(
    stranger: Browser, coding: str | None
) -> None:
    accepting = {"Accept-Encoding": coding or "identity"}
    answer = await stranger.ask("GET", TARGET, headers=accepting)
    assert (answer.status, answer.body) == (200, FORMS[coding])
    assert answer.header("Content-Encoding") == coding
    assert answer.header("Vary") == "Accept-Encoding"
    assert answer.header("Content-Type") == "text/css; charset=utf-8"
    etag = answer.header("ETag") or ""
    assert etag.startswith('"')
    assert etag.endswith('"')
    for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        again = await stranger.ask("GET", TARGET, headers=accepting | {"If-None-Match": known})
        assert (again.status, again.body) == (304, b"")
        assert again.header("ETag") == etag
        assert again.header("Vary") == "Accept-Encoding"
        assert again.header("Cache-Control") == answer.header("Cache-Control")
    for other in FORMS.keys() - {coding}:
        accepting = {"Accept-Encoding": other or "identity", "If-None-Match": etag}
        again = await stranger.ask("GET", TARGET, headers=accepting)
        assert (again.status, again.body) == (200, FORMS[other])


@pytest_twisted.ensureDeferred
async def test_head_tells_the_length_of_the_coding(stranger: Browser) -> None:
    answer = await stranger.ask("HEAD", TARGET, headers={"Accept-Encoding": "br"})
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Length") == str(len(FORMS["br"] or b""))
