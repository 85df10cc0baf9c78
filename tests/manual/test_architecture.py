"""The map in docs/architecture.md names files and functions that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PATH = re.compile(
    r"`((?:medamad|tests|benchmarks|manual|etc|systemd|plugins|packaging|docs)/[\w./{},*-]+)"
    r"(?::([\w.]+))?`"
)
NAMED = sorted({(path, name or "") for path, name in PATH.findall(TEXT)})


@cache
def definitions(file: Path) -> set[str]:
    """Return the names of functions, classes and constants, and `Class.method`."""
    found = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inside = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{method.name}" for method in inside}
    return found


def test_the_map_names_paths() -> None:
    assert len(NAMED) > 50
    assert sum(1 for _, name in NAMED if name) > 20


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_named_path_exists(path: str, name: str) -> None:
    file = ROOT / path
    assert file.exists()
    if name:
        assert name in definitions(file)


def test_every_package_is_named() -> None:
    packages = {init.parent.name for init in (ROOT / "medamad").glob("*/__init__.py")}
    assert {name for name in packages if not re.search(rf"\b{name}\b", TEXT)} == set()
