from support.query.hits import view
from support.query.snapshots import Cuts, answer, snapshot_of

VIEWS = [
    view(1, "pq", 5000, path="/"),
    view(2, "q", 2000, path="/a"),
    view(3, "", 1000, path="/"),
    view(4, "pq", 5001, path="/"),
    view(5, "pq", 0, path="/a"),
    view(6, "q", 4000, path="/b"),
]


def test_rows() -> None:
    for cuts in ((), (1, 3)):
        assert answer(snapshot_of(VIEWS, [], Cuts(cuts)), "pages", []) == [
            {
                "path": "/",
                "visitors": 2,
                "visitors_percentage": 0.4,
                "pageviews": 3,
                "pageviews_percentage": 0.5,
                "bounce_percentage": 0.5,
                "duration": 11001,
            },
            {
                "path": "/a",
                "visitors": 2,
                "visitors_percentage": 0.4,
                "pageviews": 2,
                "pageviews_percentage": 0.3333,
                "bounce_percentage": 0,
                "duration": 2000,
            },
            {
                "path": "/b",
                "visitors": 1,
                "visitors_percentage": 0.2,
                "pageviews": 1,
                "pageviews_percentage": 0.1667,
                "bounce_percentage": 0,
                "duration": 4000,
            },
        ]


def test_summary() -> None:
    assert answer(snapshot_of(VIEWS, []), "pages", [("summary", "true"), ("limit", "1")]) == [
        {"path": "/", "visitors": 2, "visitors_percentage": 0.4}
    ]


def test_under_a_browser_filter_visitors_are_still_those_of_the_page() -> None:
    rows = answer(snapshot_of(VIEWS, []), "pages", [("browser", "unknown"), ("offset", "2")])
    assert [(row["path"], row["visitors"]) for row in rows] == [("/b", 1)]


def test_a_page_without_a_visitor_has_a_row() -> None:
    (row,) = answer(snapshot_of([view(1, "")], []), "pages", [])
    assert row["pageviews"] == 1
    assert row["visitors_percentage"] == 0


def test_nothing() -> None:
    assert answer(snapshot_of([], []), "pages", []) == []
    assert answer(snapshot_of(VIEWS, []), "pages", [("path", "/nowhere")]) == []


def test_at_most_five_thousand_rows_or_the_limit_are_returned() -> None:
    snapshot = snapshot_of([view(n, "q", path=f"/{n:05}") for n in range(1, 5003)], [])
    rows = answer(snapshot, "pages", [])
    assert [row["path"] for row in rows] == [f"/{n:05}" for n in range(1, 5001)]
    rows = answer(snapshot, "pages", [("offset", "5000")])
    assert [row["path"] for row in rows] == ["/05001", "/05002"]
