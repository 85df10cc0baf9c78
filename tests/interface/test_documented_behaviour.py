"""The documented parameters and links, on the real daemon."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from support.openapi import DOCUMENT, OPERATIONS, Operation, resolved

pytestmark = pytest.mark.daemon

READING = [
    entry
    for entry in OPERATIONS
    if entry.method == "GET"
    and not entry.path.startswith("/event/")
    and "servers" not in DOCUMENT["paths"][entry.path]
]
"""What is read under /api and at the root."""
BAD_VALUES = {
    "summary": "x",
    "start": "x",
    "end": "x",
    "limit": "x",
    "offset": "x",
    "previous": "x",
    "interval": "x",
    "timezone": "x",
    "grouped": "x",
    "locale": "x",
    "what": "x",
    "format": "x",
    "views": "x",
    "order": "x",
    "visits": "x",
    "total": "x",
    "lists": "x",
    "conversions": "x",
    "metric": "x",
    "compare_start": "x",
    "compare_end": "x",
    "definition": "x",
    "settings": "x",
    "since": "x",
    "annotation": "x",
    "worse_than": "x",
    "by": "x",
}
REQUIRED = {"of": "/"}
OF_CHANGES = {"start": "2025-06-02T00:00:00Z", "end": "2025-06-08T23:59:59Z"}
BAD_OPERATOR = "like"


def test_every_parameter_is_tested() -> None:
    documented = {name for entry in READING for name in entry.names("query")}
    deep = {
        parameter["name"]
        for entry in READING
        for parameter in entry.parameters
        if parameter.get("style") == "deepObject"
    }
    assert documented == deep | BAD_VALUES.keys() | REQUIRED.keys()


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize("entry", READING, ids=[entry.name for entry in READING])
def test_every_documented_parameter_is_read(sender: Any, entry: Operation, prefix: str) -> None:
    deep = {p["name"] for e in READING for p in e.parameters if p.get("style") == "deepObject"}
    has_filters = not deep.isdisjoint(entry.names("query"))
    path = prefix + entry.path.replace("{hostname}", "example.com")
    for name in deep | BAD_VALUES.keys():
        query = f"{name}[{BAD_OPERATOR}]=x" if name in deep else f"{name}={BAD_VALUES[name]}"
        needed = REQUIRED | OF_CHANGES if entry.path.endswith("/changes") else REQUIRED
        required = [
            f"&{key}={needed[key]}" for key in needed if key in entry.names("query") and key != name
        ]
        answer = sender.send("GET", f"{path}?{quote(query, safe='=')}{''.join(required)}")
        if name in entry.names("query"):
            # The goal and the annotation are looked up.
            is_looked_up = name in ("conversions", "annotation")
            assert answer.status == (404 if is_looked_up else 400), (name, answer)
            assert answer.json["error"]["message"].startswith(name)
        else:
            # No share link or funnel has the name of the document's parameter.
            is_unknown = "{share}" in path or "{funnel}" in path
            has_required = {"definition", "settings"} & {*entry.names("query")}
            refuses_filters = has_filters or entry.path.endswith("/blind-spot")
            is_refused = has_required or (refuses_filters and name in deep)
            expected = 400 if is_refused else 404 if is_unknown else 200
            assert answer.status == expected, (name, answer)


def _is_closed(entry: Operation) -> bool:
    """Return whether the body of an operation may have the documented members alone."""
    content = resolved(entry.raw.get("requestBody", {})).get("content", {})
    schema = resolved(content.get("application/json", {}).get("schema", {}))
    return False in (schema.get("additionalProperties"), schema.get("unevaluatedProperties"))


def test_an_unknown_member_of_a_body_is_named(sender: Any) -> None:
    closed = [entry for entry in OPERATIONS if _is_closed(entry)]
    for entry in closed:
        path = "/api" + entry.path.replace("{hostname}", "example.com")
        answer = sender.send(entry.method, path, b'{"misspelt": []}')
        assert answer.status == 400, entry.name
        assert answer.json["error"]["message"] == "misspelt: no such member"
    assert len(closed) == 18
    body = b'{"goals": [{"id": "x", "name": "x", "path": "/", "paht": "/"}]}'
    answer = sender.send("POST", "/api/websites/example.com/settings/import", body)
    assert answer.json["error"]["message"] == "paht: no such member of goals[0]"


@pytest.mark.parametrize("prefix", ["", "/api"])
def test_the_links_of_a_new_website_work(sender: Any, prefix: str) -> None:
    answer = sender.send("POST", f"{prefix}/websites", b'{"hostname": "New.Example."}')
    assert answer.status == 201
    documented = DOCUMENT["paths"]["/websites"]["post"]["responses"]["201"]["links"]
    by_id = {entry.raw["operationId"]: entry for entry in OPERATIONS}
    for name, expected in (("get", 200), ("update", 200), ("delete", 204), ("get", 404)):
        link = documented[name]
        assert link["parameters"] == {"hostname": "$response.body#/hostname"}
        entry = by_id[link["operationId"]]
        target = prefix + entry.path.replace("{hostname}", answer.json["hostname"])
        body = json.dumps(answer.json).encode() if "requestBody" in entry.raw else None
        assert sender.send(entry.method, target, body).status == expected


def test_every_operator_is_accepted(sender: Any) -> None:
    operators = resolved({"$ref": "#/components/schemas/Filter"})["properties"]
    assert len(operators) == 10
    for operator in operators:
        answer = sender.send("GET", f"/api/website/example.com/pages?path%5B{operator}%5D=/x")
        assert answer.status == 200


def test_the_document_is_served_under_both_prefixes(sender: Any) -> None:
    one, other = (sender.send("GET", f"{prefix}/openapi.yaml") for prefix in ("", "/api"))
    assert one.status == other.status == 200
    assert one.headers["content-type"] == "application/yaml"
    assert one.body == other.body
    assert b"version: 0.5.0" in one.body
