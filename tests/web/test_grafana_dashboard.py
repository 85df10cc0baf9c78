"""The Grafana dashboard uses metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.web.daemon_in_memory import Server

from medamad.domain.cluster import ClusterState
from medamad.web.routes.monitoring import Exposition

FILE = Path(__file__).parents[2] / "etc" / "grafana-medamad.json"
DASHBOARD = json.loads(FILE.read_text("utf-8"))
LABELS = {"job", "instance"}
"""What Prometheus adds to each figure."""


@pytest.fixture
def exposed(server: Server) -> dict[str, set[str]]:
    """The names of all figures, with those of their labels."""
    server.site.backend.cluster = ClusterState(1)
    text = Exposition.of(server.site).text("")[0].decode("utf-8")
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def queries(node: Any = DASHBOARD) -> Iterator[str]:
    """Return every query of the dashboard."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str) and value != "prometheus":
                yield value
            else:
                yield from queries(value)
    elif isinstance(node, list):
        for value in node:
            yield from queries(value)


def test_every_metric_of_the_dashboard_exists(exposed: dict[str, set[str]]) -> None:
    asked = {
        name for query in queries() for name in re.findall(r"\b(?:medamad|process)_\w+", query)
    }
    assert len(list(queries())) >= 30
    assert asked <= exposed.keys()
    ours = {name for name in exposed if name.startswith("medamad_")}
    parts = re.compile(r"_(bucket|sum|count)$")
    shown = {parts.sub("", name) for name in asked}
    assert {parts.sub("", name) for name in ours} <= shown, "a figure that nobody sees"


def test_every_label_of_the_dashboard_exists(exposed: dict[str, set[str]]) -> None:
    labels = set.union(*exposed.values()) | LABELS
    for query in queries():
        for names in re.findall(r"by \(([^)]+)\)", query):
            assert set(names.split(", ")) <= labels
        for name in re.findall(r"(\w+)=~", query):
            assert name in LABELS


def test_panels_have_distinct_places_and_titles() -> None:
    panels = DASHBOARD["panels"]
    for key in ("id", "title"):
        assert len({panel[key] for panel in panels}) == len(panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24


@pytest.mark.parametrize("name", ["websites", "websites_quiet", "retention_websites_unknown"])
def test_what_all_collectors_have_in_common_is_not_added_up(name: str) -> None:
    asked = [query for query in queries() if f"medamad_{name}{{" in query]
    assert asked
    assert all(query.startswith("max(") for query in asked)
