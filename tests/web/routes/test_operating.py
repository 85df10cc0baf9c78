from collections.abc import Sequence
from ipaddress import ip_network

import pytest
import pytest_twisted
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families
from support.storage.hits import a_view
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import USERNAME, Server

from medamad.domain.hits import Hit
from medamad.ingest.networks import Networks
from medamad.storage.settings import Keep, Retention
from medamad.storage.wal.log import Outcome

LOCAL = Networks([ip_network("127.0.0.1"), ip_network("::1")])
EVERYONE = Networks([ip_network("0.0.0.0/0"), ip_network("::/0")])
LOAD = '{"e": "load", "b": "%s", "u": "https://example.com/", "p": true, "q": true}'


@pytest.fixture
def watcher(server: Server) -> Browser:
    """What may see inside."""
    server.set(metrics_from=LOCAL)
    return server.browser(peer="127.0.0.1", host="localhost")


def figures(answer: Answer) -> dict[str, float]:
    """Return the figures by name and labels."""
    assert answer.status == 200
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sample.labels.items()): (
            sample.value
        )
        for family in text_string_to_metric_families(answer.body.decode("utf-8"))
        for sample in family.samples
    }


@pytest_twisted.ensureDeferred
async def test_health_is_ok_while_hits_are_accepted(watcher: Browser) -> None:
    answer = await watcher.ask("GET", "/health")
    assert (answer.status, answer.json) == (200, {"live": True, "ready": True})
    assert answer.header("Access-Control-Allow-Origin") is None
    assert answer.header("Cache-Control") == "no-store"


@pytest_twisted.ensureDeferred
async def test_health_says_why_hits_are_not_accepted(server: Server, watcher: Browser) -> None:
    store = server.store
    store.apply(evolve(store.settings, min_free_disk=1 << 60))
    answer = await watcher.ask("GET", "/health")
    assert answer.status == 503
    assert answer.error.startswith("not ready: ")
    assert "store.min_free_disk asks for" in answer.error
    assert answer.header("Retry-After") == "10"
    assert (await watcher.ask("GET", "/health/live")).json == {"live": True}
    assert figures(await watcher.ask("GET", "/metrics"))["medamad_ready"] == 0
    store.apply(evolve(store.settings, min_free_disk=0))
    assert (await watcher.ask("GET", "/health")).status == 200
    server.store.writer._failure = "the store has failed: a test"
    assert (await watcher.ask("GET", "/health")).error == "not ready: the store has failed: a test"


@pytest_twisted.ensureDeferred
async def test_a_stopping_daemon_is_not_ready(server: Server) -> None:
    assert server.site.unavailable_reasons() == []
    server.site.drain()
    assert server.site.unavailable_reasons() == ["the daemon is stopping"]


@pytest_twisted.ensureDeferred
async def test_metrics_count_events(server: Server, watcher: Browser, website: str) -> None:
    visitor = server.browser()
    before = figures(await watcher.ask("GET", "/metrics"))
    for beacon in "abc":
        body = (LOAD % beacon).encode()
        assert (await visitor.ask("POST", "/event/hit", body=body)).status == 204
    assert (await visitor.ask("POST", "/event/hit", body=b"{}")).status == 400
    elsewhere = (LOAD % "d").replace("example.com", "example.org").encode()
    assert (await visitor.ask("POST", "/event/hit", body=elsewhere)).status == 404
    robot = {"User-Agent": "Googlebot/2.1"}
    body = (LOAD % "e").encode()
    assert (await visitor.ask("POST", "/event/hit", body=body, headers=robot)).status == 204
    wrong = {"username": USERNAME, "password": "wrong"}
    assert (await visitor.ask("POST", "/auth/login", wrong)).status == 401
    share = await server.site.backend.shares.make("club", 1, password="secret of a club", embed=())
    for _ in range(2):
        guess = {"password": "wrong"}
        assert (await visitor.ask("POST", f"/shared/{share.id}", guess)).status == 401
    owner = await server.owner()
    assert (await owner.ask("GET", f"/website/{website}/pages")).status == 200
    after = figures(await watcher.ask("GET", "/metrics"))
    assert {
        name: after[name] - before[name]
        for name in after
        if name.startswith("medamad_")
        and after[name] != before[name]
        and "bucket" not in name
        and "bytes" not in name
        and "commit_duration" not in name
    } == {
        "medamad_hits_accepted_total": 3,
        "medamad_hits_refused_total reason=malformed": 1,
        "medamad_hits_refused_total reason=unknown-website": 1,
        "medamad_hits_refused_total reason=bot": 1,
        "medamad_hit_duration_seconds_count": 6,
        "medamad_logins_refused_total to=account": 1,
        "medamad_logins_refused_total to=share": 2,
        "medamad_statistics_duration_seconds_count": 1,
        "medamad_store_tail_views": 3,
        "medamad_live_visits": 3,
    }
    assert (
        after["medamad_commit_duration_seconds_count"]
        > before["medamad_commit_duration_seconds_count"]
    )
    assert after["medamad_websites"] == after["medamad_ready"] == 1
    assert after["medamad_hit_duration_seconds_bucket le=+Inf"] == 6
    assert after["medamad_store_max_bytes"] == 64 << 20
    assert 0 < after["medamad_store_bytes"] < 64 << 20
    assert after["process_resident_memory_bytes"] > 0
    assert after["process_start_time_seconds"] > 0


@pytest_twisted.ensureDeferred
async def test_metrics_say_what_needs_attention(server: Server, watcher: Browser) -> None:
    names = ("websites_quiet", "new_values_limits_reached", "backups_failed_total")
    names += ("backup_last_timestamp_seconds", "live_visits_evicted_total")

    async def shown() -> list[float]:
        found = figures(await watcher.ask("GET", "/metrics"))
        return [found[f"medamad_{name}"] for name in names]

    assert await shown() == [0] * len(names)
    backend, store = server.site.backend, server.store
    website = await store.add_website("example.com", 1)
    store.apply(
        evolve(store.settings, other_new_values=1, visits=evolve(store.settings.visits, capacity=1))
    )
    now_ms = int(backend.clock() * 1000)
    for name in ("A", "B"):
        seen = {"path": "/", "browser": name, "beacon": name, "identity": name.encode()}
        await store.append([a_view(website.number, time_ms=now_ms, **seen)])
    backend.quiet[website.number] = 1
    backend.backups.newest, backend.backups.failures = 7, 2
    assert await shown() == [1, 1, 2, 7, 1]


@pytest_twisted.ensureDeferred
async def test_a_table_without_a_website_is_counted(server: Server, watcher: Browser) -> None:
    kept = Retention(websites={"twin.example": Keep(0)})
    server.store.apply(evolve(server.store.settings, retention=kept))
    name = "medamad_retention_websites_unknown"
    assert figures(await watcher.ask("GET", "/metrics"))[name] == 1
    await server.store.add_website("twin.example", 1)
    assert figures(await watcher.ask("GET", "/metrics"))[name] == 0


@pytest_twisted.ensureDeferred
async def test_metrics_say_how_long_retention_has_waited_for_the_clock(
    server: Server, watcher: Browser
) -> None:
    store = server.store
    await server.doubt_the_clock(days=9)
    name = "medamad_retention_waits_seconds"
    for days, waits_s in ((20, 0), (5, pytest.approx(86_400, abs=3_600))):
        kept = Retention(others=Keep(days))
        store.apply(evolve(store.settings, retention=kept))
        assert figures(await watcher.ask("GET", "/metrics"))[name] == waits_s


@pytest_twisted.ensureDeferred
async def test_the_duration_of_hits_is_measured(
    server: Server, watcher: Browser, website: str
) -> None:
    assert website

    async def slowly(hits: Sequence[Hit]) -> list[Outcome]:
        server.reactor.advance(0.3)
        return await server.store.append(hits)

    server.append = slowly
    body = (LOAD % "a").encode()
    assert (await server.browser().ask("POST", "/event/hit", body=body)).status == 204
    found = figures(await watcher.ask("GET", "/metrics"))
    assert found["medamad_hit_duration_seconds_bucket le=0.25"] == 0
    assert found["medamad_hit_duration_seconds_bucket le=0.5"] == 1
    assert found["medamad_hit_duration_seconds_sum"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; "),
        ("application/openmetrics-text", "application/openmetrics-text; "),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_requested_format_is_sent(watcher: Browser, accept: str, media_type: str) -> None:
    answer = await watcher.ask("GET", "/metrics", headers={"Accept": accept} if accept else {})
    assert str(answer.header("Content-Type")).startswith(media_type)
    assert answer.body.endswith(b"# EOF\n") == bool(accept)


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text; version=abc",
        "application/openmetrics-text; version=1.x.0",
        "application/openmetrics-text; version=1.0.0\xe9",
        "application/openmetrics-text; version=2.0.0\xe9",
        "application/openmetrics-text; version=\xb2.0.0",
        "text/plain;version=" + "9" * 5_000,
        "text/plain;version=x, application/openmetrics-text; version=1.0.0",
    ],
)
@pytest_twisted.ensureDeferred
async def test_an_unknown_format_falls_back_to_plain_text(watcher: Browser, accept: str) -> None:
    answer = await watcher.ask("GET", "/metrics", headers={"Accept": accept})
    assert answer.status == 200
    assert answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize(
    ("peer", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("203.0.113.9", {}, 404),
        (None, {}, 404),
        # A proxy that is trusted, and tells for whom it asks.
        ("10.0.0.1", {}, 404),
        ("10.0.0.1", {"X-Forwarded-For": "203.0.113.9"}, 404),
        ("10.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 200),
        ("10.0.0.1", {"X-Forwarded-For": "127.0.0.1, 203.0.113.9"}, 404),
        # One that hides it, or is not trusted; or what it does not write itself.
        ("10.0.0.1", {"X-Forwarded-For": "unknown, 127.0.0.1"}, 404),
        ("10.0.0.1", {"Forwarded": "for=127.0.0.1"}, 404),
        ("10.0.0.1", {"Forwarded": "for=127.0.0.1", "X-Forwarded-For": "203.0.113.9"}, 404),
        ("10.0.0.1", {"Via": "1.1 proxy"}, 404),
        ("10.0.0.1", {"X-Forwarded-For": "127.0.0.1" + ",10.0.0.2" * 64}, 200),
        # Too many to tell where it was passed on first.
        ("10.0.0.1", {"X-Forwarded-For": "127.0.0.1" + ",10.0.0.2" * 65}, 404),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 404),
        ("127.0.0.1", {"X-Forwarded-For": ""}, 404),
        ("127.0.0.1", {"X-Real-IP": "203.0.113.9"}, 404),
        ("127.0.0.1", {"X-Forwarded-Proto": "https"}, 404),
        ("127.0.0.1", {"Via": "1.1 proxy"}, 404),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_client_address_must_be_certain(
    server: Server, peer: str | None, headers: dict[str, str], status: int
) -> None:
    server.set(metrics_from=LOCAL, trusted_proxies=Networks([ip_network("10.0.0.0/8")]))
    for path in ("/health", "/metrics"):
        assert (
            await server.browser(peer, "[::1]:8080").ask("GET", path, headers=headers)
        ).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Forwarded": "for=127.0.0.1"}, 200),
        ({"Forwarded": "for=203.0.113.9"}, 404),
        ({"Forwarded": "for=203.0.113.9", "X-Forwarded-For": "127.0.0.1"}, 404),
        ({"Forwarded": "for=_hidden, for=127.0.0.1"}, 404),
        ({"X-Forwarded-For": "127.0.0.1"}, 404),
    ],
)
@pytest_twisted.ensureDeferred
async def test_only_the_configured_proxy_header_is_read(
    server: Server, headers: dict[str, str], status: int
) -> None:
    proxies = Networks([ip_network("10.0.0.0/8")])
    server.set(metrics_from=LOCAL, trusted_proxies=proxies, proxy_header="Forwarded")
    proxy = server.browser("10.0.0.1", "[::1]:8080")
    assert (await proxy.ask("GET", "/metrics", headers=headers)).status == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]", 200),
        # What a proxy asks for that adds no header: the name of its upstream, or its own.
        ("medamad", 404),
        ("stats.example.com", 404),
        ("localhost.example.com", 404),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_hostname_means_a_proxy(server: Server, host: str, status: int) -> None:
    server.set(metrics_from=EVERYONE, metrics_from_unix=True)
    for path in ("/health", "/metrics"):
        for peer in ("127.0.0.1", "::1", None):
            assert (await server.browser(peer, host).ask("GET", path)).status == status
        assert (await server.browser("203.0.113.9", host).ask("GET", path)).status == 200


@pytest_twisted.ensureDeferred
async def test_a_unix_socket_may_be_allowed(server: Server) -> None:
    server.set(metrics_from_unix=True)
    local = server.browser(peer=None, host="localhost")
    assert (await local.ask("GET", "/metrics")).status == 200
    passed_on = {"X-Forwarded-For": "127.0.0.1"}
    assert (await local.ask("GET", "/metrics", headers=passed_on)).status == 404
    server.set(trust_unix=True)
    assert (await local.ask("GET", "/metrics", headers=passed_on)).status == 404
    server.set(metrics_from=LOCAL)
    assert (await local.ask("GET", "/metrics", headers=passed_on)).status == 200


@pytest_twisted.ensureDeferred
async def test_by_default_only_this_machine_is_allowed(server: Server) -> None:
    assert (
        await server.browser(peer="127.0.0.1", host="localhost").ask("GET", "/metrics")
    ).status == 404
