"""The website of docs/ builds without warnings, is self-contained and agrees with the code."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from medamad.config.schema import load

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
CALLED = re.compile(r"^(?:.*&& )?(?:sudo )?(?:[\w./]*/)?medamad ([^&\n]*)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


AS_A_SCRIPT = f"""
import sys, medamad
sys.path[:] = [each for each in sys.path if each not in ("", {str(ROOT)!r})]
from mkdocs.__main__ import cli
cli()
"""
"""Runs MkDocs as its script does where the package is installed: the checkout is in no path."""


class Loaded(HTMLParser):
    """Gathers the addresses of what a page has a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio"):
            self.addresses.append(given.get("src") or "")
        elif tag == "link" and given.get("rel") != "canonical":
            self.addresses.append(given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    ran = subprocess.run(
        [sys.executable, "-c", AS_A_SCRIPT, "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    assert "WARNING" not in ran.stderr
    return folder


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.glob("*.html"))
    assert len(pages) > 14
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert loaded.addresses
        assert not [each for each in loaded.addresses if urlsplit(each).netloc], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)[\"' ]*(https?:)?//", sheet.read_text("utf-8"))


def test_the_site_contains_the_generated_pages(site: Path) -> None:
    assert "max_connections_per_network" in (site / "configuration.html").read_text("utf-8")
    assert "/websites/{hostname}/shares" in (site / "interface.html").read_text("utf-8")
    assert "medamad check-config" in (site / "commands.html").read_text("utf-8")
    architecture = (site / "architecture.html").read_text("utf-8")
    assert "<code>lookup</code>" in architecture
    assert "wal: website u32" in architecture


def test_links_to_files_lead_to_their_pages(site: Path) -> None:
    tracker = (site / "tracker.html").read_text("utf-8")
    assert 'href="configuration.html#events-bots"' in tracker
    assert 'href="interface.html#post-event-hit"' in tracker


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for file in PAGES:
        for _, its_language, text in FENCED.findall(file.read_text("utf-8")):
            if its_language == language:
                yield file.name, text


def calls() -> Iterator[tuple[str, list[str]]]:
    for file, text in blocks("sh"):
        for line in CALLED.findall(text.replace("\\\n", " ")):
            yield file, [word.strip("[]") for word in shlex.split(line, comments=True)]


def test_following_the_pages_enables_the_socket() -> None:
    """Without, a later start of the service would open no port."""
    installs = {tuple(words) for _, words in calls() if words[:2] == ["service", "install"]}
    assert installs == {("service", "install", "--now")}


def test_every_configuration_on_the_pages_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    texts = [text for _, text in blocks("toml")]
    assert texts
    for text in texts:
        file.write_text(text, "utf-8")
        assert load(file).file == file


def test_links_between_files_work() -> None:
    for file in PAGES:
        for link in LINK.findall(file.read_text("utf-8")):
            assert urlsplit(link).scheme or (file.parent / link).exists(), (file, link)
