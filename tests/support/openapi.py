"""The OpenAPI document as the tests read it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from attrs import frozen

FILE: Final = Path(__file__).parents[2] / "medamad" / "web" / "openapi.yaml"
DOCUMENT: Final[dict[str, Any]] = yaml.load(FILE.read_text("utf-8"), yaml.CSafeLoader)
METHODS: Final = ("get", "post", "put", "patch", "delete", "head", "options", "trace")


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference."""
    while "$ref" in node:
        target: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


@frozen
class Operation:
    """A method of a path, with everything that describes it."""

    method: str
    path: str
    raw: dict[str, Any]
    parameters: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def names(self, place: str) -> set[str]:
        """Return the names of the parameters in the query, the path or the headers."""
        return {entry["name"] for entry in self.parameters if entry["in"] == place}


def operations() -> Iterator[Operation]:
    """Return every operation of the document."""
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item:
                raw = item[method]
                entries = (*item.get("parameters", ()), *raw.get("parameters", ()))
                yield Operation(method.upper(), path, raw, tuple(map(resolved, entries)))


OPERATIONS: Final = tuple(operations())


def nodes(node: Any = DOCUMENT, place: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every object in the document with its place."""
    if isinstance(node, dict):
        yield place, node
        for key, value in node.items():
            yield from nodes(value, f"{place}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from nodes(value, f"{place}/{index}")
