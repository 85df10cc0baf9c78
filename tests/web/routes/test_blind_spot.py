from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import Server

from medamad.storage.followed_logs import LogCounts, LogPosition

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
DAY_S = 86_400
LOADS = {"Firefox": {"/": 3, "/a": 2}, "Chrome": {"/": 4}, "": {"/": 6}}

pytestmark = pytest.mark.usefixtures("website")


async def followed(server: Server, *ages: int) -> None:
    """Store the page loads of days, by how long ago they were."""
    (website,) = server.store.websites.all()
    today = int(server.now) // DAY_S
    counts = LogCounts(loads={website.number: {today - age: LOADS for age in ages}})
    await server.store.follow_log(LogPosition("/log", 1), counts)


async def view(visitor: Browser, number: int, path: str) -> None:
    body = {"e": "load", "b": f"b{number}", "u": f"https://example.com{path}", "p": True, "q": True}
    answer = await visitor.ask("POST", "/event/hit", body, headers={"User-Agent": FIREFOX})
    assert answer.status == 204


async def blind_spot(server: Server, query: str = "") -> Any:
    answer = await (await server.owner()).ask("GET", f"/website/example.com/blind-spot?{query}")
    assert answer.status == 200, answer.error
    return answer.json


def day(server: Server, age: int = 0) -> str:
    return datetime.fromtimestamp(server.now - age * DAY_S, UTC).date().isoformat()


@pytest_twisted.ensureDeferred
async def test_without_a_followed_log_there_is_nothing_to_compare(server: Server) -> None:
    nothing = {"loads": 0, "robots": 0, "counted": 0, "unseen": 0, "rows": []}
    assert await blind_spot(server) == nothing
    # The first day may have begun late.
    await followed(server, 0)
    assert await blind_spot(server) == nothing


@pytest_twisted.ensureDeferred
async def test_a_log_of_robots_alone_says_nothing_of_people(
    server: Server, visitor: Browser
) -> None:
    (website,) = server.store.websites.all()
    today = int(server.now) // DAY_S
    days = {today - age: {"": {"/": 6}} for age in (2, 1, 0)}
    await server.store.follow_log(LogPosition("/log", 1), LogCounts(loads={website.number: days}))
    await view(visitor, 1, "/")
    nothing = {"loads": 0, "robots": 0, "counted": 0, "unseen": 0, "rows": []}
    for by in ("browser", "path", "day"):
        assert await blind_spot(server, f"by={by}") == nothing


@pytest_twisted.ensureDeferred
async def test_page_loads_are_counted_robots_or_unseen(server: Server, visitor: Browser) -> None:
    await followed(server, 2, 1, 0)
    for number, path in enumerate(("/", "/", "/a", "/a", "/a", "/b")):
        await view(visitor, number, path)
    found = await blind_spot(server)
    assert {name: value for name, value in found.items() if name != "rows"} == {
        "first": day(server, 1),
        "last": day(server),
        "loads": 30,
        "robots": 12,
        "counted": 6,
        "unseen": 12,
    }
    assert found["rows"] == [
        {"browser": "Firefox", "loads": 10, "counted": 6, "unseen": 4},
        {"browser": "Chrome", "loads": 8, "counted": 0, "unseen": 8},
    ]
    assert (await blind_spot(server, "by=path"))["rows"] == [
        {"path": "/", "loads": 14, "counted": 2, "unseen": 12},
        {"path": "/a", "loads": 4, "counted": 3, "unseen": 1},
    ]
    assert (await blind_spot(server, "by=day"))["rows"] == [
        {"date": day(server, 1), "loads": 9, "counted": 0, "unseen": 9},
        {"date": day(server), "loads": 9, "counted": 6, "unseen": 3},
    ]
    assert len((await blind_spot(server, "by=path&limit=1"))["rows"]) == 1


@pytest_twisted.ensureDeferred
async def test_exclusions_leave_out_nothing_that_the_tracker_saw(
    server: Server, visitor: Browser
) -> None:
    await followed(server, 2, 1, 0)
    for number, path in enumerate(("/", "/a", "/a")):
        await view(visitor, number, path)
    before = await partly(server, "by=path")
    exclusion = {"name": "Mine", "filters": "path[eq]=/a"}
    owner = await server.owner()
    answer = await owner.ask("POST", "/websites/example.com/exclusions", exclusion)
    assert answer.status == 201
    assert await partly(server, "by=path") == before == (before[0], None)
    assert before[0]["counted"] == 3


@pytest_twisted.ensureDeferred
async def test_views_of_paths_beyond_the_limit_of_loads_are_other_ones(
    server: Server, visitor: Browser
) -> None:
    (website,) = server.store.websites.all()
    today = int(server.now) // DAY_S
    loads = {"Firefox": {"/": 3, "/a": 2, "(other)": 5}}
    counts = LogCounts(loads={website.number: {today - age: loads for age in (1, 0)}})
    await server.store.follow_log(LogPosition("/log", 1), counts)
    for number, path in enumerate(("/b", "/b", "/c", "/c", "/", "/a", "/a", "/a")):
        await view(visitor, number, path)
    assert (await blind_spot(server, "by=path"))["rows"] == [
        {"path": "(other)", "loads": 5, "counted": 5, "unseen": 0},
        {"path": "/", "loads": 3, "counted": 1, "unseen": 2},
        {"path": "/a", "loads": 2, "counted": 2, "unseen": 0},
    ]


@pytest_twisted.ensureDeferred
async def test_views_before_a_gap_and_outside_the_period_are_left_out(
    server: Server, visitor: Browser
) -> None:
    await view(visitor, 1, "/")
    server.now += 2 * DAY_S
    await followed(server, 5, 4, 3, 1, 0)
    await view(visitor, 2, "/")
    found = await blind_spot(server)
    assert (found["first"], found["last"]) == (day(server, 1), day(server))
    assert (found["loads"], found["counted"]) == (30, 1)
    found = await blind_spot(server, f"end={day(server, 3)}T12:00:00Z")
    assert (found["first"], found["last"]) == (day(server, 4), day(server, 3))
    assert (found["loads"], found["counted"]) == (30, 0)


@pytest_twisted.ensureDeferred
async def test_damaged_days_are_named_and_end_the_days_that_are_compared(server: Server) -> None:
    await followed(server, 5, 4, 3, 2, 1, 0)
    damage(server, 5, 2)
    found, partial = await partly(server)
    assert (found["first"], found["last"], found["loads"]) == (day(server, 1), day(server), 30)
    assert partial == f'damaged="{day(server, 5)}/{day(server, 2)}"'
    found, partial = await partly(server, f"end={day(server, 3)}T12:00:00Z")
    # The first day is known to have been followed, though not from when.
    assert (found["first"], found["last"]) == (day(server, 4), day(server, 3))
    assert partial == f'damaged="{day(server, 5)}/{day(server, 5)}"'
    found, partial = await partly(server, f"start={day(server, 1)}T12:00:00Z")
    assert (found["loads"], partial) == (30, None)


def damage(server: Server, *ages: int) -> None:
    """Damage the totals of days in followed logs."""
    environment = server.store.environment
    robots, days = environment.databases.robots, [int(server.now) // DAY_S - age for age in ages]
    with environment.lmdb.begin(write=True) as txn, txn.cursor(db=robots) as cursor:
        for key, value in cursor:
            if int.from_bytes(key[5:9], "big") in days:
                txn.put(key, value[:-1], db=robots)


async def partly(server: Server, query: str = "") -> tuple[Any, str | None]:
    answer = await (await server.owner()).ask("GET", f"/website/example.com/blind-spot?{query}")
    return answer.json, answer.header("X-Medamad-Partial")


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("by=os", "by: expected one of browser, path, day"),
        ("browser[eq]=x", "browser[eq]: page loads in logs cannot be filtered"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_wrong_parameters_are_named(owner: Browser, query: str, error: str) -> None:
    answer = await owner.ask("GET", f"/website/example.com/blind-spot?{query}")
    assert (answer.status, answer.error) == (400, error)
