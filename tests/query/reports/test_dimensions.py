from typing import Any

import pytest
from support.query.hits import view
from support.query.oracle import Entry
from support.query.snapshots import Cuts, answer, snapshot_of


def visitors(views: list[Entry], endpoint: str, *query: tuple[str, str]) -> list[tuple[Any, ...]]:
    rows = answer(snapshot_of(views, [], Cuts((2,))), endpoint, [("summary", "true"), *query])
    return [tuple(row.values()) for row in rows]


def test_rows() -> None:
    views = [
        view(1, "p", 5000, browser="Firefox"),
        view(2, "p", 9000, browser="Firefox"),
        view(3, "q", 1000, browser="Firefox"),
        view(4, "p", 0, browser="Chrome"),
    ]
    assert answer(snapshot_of(views, []), "browsers", []) == [
        {
            "browser": "Firefox",
            "visitors": 2,
            "visitors_percentage": 0.6667,
            "bounce_percentage": 0.5,
            "duration": 15000,
        },
        {
            "browser": "Chrome",
            "visitors": 1,
            "visitors_percentage": 0.3333,
            "bounce_percentage": 0,
            "duration": 0,
        },
    ]


@pytest.mark.parametrize(
    ("endpoint", "field", "name"),
    [
        ("sources", "utm_source", "source"),
        ("mediums", "utm_medium", "medium"),
        ("campaigns", "utm_campaign", "campaign"),
        ("terms", "utm_term", "term"),
        ("contents", "utm_content", "content"),
        ("browsers", "browser", "browser"),
        ("os", "os", "os"),
        ("devices", "device", "device"),
    ],
)
def test_each_dimension_counts_its_own_texts(endpoint: str, field: str, name: str) -> None:
    views = [view(1, "p", **{field: "x"}), view(2, "p", **{field: ""}), view(3, "", **{field: "X"})]
    assert answer(snapshot_of(views, []), endpoint, [("summary", "true")]) == [
        {name: "", "visitors": 1, "visitors_percentage": 0.5},
        {name: "x", "visitors": 1, "visitors_percentage": 0.5},
        {name: "X", "visitors": 0, "visitors_percentage": 0},
    ]
    assert visitors(views, endpoint, (field, "x")) == [("x", 1, 1.0), ("X", 0, 0.0)]


def test_referrers_are_grouped_by_source_or_listed_by_host_and_path() -> None:
    views = [
        view(1, "p", referrer="google.com"),
        view(2, "p", referrer="google.de/search"),
        view(3, "p", referrer="blog.example/post"),
        view(4, "p"),
        view(5, ""),
    ]
    assert visitors(views, "referrers") == [
        ("Google", 2, 0.5),
        ("", 1, 0.25),
        ("blog.example", 1, 0.25),
    ]
    assert [row[0] for row in visitors(views, "referrers", ("grouped", "false"))] == [
        "",
        "blog.example/post",
        "google.com",
        "google.de/search",
    ]


def test_countries_have_names() -> None:
    views = [view(1, "p", country="DE"), view(2, "p", country=""), view(3, "p", country="(other)")]
    assert [row[0] for row in visitors(views, "countries")] == ["(other)", "Germany", "Unknown"]
    assert visitors(views, "countries", ("country", "GERMANY")) == [("Germany", 1, 1.0)]
    assert visitors(views, "countries", ("country", "de")) == []
    assert visitors(views, "countries", ("country[eq]", "unknown")) == [("Unknown", 1, 1.0)]


def test_a_language_sums_its_locales() -> None:
    views = [
        view(1, "p", locale="en-GB"),
        view(2, "p", locale="en-US"),
        view(3, "p", locale="de"),
        view(4, "p"),
    ]
    assert visitors(views, "languages") == [
        ("English", 2, 0.5),
        ("German", 1, 0.25),
        ("Unknown", 1, 0.25),
    ]
    assert [row[0] for row in visitors(views, "languages", ("locale", "true"))] == [
        "American English",
        "British English",
        "German",
        "Unknown",
    ]
    assert visitors(views, "languages", ("language", "british english")) == [("English", 1, 1.0)]
    assert visitors(views, "languages", ("language[neq]", "english")) == [
        ("German", 1, 0.5),
        ("Unknown", 1, 0.5),
    ]


@pytest.mark.parametrize("path", ["path", "path[eq]", "path[neq]", "path[contains]"])
def test_under_a_path_filter_visitors_are_those_of_the_page(path: str) -> None:
    views = [view(1, "p", 1000), view(2, "q", 9000), view(3, "q")]
    value = "/x" if "neq" in path else "/"
    (row,) = answer(snapshot_of(views, []), "browsers", [(path, value)])
    assert row["visitors"] == 2
    assert row["bounce_percentage"] == 1
    (row,) = answer(snapshot_of(views, []), "browsers", [("os", "unknown")])
    assert row["visitors"] == 1


def test_ties_are_broken_by_views_then_by_code_point() -> None:
    names = ["b", "a", "B", "\uffff", "\U0001f600", "a"]
    views = [view(number, "p" * (number < 6), browser=name) for number, name in enumerate(names, 1)]
    assert [row[0] for row in visitors(views, "browsers")] == [
        "a",
        "B",
        "b",
        "\uffff",
        "\U0001f600",
    ]
