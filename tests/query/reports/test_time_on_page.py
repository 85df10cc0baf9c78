from support.query.hits import view
from support.query.snapshots import Cuts, answer, snapshot_of

VIEWS = [
    view(1, "pq", 1000, path="/long"),
    view(2, "", 3000, path="/long"),
    view(3, "", 3001, path="/long"),
    view(4, "q", 500, path="/short"),
    view(5, "q", 0, path="/short"),
    view(6, "pq", 0, path="/untimed"),
]


def test_rows() -> None:
    for cuts in ((), (1, 2, 4)):
        assert answer(snapshot_of(VIEWS, [], Cuts(cuts)), "time", []) == [
            {
                "path": "/short",
                "duration": 500,
                "duration_percentage": 0.0667,
                "visitors": 2,
                "duration_upper_quartile": 500,
                "duration_lower_quartile": 500,
            },
            {
                "path": "/long",
                "duration": 3000,
                "duration_percentage": 0.9333,
                "visitors": 1,
                "duration_upper_quartile": 3000,
                "duration_lower_quartile": 2000,
            },
        ]


def test_a_brief_report_is_ordered_by_share() -> None:
    assert answer(snapshot_of(VIEWS, []), "time", [("summary", "true")]) == [
        {"path": "/long", "duration": 3000, "duration_percentage": 0.9333},
        {"path": "/short", "duration": 500, "duration_percentage": 0.0667},
    ]


def test_ties_are_broken_by_the_rounded_figures() -> None:
    views = [
        view(1, "", 1_000_000, path="/rest"),
        # Medians of 1.5 and 2 both show as 2; the shares differ in the sixth decimal only.
        view(2, "", 1, path="/b"),
        view(3, "", 2, path="/b"),
        view(4, "", 2, path="/a"),
    ]
    for query in ([], [("summary", "true")]):
        rows = answer(snapshot_of(views, []), "time", query)
        assert [row["path"] for row in rows] == ["/rest", "/a", "/b"]


def test_the_total_time_is_shown_and_ordered_by() -> None:
    rows = answer(snapshot_of(VIEWS, []), "time", [("total", "true")])
    assert [(row["path"], row["total_duration"]) for row in rows] == [
        ("/long", 7001),
        ("/short", 500),
    ]
    (first,) = answer(
        snapshot_of(VIEWS, []), "time", [("total", "true"), ("summary", "true"), ("limit", "1")]
    )
    assert first == {
        "path": "/long",
        "duration": 3000,
        "duration_percentage": 0.9333,
        "total_duration": 7001,
    }


def test_views_without_durations() -> None:
    assert answer(snapshot_of([view(1, "pq")], []), "time", []) == []
    assert answer(snapshot_of([], []), "time", []) == []
