"""The OpenAPI document agrees with the specification, the routes and the contract."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest
import schemathesis
from support.openapi import DOCUMENT, FILE, OPERATIONS, Operation, nodes, resolved

from medamad.accounts.credentials import MAX_LOGIN_TEXT, PASSWORD_LENGTH, USERNAME_LENGTH
from medamad.accounts.credentials import MAX_NAME as MAX_GRANT_NAME
from medamad.accounts.shares import MAX_ORIGINS
from medamad.domain.accounts import LANGUAGES, MAX_SHARES, MAX_TOKENS, SCRIPT_TYPES, Scope
from medamad.domain.alerts import FORMATS, MAX_RULES, MAX_URL, SERVICE_KINDS, WEBSITE_KINDS
from medamad.domain.annotations import MAX_ANNOTATION, MAX_ANNOTATIONS, MAX_LINK
from medamad.domain.dimensions import MAX_PROPERTY_NAME, MAX_PROPERTY_VALUE
from medamad.domain.goals import FUNNEL_GOALS, MAX_EXCLUSIONS, MAX_FUNNELS, MAX_GOAL_NAME, MAX_GOALS
from medamad.domain.paths import MAX_PATH
from medamad.domain.subscriptions import LAST_DAY, MAX_SUBSCRIPTIONS
from medamad.domain.websites import MAX_HOSTNAME
from medamad.ingest.payload import MAX_PROPERTIES, ServerFields
from medamad.mail.settings import MAX_ADDRESS
from medamad.query.buckets import INTERVALS
from medamad.query.chance import MAX_WEEKS
from medamad.query.change_counts import METRICS
from medamad.query.changes import MAX_PAIRED, PARTS
from medamad.query.filters import FIELDS, OPERATORS
from medamad.query.reports import STATISTICS
from medamad.query.request import MAX_ROWS, ORDERS
from medamad.web.auth import Access
from medamad.web.backend import Backend
from medamad.web.routes.statistics import MAX_OFFSET
from medamad.web.routing import file_routes, interface_routes, operating_routes
from medamad.web.server.site import Site

SCHEMAS = DOCUMENT["components"]["schemas"]
EVERY_NAME = [entry.name for entry in OPERATIONS]

# What interface.md lists, endpoint by endpoint.
LISTED = {
    "POST /auth/login": "200 400 401 500",
    "POST /auth/logout": "204 401 500",
    "POST /event/hit": "204 400 404 500",
    "GET /event/ping": "200 400 500",
    "GET /user": "200 400 401 404 500",
    "PATCH /user": "200 400 401 403 404 409 500",
    "DELETE /user": "204 400 401 403 404 500",
    "GET /user/usage": "200 401 500",
    "GET /websites": "200 400 401 404 500",
    "POST /websites": "201 400 401 403 409 500",
    "GET /websites/{hostname}": "200 400 401 404 500",
    "PATCH /websites/{hostname}": "200 400 401 403 404 500",
    "DELETE /websites/{hostname}": "204 400 401 403 404 500",
    "GET /website/{hostname}/summary": "200 400 401 404 500",
    "GET /website/{hostname}/pages": "200 400 401 404 500",
    "GET /website/{hostname}/time": "200 400 401 404 500",
    "GET /website/{hostname}/referrers": "200 400 401 403 404 500",
    "GET /website/{hostname}/sources": "200 400 401 403 404 500",
    "GET /website/{hostname}/mediums": "200 400 401 403 404 500",
    "GET /website/{hostname}/campaigns": "200 400 401 403 404 500",
    "GET /website/{hostname}/browsers": "200 400 401 403 404 500",
    "GET /website/{hostname}/os": "200 400 401 403 404 500",
    "GET /website/{hostname}/devices": "200 400 401 403 404 500",
    "GET /website/{hostname}/countries": "200 400 401 403 404 500",
    "GET /website/{hostname}/languages": "200 400 401 403 404 500",
    "GET /website/{hostname}/properties": "200 400 401 403 404 500",
}
OURS = {
    "GET /website/{hostname}/terms",
    "GET /website/{hostname}/contents",
    "GET /website/{hostname}/entries",
    "GET /website/{hostname}/exits",
    "GET /website/{hostname}/next",
    "GET /website/{hostname}/previous",
    "GET /website/{hostname}/changes",
    "GET /website/{hostname}/compare",
    "GET /website/{hostname}/goals",
    "GET /website/{hostname}/goals/preview",
    "GET /website/{hostname}/funnels/{funnel}",
    "GET /website/{hostname}/funnels/preview",
    "GET /website/{hostname}/live",
    "GET /website/{hostname}/ignored",
    "GET /website/{hostname}/hosting",
    "GET /website/{hostname}/robots",
    "GET /website/{hostname}/blind-spot",
    "GET /website/{hostname}/export",
    "GET /event/pixel.gif",
    "GET /event/opt-out.js",
    "GET /script.js",
    "GET /scripts/{name}",
    "GET /openapi.yaml",
    "GET /health",
    "GET /health/live",
    "GET /metrics",
    "GET /user/tokens",
    "POST /user/tokens",
    "DELETE /user/tokens/{token}",
    "GET /user/reports",
    "POST /user/reports",
    "PATCH /user/reports/{report}",
    "DELETE /user/reports/{report}",
    "POST /user/test-mail",
    "GET /websites/{hostname}/shares",
    "POST /websites/{hostname}/shares",
    "DELETE /websites/{hostname}/shares/{share}",
    "GET /websites/{hostname}/goals",
    "POST /websites/{hostname}/goals",
    "PATCH /websites/{hostname}/goals/{goal}",
    "DELETE /websites/{hostname}/goals/{goal}",
    "GET /websites/{hostname}/settings",
    "PATCH /websites/{hostname}/settings",
    "GET /websites/{hostname}/settings/preview",
    "GET /websites/{hostname}/annotations",
    "POST /websites/{hostname}/annotations",
    "PATCH /websites/{hostname}/annotations/{annotation}",
    "DELETE /websites/{hostname}/annotations/{annotation}",
    "GET /websites/{hostname}/settings/export",
    "GET /websites/{hostname}/settings/export/exclusions",
    "POST /websites/{hostname}/settings/import",
    "GET /websites/{hostname}/exclusions",
    "GET /websites/{hostname}/suggestions",
    "POST /websites/{hostname}/exclusions",
    "DELETE /websites/{hostname}/exclusions/{exclusion}",
    "GET /websites/{hostname}/funnels",
    "POST /websites/{hostname}/funnels",
    "PATCH /websites/{hostname}/funnels/{funnel}",
    "DELETE /websites/{hostname}/funnels/{funnel}",
    *(
        f"{method} {path}"
        for of in ("/websites/{hostname}", "/user")
        for method, path in (
            ("GET", f"{of}/alerts"),
            ("POST", f"{of}/alerts"),
            ("PATCH", f"{of}/alerts/{{alert}}"),
            ("DELETE", f"{of}/alerts/{{alert}}"),
            ("POST", f"{of}/alerts/{{alert}}/test"),
        )
    ),
    "GET /shared/{share}",
    "POST /shared/{share}",
}
OPEN = {
    *("/auth/login", "/event/hit", "/event/ping", "/event/pixel.gif", "/event/opt-out.js"),
    *("/script.js", "/scripts/{name}", "/openapi.yaml", "/shared/{share}"),
    *("/health", "/health/live", "/metrics"),
}
BY_COOKIE = {"POST /auth/login", "POST /auth/logout"}
"""What begins or ends a session; other origins may do neither: 403."""
TRANSPORT = {"413", "429", "503"}
FILTERS = {
    "path", "referrer", "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content",
    "browser", "os", "device", "country", "language", "prop_name", "prop_value",
    "entry_page", "exit_page", "visit_referrer",
    "visit_utm_source", "visit_utm_medium", "visit_utm_campaign",
}  # fmt: skip
OTHER_FILTERS = {
    *("goal", "visitor", "hosting"),
    *("visit_bounce", "visit_views", "visit_duration", "duration"),
}
ROWS = {"summary", "start", "end", "limit", "offset"} | FILTERS | OTHER_FILTERS
BY_DIMENSION = ROWS | {"views", "visits", "order", "conversions"}
QUERIES = {
    "/event/ping": {"d", "n", "u", "v"},
    "/event/pixel.gif": {"u", "r"},
    "/websites": {"summary"},
    "/websites/{hostname}/annotations": {"start", "end", "timezone"},
    "/websites/{hostname}/exclusions": {"timezone"},
    "/websites/{hostname}/suggestions": {"start", "end"},
    "/websites/{hostname}/settings/preview": {"settings"},
    "/website/{hostname}/summary": {"start", "end", "previous", "interval", "timezone", "visits"}
    | FILTERS
    | OTHER_FILTERS,
    "/website/{hostname}/entries": ROWS,
    "/website/{hostname}/exits": ROWS,
    "/website/{hostname}/next": (ROWS | {"of"}) - {"summary"},
    "/website/{hostname}/previous": (ROWS | {"of"}) - {"summary"},
    "/website/{hostname}/changes": (
        ROWS | {"metric", "conversions", "compare_start", "compare_end"}
    )
    - {"summary", "offset"},
    "/website/{hostname}/time": ROWS | {"total", "visits", "conversions"},
    "/website/{hostname}/referrers": BY_DIMENSION | {"grouped"},
    "/website/{hostname}/languages": BY_DIMENSION | {"locale"},
    "/website/{hostname}/properties": (ROWS - {"summary"}) | {"visits"},
    "/website/{hostname}/goals": (ROWS | {"interval", "timezone"}) - {"summary"},
    "/website/{hostname}/goals/preview": (ROWS | {"definition"}) - {"summary", "limit", "offset"},
    "/website/{hostname}/funnels/{funnel}": ROWS - {"summary", "limit", "offset"},
    "/website/{hostname}/funnels/preview": (ROWS | {"definition"}) - {"summary", "limit", "offset"},
    "/website/{hostname}/compare": {"since", "annotation", "metric", "worse_than"},
    "/website/{hostname}/live": {"lists"},
    "/website/{hostname}/export": {"what", "format", "start", "end"} | FILTERS | OTHER_FILTERS,
    "/website/{hostname}/ignored": set(),
    "/website/{hostname}/blind-spot": {"by", "start", "end", "limit"},
    "/website/{hostname}/robots": {"by", "name", "operator", "purpose", "path"}
    | {"start", "end", "limit", "offset"},
}


def test_the_document_is_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    schemathesis.openapi.from_path(FILE).validate()


def test_every_schema_is_json_schema() -> None:
    found = [
        (place, node)
        for place, node in nodes()
        if re.search(r"/(schema|items)$|/schemas/[^/]+$|/properties/[^/]+$", place)
        and "/example" not in place
    ]
    assert len(found) > 150
    for place, node in found:
        assert jsonschema_rs.meta.is_valid(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **node}
        ), place


def test_every_reference_resolves_and_every_component_is_used() -> None:
    used = Counter(node["$ref"] for _, node in nodes() if "$ref" in node)
    for reference in used:
        assert resolved({"$ref": reference}), reference
    parts = {
        f"#/components/{kind}/{name}"
        for kind, entries in DOCUMENT["components"].items()
        for name in entries
        if kind != "securitySchemes"
    }
    assert parts == set(used)


def schema_of(schema: dict[str, Any]) -> Any:
    """Return a validator that knows the document's components."""
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]}, validate_formats=True
    )


def test_every_example_matches_its_schema() -> None:
    seen = 0
    for place, node in nodes():
        if "/example" in place:
            continue
        examples = [entry["value"] for entry in node.get("examples", {}).values()]
        if "example" in node:
            examples.append(node["example"])
        schema = node.get("schema", node)
        for example in examples:
            # All dates are quoted, so YAML returns them as strings.
            schema_of(schema).validate(example)
            seen += 1
        assert not examples or "schema" in node or "type" in node, place
    assert seen > 60


def test_the_examples_of_the_server_guide_match_the_schema() -> None:
    guide = (FILE.parents[2] / "docs" / "tracker.md").read_text("utf-8")
    (sent,) = re.findall(r"/event/hit -d '(.*?)'", guide, re.DOTALL)
    hit = json.loads(sent)
    body = DOCUMENT["paths"]["/event/hit"]["post"]["requestBody"]["content"]["application/json"]
    schema_of(body["schema"]).validate(hit)
    assert hit.keys() <= SCHEMAS["ServerLoad"]["properties"].keys()
    for wrong in ({"visitor": "192.0.2.1"}, {"time": "yesterday"}, {"country": "AUT"}):
        assert not schema_of(body["schema"]).is_valid(hit | wrong), wrong
    fields = {name.title().replace("_", "") for name in ServerFields.__struct_fields__}
    stated = (fields - {"TimeMs", "HasFlags"}) | {"Time"}
    assert {f"Stated{name}" for name in stated} <= SCHEMAS.keys()


@pytest.mark.parametrize("entry", OPERATIONS, ids=EVERY_NAME)
def test_every_response_with_a_body_has_an_example(entry: Operation) -> None:
    for status, answer in entry.raw["responses"].items():
        for content in resolved(answer).get("content", {}).values():
            schema = content["schema"]
            shown = "example" in content or "example" in resolved(schema)
            assert shown or entry.path == "/openapi.yaml", (entry.name, status)


def test_version_and_servers() -> None:
    assert DOCUMENT["info"]["version"] == "0.5.0"
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/api", "/"]


def test_the_documents_paths_and_methods_are_the_routes() -> None:
    backend = cast(Backend, None)
    rules = [*interface_routes(backend).app.url_map.iter_rules()]
    at_the_root = [
        *operating_routes(backend, cast(Site, None)).app.url_map.iter_rules(),
        *(
            rule
            for rule in file_routes(backend).app.url_map.iter_rules()
            if rule.rule.startswith("/script")
        ),
    ]
    routes = {
        f"{method} " + re.sub(r"<([a-z]+)>", r"{\1}", rule.rule)
        for rule in (*rules, *at_the_root)
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert set(EVERY_NAME) == routes
    for rule in at_the_root:
        servers = DOCUMENT["paths"][re.sub(r"<([a-z]+)>", r"{\1}", rule.rule)]["servers"]
        assert [server["url"] for server in servers] == ["/"]


def test_every_operation_of_the_contract_is_documented() -> None:
    assert set(EVERY_NAME) == LISTED.keys() | OURS
    assert len({entry.raw["operationId"] for entry in OPERATIONS}) == len(OPERATIONS)


def known_by(entry: Operation) -> list[dict[str, list[str]]]:
    """Return the kinds of authentication an operation accepts."""
    named: list[dict[str, list[str]]] = entry.raw.get("security", DOCUMENT["security"])
    return named


@pytest.mark.parametrize(("name", "statuses"), LISTED.items(), ids=LISTED)
def test_statuses_are_those_of_the_contract(name: str, statuses: str) -> None:
    (entry,) = (entry for entry in OPERATIONS if entry.name == name)
    # A token or a share link may be for another website.
    ours = {"403"} if name in BY_COOKIE or known_by(entry) else set()
    if name == "POST /event/hit":
        ours = {"401", "403"}  # where a token is shown
    assert set(entry.raw["responses"]) - TRANSPORT == set(statuses.split()) | ours


@pytest.mark.parametrize("entry", OPERATIONS, ids=EVERY_NAME)
def test_every_change_documents_the_rejection_of_other_origins(entry: Operation) -> None:
    if entry.method != "GET" and not entry.path.startswith("/event/"):
        assert "403" in entry.raw["responses"]


@pytest.mark.parametrize("entry", OPERATIONS, ids=EVERY_NAME)
def test_query_parameters_are_those_of_the_contract(entry: Operation) -> None:
    is_rows = entry.path.startswith("/website/")
    expected = QUERIES.get(entry.path, BY_DIMENSION if is_rows else set())
    assert entry.names("query") == (expected if entry.method == "GET" else set())
    in_path = set(re.findall(r"{([a-z]+)}", entry.path))
    assert entry.names("path") == in_path
    assert all(p["required"] for p in entry.parameters if p["in"] == "path")
    names = [(p["in"], p["name"]) for p in entry.parameters]
    assert len(set(names)) == len(names)


def test_every_parameter_that_is_read_is_documented() -> None:
    folder = Path(interface_routes.__code__.co_filename).parent / "routes"
    read = {
        name
        for module in folder.glob("*.py")
        for name in re.findall(
            r"(?:query|parameters)\.(?:text|boolean|integer|choice|json)\(\s*\"(\w+)\"",
            module.read_text("utf-8"),
        )
    }
    assert read
    read |= {
        statistic.variant.parameter
        for statistic in STATISTICS
        if statistic.variant and statistic.variant.parameter
    }
    documented = {name for entry in OPERATIONS for name in entry.names("query")}
    assert read <= documented
    ours = OTHER_FILTERS | {"name", "operator", "purpose"}
    assert documented - read - {"d", "n", "u", "v"} - ours == FILTERS


@pytest.mark.parametrize("entry", OPERATIONS, ids=EVERY_NAME)
def test_filters_are_deep_objects(entry: Operation) -> None:
    for parameter in entry.parameters:
        if parameter["name"] in FILTERS and parameter["in"] == "query":
            assert parameter["style"] == "deepObject"
            assert parameter["explode"] is True
            assert parameter["allowReserved"] is True
            is_of_robots = entry.path.endswith("/robots")
            filter_of_views = {"$ref": "#/components/schemas/Filter"}
            assert (parameter["schema"] == filter_of_views) is not is_of_robots
            assert not parameter.get("required")


@pytest.mark.parametrize("entry", OPERATIONS, ids=EVERY_NAME)
def test_every_response_documents_its_headers(entry: Operation) -> None:
    for status, answer in entry.raw["responses"].items():
        headers = resolved(answer)["headers"]
        assert "X-Api-Commit" in headers
        assert ("Retry-After" in headers) == (status in {"429", "503"})
        if int(status) >= 400:
            content = resolved(answer)["content"]
            assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}


def test_authentication_is_documented_as_the_routes_require_it() -> None:
    schemes = DOCUMENT["components"]["securitySchemes"]
    session, share = schemes["session"], schemes["share"]
    assert (session["type"], session["in"], session["name"]) == ("apiKey", "cookie", "_me_sess")
    assert (share["type"], share["in"], share["name"]) == ("apiKey", "header", "X-Medamad-Share")
    assert (schemes["token"]["type"], schemes["token"]["scheme"]) == ("http", "bearer")
    assert DOCUMENT["security"] == [{"session": []}]
    described = {
        Access.COOKIE: ["session"],
        Access.LOGOUT: ["session"],
        Access.CHANGE: ["session", "token"],
        Access.ANNOTATE: ["session", "token"],
        Access.READ: ["session", "token"],
        Access.STATISTICS: ["session", "token", "share"],
    }
    routes = interface_routes(cast(Backend, None))
    for entry in OPERATIONS:
        access = routes.access(entry.method, entry.path.replace("{", "").replace("}", ""))
        named = known_by(entry)
        assert [name for each in named for name in each] == described.get(access, []), entry.name
        assert (named == []) == (entry.path in OPEN)
        assert not named or {"401", "403"} <= entry.raw["responses"].keys(), entry.name
        if "token" in str(named):
            assert "429" in entry.raw["responses"], entry.name


def test_a_new_website_links_to_what_may_follow_it() -> None:
    links = DOCUMENT["paths"]["/websites"]["post"]["responses"]["201"]["links"]
    assert {link["operationId"] for link in links.values()} == {
        DOCUMENT["paths"][path][method]["operationId"]
        for path, methods in (
            ("/websites/{hostname}", ("get", "patch", "delete")),
            ("/websites/{hostname}/shares", ("get", "post")),
            ("/websites/{hostname}/goals", ("get", "post")),
            ("/websites/{hostname}/exclusions", ("get", "post")),
            ("/websites/{hostname}/annotations", ("get", "post")),
        )
        for method in methods
    }
    for link in links.values():
        assert link["parameters"] == {"hostname": "$response.body#/hostname"}


def test_the_limits_of_alerts_agree_with_the_code() -> None:
    paths = DOCUMENT["paths"]
    for path in ("/websites/{hostname}/alerts", "/user/alerts"):
        assert f"{MAX_RULES} alerts" in paths[path]["post"]["description"]
    kinds = {"Website": WEBSITE_KINDS, "Service": SERVICE_KINDS}
    for of, names in kinds.items():
        for what in ("Details", "Change"):
            assert tuple(SCHEMAS[f"{of}Alert{what}"]["properties"]["kind"]["enum"]) == names
    all_kinds = SCHEMAS["Alert"]["properties"]["kind"]["enum"]
    assert tuple(all_kinds) == (*WEBSITE_KINDS, *SERVICE_KINDS)
    assert tuple(SCHEMAS["AlertFormat"]["enum"]) == FORMATS
    assert SCHEMAS["AlertUrl"]["maxLength"] == MAX_URL


def test_the_documents_limits_agree_with_the_code() -> None:
    parameters = DOCUMENT["components"]["parameters"]
    assert (parameters["limit"]["schema"]["minimum"], MAX_ROWS) == (1, 5_000)
    assert parameters["limit"]["schema"]["maximum"] == MAX_ROWS
    assert tuple(parameters["order"]["schema"]["enum"]) == ORDERS
    assert parameters["offset"]["schema"]["maximum"] == MAX_OFFSET
    assert SCHEMAS["Hostname"]["maxLength"] == MAX_HOSTNAME
    change = SCHEMAS["UserChange"]["properties"]
    for field, (least, most) in (("username", USERNAME_LENGTH), ("password", PASSWORD_LENGTH)):
        assert (change[field]["minLength"], change[field]["maxLength"]) == (least, most)
        assert SCHEMAS["Login"]["properties"][field]["maxLength"] == MAX_LOGIN_TEXT
    settings = SCHEMAS["Settings"]["properties"]
    assert tuple(settings["language"]["enum"]) == LANGUAGES
    assert tuple(settings["script_type"]["items"]["enum"]) == SCRIPT_TYPES
    assert tuple(SCHEMAS["Filter"]["properties"]) == OPERATORS
    assert set(FIELDS) == FILTERS
    properties = SCHEMAS["Properties"]["description"]
    for bound in (
        f"first {MAX_PROPERTIES} ",
        f"{MAX_PROPERTY_NAME} characters",
        f"at {MAX_PROPERTY_VALUE}.",
    ):
        assert bound in properties
    assert tuple(SCHEMAS["Scope"]["enum"]) == tuple(Scope)
    assert SCHEMAS["GrantName"]["maxLength"] == MAX_GRANT_NAME
    assert SCHEMAS["GoalName"]["maxLength"] == MAX_GOAL_NAME
    assert SCHEMAS["GoalPath"]["maxLength"] == MAX_PATH
    assert SCHEMAS["GoalEvent"]["maxLength"] == MAX_PROPERTY_NAME
    assert SCHEMAS["GoalRevenue"]["maxLength"] == MAX_PROPERTY_NAME
    assert SCHEMAS["GoalValue"]["maxLength"] == MAX_PROPERTY_VALUE
    assert SCHEMAS["AnnotationText"]["maxLength"] == MAX_ANNOTATION
    assert SCHEMAS["AnnotationLink"]["maxLength"] == MAX_LINK
    steps = SCHEMAS["FunnelGoals"]
    assert (steps["minItems"], steps["maxItems"]) == FUNNEL_GOALS
    share = SCHEMAS["ShareDetails"]["properties"]
    assert share["embed"]["maxItems"] == MAX_ORIGINS
    assert (share["password"]["minLength"], share["password"]["maxLength"]) == PASSWORD_LENGTH
    assert SCHEMAS["ShareLogin"]["properties"]["password"]["maxLength"] == MAX_LOGIN_TEXT
    paths = DOCUMENT["paths"]
    assert f"{MAX_TOKENS:,}" in paths["/user/tokens"]["post"]["description"]
    assert f"{MAX_SHARES:,}" in paths["/websites/{hostname}/shares"]["post"]["description"]
    assert f"{MAX_GOALS} " in paths["/websites/{hostname}/goals"]["post"]["description"]
    of_exclusions = paths["/websites/{hostname}/exclusions"]["post"]["description"]
    assert f"{MAX_EXCLUSIONS}\nexclusions" in of_exclusions
    of_annotations = paths["/websites/{hostname}/annotations"]["post"]["description"]
    assert f"{MAX_ANNOTATIONS:,} " in of_annotations
    assert f"{MAX_FUNNELS} " in paths["/websites/{hostname}/funnels"]["post"]["description"]
    assert f"{MAX_SUBSCRIPTIONS} " in paths["/user/reports"]["post"]["description"]
    assert SCHEMAS["MailAddress"]["maxLength"] == MAX_ADDRESS
    report = SCHEMAS["ReportDetails"]["properties"]
    assert report["websites"]["maxItems"] == MAX_SUBSCRIPTIONS
    assert report["day"]["maximum"] == max(LAST_DAY.values())
    change = SCHEMAS["ReportChange"]["properties"]
    assert change["websites"]["maxItems"] == MAX_SUBSCRIPTIONS
    assert change["day"]["maximum"] == max(LAST_DAY.values())
    assert tuple(change["language"]["enum"]) == LANGUAGES
    assert report["language"]["enum"] == [*LANGUAGES, None]


def test_the_documents_limits_of_changes_agree_with_the_code() -> None:
    paths = DOCUMENT["paths"]
    of_changes = {
        parameter["name"]: parameter["schema"]
        for parameter in paths["/website/{hostname}/changes"]["get"]["parameters"]
    }
    assert tuple(of_changes["metric"]["enum"]) == METRICS
    assert (of_changes["limit"]["maximum"], of_changes["limit"]["default"]) == (MAX_ROWS, PARTS)
    weeks = SCHEMAS["Changes"]["properties"]["earlier_weeks"]
    assert (weeks["maximum"], SCHEMAS["Changes"]["properties"]["pairs"]["maxItems"]) == (
        MAX_WEEKS,
        MAX_PAIRED,
    )
    (interval,) = (
        parameter
        for parameter in DOCUMENT["paths"]["/website/{hostname}/summary"]["get"]["parameters"]
        if parameter.get("name") == "interval"
    )
    assert tuple(interval["schema"]["enum"]) == tuple(INTERVALS)


@pytest.mark.parametrize(
    ("hostname", "fits"),
    [
        ("example.com", True),
        ("localhost", True),
        ("EXAMPLE.com", True),
        ("1.example.com", True),
        ("xn--bcher-kva.example", True),
        ("3com", True),
        (".".join(["a" * 61] * 4) + ".com", True),
        ("", False),
        (".".join(["a" * 61] * 4) + ".comm.x", False),
        ("a" * 64 + ".com", False),
        ("-a.com", False),
        ("a-.com", False),
        ("a..com", False),
        ("a_b.com", False),
        ("example.com:80", False),
        ("https://example.com", False),
        ("192.0.2.1", False),
        ("example.com\n", False),
    ],
)
def test_hostnames(hostname: str, fits: bool) -> None:
    assert schema_of(SCHEMAS["Hostname"]).is_valid(hostname) is fits
