"""MkDocs hooks: add the generated pages, and files of the checkout, to the site."""

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# MkDocs adds only the folder of this file, and only if it is run as a module the checkout.
sys.path.append(str(Path(__file__).parents[1]))

from manual import commands, interface, keys
from medamad.storage.environment.environment import Databases

ROOT: Final = Path(__file__).parents[1]
MADE: Final = {
    "interface.md": interface.page,
    "configuration.md": keys.page,
    "commands.md": commands.page,
    "changes.md": lambda: (ROOT / "CHANGELOG.md").read_text("utf-8"),
    "contributing.md": lambda: (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
}
MADE_OF: Final = {
    "../medamad/web/openapi.yaml": "interface.md",
    "../etc/medamad.toml": "configuration.md",
    "../medamad/cli/__init__.py": "commands.md",
    "../CHANGELOG.md": "changes.md",
    "../CONTRIBUTING.md": "contributing.md",
}
"""The files of the checkout that pages link to, and the page of each."""

_LINK: Final = re.compile(r"\]\((\.\./[^)#]*)")
_OUTSIDE: Final = re.compile(r"\[([^\]]*)\]\((?:\.\./|docs/)[^)]*\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, make in MADE.items():
        files.append(File.generated(config, name, content=make()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert docstrings; point links at the site's pages, and remove those that have none."""
    del page, config, files
    for marker, make in DOCSTRINGS.items():
        if marker in markdown:
            markdown = markdown.replace(marker, make())
    markdown = _LINK.sub(lambda link: f"]({MADE_OF.get(link[1], link[1])}", markdown)
    return _OUTSIDE.sub(r"\1", markdown)


def _packages() -> str:
    rows = ["| package | |", "| --- | --- |"]
    for file in sorted((ROOT / "medamad").glob("*/__init__.py")):
        text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        rows.append(f"| `{file.parent.name}` | {text.partition(chr(10))[0]} |")
    return "\n".join(rows)


def _databases() -> str:
    _, dash, listed = (inspect.getdoc(Databases) or "").partition("- ")
    return dash + listed


DOCSTRINGS: Final = {"<!-- packages -->": _packages, "<!-- databases -->": _databases}
