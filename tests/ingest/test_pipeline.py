import json
from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest
import pytest_twisted
from attrs import evolve
from msgspec import structs
from msgspec.structs import replace
from support.received_hits import received
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.logger import LogLevel, capturedLogs, formatEvent

from medamad.domain.dimensions import VIEW_DIMENSIONS, WidthClass
from medamad.domain.errors import BadRequest, NotFound, TooMany, Unavailable
from medamad.domain.hits import NUMBERS_OF_HITS, Hit, View
from medamad.ingest.networks import Networks, Sender, address_of
from medamad.ingest.payload import LoadPayload
from medamad.ingest.pipeline import Pipeline, Rules
from medamad.ingest.robot_counts import PendingRobots
from medamad.ingest.write_queue import QueueSettings, WriteQueue
from medamad.lookup.referrers import SpamHosts
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

NOW = 1_790_000_000.25
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:131.0) Gecko/20100101 Firefox/131.0"
SENDER = Sender(address_of("203.0.113.9"), FIREFOX, "fr-CH, fr;q=0.9")
LOAD = {
    "e": "load",
    "b": "beacon-1",
    "u": "https://www.Example.com/shop/?utm_source=News&utm_medium=mail&utm_campaign=spring"
    "&utm_term=shoes&utm_content=top",
    "p": True,
    "q": False,
    "r": "https://www.search.example/find?q=x",
    "t": "Europe/Zurich",
    "n": 2,
    "w": 1440,
    "d": {"plan": "pro", "seats": 3},
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = start_store(tmp_path, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)
    pytest_twisted.blockon(Deferred.fromCoroutine(opened.add_website("example.com", 1)))
    yield opened
    pytest_twisted.blockon(Deferred.fromCoroutine(opened.close()))


@pytest.fixture
def pipeline(store: Store) -> Pipeline:
    return Pipeline(
        store.websites,
        WriteQueue(store.append, reactor),
        PendingRobots(store.robots.add),
        Rules(
            blocked=Networks([ip_network("198.51.100.0/24")]),
            spam=SpamHosts(["spam.example"]),
            hits_per_minute=0,
        ),
        lambda: NOW,
    )


async def send(pipeline: Pipeline, sender: Sender = SENDER, **changes: object) -> str | None:
    return await received(pipeline, json.dumps(LOAD | changes).encode(), sender)


def stored_views(store: Store) -> list[dict[str, object]]:
    return store.read(store.websites.all()[0], views_of)


def views_of(snapshot: Snapshot) -> list[dict[str, object]]:
    return [
        {
            dimension.attribute: snapshot.texts(dimension)[part.codes(dimension)[row]]
            for dimension in VIEW_DIMENSIONS
        }
        | {name: getattr(part, name)[row].item() for name in ("time_ms", "flags", "duration_ms")}
        | {number.attribute: part.numbers(number)[row].item() for number in NUMBERS_OF_HITS}
        for part in snapshot.parts
        for row in range(len(part))
    ]


@pytest.mark.parametrize("logs", [True, False])
@pytest_twisted.ensureDeferred
async def test_ignored_hits_are_logged_only_if_configured(
    pipeline: Pipeline, *, logs: bool
) -> None:
    pipeline.rules = evolve(pipeline.rules, logs_uncounted=logs)
    with capturedLogs() as logged:
        assert await send(pipeline, r="https://spam.example/") == "spam"
        with pytest.raises(BadRequest):
            await send(pipeline, p="yes")
        assert await send(pipeline) is None
    messages = [
        "a hit of example.com does not count: spam",
        "a hit of no website does not count: malformed",
    ]
    assert [formatEvent(event) for event in logged] == (messages if logs else [])
    assert {event["log_level"] for event in logged} <= {LogLevel.debug}


@pytest_twisted.ensureDeferred
async def test_a_view_is_stored_with_every_known_column(pipeline: Pipeline, store: Store) -> None:
    assert await send(pipeline) is None
    assert stored_views(store) == [
        {
            "path": "/shop",
            "referrer": "search.example/find",
            "utm_source": "News",
            "utm_medium": "mail",
            "utm_campaign": "spring",
            "utm_term": "shoes",
            "utm_content": "top",
            "browser": "Firefox",
            "browser_version": "131",
            "os": "Windows",
            "os_version": "10",
            "device": "Desktop",
            "country": "CH",
            "locale": "fr-CH",
            "host": "www.example.com",
            "since": "",
            "time_ms": 1_790_000_000_250,
            "flags": 1,
            "duration_ms": 0,
            "width_class": WidthClass.DESKTOP,
        }
    ]
    (events,) = store.read(store.websites.all()[0], lambda seen: seen.events)
    assert len(events) == 2


@pytest_twisted.ensureDeferred
async def test_unloads_and_events_find_their_view(pipeline: Pipeline, store: Store) -> None:
    await send(pipeline)
    for body in (
        {"e": "unload", "b": "beacon-1", "m": 4200},
        {"e": "custom", "g": "example.com", "d": {"clicked": True}, "b": "beacon-1"},
    ):
        assert await received(pipeline, json.dumps(body).encode(), SENDER) is None
    assert stored_views(store)[0]["duration_ms"] == 4200
    (events,) = store.read(store.websites.all()[0], lambda seen: seen.events)
    assert len(set(events.view.tolist())) == 1


BOT = replace(SENDER, user_agent="Mozilla/5.0 (compatible; Googlebot/2.1)")
BLOCKED = replace(SENDER, address=address_of("198.51.100.7"))
OBJECTING = replace(SENDER, gpc=True)
SPAM = {"r": "https://buy.spam.example/now"}


@pytest.mark.parametrize(
    ("sender", "changes", "reason"),
    [
        (BOT, {}, "bot"),
        (BLOCKED, {}, "blocked"),
        (SENDER, SPAM, "spam"),
        (BLOCKED, SPAM, "blocked"),
        (BOT, {"e": "custom", "g": "example.com"}, "bot"),
        (OBJECTING, {}, "gpc"),
        (OBJECTING, SPAM, "gpc"),
        (OBJECTING, {"e": "custom", "g": "example.com"}, "gpc"),
        (replace(BOT, gpc=True), {}, "bot"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_ignored_hits_are_counted_by_reason(
    pipeline: Pipeline, store: Store, sender: Sender, changes: dict[str, object], reason: str
) -> None:
    pipeline.rules = evolve(pipeline.rules, respect_gpc=True)
    assert await send(pipeline, sender, **changes) == reason
    assert pipeline.accepted.last_day(NOW) == 0
    assert stored_views(store) == []
    website = store.websites.all()[0]
    assert [(r.reason, r.hits, r.last) for r in pipeline.uncounted.of(website.number, NOW)] == [
        (reason, 1, int(NOW))
    ]


def of_page(origin: str) -> Sender:
    return replace(SENDER, origin=origin)


OWN = ("", "null", "https://example.com", "https://www.example.com:8443", "https://a.example.com")
STRANGE = ("https://evil.example", "http://example.com.evil.example", "https://[::1]")
EVENT = {"e": "custom", "g": "example.com"}


@pytest.mark.parametrize("changes", [{}, EVENT])
@pytest_twisted.ensureDeferred
async def test_a_page_reports_for_its_own_website(
    pipeline: Pipeline, changes: dict[str, object]
) -> None:
    for number, origin in enumerate(OWN):
        assert await send(pipeline, of_page(origin), b=str(number), **changes) is None
    for origin in STRANGE:
        assert await send(pipeline, of_page(origin), b=origin, **changes) == "origin"
    assert [(one.reason, one.hits) for one in pipeline.uncounted.of_all(NOW)] == [
        ("origin", len(STRANGE))
    ]
    assert pipeline.accepted.last_day(NOW) == len(OWN)


@pytest.mark.parametrize("early", [False, True])
@pytest_twisted.ensureDeferred
async def test_a_page_cannot_report_views_of_another_website(
    pipeline: Pipeline, store: Store, early: bool
) -> None:
    await store.add_website("other.example", 1)
    if not early:
        await send(pipeline)
    for origin, duration_ms, ignored in (
        ("https://other.example", 9_000, None),
        ("https://evil.example", 8_000, "origin"),
        ("https://www.example.com", 5_000, None),
        ("null", 4_000, None),
    ):
        body = json.dumps({"e": "unload", "b": "beacon-1", "m": duration_ms}).encode()
        assert await received(pipeline, body, of_page(origin)) == ignored
    if early:
        await send(pipeline)
    assert [view["duration_ms"] for view in stored_views(store)] == [5_000]


@pytest_twisted.ensureDeferred
async def test_any_page_may_report_if_origins_are_open(pipeline: Pipeline, store: Store) -> None:
    pipeline.rules = evolve(pipeline.rules, origins="any")
    assert await send(pipeline, of_page("https://evil.example")) is None
    body = json.dumps({"e": "unload", "b": "beacon-1", "m": 8_000}).encode()
    assert await received(pipeline, body, of_page("https://evil.example")) is None
    assert [view["duration_ms"] for view in stored_views(store)] == [8_000]


@pytest_twisted.ensureDeferred
async def test_an_event_is_not_attached_to_a_view_of_another_website(
    pipeline: Pipeline, store: Store
) -> None:
    await store.add_website("other.example", 1)
    await send(pipeline, d={})
    body = {"e": "custom", "g": "other.example", "d": {"x": 1}, "b": "beacon-1"}
    assert await received(pipeline, json.dumps(body).encode(), SENDER) is None
    (events,) = store.read(store.websites.by_hostname("other.example"), lambda seen: seen.events)
    assert events.view.tolist() == [0]


@pytest_twisted.ensureDeferred
async def test_the_unload_of_a_bot_is_ignored_too(pipeline: Pipeline) -> None:
    body = b'{"e": "unload", "b": "x", "m": 1}'
    assert await received(pipeline, body, BOT) == "bot"


@pytest_twisted.ensureDeferred
async def test_privacy_signals_are_honoured_only_if_configured(
    pipeline: Pipeline, store: Store
) -> None:
    assert await send(pipeline, OBJECTING) is None
    assert len(stored_views(store)) == 1


@pytest_twisted.ensureDeferred
async def test_a_view_from_the_pixel_is_stored_like_any_other(
    pipeline: Pipeline, store: Store
) -> None:
    load = LoadPayload("b1", "https://example.com/a", first_today=True, first_of_page=True)
    assert await received(pipeline, load, SENDER) is None
    assert await received(pipeline, load, BLOCKED) == "blocked"
    with pytest.raises(NotFound):
        await received(pipeline, structs.replace(load, url="https://x.example/"), SENDER)
    (view,) = stored_views(store)
    assert (view["path"], view["flags"]) == ("/a", 3)
    assert pipeline.uncounted.totals() == {"blocked": 1, "unknown-website": 1}


@pytest_twisted.ensureDeferred
async def test_a_repeated_hit_is_counted_once(pipeline: Pipeline) -> None:
    for body in (
        LOAD,
        LOAD,  # again, so not stored
        {"e": "unload", "b": "beacon-1", "m": 4200},
        {"e": "unload", "b": "of-no-view", "m": 4200},
        {"e": "custom", "g": "example.com", "d": {"clicked": True}},
    ):
        await received(pipeline, json.dumps(body).encode(), SENDER)
    assert pipeline.accepted.last_day(NOW) == 3


@pytest_twisted.ensureDeferred
async def test_unregistered_hostnames_are_reported(pipeline: Pipeline) -> None:
    for changes in (
        {"u": "https://WWW2.example.com/x"},
        {"u": "http://192.0.2.7:8080/"},
        {"e": "custom", "g": "Other.example."},
        {"u": "https://other.example/"},
    ):
        with pytest.raises(NotFound):
            await send(pipeline, **changes)
    await send(pipeline)
    unknown = pipeline.unknown_hostnames.newest(NOW)
    assert [(each.hostname, each.hits) for each in unknown] == [
        ("other.example", 2),
        ("192.0.2.7", 1),
        ("www2.example.com", 1),
    ]


@pytest_twisted.ensureDeferred
async def test_new_settings_apply_from_the_next_hit(pipeline: Pipeline, store: Store) -> None:
    pipeline.rules = evolve(pipeline.rules, bots="off")
    assert await send(pipeline, BOT) is None
    assert len(stored_views(store)) == 1


@pytest.mark.parametrize(
    ("changes", "error", "message", "reason"),
    [
        ({"u": "https://other.example/"}, NotFound, r"^u: .*other\.example", "unknown-website"),
        ({"e": "custom", "g": "other.example"}, NotFound, r"^g: ", "unknown-website"),
        ({"u": "ftp://example.com/"}, BadRequest, r"^u: ", "malformed"),
        ({"b": ""}, BadRequest, r"^b: ", "malformed"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_rejected_hit_states_its_reason_and_is_counted(
    pipeline: Pipeline,
    changes: dict[str, object],
    error: type[Exception],
    message: str,
    reason: str,
) -> None:
    with pytest.raises(error, match=message):
        await send(pipeline, **changes)
    assert pipeline.uncounted.totals() == {reason: 1}


@pytest_twisted.ensureDeferred
async def test_a_network_over_its_rate_limit_is_rejected(pipeline: Pipeline) -> None:
    pipeline.rules = evolve(pipeline.rules, hits_per_minute=2)
    for number in range(2):
        await send(pipeline, b=f"beacon-{number}")
    with pytest.raises(TooMany) as refused:
        await send(pipeline, b="one-more")
    assert 1 <= refused.value.retry_after <= 60
    assert pipeline.uncounted.totals() == {"rate": 1}
    assert await send(pipeline, BLOCKED) == "blocked"
    for local in ("127.0.0.1", "192.168.1.7", "::1"):
        await send(pipeline, replace(SENDER, address=address_of(local)), b=local)


@pytest_twisted.ensureDeferred
async def test_a_hit_that_the_store_cannot_take_is_rejected_and_counted(
    pipeline: Pipeline, store: Store
) -> None:
    pipeline.queue.settings = QueueSettings(max_waiting=0)
    with pytest.raises(Unavailable):
        await send(pipeline)
    website = store.websites.all()[0].number
    assert [refused.reason for refused in pipeline.uncounted.of(website, NOW)] == ["capacity"]
    assert stored_views(store) == []


@pytest_twisted.ensureDeferred
async def test_a_hit_for_a_website_deleted_meanwhile_is_not_found(
    pipeline: Pipeline, store: Store
) -> None:
    deleted = Deferred.fromCoroutine(store.delete_website(store.websites.all()[0]))
    # It depends on the threads whether the website is gone before its host is looked up.
    with pytest.raises(NotFound, match=r"deleted|no website is registered"):
        await send(pipeline)
    await deleted


async def made_view(pipeline: Pipeline, sender: Sender = SENDER, **changes: object) -> View:
    """Return the view that a load becomes on its way to the store."""
    taken: list[Hit] = []

    async def append(hits: Sequence[Hit]) -> list[Outcome]:
        taken.extend(hits)
        return [Outcome.STORED for _ in hits]

    recording = evolve(pipeline, queue=WriteQueue(append, reactor))
    await send(recording, sender, **changes)
    (view,) = taken
    assert isinstance(view, View)
    return view


@pytest_twisted.ensureDeferred
async def test_a_view_carries_what_finds_its_visit(pipeline: Pipeline) -> None:
    view = await made_view(pipeline, r="https://example.com/Caf%C3%A9/?q=1")
    assert (view.number_today, view.width_px, view.from_page) == (2, 1440, "/Café")
    assert (await made_view(pipeline)).from_page is None
    pipeline.rules = evolve(pipeline.rules, has_visits=False)
    assert (await made_view(pipeline)).identity == b""


@pytest.mark.parametrize("is_on", [True, False])
@pytest_twisted.ensureDeferred
async def test_when_a_visitor_was_here_last_is_stored_only_if_configured(
    pipeline: Pipeline, store: Store, *, is_on: bool
) -> None:
    pipeline.rules = evolve(pipeline.rules, has_returning=is_on)
    await send(pipeline, since="week")
    await send(pipeline, b="second")
    found = [view["since"] for view in stored_views(store)]
    assert found == ["week" if is_on else "", ""]


@pytest_twisted.ensureDeferred
async def test_no_view_is_a_visitors_first_where_visitors_are_not_counted(
    pipeline: Pipeline,
) -> None:
    """Whatever a tracker says: it may be Medama's, or one from a browser's cache."""
    pipeline.rules = evolve(pipeline.rules, has_visitors=False)
    view = await made_view(pipeline, p=True, q=True, n=1, since="new")
    assert (view.first_today, view.first_of_page, view.since) == (False, False, "")
    assert (view.number_today, view.width_px) == (0, 1440)
    assert view.identity != b""


@pytest_twisted.ensureDeferred
async def test_address_browser_and_language_identify_a_visitor(pipeline: Pipeline) -> None:
    def sender(
        address: str = "2001:db8:1:2::1", agent: str = FIREFOX, language: str = ""
    ) -> Sender:
        return Sender(address_of(address), agent, language)

    same = [
        (await made_view(pipeline, each)).identity
        for each in (sender(), sender("2001:db8:1:2:3::4"))
    ]
    others = [
        (await made_view(pipeline, each)).identity
        for each in (
            sender("2001:db8:1:3::1"),
            sender("203.0.113.9"),
            sender(agent=FIREFOX + " "),
            sender(language="de"),
        )
    ]
    assert len({*same, *others}) == 5
    assert same[0] == same[1]
