"""Our tables on real servers, and what reaches them."""

from typing import Any

import numpy as np
import pytest
from support.clickhouse.rows import AWKWARD
from support.clickhouse.servers import CLUSTER, SHARDS, Server, sharded

from medamad.clickhouse import client as clients
from medamad.clickhouse import tables
from medamad.clickhouse.client import Client, Connecting, Refused, Unavailable, Upload
from medamad.clickhouse.native import CodedTexts, NotNative, decode_blocks, encode_text
from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.domain.zones import DAY_MS

Row = dict[str, Any]


def a_view(view: int, duration_ms: int = 0, *, visit: int = 0, path: str = "/") -> Row:
    row: Row = dict.fromkeys((each.attribute for each in VIEW_DIMENSIONS), "")
    row |= dict.fromkeys((name for name, of in tables.VIEWS.types.items() if of != "String"), 1)
    return {**row, "visit": visit, "view": view, "duration_ms": duration_ms, "path": path}


def insert(client: Client, *rows: Row) -> None:
    columns = {name: [row[name] for row in rows] for name in tables.VIEWS.types}
    tables.insert(client, tables.VIEWS, columns)


@pytest.fixture(scope="module")
def single(server: Server) -> Client:
    client = server.client("it's `a` database")
    tables.create_tables(client, tables.Layout())
    return client


def test_a_view_is_there_once_with_its_longest_duration(single: Client) -> None:
    first, second = a_view(1), a_view(1, 700)
    insert(single, second, a_view(2))
    insert(single, first, first)
    insert(single, a_view(1, 300))
    views = single.table("views")
    found = single.query(f"SELECT view, duration_ms FROM {views} FINAL ORDER BY view")
    assert found["view"].tolist() == [1, 2]
    assert found["duration_ms"].tolist() == [700, 0]


def test_views_of_a_visit_are_on_one_shard(shards: tuple[Server, Server]) -> None:
    client = sharded(shards, "views of a visit")
    insert(client, *(a_view(view, visit=view % 10 + 1) for view in range(1, 101)))
    local = [
        each.client("views of a visit")
        .query(f"SELECT DISTINCT visit FROM {client.table('views_local')} ORDER BY visit")["visit"]
        .tolist()
        for each in shards
    ]
    assert all(local)
    assert sorted([*local[0], *local[1]]) == list(range(1, 11))
    everywhere = client.query(f"SELECT count() AS views FROM {client.table('views')}")
    assert everywhere["views"].tolist() == [100]


def test_tables_are_made_once_and_checked(server: Server) -> None:
    client = server.client("made twice")
    with pytest.raises(tables.OtherTables, match="run medamad cluster init"):
        tables.check_tables(client, tables.Layout())
    for _ in range(2):
        tables.create_tables(client, tables.Layout())
    tables.check_tables(client, tables.Layout())


def test_tables_of_another_version_are_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server.client("of another version")
    tables.create_tables(client, tables.Layout())
    found = tables.VERSION
    for version, way_out in ((77, "an earlier medamad .*: export"), (1, "a later .* update this")):
        monkeypatch.setattr(tables, "VERSION", version)
        message = f"have the version {found}, and not {version}; {way_out}"
        for check in (
            lambda: tables.create_tables(client, tables.Layout()),
            lambda: tables.check_tables(client, tables.Layout()),
        ):
            with pytest.raises(tables.OtherTables, match=message):
                check()


SINGLE = tables.Layout()
TEXTS = (*AWKWARD, "not UTF-8: \udcff\udc80")


@pytest.mark.parametrize(
    ("layout", "change", "difference"),
    [
        (
            SINGLE,
            ("ALTER TABLE {views} ADD COLUMN more UInt8",),
            "views.more is UInt8, and not known",
        ),
        (
            SINGLE,
            ("ALTER TABLE {events} DROP COLUMN late",),
            "events.late is missing, and not UInt8",
        ),
        (
            SINGLE,
            ("ALTER TABLE {views} MODIFY COLUMN duration_ms UInt64",),
            "views.duration_ms is UInt64, and not UInt32",
        ),
        (
            SINGLE,
            (
                "DROP TABLE {texts}",
                (
                    "CREATE TABLE {texts} (website UInt32, dimension UInt8, text String,"
                    " added DateTime) ENGINE = ReplacingMergeTree ORDER BY (website, text)"
                ),
            ),
            "texts is in the order of website, text, and not of website, dimension, text",
        ),
        (
            SINGLE,
            (
                (
                    "CREATE TABLE {copy} AS {views} ENGINE = MergeTree PARTITION BY visit_day"
                    " ORDER BY (website, visit_day, visit, view)"
                ),
                "DROP TABLE {views}",
                "RENAME TABLE {copy} TO {views}",
            ),
            (
                "views has the engine MergeTree, and not ReplacingMergeTree(duration_ms);"
                " views is divided by visit_day, and not by toYYYYMM(visit_day)"
            ),
        ),
        (
            SHARDS,
            (
                "DROP TABLE {events}",
                (
                    "CREATE TABLE {events} AS {events_local}"
                    " ENGINE = Distributed(`{cluster}`, {database}, events_local, rand())"
                ),
            ),
            "rand()), and not Distributed(",
        ),
        (
            SHARDS,
            ("DROP TABLE {texts_local}",),
            "texts_local is missing",
        ),
    ],
    ids=range(7),
)
def test_tables_that_are_made_otherwise_are_refused(
    request: pytest.FixtureRequest, layout: tables.Layout, change: tuple[str, ...], difference: str
) -> None:
    database = request.node.name
    if layout is SINGLE:
        client = request.getfixturevalue("server").client(database)
        tables.create_tables(client, layout)
    else:
        client = sharded(request.getfixturevalue("shards"), database)
    tables.check_tables(client, layout)
    names = {
        name: client.table(name) for name in ("views", "events", "texts", "copy", "events_local")
    }
    names |= {"texts_local": client.table("texts_local"), "cluster": CLUSTER}
    for statement in change:
        client.run(statement.format(database=clients.quoted(database), **names))
    with pytest.raises(tables.OtherTables) as caught:
        tables.check_tables(client, layout)
    assert difference in str(caught.value)
    if "missing" not in difference or "." in difference:
        with pytest.raises(tables.OtherTables):
            tables.create_tables(client, layout)


def test_tables_of_a_cluster_are_not_those_of_a_single_server(
    shards: tuple[Server, Server],
) -> None:
    client = sharded(shards, "of a cluster")
    with pytest.raises(
        tables.OtherTables, match=r"views has the engine Distributed\(.*\), and not"
    ):
        tables.create_tables(client, SINGLE)


def test_a_database_of_something_else_is_left_as_it_is(server: Server) -> None:
    client = server.client("something else")
    client.run(f"CREATE DATABASE {clients.quoted('something else')}")
    client.run(f"CREATE TABLE {client.table('texts')} (a UInt8) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(tables.OtherTables, match=r"texts\.website is missing, and not UInt32"):
        tables.create_tables(client, SINGLE)
    found = client.query(
        "SELECT name FROM system.tables WHERE database = {of:String}",
        parameters={"of": "something else"},
    )
    assert found["name"] == ["texts"]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_awkward_texts_arrive_as_they_are(single: Client, text: str) -> None:
    insert(single, a_view(1000, path=text))
    upload = Upload({"text": "String"}, {"text": [text, "another"]})
    found = single.query(
        f"SELECT CAST(path AS String) AS text, CAST(path = {{given:String}} AS UInt8) AS is_given"
        f" FROM {single.table('views')} WHERE view = 1000 AND path IN wanted",
        uploads={"wanted": upload},
        parameters={"given": text},
    )
    assert found["text"] == [text]
    assert found["is_given"].tolist() == [1]
    single.run(f"TRUNCATE TABLE {single.table('views')}")


def test_pairs_of_texts_are_found(single: Client) -> None:
    pairs = Upload(
        {"name": "String", "value": "String"},
        {
            "name": CodedTexts(np.array([1, 0]), [encode_text("a"), encode_text("b\0")]),
            "value": ["x", "y'"],
        },
    )
    found = single.query(
        "SELECT count() AS n FROM values('n String, v String', ('a', 'y\\''), ('a', 'x'))"
        " WHERE (n, v) IN pairs",
        uploads={"pairs": pairs},
    )
    assert found["n"].tolist() == [1]


def test_an_error_has_its_code_and_message(server: Server) -> None:
    with pytest.raises(Refused, match=r"(?i)division by zero") as caught:
        server.client("default").query("SELECT intDiv(1, number) FROM numbers(2)")
    assert caught.value.code == 153


def test_an_error_after_the_first_rows_is_no_short_result(server: Server) -> None:
    with pytest.raises(Refused, match="too late"):
        server.client("default").query(
            "SELECT throwIf(number = 3000000, 'too late') AS n FROM numbers(3000001)",
            settings={"max_block_size": 1000, "max_threads": 1},
        )


def test_the_next_server_answers_if_one_is_down(server: Server) -> None:
    client = server.client_of(Connecting(urls=["http://127.0.0.1:1", server.url]))
    for _ in range(2):
        assert client.query("SELECT 1 AS one")["one"].tolist() == [1]
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1: .*refused"):
        Client(Connecting(urls=["http://127.0.0.1:1"])).query("SELECT 1")


def test_a_result_in_several_blocks_is_one(server: Server) -> None:
    found = server.client("default").query(
        "SELECT number, toString(number) AS text FROM numbers(10000)",
        settings={"max_block_size": 1000},
    )
    assert found["number"].tolist() == list(range(10_000))
    assert found["text"] == [str(number) for number in range(10_000)]


@pytest.mark.parametrize(
    "data",
    [b"\x01", b"\x01\x02", b"\x01\x02\x01a\x05UInt8\x01", b"\x01\x01\x01a\x06String\x05abc"],
)
def test_a_cut_result_is_an_error(data: bytes) -> None:
    with pytest.raises(NotNative):
        decode_blocks(data)


def test_a_result_of_another_type_is_an_error() -> None:
    with pytest.raises(NotNative, match="Array"):
        decode_blocks(b"\x01\x01\x01a\x0cArray(UInt8)" + bytes(9))


def test_names_cannot_end_an_identifier() -> None:
    assert clients.quoted("a`b\\") == "`a\\`b\\\\`"


def test_an_identifier_has_its_collector_in_front() -> None:
    assert tables.number_at(3, 7) == 3 << 48 | 7
    assert tables.number_at(3, 0) == 0


def test_days_are_those_that_a_date_can_have() -> None:
    moments = np.array([-1, 0, DAY_MS, 10**16], np.int64)
    assert tables.days_of(moments).tolist() == [0, 0, 1, 65_535]
    assert [tables.day_of(moment) for moment in moments.tolist()] == [0, 0, 1, 65_535]
