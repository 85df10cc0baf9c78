"""Hooks of MkDocs: puts what is made out of the code, and files of the checkout, into the site."""

import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from manual import commands, interface, keys

ROOT: Final = Path(__file__).parents[1]
MADE: Final = {
    "interface.md": interface.page,
    "configuration.md": keys.page,
    "commands.md": commands.page,
    "changes.md": lambda: (ROOT / "CHANGELOG.md").read_text("utf-8"),
    "contributing.md": lambda: (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
}
_OUTSIDE: Final = re.compile(r"\[([^\]]*)\]\((?:\.\./|docs/)[^)]*\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for name, make in MADE.items():
        files.append(File.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave out the links to files of the checkout that the site does not have."""
    del page, config, files
    return _OUTSIDE.sub(r"\1", markdown)
