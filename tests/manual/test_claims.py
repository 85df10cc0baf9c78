"""Every sentence of the documents for users has an entry that says what shows that it is true.

`claims/` has a file for each document, with an entry for each sentence of a paragraph or a list
item, and for each row of a table that no program writes, without markup and in the order of the
text. The indented lines below it are one or more of these:

    tests/FILE.py::TEST                    a test that fails if the sentence is false
    medamad/frontend/tests/FILE::TEST      the same, of the front end
    by reading: PATH, PATH (WORDS)         what to read, where no test shows it
    advice                                 it tells the reader what to do
    definition                             it says what is meant, or where something is described

After changing a document, run

    .venv/bin/python tests/manual/test_claims.py

It writes the files anew. New sentences get a `?`, which fails until it is replaced; those that are
gone are left out, and `git diff` shows what had shown them.
"""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    *("README.md", "docs/operating.md", "docs/privacy.md", "docs/robots.md"),
    *("docs/visits.md", "docs/cluster.md"),
)
END = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][)”“])\s+")
GENERATED = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def rendered(inline: Token) -> str:
    """Return the text of a paragraph or cell, with the line breaks of the document."""
    pieces = (each for each in inline.children or () if each.type != "html_inline")
    return "".join("\n" if each.type == "softbreak" else each.content for each in pieces)


def sentences(document: str) -> dict[str, int]:
    """Return the sentences and the rows of tables in a document, with the line of each."""
    found: dict[str, int] = {}
    cells: list[str] = []
    line = 0
    text = (ROOT / document).read_text("utf-8")
    text = GENERATED.sub(lambda match: "\n" * match[0].count("\n"), text)
    for before, token in pairwise(MarkdownIt("commonmark").enable("table").parse(text)):
        if token.map:
            line = token.map[0] + 1
        if before.type == "td_open":
            cells.append(rendered(token))
        elif token.type == "tr_close" and cells:
            found.setdefault(" | ".join(filter(None, cells)), line)
            cells = []
        elif before.type == "paragraph_open":
            text, start = rendered(token).strip(), 0
            for end in (*(match.end() for match in END.finditer(text)), len(text)):
                sentence = " ".join(text[start:end].split())
                found.setdefault(sentence, line + text.count("\n", 0, start))
                start = end
    return found


def file_of(document: str) -> Path:
    return Path(__file__).parent / "claims" / Path(document).with_suffix(".txt").name


def read_claims(document: str) -> dict[str, list[str]]:
    """Return what shows each sentence that has an entry."""
    entries = [entry.splitlines() for entry in file_of(document).read_text("utf-8").split("\n\n")]
    return {claim: [line.strip() for line in shown] for claim, *shown in entries}


@cache
def names_in(path: str) -> set[str]:
    """Return the names of the tests in a file."""
    if not (ROOT / path).is_file():
        return set()
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".py"):
        functions = (node for node in ast.parse(text).body if isinstance(node, FUNCTIONS))
        return {node.name for node in functions if node.name.startswith("test_")}
    return set(re.findall(r"\btest\([\"`](.+?)[\"`],", text))


def is_known(shown: str) -> bool:
    """Return whether a line is one of those described above, and what it names exists."""
    if shown.startswith("by reading: "):
        paths = shown.removeprefix("by reading: ").partition(" (")[0].split(", ")
        return all((ROOT / path).exists() for path in paths)
    path, _, name = shown.partition("::")
    return shown in ("advice", "definition") or name in names_in(path)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_sentence_has_an_entry_in_its_order(document: str) -> None:
    found, claims = sentences(document), read_claims(document)
    missing = [f"{document}:{line}: {text}" for text, line in found.items() if text not in claims]
    assert not missing, "\n".join(("without an entry:", *missing))
    gone = [claim for claim in claims if claim not in found]
    assert not gone, "\n".join((f"no longer in {document}:", *gone))
    assert list(claims) == list(found)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_shows_a_sentence_exists(document: str) -> None:
    for claim, shown in read_claims(document).items():
        assert shown, claim
        assert [each for each in shown if not is_known(each)] == [], claim


if __name__ == "__main__":
    for name in DOCUMENTS:
        known = read_claims(name) if file_of(name).exists() else {}
        texts = ["\n    ".join([text, *known.get(text, ["?"])]) for text in sentences(name)]
        file_of(name).write_text("\n\n".join(texts) + "\n", "utf-8")
