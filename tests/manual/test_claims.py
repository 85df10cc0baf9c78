"""Every sentence for users has a line in `claims/` that says what shows that it is true.

`claims/` has a file for each document. A claim is a sentence of a paragraph or of a list item, or a
row of a table, without markup. The indented lines below it say what shows it, each one of these:

    tests/FILE.py::TEST                    a test that fails if the claim is false
    medamad/frontend/tests/FILE::TEST      the same, of the front end
    by reading: PATH …                     what to read, where no test shows it
    advice                                 it tells the reader what to do
    definition                             it says what is meant, or where something is described

After changing a document, run

    .venv/bin/python tests/manual/test_claims.py

It writes the files anew, in the order of the text. New sentences get a `?`, which fails until it is
replaced. Sentences that are gone are left out: `git diff` shows what had shown them.
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
CLAIMS = Path(__file__).parent / "claims"
DOCUMENTS = ("docs/operating.md",)
END = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][)”“])\s+")
PATH = re.compile(r"(?<![\w./-])[\w-]+/[\w./-]*\w")


def rendered(inline: Token) -> str:
    """Return the text of a paragraph or cell, with the line breaks of the document."""
    pieces = (each for each in inline.children or () if each.type != "html_inline")
    return "".join("\n" if each.type == "softbreak" else each.content for each in pieces)


def sentences(document: str) -> list[tuple[int, str]]:
    """Return the line and the text of each sentence, and of each row of a table."""
    found: list[tuple[int, str]] = []
    cells: list[str] = []
    tokens = MarkdownIt("commonmark").enable("table").parse((ROOT / document).read_text("utf-8"))
    for before, token in pairwise(tokens):
        if before.type == "td_open":
            cells.append(rendered(token))
        elif token.type == "tr_open":
            line = token.map[0] + 1 if token.map else 0
        elif token.type == "tr_close" and cells:
            found.append((line, " | ".join(filter(None, cells))))
            cells = []
        elif before.type == "paragraph_open":
            line = token.map[0] + 1 if token.map else 0
            text = rendered(token).strip()
            for start, end in pairwise([0, *(m.end() for m in END.finditer(text)), len(text)]):
                written = " ".join(text[start:end].split())
                if written:
                    found.append((line + text.count("\n", 0, start), written))
    return found


def read_claims(document: str) -> dict[str, list[str]]:
    """Return what shows each claim of a document, in the order of the file."""
    claims: dict[str, list[str]] = {}
    claim = ""
    for line in table(document).read_text("utf-8").splitlines():
        if line.startswith(" "):
            claims[claim].append(line.strip())
        elif line:
            claim = line
            claims.setdefault(claim, [])
    return claims


def table(document: str) -> Path:
    return CLAIMS / Path(document).with_suffix(".txt").name


@cache
def names_of_tests(path: str) -> set[str]:
    """Return the names of the tests in a file."""
    text = (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else ""
    if path.endswith(".py"):
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return {node.name for node in ast.parse(text).body if isinstance(node, functions)}
    return set(re.findall(r"\btest\([\"`](.+?)[\"`],", text))


def is_shown(by: str) -> bool:
    """Return whether a line below a claim is one of those described above."""
    if by.startswith("by reading: "):
        paths = PATH.findall(by)
        return bool(paths) and all((ROOT / path).exists() for path in paths)
    path, _, name = by.partition("::")
    return by in ("advice", "definition") or name in names_of_tests(path)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_sentence_has_a_line(document: str) -> None:
    claims = read_claims(document)
    missing = [
        f"{document}:{line}: {text}" for line, text in sentences(document) if not claims.get(text)
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_line_is_in_the_document_in_its_order(document: str) -> None:
    texts = list(dict.fromkeys(text for _, text in sentences(document)))
    claims = list(read_claims(document))
    assert [claim for claim in claims if claim not in texts] == []
    assert claims == texts


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_shows_a_claim_exists(document: str) -> None:
    unknown = [
        f"{claim}: {by}"
        for claim, shown in read_claims(document).items()
        for by in shown
        if not is_shown(by)
    ]
    assert unknown == []


def write(document: str) -> None:
    """Write the file of a document anew, with what it says of sentences that are still there."""
    claims = read_claims(document) if table(document).exists() else {}
    texts = dict.fromkeys(text for _, text in sentences(document))
    entries = ("\n    ".join([text, *(claims.get(text) or ["?"])]) for text in texts)
    table(document).write_text("\n\n".join(entries) + "\n", "utf-8")


if __name__ == "__main__":
    for each in DOCUMENTS:
        write(each)
