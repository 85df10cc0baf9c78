"""Our tables in ClickHouse: how they are made, and how their rows are sent.

A row is identified by its sorting key, and of the rows with one key the greatest duration counts,
so that sending rows twice, in any order, changes nothing. `view`, `visit` and `event` are sequence
numbers with the number of the collector in front (`number_at`), 0 if there is none.

On a cluster, each table is one for each shard, `views_local`, and one over all shards, `views`. The
views of a visit and their events are on one shard, as are an event and its view without a visit.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.clickhouse.client import Client, Refused, quoted
from medamad.clickhouse.native import Columns, Values
from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewFlag
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.domain.zones import DAY_MS

VERSION: Final = 3
"""The version of the tables. Whoever changes them raises it."""

_MADE_WITHIN_S: Final = 200.0
"""How long a table may take: servers wait 180 s for the others of a cluster."""
LAST_DAY: Final = (1 << 16) - 1
SEQUENCE_BITS: Final = 48

TEXT: Final = "LowCardinality(String)"


@frozen
class Column:
    """A column: its type, and how the server compresses it."""

    type: str
    codec: str = ""

    @property
    def sent_type(self) -> str:
        """The type in which it is sent."""
        return "String" if self.type == TEXT else self.type

    @property
    def plain_type(self) -> str:
        """The type without the default."""
        return self.type.partition(" DEFAULT ")[0]


_NUMBERS: Final = "Delta, ZSTD"
_TEXTS: Final = {each.attribute: Column(TEXT, "ZSTD") for each in VIEW_DIMENSIONS}


@frozen(kw_only=True)
class Table:
    """A table. `shard_key` says which rows are on one shard, and `version` which of several counts.

    Without a `version`, rows with the same key are the same.
    """

    name: str
    columns: Mapping[str, Column]
    order: str
    shard_key: str
    version: str = ""
    by_month: str = ""
    """The date by whose months it is divided."""
    has_times: bool = False

    @property
    def types(self) -> Mapping[str, str]:
        """The types in which rows are sent, by column."""
        return {name: column.sent_type for name, column in self.columns.items() if name != "added"}


VIEWS: Final = Table(
    name="views",
    columns={
        "website": Column("UInt32"),
        "visit_day": Column("Date"),
        "visit": Column("UInt64", _NUMBERS),
        "view": Column("UInt64", _NUMBERS),
        "time_ms": Column("Int64", _NUMBERS),
        **{flag.attribute: Column("UInt8") for flag in ViewFlag},
        **{each.attribute: Column(f"UInt{8 * each.bytes}") for each in NUMBERS_OF_HITS},
        "duration_ms": Column("UInt32", "ZSTD"),
        "batch": Column("UInt32"),
        **_TEXTS,
    },
    order="website, visit_day, visit, view",
    shard_key="intHash64(if(visit > 0, visit, view))",
    version="duration_ms",
    by_month="visit_day",
    has_times=True,
)
"""Views. `visit_day` is the `day_of` the first view of the visit, of a view without one its own."""

EVENTS: Final = Table(
    name="events",
    columns={
        "website": Column("UInt32"),
        "visit_day": Column("Date"),
        "visit": Column("UInt64", _NUMBERS),
        "view": Column("UInt64", _NUMBERS),
        "event": Column("UInt64", _NUMBERS),
        "place": Column("UInt8"),
        "late": Column("UInt8"),
        "time_ms": Column("Int64", _NUMBERS),
        "batch": Column("UInt32"),
        "name": Column(TEXT, "ZSTD"),
        "value": Column(TEXT, "ZSTD"),
    },
    order="website, visit_day, visit, view, event, place",
    shard_key="intHash64(multiIf(visit > 0, visit, view > 0, view, event))",
    by_month="visit_day",
    has_times=True,
)
"""The properties of events, a row for each, with the `place` of each in its event.

`visit` and `visit_day` are those of the view; `view` is 0 if it is unknown, and then `visit_day`
is the event's own. An event is `late` if it is not of its view's load (`are_late`), so that its
visit did not bounce.
"""

TEXTS: Final = Table(
    name="texts",
    columns={
        "website": Column("UInt32"),
        "dimension": Column("UInt8"),
        "text": Column("String"),
        "added": Column("DateTime DEFAULT now()"),
    },
    order="website, dimension, text",
    shard_key="intHash64(website)",
)
"""The texts of views by `Dimension`, and those of PROPERTY.

A text is sent before the rows that have it.
"""

COLLECTORS: Final = Table(
    name="collectors",
    columns={
        "collector": Column("UInt16"),
        "store": Column("String"),
        "added": Column("DateTime DEFAULT now()"),
    },
    order="collector, store",
    shard_key="intHash64(collector)",
)
"""Which stores may send to the tables, and the number of each; see `claim_number`."""

VISITS: Final = Table(
    name="visits",
    columns={
        "website": Column("UInt32"),
        "visit_day": Column("Date"),
        "visit": Column("UInt64", _NUMBERS),
        "time_ms": Column("Int64", _NUMBERS),
        "views": Column("UInt32", "ZSTD"),
        "visible_ms": Column("UInt64", "ZSTD"),
        "engaged": Column("UInt8"),
        "batch": Column("UInt32"),
        "exit_path": Column(TEXT, "ZSTD"),
        "pages": Column(f"Array({TEXT})", "ZSTD"),
        **_TEXTS,
        "version": Column("UInt64", "ZSTD"),
    },
    order="website, visit_day, visit",
    shard_key="intHash64(visit)",
    version="version",
    by_month="visit_day",
    has_times=True,
)
"""The visits of settled days, made of their views and events by `medamad.cluster.settling`.

The time, the batch and the texts are those of the first view, `pages` are the paths of all, each
once, `visible_ms` is the sum of the durations, and `engaged` says that an event was `late`. Views,
time and events of a visit only become more, so the `version` is their sum.
"""

DAYS: Final = Table(
    name="days",
    columns={
        "visit_day": Column("Date"),
        "id": Column("UInt64"),
        "seen": Column("UInt32"),
    },
    order="visit_day, id",
    shard_key="intHash64(toRelativeDayNum(visit_day))",
)
"""Which days are settled: their visits are rows of VISITS.

A row with an `id` says that something of a day was sent late, and one whose `id` is 0 that its
visits were made when that had happened `seen` times. A day is settled if nothing came since.
"""

TABLES: Final = (VIEWS, EVENTS, TEXTS, COLLECTORS, VISITS, DAYS)
_VERSION_VIEW: Final = "tables_version"


def settled_days(client: Client, check: Callable[[], None] = lambda: None) -> dict[int, int]:
    """Return the days that are settled, ascending, and how often each had been touched then.

    `check` raises if nobody waits for the answer any more. Raises ClickHouseError.
    """
    found = client.query(
        "SELECT visit_day AS day, uniqExactIf(id, id > 0) AS touched"
        f" FROM {client.table(DAYS.name)} GROUP BY visit_day"
        " HAVING countIf(id = 0) > 0 AND maxIf(seen, id = 0) = uniqExactIf(id, id > 0)"
        " ORDER BY visit_day",
        check=check,
    )
    pairs = zip(found.get("day", ()), found.get("touched", ()), strict=True)
    return {int(day): int(touched) for day, touched in pairs}


def number_at(collector: int, sequence: int) -> int:
    """Return a number of a collector as it is in the cluster; 0 stays 0."""
    return collector << SEQUENCE_BITS | sequence if sequence else 0


def sequence_in(number: int) -> int:
    """Return the number that a collector has for what has a number in the cluster."""
    return number & (1 << SEQUENCE_BITS) - 1


def sequences_in(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the `sequence_in` of each number."""
    return numbers & np.uint64((1 << SEQUENCE_BITS) - 1)


def collectors_in(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the collector of each number."""
    return numbers >> np.uint64(SEQUENCE_BITS)


def day_of(time_ms: int) -> int:
    """Return the day of a time in UTC, as a `Date` has it: days since 1970, within its bounds.

    It is no local day, so that a row keeps its key when the configured zone changes.
    """
    return min(max(time_ms // DAY_MS, 0), LAST_DAY)


def days_of(time_ms: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Return the `day_of` of each time."""
    return np.clip(time_ms // DAY_MS, 0, LAST_DAY).astype(np.uint16)


@frozen
class Layout:
    """How tables are made: on one server, or on all of a cluster that its servers have defined.

    The servers of a shard are replicas of each other, and share a Keeper with all others, unless
    `is_replicated` is false.
    """

    cluster: str = ""
    is_replicated: bool = True

    def local(self, table: Table) -> str:
        """Return the name of the table that has the rows of one shard."""
        return f"{table.name}_local" if self.cluster else table.name

    def clients(self, client: Client) -> Sequence[Client]:
        """Return what statements about tables are sent to: one of each server that is alone.

        They are new ones, for the caller to close.
        """
        connecting = client.connecting
        if not self.cluster or self.is_on_cluster:
            return [Client(connecting)]
        return [Client(evolve(connecting, urls=[url])) for url in connecting.urls]

    @property
    def is_on_cluster(self) -> bool:
        """Whether statements for all servers can be sent to one of them."""
        return bool(self.cluster) and self.is_replicated


def definitions(client: Client, layout: Layout) -> Iterator[str]:
    """Return the statements that make all tables that are not there yet."""
    database = quoted(client.connecting.database)
    on = f" ON CLUSTER {quoted(layout.cluster)}" if layout.is_on_cluster else ""
    yield f"CREATE DATABASE IF NOT EXISTS {database}{on}"
    for table in TABLES:
        local = layout.local(table)
        yield (
            f"CREATE TABLE IF NOT EXISTS {client.table(local)}{on}"
            f" ({', '.join(_columns(table))}) ENGINE = {_engine(client, table, layout)}"
            + (f" PARTITION BY toYYYYMM({table.by_month})" if table.by_month else "")
            + f" ORDER BY ({table.order})"
            # ClickHouse leaves it to the system when rows reach the disk.
            + ("" if layout.cluster else " SETTINGS fsync_after_insert = 1")
        )
        if layout.cluster:
            yield (
                f"CREATE TABLE IF NOT EXISTS {client.table(table.name)}{on}"
                f" AS {client.table(local)} ENGINE = {_over_shards(client, table, layout)}"
            )
    view = client.table(_VERSION_VIEW)
    yield f"CREATE VIEW IF NOT EXISTS {view}{on} AS SELECT toUInt32({VERSION}) AS version"


def _columns(table: Table) -> Iterator[str]:
    for name, column in table.columns.items():
        codec = f" CODEC({column.codec})" if column.codec else ""
        yield f"{quoted(name)} {column.type}{codec}"
    if table.has_times:
        yield "INDEX times time_ms TYPE minmax GRANULARITY 1"


def _engine(client: Client, table: Table, layout: Layout) -> str:
    if not layout.is_on_cluster:
        return f"ReplacingMergeTree({table.version})" if table.version else "ReplacingMergeTree"
    path = f"/clickhouse/tables/{{shard}}/{client.connecting.database}/{table.name}"
    of = ", ".join((f"{literal(path)}, '{{replica}}'", *filter(None, [table.version])))
    return f"ReplicatedReplacingMergeTree({of})"


def _over_shards(client: Client, table: Table, layout: Layout) -> str:
    names = (layout.cluster, client.connecting.database, layout.local(table))
    return f"Distributed({', '.join(map(quoted, names))}, {table.shard_key})"


def literal(text: str) -> str:
    """Return a text as SQL has it. For names alone: others are parameters."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class OtherTables(Exception):
    """The database has no tables of ours, or others than those."""


def create_tables(client: Client, layout: Layout) -> None:
    """Make the database and the tables, unless they are there.

    Raises OtherTables if others are there, before anything is made, and ClickHouseError.
    """
    found = _version(client)
    if found not in (None, VERSION):
        raise _other(client, found)
    _check_layout(client, layout, all_there=False)
    with closing(Client(evolve(client.connecting, timeout_s=_MADE_WITHIN_S))) as patient:
        for statement in definitions(client, layout):
            patient.run(statement, settings={"allow_suspicious_low_cardinality_types": 1})


def check_tables(client: Client, layout: Layout) -> None:
    """Raise OtherTables unless the tables are there as they are made; and ClickHouseError."""
    check_version(client)
    _check_layout(client, layout, all_there=True)


def check_version(client: Client) -> None:
    """Raise OtherTables unless there are tables of this version; and ClickHouseError."""
    if (found := _version(client)) != VERSION:
        raise _other(client, found)


def count_servers(client: Client, layout: Layout) -> int:
    """Return how many servers a cluster has, 0 if it is unknown. Raises ClickHouseError."""
    found = client.query(
        "SELECT count() AS n FROM system.clusters WHERE cluster = {cluster:String}",
        parameters={"cluster": layout.cluster},
    )
    return int(found["n"][0])


def check_answers(client: Client) -> None:
    """Raise ClickHouseError unless all shards answer."""
    client.query(f"SELECT count() AS n FROM {client.table(VIEWS.name)} WHERE website = 0")


def _other(client: Client, version: int | None) -> OtherTables:
    database = client.connecting.database
    if version is None:
        return OtherTables(f"the database {database} has no tables: run medamad cluster init")
    way_out = (
        "a later medamad has made them, so update this one"
        if version > VERSION
        else "an earlier medamad has made them: export the websites with that one, and import the"
        " files with this one and a new cluster.database"
    )
    return OtherTables(
        f"the tables of the database {database} have the version {version}, and not {VERSION};"
        f" {way_out}"
    )


def _check_layout(client: Client, layout: Layout, *, all_there: bool) -> None:
    """Raise OtherTables if tables are not as they are made, or some are missing and must not be."""
    database = {"database": client.connecting.database}
    tables: Columns = client.query(
        "SELECT name, engine_full, sorting_key, partition_key FROM system.tables"
        " WHERE database = {database:String}",
        parameters=database,
    )
    columns: Columns = client.query(
        "SELECT table, name, type FROM system.columns WHERE database = {database:String}",
        parameters=database,
    )
    made = {name: facts for name, *facts in zip(*tables.values(), strict=True)}
    types: dict[str, dict[str, str]] = {}
    for table, name, type_ in zip(*columns.values(), strict=True):
        types.setdefault(table, {})[name] = type_
    differences: list[str] = []
    for table in TABLES:
        expected = {layout.local(table): (_engine(client, table, layout), table)}
        if layout.cluster:
            expected[table.name] = (_over_shards(client, table, layout), table)
        for name, (engine, _) in expected.items():
            if name in made:
                differences += _differences(table, engine, made[name], types.get(name, {}), name)
            elif all_there:
                differences.append(f"{name} is missing")
    if differences:
        raise OtherTables(
            f"the tables of the database {client.connecting.database} are not as medamad makes"
            f" them with this configuration: {'; '.join(differences)}"
        )


def _differences(
    table: Table, engine: str, made: Sequence[str], types: Mapping[str, str], name: str
) -> Iterator[str]:
    """Return how a table on a server differs from ours, in words."""
    full, order, months = made
    found = re.split(r" (?:PARTITION|PRIMARY|ORDER) BY ", full)[0]
    if _plain(found) != _plain(engine):
        yield f"{name} has the engine {found}, and not {engine}"
    if order or not engine.startswith("Distributed"):
        if _plain(order) != _plain(table.order):
            yield f"{name} is in the order of {order}, and not of {table.order}"
        by = f"toYYYYMM({table.by_month})" if table.by_month else ""
        if _plain(months) != _plain(by):
            yield f"{name} is divided by {months or 'nothing'}, and not by {by or 'nothing'}"
    expected = {each: column.plain_type for each, column in table.columns.items()}
    for each in sorted({*expected, *types}, key=[*expected, *types].index):
        of_name, wanted = types.get(each), expected.get(each)
        if of_name is None or wanted is None or _type(of_name) != _type(wanted):
            yield f"{name}.{each} is {of_name or 'missing'}, and not {wanted or 'known'}"


def _plain(sql: str) -> str:
    """Return a piece of SQL without what servers write in different ways."""
    return re.sub(r"[\s`'\"\\]", "", sql)


def _type(type_: str) -> str:
    """Return a type. Whether a server keeps each text once makes no difference to answers."""
    return type_.replace(TEXT, "String")


_NONE_THERE: Final = (60, 81)
"""UNKNOWN_TABLE, UNKNOWN_DATABASE"""


def _version(client: Client) -> int | None:
    try:
        found: dict[str, Any] = client.query(f"SELECT version FROM {client.table(_VERSION_VIEW)}")
    except Refused as error:
        if error.code in _NONE_THERE:
            return None
        raise
    return int(found["version"][0])


def insert(client: Client, table: Table, columns: Mapping[str, Values], **settings: int) -> None:
    """Insert rows, given as columns. Raises ClickHouseError."""
    client.insert(table.name, table.types, columns, settings=settings)


class NumberTaken(Exception):
    """A store may not send to the tables as the collector that it is to be."""


def claim_number(client: Client, collector: int, store: str, first: str) -> None:
    """Make a store the only one that sends as a collector, unless it is that already.

    `first` is the store that began the cluster, which numbers the websites of all. Raises
    NumberTaken if another one did, or another store has the number; and ClickHouseError.
    """
    stores = stores_of(client)
    if (collector, store) not in stores and (stores or store == first):
        _check_claim(client, stores, collector, store, first)
        insert(client, COLLECTORS, {"collector": [collector], "store": [store]})
        stores = stores_of(client)
    _check_claim(client, stores, collector, store, first)


def _check_claim(
    client: Client, stores: list[tuple[int, str]], collector: int, store: str, first: str
) -> None:
    database = client.connecting.database
    if stores and stores[0][1] != first:
        raise NumberTaken(
            f"cluster.database: {database} has the hits of another store ({stores[0][1]}): choose a"
            " database of its own, restore a backup of that store, or begin with an empty data"
            " directory and medamad cluster join"
        )
    if not stores and store != first:
        raise NumberTaken(
            f"cluster.database: nothing has been sent to {database} by the collector that began"
            f" the cluster ({first})"
        )
    before = next((number for number, each in stores if each == store), collector)
    if before != collector:
        raise NumberTaken(
            f"cluster.collector: this store has sent its hits as collector {before}, and cannot go"
            f" on as {collector}"
        )
    holder = next((each for number, each in stores if number == collector), store)
    if holder != store:
        raise NumberTaken(
            f"cluster.collector: {collector} is the number of another data directory (its store is"
            f" {holder}): choose one that no collector has ever had"
        )


def stores_of(client: Client) -> list[tuple[int, str]]:
    """Return the numbers and stores of all collectors, in the order in which they came.

    Raises ClickHouseError.
    """
    found = client.query(
        "SELECT collector, CAST(store AS String) AS store_, min(added) AS first_added"
        f" FROM {client.table(COLLECTORS.name)}"
        " GROUP BY collector, store_ ORDER BY first_added, collector, store_"
    )
    pairs = zip(found.get("collector", ()), found.get("store_", ()), strict=True)
    return [(int(number), str(store)) for number, store in pairs]
