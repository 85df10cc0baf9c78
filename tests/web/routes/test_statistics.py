from datetime import UTC, datetime
from ipaddress import ip_network

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.ingest.networks import Networks
from medamad.storage.settings import Keep, Retention

TABLES = {
    "pages": "path",
    "time": "path",
    "referrers": "referrer",
    "sources": "source",
    "mediums": "medium",
    "campaigns": "campaign",
    "terms": "term",
    "contents": "content",
    "browsers": "browser",
    "os": "os",
    "devices": "device",
    "countries": "country",
    "languages": "language",
    "hosting": "hosting",
}
WITH_ROWS = [*TABLES, "properties"]
ALL = [*WITH_ROWS, "summary"]
OURS = [*ALL, "live", "ignored"]
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
UTM = "utm_source=s&utm_medium=m&utm_campaign=c&utm_term=t&utm_content=x"


async def visit(owner: Browser) -> None:
    """One visitor sees two pages, for four seconds and for nine; another the second one."""
    headers = {"User-Agent": FIREFOX, "Accept-Language": "en-GB"}
    for body in (
        {
            "e": "load",
            "b": "b1",
            "u": f"https://example.com/a/?{UTM}",
            "p": True,
            "q": True,
            "r": "https://www.google.com/search?q=x",
            "t": "Europe/London",
            "d": {"plan": "free"},
        },
        {"e": "unload", "b": "b1", "m": 4000},
        {"e": "load", "b": "b2", "u": "https://example.com/b", "p": False, "q": True},
        {"e": "unload", "b": "b2", "m": 9000},
        {"e": "load", "b": "b3", "u": "https://example.com/b", "p": True, "q": True},
    ):
        assert (await owner.ask("POST", "/event/hit", body, headers=headers)).status == 204


async def get(owner: Browser, rest: str) -> object:
    answer = await owner.ask("GET", f"/website/example.com/{rest}")
    assert answer.status == 200, answer.body
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.header("Cache-Control") == "no-store"
    return answer.json


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_website_without_hits_has_empty_statistics(owner: Browser) -> None:
    for name in WITH_ROWS:
        assert await get(owner, name) == []
        answer = await owner.ask("GET", f"/api/website/example.com/{name}?summary=true")
        assert (answer.status, answer.json) == (200, [])
    assert await get(owner, "summary") == {
        "current": {"visitors": 0, "pageviews": 0, "bounce_percentage": 0, "duration": 0}
    }
    assert await get(owner, "live") == {"visitors": 0}
    assert await get(owner, "ignored") == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_statistics_of_a_few_visits(owner: Browser) -> None:
    await visit(owner)
    assert await get(owner, "summary") == {
        "current": {"visitors": 2, "pageviews": 3, "bounce_percentage": 1.0, "duration": 6500}
    }
    assert await get(owner, "pages") == [
        {
            "path": "/b",
            "visitors": 2,
            "visitors_percentage": 0.6667,
            "pageviews": 2,
            "pageviews_percentage": 0.6667,
            "bounce_percentage": 0,
            "duration": 9000,
        },
        {
            "path": "/a",
            "visitors": 1,
            "visitors_percentage": 0.3333,
            "pageviews": 1,
            "pageviews_percentage": 0.3333,
            "bounce_percentage": 1.0,
            "duration": 4000,
        },
    ]
    assert await get(owner, "time?summary=true") == [
        {"path": "/b", "duration": 9000, "duration_percentage": 0.6923},
        {"path": "/a", "duration": 4000, "duration_percentage": 0.3077},
    ]
    assert await get(owner, "countries") == [
        {
            "country": name,
            "visitors": 1,
            "visitors_percentage": 0.5,
            "bounce_percentage": bounce,
            "duration": duration,
        }
        for name, bounce, duration in (("Unknown", 0, 9000), ("United Kingdom", 1.0, 4000))
    ]
    assert await get(owner, "properties") == [
        {"name": "plan", "events": 1, "events_percentage": 1.0}
    ]
    assert await get(owner, "properties?prop_name=plan") == [
        {"name": "plan", "value": "free", "events": 1, "events_percentage": 1.0}
    ]
    assert await get(owner, "live") == {"visitors": 1}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_rows_have_views_and_are_ordered_by_them_on_request(owner: Browser) -> None:
    await visit(owner)
    for body in (
        {"e": "load", "b": "b4", "u": "https://example.com/c", "p": False, "q": True},
        {"e": "load", "b": "b5", "u": "https://example.com/c", "p": False, "q": False},
        {"e": "load", "b": "b6", "u": "https://example.com/c", "p": False, "q": False},
    ):
        assert (await owner.ask("POST", "/event/hit", body)).status == 204
    assert await get(owner, "browsers?summary=true&views=true&order=pageviews") == [
        {"browser": name, "visitors": visitors, "visitors_percentage": share, "pageviews": 3}
        for name, visitors, share in (("Firefox", 2, 1.0), ("Unknown", 0, 0.0))
    ]
    pages = await get(owner, "pages?summary=true&views=true&order=pageviews")
    assert isinstance(pages, list)
    assert [(row["path"], row["visitors"], row["pageviews"]) for row in pages] == [
        ("/c", 1, 3),
        ("/b", 2, 2),
        ("/a", 1, 1),
    ]
    assert all("pageviews_percentage" not in row for row in pages)
    assert await get(owner, "pages?views=true") == await get(owner, "pages")
    assert await get(owner, "pages?order=visitors") == await get(owner, "pages")


@pytest.mark.parametrize(
    ("rest", "values"),
    [
        ("referrers", ["", "Google"]),
        ("referrers?grouped=true", ["", "Google"]),
        ("referrers?grouped=false", ["", "google.com/search"]),
        ("sources", ["", "s"]),
        ("mediums", ["", "m"]),
        ("campaigns", ["", "c"]),
        ("terms", ["", "t"]),
        ("contents", ["", "x"]),
        ("browsers", ["Firefox"]),
        ("os", ["Linux"]),
        ("devices", ["Desktop"]),
        ("countries", ["Unknown", "United Kingdom"]),
        ("languages", ["English"]),
        ("hosting", ["false"]),
        ("hosting?hosting=true", []),
        ("languages?locale=1", ["British English"]),
        ("languages?locale=false", ["English"]),
        ("time", ["/b", "/a"]),
        ("pages?limit=1", ["/b"]),
        ("pages?limit=1&offset=1", ["/a"]),
        ("pages?offset=2", []),
        ("pages?limit=1&limit=5000", ["/b", "/a"]),
        ("pages?path=/A", ["/a"]),
        ("pages?path[neq]=/a", ["/b"]),
        ("pages?path%5Bstarts_with%5D=%2F&browser[eq]=firefox", ["/b", "/a"]),
        ("pages?path[in]=/a,/c&path[in]=/d", ["/a"]),
        ("pages?utm_term=t", ["/a"]),
        ("pages?prop_name=plan&prop_value[contains]=re", ["/a"]),
        ("pages?start=2025-06-15T15:06:40Z&end=2025-06-15T15:06:40Z", ["/b", "/a"]),
        ("pages?start=2025-06-15T17:06:40+02:00", ["/b", "/a"]),
        ("pages?start=2025-06-15T17:06:40%2B02:00", ["/b", "/a"]),
        ("pages?start=2025-06-15T15:06:41Z", []),
        ("pages?end=2025-06-15T15:06:39Z", []),
        ("pages?order=visitors", ["/b", "/a"]),
        ("time?order=name&views=maybe", ["/b", "/a"]),
        ("pages?unknown=1&interval=year&previous=maybe&grouped=maybe", ["/b", "/a"]),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_parameters_select_rows(owner: Browser, rest: str, values: list[str]) -> None:
    await visit(owner)
    rows = await get(owner, rest)
    assert isinstance(rows, list)
    column = TABLES[rest.partition("?")[0]]
    assert [row[column] for row in rows] == values


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_summary_over_time(server: Server, owner: Browser) -> None:
    await visit(owner)
    server.now += 3600
    figures = {"visitors": 2, "pageviews": 3, "bounce_percentage": 1.0, "duration": 6500}
    nothing = {"visitors": 0, "pageviews": 0, "bounce_percentage": 0, "duration": 0}
    period = "start=2025-06-15T15:00:00Z&end=2025-06-15T16:59:59Z"
    answer = await get(owner, f"summary?{period}&previous=true&interval=hour&timezone=Asia/Kolkata")
    assert answer == {
        "current": figures,
        "previous": nothing,
        "interval": [
            {"date": "2025-06-15T20:00:00+05:30"} | figures,
            {"date": "2025-06-15T21:00:00+05:30"} | nothing,
            {"date": "2025-06-15T22:00:00+05:30"} | nothing,
        ],
    }
    answer = await get(owner, "summary?interval=day")
    assert isinstance(answer, dict)
    assert [bucket["date"] for bucket in answer["interval"]] == ["2025-06-15T00:00:00+00:00"]
    assert "interval" not in await get(owner, f"summary?{period}&previous=false")


COMMON = [
    ("start=yesterday", "start"),
    ("start=", "start"),
    ("start=2025-06-15", "start"),
    ("start=2025-02-30T00:00:00Z", "start"),
    ("end=2025-06-15T00:00:00", "end"),
    ("end=2025-06-15T25:00:00Z", "end"),
    ("start=2025-06-15T00:00:01Z&end=2025-06-15T00:00:00Z", "start"),
    ("path[like]=x", "path[like]"),
    ("path[]=x", "path[]"),
    ("prop_name[regex]=x", "prop_name[regex]"),
    ("hosting=yes", "hosting"),
    ("hosting[neq]=true", "hosting[neq]"),
    ("os[eq]=%zz", "os[eq]"),
    ("os[eq]=%ff", "os[eq]"),
    ("%zz", "query"),
]
OF_ROWS = [
    ("limit=0", "limit"),
    ("limit=5001", "limit"),
    ("limit=-1", "limit"),
    ("limit=", "limit"),
    ("limit=1.5", "limit"),
    ("limit=" + "9" * 5000, "limit"),
    ("offset=-1", "offset"),
    ("offset=5001", "offset"),
    ("offset=x", "offset"),
    ("summary=maybe", "summary"),
    ("summary=", "summary"),
]
OF_VIEWS = [
    *OF_ROWS,
    ("views=maybe", "views"),
    ("views=", "views"),
    ("order=", "order"),
    ("order=Visitors", "order"),
    ("order=duration", "order"),
]
OF_SUMMARY = [
    ("previous=true", "previous"),
    ("previous=true&start=2025-06-15T00:00:00Z", "previous"),
    ("previous=true&end=2025-06-15T00:00:00Z", "previous"),
    ("previous=maybe", "previous"),
    ("interval=year", "interval"),
    ("interval=", "interval"),
    ("interval=Day", "interval"),
    ("interval=day&timezone=Nowhere/City", "timezone"),
    ("timezone=", "timezone"),
    ("timezone=../../etc/passwd", "timezone"),
    ("timezone=a%00b", "timezone"),
    ("interval=minute&start=2020-01-01T00:00:00Z&end=2025-01-01T00:00:00Z", "interval"),
]


OF_ONE = {
    "summary": OF_SUMMARY,
    "properties": [wrong for wrong in OF_ROWS if wrong[1] != "summary"],
    "time": [*OF_ROWS, ("total=maybe", "total"), ("total=", "total")],
    "referrers": [*OF_VIEWS, ("grouped=maybe", "grouped")],
    "languages": [*OF_VIEWS, ("locale=", "locale")],
}


@pytest.mark.usefixtures("website")
@pytest.mark.parametrize("name", ALL)
@pytest_twisted.ensureDeferred
async def test_an_invalid_parameter_is_400_and_named(owner: Browser, name: str) -> None:
    for query, field in (*COMMON, *OF_ONE.get(name, OF_VIEWS)):
        answer = await owner.ask("GET", f"/website/example.com/{name}?{query}")
        assert (answer.status, query) == (400, query)
        assert answer.error.startswith(f"{field}: ")


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("prefix", ["/", "/api/"])
@pytest_twisted.ensureDeferred
async def test_401_comes_first(visitor: Browser, prefix: str, name: str) -> None:
    for hostname in ("example.com", "a" * 254, "%zz"):
        for query in ("", "?limit=0&start=x&path[x]=1", "?%zz"):
            answer = await visitor.ask("GET", f"{prefix}website/{hostname}/{name}{query}")
            assert answer.status == 401
            assert answer.error


@pytest.mark.parametrize("name", OURS)
@pytest_twisted.ensureDeferred
async def test_an_unknown_website_is_404_and_an_invalid_one_400(owner: Browser, name: str) -> None:
    for hostname, status, field in [
        ("unknown.example", 404, "hostname"),
        ("a" * 254, 400, "hostname"),
        ("a_b", 400, "hostname"),
        ("a%2Fb", 400, "hostname"),
        ("%C3", 400, "path"),
    ]:
        answer = await owner.ask("GET", f"/website/{hostname}/{name}")
        assert answer.status == status
        assert answer.error.startswith(f"{field}: ")


@pytest.mark.usefixtures("website")
@pytest.mark.parametrize("name", OURS)
@pytest_twisted.ensureDeferred
async def test_statistics_support_only_get(owner: Browser, name: str) -> None:
    head = await owner.ask("HEAD", f"/website/example.com/{name}")
    assert (head.status, head.body) == (200, b"")
    shown = await owner.ask("GET", f"/website/example.com/{name}")
    assert head.header("Content-Length") == str(len(shown.body))
    for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE"):
        answer = await owner.ask(method, f"/website/example.com/{name}")
        assert answer.status == 405
        assert answer.header("Allow") == "GET, HEAD, OPTIONS"
        assert answer.error


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_views_of_hosting_networks_are_told_apart_once_there_is_a_list(
    server: Server, owner: Browser
) -> None:
    await visit(owner)
    assert "hosting_known" not in await get(owner, "summary?visits=true")
    networks = Networks([ip_network("203.0.113.0/24")])
    server.pipeline.rules = evolve(server.pipeline.rules, hosting=networks)
    hit = {"e": "load", "b": "h1", "u": "https://example.com/h", "p": True, "q": True}
    await owner.ask("POST", "/event/hit", hit, headers={"User-Agent": FIREFOX})
    assert "hosting_known" not in await get(owner, "summary")
    summary = await get(owner, "summary?visits=true")
    assert isinstance(summary, dict)
    assert summary["hosting_known"] is True
    rows = await get(owner, "hosting?summary=true&views=true&visits=true")
    assert rows == [
        {"hosting": "false", "visitors": 2, "visitors_percentage": 0.6667, "pageviews": 3,
         "visits": 2, "visits_percentage": 0.6667},
        {"hosting": "true", "visitors": 1, "visitors_percentage": 0.3333, "pageviews": 1,
         "visits": 1, "visits_percentage": 0.3333},
    ]  # fmt: skip
    pages = await get(owner, "pages?hosting[eq]=true")
    assert [row["path"] for row in pages] == ["/h"]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_hostnames_are_normalised(owner: Browser) -> None:
    await visit(owner)
    answer = await owner.ask("GET", "/website/EXAMPLE.com./live")
    assert answer.json == {"visitors": 1}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_ignored_hits_are_counted_by_reason(server: Server, owner: Browser) -> None:
    hit = {"e": "load", "b": "b", "u": "http://example.com/", "p": True, "q": True}
    for _ in range(2):
        await owner.ask("POST", "/event/hit", hit, headers={"User-Agent": "Googlebot/2.1"})
    await owner.ask("POST", "/event/hit", hit | {"r": "http://spam.example/"})
    assert await get(owner, "ignored") == [
        {"reason": "bot", "hits": 2, "last": NOW},
        {"reason": "spam", "hits": 1, "last": NOW},
    ]
    server.now += 90_000
    assert await get(owner, "ignored") == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_response_says_what_daily_totals_lack(server: Server, owner: Browser) -> None:
    await visit(owner)
    known = [name for name in ALL if name != "hosting"]
    before = [await get(owner, name) for name in known]
    server.store.apply(evolve(server.store.settings, retention=Retention(others=Keep(1))))
    await server.store.maintain(int((server.now + 3 * 86_400) * 1000))
    assert [await get(owner, name) for name in known] == before
    day = datetime.fromtimestamp(server.now, UTC).date().isoformat()
    cut = f"start={day}T00:00:01Z"
    for rest, partial in (
        ("summary", None),
        ("pages?path=/a", None),
        ("pages?country=France", None),
        ("pages?country=United+Kingdom", f'figures="{day}/{day}"'),
        (f"properties?{cut}", f'figures="{day}/{day}"'),
        ("summary?country=United+Kingdom", f'durations="{day}/{day}"'),
        (f"summary?interval=hour&start={day}T00:00:00Z", f'interval="{day}/{day}"'),
        (f"export?what=statistics&{cut}", f'figures="{day}/{day}"'),
        ("summary?visits=true", None),
        ("entries", None),
        ("entries?path=/a", f'visits="{day}/{day}"'),
        (f"changes?start={day}T00:00:00Z&end={day}T23:59:59Z", None),
        (
            f"changes?start={day}T00:00:00Z&end={day}T23:59:59Z&path=/a",
            f'visits="{day}/{day}"',
        ),
        (f"changes?start={day}T00:00:01Z&end={day}T23:59:59Z", f'visits="{day}/{day}"'),
        ("next?of=/a", f'visits="{day}/{day}"'),
        ("pages?path=/a&visits=true", f'visits="{day}/{day}"'),
        ("hosting", f'figures="{day}/{day}"'),
        ("pages?hosting=false", f'figures="{day}/{day}"'),
        # Networks of hosting providers; and the visits of properties.
        (
            f"export?what=statistics&start={day}T00:00:00Z&end={day}T23:59:59.999Z",
            f'figures="{day}/{day}"',
        ),
        ("export?what=views", f'figures="{day}/{day}"'),
        (f"export?what=views&start={day}T00:00:01Z&end={day}T23:00:00Z", f'figures="{day}/{day}"'),
        ("export?what=views&end=2020-01-01T00:00:00Z", None),
        ("export?what=events", f'figures="{day}/{day}"'),
    ):
        answer = await owner.ask("GET", f"/website/example.com/{rest}")
        assert (rest, answer.status, answer.header("X-Medamad-Partial")) == (rest, 200, partial)


async def read_pages(owner: Browser, *pages: tuple[str, str, int]) -> None:
    """Load pages as the tracker does: each with its path, its referrer and its number today."""
    headers = {"User-Agent": FIREFOX, "Accept-Language": "en-GB"}
    for path, referrer, number in pages:
        body = {
            "e": "load",
            "b": f"{path} {number}",
            "u": f"https://example.com{path}",
            "r": referrer,
            "p": number == 1,
            "q": True,
            "n": number,
            "t": "Europe/London",
            "w": 1_500,
        }
        assert (await owner.ask("POST", "/event/hit", body, headers=headers)).status == 204


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_visits_of_a_tracker(server: Server, owner: Browser) -> None:
    await read_pages(
        owner,
        ("/", "https://www.google.com/", 1),
        ("/prices", "https://example.com/", 2),
        ("/order", "https://example.com/prices", 3),
    )
    server.now += 3_600
    await read_pages(owner, ("/prices", "", 4))
    server.now += 1
    figures = {
        "visits": 2,
        "visit_pageviews": 4,
        "views_per_visit": 2.0,
        "visit_bounce_percentage": 0.5,
        "visit_duration": 0,
    }
    summary = await get(owner, "summary?visits=true")
    assert isinstance(summary, dict)
    assert summary["current"].items() >= figures.items()
    assert await get(owner, "entries?summary=true") == [
        {"path": "/", "visits": 1, "visits_percentage": 0.5},
        {"path": "/prices", "visits": 1, "visits_percentage": 0.5},
    ]
    assert await get(owner, "exits") == [
        {"path": "/order", "visits": 1, "visits_percentage": 0.5, "exit_percentage": 1.0},
        {"path": "/prices", "visits": 1, "visits_percentage": 0.5, "exit_percentage": 0.5},
    ]
    assert await get(owner, "next?of=/prices") == [
        {"path": "", "views": 1, "views_percentage": 0.5},
        {"path": "/order", "views": 1, "views_percentage": 0.5},
    ]
    assert await get(owner, "previous?of=/prices") == [
        {"path": "", "views": 1, "views_percentage": 0.5},
        {"path": "/", "views": 1, "views_percentage": 0.5},
    ]
    assert await get(owner, "referrers?visits=true&summary=true&order=visits") == [
        {
            "referrer": "",
            "visitors": 0,
            "visitors_percentage": 0.0,
            "visits": 1,
            "visits_percentage": 0.5,
        },
        {
            "referrer": "Google",
            "visitors": 1,
            "visitors_percentage": 1.0,
            "visits": 1,
            "visits_percentage": 0.5,
        },
    ]


@pytest.mark.parametrize("name", ["entries", "exits", "next?of=/", "previous?of=/"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_without_visits_there_are_no_statistics_of_them(
    server: Server, owner: Browser, name: str
) -> None:
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    await read_pages(owner, ("/", "", 1))
    answer = await owner.ask("GET", f"/website/example.com/{name}")
    assert (answer.status, "visits are switched off" in answer.error) == (404, True)
    for rest, parameter in (
        ("summary?visits=true", "visits"),
        ("pages?visits=true", "visits"),
        ("pages?order=visits", "order"),
    ):
        answer = await owner.ask("GET", f"/website/example.com/{rest}")
        assert answer.status == 400
        assert answer.error.startswith(f"{parameter}: visits are switched off")
    server.store.apply(settings)
    assert await get(owner, "entries") == []


@pytest.mark.parametrize("target", ["summary", "pages", "entries", "goals", "next"])
@pytest_twisted.ensureDeferred
async def test_new_and_returning_visitors_can_be_filtered_by_only_if_configured(
    server: Server, owner: Browser, website: str, target: str
) -> None:
    path = f"/website/{website}/{target}?of=/&visitor[eq]="
    answer = await owner.ask("GET", path + "new")
    reason = "visitor: returning visitors are switched off in the configuration"
    assert (answer.status, answer.error) == (400, f"{reason} ([events] returning)")
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=True)
    assert (await owner.ask("GET", path + "returning")).status == 200


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("visitor=old", "visitor: expected one of new, returning"),
        ("visitor[eq]=", "visitor[eq]: expected one of new, returning"),
        ("visitor[neq]=new", "visitor[neq]: expected the operator eq"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_filter_by_other_visitors_is_400(
    owner: Browser, website: str, query: str, message: str
) -> None:
    answer = await owner.ask("GET", f"/website/{website}/summary?{query}")
    assert (answer.status, answer.error) == (400, message)


@pytest.mark.parametrize(
    ("is_on", "query"), [(True, "visits=true"), (True, ""), (False, "visits=true")]
)
@pytest_twisted.ensureDeferred
async def test_a_summary_with_visits_has_new_visitors_if_configured(
    server: Server, owner: Browser, website: str, query: str, *, is_on: bool
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=is_on)
    load = {"e": "load", "b": "b1", "u": f"https://{website}/", "p": True, "q": True}
    assert (await owner.ask("POST", "/event/hit", load | {"since": "new"})).status == 204
    week = "start=2025-06-09T00:00:00Z&end=2025-06-15T23:59:59Z"
    answer = await owner.ask("GET", f"/website/{website}/summary?{week}&{query}")
    current = answer.json["current"]
    found = {name: value for name, value in current.items() if name.endswith("_visitors")}
    expected = {"new_visitors": 1, "returning_visitors": 0, "week_visitors": 1}
    assert found == (expected if is_on and query else {})


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("visit_views[gte]=2", ["/", "/prices"]),
        ("visit_views[lte]=1", ["/order"]),
        ("visit_bounce[eq]=true", ["/order"]),
        ("visit_bounce=false&visit_duration[gte]=64000", ["/", "/prices"]),
        ("visit_duration[lte]=63999", ["/order"]),
        ("duration[lte]=4000", ["/"]),
        ("duration[gte]=1&visit_bounce=true", []),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_filters_on_behaviour(
    server: Server, owner: Browser, query: str, paths: list[str]
) -> None:
    await read_pages(owner, ("/", "", 1), ("/prices", "https://example.com/", 2))
    server.now += 3_600
    await read_pages(owner, ("/order", "", 3))
    for beacon, duration_ms in (("/ 1", 4_000), ("/prices 2", 60_000)):
        unload = {"e": "unload", "b": beacon, "m": duration_ms}
        assert (await owner.ask("POST", "/event/hit", unload)).status == 204
    rows = await get(owner, f"pages?{query}")
    assert isinstance(rows, list)
    assert sorted(row["path"] for row in rows) == paths
