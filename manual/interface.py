"""The description of the interface, medamad/web/openapi.yaml, as a page in Markdown."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

DOCUMENT: Final = Path(__file__).parents[1] / "medamad" / "web" / "openapi.yaml"
METHODS: Final = ("get", "post", "patch", "put", "delete")
_BOUNDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "minProperties": "at least {}",
    "maxProperties": "at most {}",
}

Node = dict[str, Any]


def page() -> str:
    """Return the page."""
    return "\n".join(_page(yaml.safe_load(DOCUMENT.read_text("utf-8"))))


def _page(document: Node) -> Iterator[str]:
    yield "# Interface\n"
    yield document["info"]["description"]
    yield "Paths are below `/api`, and also at the root unless stated otherwise.\n"
    yield "A running daemon serves the document behind this page at `/openapi.yaml`.\n"
    yield (
        "Statistics take `start` and `end` (RFC 3339), `limit`, `offset`, `summary`, and filters,"
        " such as `path[starts_with]=/blog` or `country[in]=Germany,France`. All must match.\n"
    )
    yield "## Authentication\n\n| | |\n| --- | --- |"
    for name, scheme in document["components"]["securitySchemes"].items():
        yield f"| {name}: `{_shown(scheme)}` | {_line(scheme['description'])} |"
    yield ""
    for tag in document["tags"]:
        yield f"## {tag['name'].capitalize()}\n"
        yield f"{tag['description']}\n"
        for path, item in document["paths"].items():
            for method in METHODS:
                if tag["name"] in item.get(method, {}).get("tags", ()):
                    yield from _operation(document, path, item, method)
    yield "## Objects\n"
    for name, schema in document["components"]["schemas"].items():
        yield from _schema(document, name, schema)


def _shown(scheme: Node) -> str:
    if scheme["type"] == "http":
        return "Authorization: Bearer …"
    return f"{'Cookie: ' if scheme['in'] == 'cookie' else ''}{scheme['name']}"


def _operation(document: Node, path: str, item: Node, method: str) -> Iterator[str]:
    operation = item[method]
    yield f"### `{method.upper()} {path}` {{ #{operation['operationId']} }}\n"
    yield f"{operation['summary']}.\n"
    if "description" in operation:
        yield f"{operation['description']}\n"
    if any("description" in each for each in item.get("servers", ())):
        yield "Only at the root.\n"
    schemes = [name for each in operation.get("security", document["security"]) for name in each]
    yield f"For: {' or '.join(schemes)}.\n" if schemes else "For everybody.\n"
    given = [*item.get("parameters", ()), *operation.get("parameters", ())]
    yield from _parameters(document, given)
    if "requestBody" in operation:
        body = _found(document, operation["requestBody"])
        for content in body["content"].values():
            yield f"Body: {_kind(content['schema'])}.\n"
            yield from map(_fenced, _examples(content))
    yield from _responses(document, operation["responses"])


def _responses(document: Node, responses: Node) -> Iterator[str]:
    yield "| status | |\n| ---: | --- |"
    examples: list[Any] = []
    for status, reference in responses.items():
        response = _found(document, reference)
        text = _line(response["description"])
        for kind, content in response.get("content", {}).items():
            if kind != "application/json":
                text += f" Body: `{kind}`."
            elif content["schema"] != {"$ref": "#/components/schemas/Error"}:
                text += f" Body: {_kind(content['schema'])}."
                examples += _examples(content)
        yield f"| {status} | {text} |"
    yield ""
    yield from map(_fenced, examples[:1])


def _parameters(document: Node, references: list[Node]) -> Iterator[str]:
    parameters = [_found(document, each) for each in references]
    if parameters:
        yield "| parameter | in | value | |\n| --- | --- | --- | --- |"
    for each in parameters:
        name = f"`{each['name']}`" + (", required" if each.get("required") else "")
        text = _line(each.get("description", ""))
        in_json = [
            f"{_kind(content['schema'])} in JSON" for content in each.get("content", {}).values()
        ]
        (kind,) = in_json or [_kind(each["schema"])]
        yield f"| {name} | {each['in']} | {kind} | {text} |"
    if parameters:
        yield ""


def _schema(document: Node, name: str, schema: Node) -> Iterator[str]:
    yield f"### {name} {{ #object-{name.lower()} }}\n"
    if "description" in schema:
        yield f"{schema['description'].strip()}\n"
    parts = [_found(document, each) for each in schema.get("allOf", [schema])]
    members = {key: value for each in parts for key, value in each.get("properties", {}).items()}
    required = {key for each in parts for key in each.get("required", ())}
    if not members:
        yield f"{_kind(schema)}\n"
        return
    yield "| member | value | |\n| --- | --- | --- |"
    for key, value in members.items():
        shown = f"`{key}`" + (", required" if key in required else "")
        yield f"| {shown} | {_kind(value)} | {_line(value.get('description', ''))} |"
    yield ""


def _found(document: Node, node: Node) -> Node:
    while "$ref" in node:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node


def _kind(schema: Node) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#object-{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return " or ".join(_kind(each) for each in schema[word])
    if "allOf" in schema:
        return " and ".join(_kind(each) for each in schema["allOf"])
    if schema.get("type") == "array":
        kind = f"array of {_kind(schema.get('items', {}))}"
    else:
        kinds = schema.get("type", "any value")
        kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if schema.get("format"):
        kind += f" ({schema['format']})"
    bounds = [form.format(schema[key]) for key, form in _BOUNDS.items() if key in schema]
    return ", ".join([kind, *bounds])


def _examples(content: Node) -> list[Any]:
    named = [each["value"] for each in content.get("examples", {}).values()]
    return [content["example"]] if "example" in content else named


def _fenced(value: Any) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2, default=str)}\n```\n"


def _line(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")
