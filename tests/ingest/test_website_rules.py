"""The settings of a website, applied to hits on their way into a store."""

import json
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve, field, frozen
from support.received_hits import received
from support.storage.contents import stored_rows
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import NotFound
from medamad.domain.hits import OriginRule
from medamad.domain.website_settings import FOR_NEW_WEBSITES, WebsiteSettings
from medamad.ingest.networks import Networks, Sender, address_of
from medamad.ingest.pipeline import Pipeline, Rules
from medamad.ingest.robot_counts import PendingRobots
from medamad.ingest.website_rules import WebsiteRules
from medamad.ingest.write_queue import WriteQueue
from medamad.storage.request_totals import ROBOTS
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:131.0) Gecko/20100101 Firefox/131.0"
LOAD = {"e": "load", "b": "b", "u": "https://example.com/", "p": True, "q": True}
HOSTING = {"address": address_of("198.51.100.7")}
SECRET = "kQ2pX9sTokenOfSomebody"
UUID = "6f1c9f2e-3b7a-4d51-9f66-1b2c3d4e5f60"
EMAIL = "ada.lovelace@example.org"


@frozen
class House:
    """A store with one website, and the pipeline before it."""

    store: Store
    pipeline: Pipeline
    folder: Path
    sender: Sender = field(factory=lambda: Sender(address_of("203.0.113.9"), FIREFOX))

    async def set(self, **changes: Any) -> None:
        (website,) = self.store.websites.all()
        await self.store.change_website_settings(
            website, lambda _: WebsiteSettings().with_changes(changes), 2
        )

    async def send(self, sender: dict[str, Any] | None = None, **changes: Any) -> str | None:
        described = Sender(
            **{"address": self.sender.address, "user_agent": FIREFOX} | (sender or {})
        )
        return await received(self.pipeline, json.dumps(LOAD | changes).encode(), described)

    def texts(self, dimension: Dimension) -> list[str]:
        """Return the texts that are stored, without those that are always there."""
        (website,) = self.store.websites.all()
        found = self.store.read(website, lambda seen: list(seen.texts(dimension)))
        return [text for text in found if text not in ("", "(other)")]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    store = start_store(tmp_path, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)
    pytest_twisted.blockon(Deferred.fromCoroutine(store.add_website("example.com", 1)))
    rules = Rules(hits_per_minute=0, logs_uncounted=True)
    queue = WriteQueue(store.append, reactor)
    robots = PendingRobots(store.robots.add)
    pipeline = Pipeline(store.websites, queue, robots, rules, lambda: 1_790_000_000.25)
    yield House(store, pipeline, tmp_path)
    pytest_twisted.blockon(Deferred.fromCoroutine(store.close()))


@pytest_twisted.ensureDeferred
async def test_tokens_and_addresses_reach_neither_the_disk_nor_the_log(house: House) -> None:
    await house.set(
        redacted_paths=["/reset/*"],
        redact_uuids=True,
        redact_emails=True,
        excluded_paths=["/internal/*"],
    )
    site, encoded = "https://example.com", EMAIL.replace("@", "%40")
    with capturedLogs() as logged:
        assert await house.send(u=f"{site}/reset/{SECRET}?token={SECRET}#{SECRET}") is None
        assert await house.send(b="2", u=f"{site}/a/{UUID}?utm_source={encoded}") is None
        assert (
            await house.send(b="3", u=f"{site}/u/{encoded}", d={"404": f"/reset/{SECRET}"}) is None
        )
        # The page that it comes from, of this website and of another.
        assert await house.send(b="4", u=f"{site}/b", r=f"{site}/reset/{SECRET}") is None
        assert await house.send(b="5", u=f"{site}/b", r=f"https://a.example/{UUID}") is None
        assert await house.send(b="6", u=f"{site}/internal/{SECRET}") == "path"
        event = {"e": "custom", "g": "example.com", "d": {"outbound": f"a.example/u/{EMAIL}"}}
        assert await received(house.pipeline, json.dumps(event).encode(), house.sender) is None
        robot = {"user_agent": "Googlebot/2.1"}
        assert await house.send(robot, u=f"{site}/reset/{SECRET}") == "bot"
        await house.pipeline.robots.write()
        with pytest.raises(NotFound):
            await house.send(b="7", u=f"https://unknown.example/reset/{SECRET}")
    assert house.texts(Dimension.PATH) == ["/reset/…", "/a/…", "/u/…", "/b"]
    assert house.texts(Dimension.REFERRER) == ["a.example/…"]
    assert house.texts(Dimension.UTM_SOURCE) == ["…"]
    messages = "\n".join(f"{formatEvent(each)} {each}" for each in logged)
    assert "a hit of example.com does not count: path" in messages
    files = [file for file in house.folder.rglob("*") if file.is_file()]
    stored = b"".join(file.read_bytes() for file in files)
    assert b"/reset/" in stored
    assert b"Googlebot" in stored
    for secret in (SECRET, UUID, EMAIL, encoded, EMAIL.partition("@")[0]):
        assert secret.encode() not in stored, secret
        assert secret not in messages, secret


@pytest_twisted.ensureDeferred
async def test_tokens_do_not_use_up_the_limit_on_new_paths(house: House) -> None:
    house.store.apply(evolve(house.store.settings, new_values={Dimension.PATH: 2}))
    await house.set(redacted_paths=["/reset/*"])
    for number in range(5):
        await house.send(b=f"b{number}", u=f"https://example.com/reset/{number}")
    await house.send(b="last", u="https://example.com/about")
    assert house.texts(Dimension.PATH) == ["/reset/…", "/about"]


@pytest_twisted.ensureDeferred
async def test_a_website_that_is_added_stores_no_identifiers(house: House) -> None:
    assert house.store.websites.all()[0].settings == FOR_NEW_WEBSITES
    await house.send(u=f"https://example.com/{UUID}/0123456789abcdef/{EMAIL}")
    assert house.texts(Dimension.PATH) == ["/…/…/…"]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/viewtopic.php?t=12&sid=secret", "/viewtopic.php?t=12"),
        ("/viewtopic.php?p=3&t=12", "/viewtopic.php?t=12&p=3"),
        ("/viewtopic.php?t=1&t=2", "/viewtopic.php?t=1"),
        ("/viewtopic.php?%74=caf%C3%A9+au", "/viewtopic.php?t=café au"),
        ("/viewtopic.php?t=ada@example.org", "/viewtopic.php?t=…"),
        ("/viewtopic.php?sid=secret#t=1", "/viewtopic.php"),
        ("/viewtopic.php/?t=", "/viewtopic.php?t="),
    ],
)
@pytest_twisted.ensureDeferred
async def test_parameters_that_are_kept_are_part_of_the_path(
    house: House, url: str, path: str
) -> None:
    await house.set(kept_parameters=["t", "p"], redact_emails=True)
    assert await house.send(u=f"https://example.com{url}") is None
    assert house.texts(Dimension.PATH) == [path]


@pytest.mark.parametrize(
    ("settings", "sender", "reason"),
    [
        ({}, {"user_agent": "curl/8.5.0"}, None),
        ({"bots": "strict"}, {"user_agent": "curl/8.5.0"}, "bot"),
        ({"bots": "off"}, {"user_agent": "Googlebot/2.1"}, None),
        ({}, {"user_agent": "Googlebot/2.1"}, "bot"),
        ({}, {"gpc": True}, None),
        ({"respect_gpc": True}, {"gpc": True}, "gpc"),
        ({"respect_gpc": True}, {}, None),
        ({"blocked_networks": ["203.0.113.0/24"]}, {}, "blocked"),
        ({"blocked_networks": ["2001:db8::/32", "192.0.2.7"]}, {}, None),
        ({}, HOSTING, None),
        ({"hosting": "count apart"}, HOSTING, "hosting"),
        ({"hosting": "ignore"}, HOSTING, "hosting"),
        ({"hosting": "ignore"}, HOSTING | {"user_agent": "Googlebot/2.1"}, "bot"),
        ({"hosting": "ignore"}, {}, None),
        ({"hosting": "ignore"}, {"address": None}, None),
        ({}, {"origin": "https://shop.example.com"}, None),
        ({}, {"origin": "https://elsewhere.example"}, "origin"),
        ({"allowed_hosts": ["elsewhere.example"]}, {"origin": "https://a.elsewhere.example"}, None),
        ({"allowed_hosts": ["elsewhere.example"]}, {"origin": "https://example.com"}, "origin"),
        ({"allowed_hosts": ["elsewhere.example"]}, {}, None),
    ],
)
@pytest_twisted.ensureDeferred
async def test_settings_go_before_the_configuration(
    house: House, settings: dict[str, Any], sender: dict[str, Any], reason: str | None
) -> None:
    networks = Networks([ip_network("198.51.100.0/24")])
    house.pipeline.rules = evolve(house.pipeline.rules, hosting=networks)
    await house.set(**settings)
    assert await house.send(sender) == reason
    event = {"e": "custom", "g": "example.com", "d": {"a": "b"}}
    described = Sender(**{"address": house.sender.address, "user_agent": FIREFOX} | sender)
    assert await received(house.pipeline, json.dumps(event).encode(), described) == reason


@pytest.mark.parametrize(
    ("configured", "own", "is_counted", "robots"),
    [
        ("count", None, True, {}),
        ("count apart", None, False, {"Hosting network": {"/a": 2}}),
        ("ignore", None, False, {}),
        ("count apart", "count", True, {}),
        ("ignore", "count apart", False, {"Hosting network": {"/a": 2}}),
        ("count", "ignore", False, {}),
    ],
)
@pytest_twisted.ensureDeferred
async def test_views_from_hosting_networks_count_apart_or_not_at_all(
    house: House, configured: Any, own: Any, is_counted: bool, robots: dict[str, Any]
) -> None:
    rules = evolve(
        house.pipeline.rules,
        hosting=Networks([ip_network("198.51.100.0/24"), ip_network("2001:db8::/32")]),
        hosting_rule=configured,
    )
    house.pipeline.rules = rules
    await house.set(hosting=own)
    for number, address in enumerate(("198.51.100.7", "2001:db8::7")):
        sender = {"address": address_of(address)}
        reason = await house.send(sender, b=f"h{number}", u="https://example.com/a")
        assert reason == (None if is_counted else "hosting")
        unload = {"e": "unload", "b": f"h{number}", "m": 1}
        described = Sender(address_of(address), FIREFOX, origin="https://example.com")
        unloaded = await received(house.pipeline, json.dumps(unload).encode(), described)
        assert unloaded == reason
    assert await house.send(b="p1") is None
    (website,) = house.store.websites.all()
    views, _ = stored_rows(house.store, website)
    expected = [False, *([True, True] if is_counted else [])]
    assert sorted(view["hosting"] for view in views) == expected
    await house.pipeline.robots.write()
    days = house.store.robots.read(website.number, ROBOTS, None, None).by_day()
    assert [*days.counts.values()] == ([robots] if robots else [])
    files = [file for file in house.folder.rglob("*") if file.is_file()]
    written = b"".join(file.read_bytes() for file in files)
    for address in ("198.51.100.7", "2001:db8::7"):
        assert address.encode() not in written
        assert address_of(address) not in written


@pytest_twisted.ensureDeferred
async def test_the_presets_of_the_configuration_bind_every_website(house: House) -> None:
    house.pipeline.rules = evolve(house.pipeline.rules, is_exempt=True, respect_gpc=True)
    await house.set(respect_gpc=False, allowed_hosts=["elsewhere.example"])
    assert await house.send({"gpc": True}) == "gpc"
    assert await house.send({"origin": "https://elsewhere.example"}) == "origin"


@pytest.mark.parametrize(
    ("settings", "view", "reason"),
    [
        ({"blocked_countries": ["DE", "AT"]}, {"t": "Europe/Berlin"}, "country"),
        ({"blocked_countries": ["DE"]}, {"t": "Europe/Paris"}, None),
        ({"blocked_countries": ["DE"]}, {}, None),
        ({"excluded_paths": ["/admin/*"]}, {"u": "https://example.com/admin/a/b"}, "path"),
        ({"excluded_paths": ["/admin"]}, {"u": "https://example.com/admin/?x"}, "path"),
        ({"excluded_paths": ["/admin"]}, {"u": "https://example.com/administration"}, None),
        ({"excluded_paths": ["/admin/*"]}, {"u": "https://example.com//admin/x"}, "path"),
        ({"excluded_paths": ["/admin/x"]}, {"u": "https://example.com/admin///x"}, "path"),
        ({"excluded_paths": ["//admin//x"]}, {"u": "https://example.com/admin/x"}, "path"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_views_and_their_events_can_be_left_out_by_country_and_path(
    house: House, settings: dict[str, Any], view: dict[str, Any], reason: str | None
) -> None:
    await house.set(**settings)
    assert await house.send(**view) == reason
    event = {"e": "custom", "g": "example.com", "d": {"a": "b"}, "b": "b"}
    assert await received(house.pipeline, json.dumps(event).encode(), house.sender) == reason
    other = json.dumps(event | {"b": "of another page"}).encode()
    assert await received(house.pipeline, other, house.sender) is None


@pytest_twisted.ensureDeferred
async def test_nothing_of_a_token_is_left_where_a_limit_cuts_or_an_escape_hides_it(
    house: House,
) -> None:
    await house.set(
        redacted_paths=["/reset/*"],
        redact_uuids=True,
        redact_hexadecimal=True,
        redact_emails=True,
        kept_parameters=["t"],
    )
    site, host = "https://example.com", "https://elsewhere.example"
    for limit, name, url in (
        (2_048, "u", f"{site}/a/"),
        (2_048, "u", f"{site}/a?t="),
        (512, "u", f"{site}/?utm_source="),
        (512, "u", f"{site}/?utm_content="),
        (2_048, "r", f"{host}/a/"),
    ):
        for token in (UUID, EMAIL, "0123456789abcdef" * 3):
            for left in (4, 9, 17, len(token) - 1):
                filled = "x" * (limit - left - len("/a?t=/")) + "/"
                beacon = f"{limit}{name}{left}{token[:9]}{len(url)}"
                sent = {"u": f"{site}/b", name: url + filled + token, "b": beacon}
                assert await house.send(**sent) is None
    assert await house.send(b="%", u=f"{site}/reset/{SECRET}%2F{SECRET}") is None
    assert await house.send(b="%%", u=f"{site}/%72eset/{SECRET}%zz") is None
    long = "/%79" * 60
    event = {"e": "custom", "g": "example.com", "d": {"404": f"{long}/{EMAIL}{UUID}"}}
    assert await received(house.pipeline, json.dumps(event).encode(), house.sender) is None
    files = [file for file in house.folder.rglob("*") if file.is_file()]
    stored = b"".join(file.read_bytes() for file in files)
    for part in (SECRET[:5], UUID[:4], UUID[-5:], EMAIL[:4], "lovelace", "01234"):
        assert part.encode() not in stored, part


@pytest.mark.parametrize(
    ("path", "becomes"),
    [
        ("/a", "/a"),
        ("/view?t=1&s=2", "/view?s=2"),
        ("/view?t=1", "/view"),
        ("/view?s=ada@example.org&t=1", "/view?s=…"),
        ("/view?s=c++", "/view?s=c++"),
        ("/reset/a?s=2", "/reset/…?s=2"),
        ("/what?", "/what?"),
        ("/admin?s=2", None),
        ("//admin?s=2", None),
        ("/admin/b", "/admin/b"),
        ("/" + "a/" * 1_020 + "ada@exa", "/" + "a/" * 1_020 + "…"),
        ("/a?s=" + "a" * 2_043, "/a?s=…"),
    ],
)
def test_a_stored_path_is_shown_as_it_would_be_stored_now(path: str, becomes: str | None) -> None:
    settings = WebsiteSettings(
        excluded_paths=("/admin",),
        redacted_paths=("/reset/*",),
        redact_emails=True,
        kept_parameters=("s",),
    )
    assert WebsiteRules.of(settings).stored_anew(path) == becomes


@pytest_twisted.ensureDeferred
async def test_pages_of_other_websites_here_are_redacted_as_their_own(house: House) -> None:
    await house.set(redacted_paths=["/reset/*"])
    await house.store.add_website("other.example", 1)
    (_, other) = house.store.websites.all()
    page = {"u": "https://other.example/"}
    for number, referrer in enumerate(
        (
            f"www.example.com/reset/{SECRET}%2Fb",
            "example.com/about",
            "example.com",
            "a.example/reset/b",
        )
    ):
        assert await house.send(b=f"{number}", r=f"https://{referrer}", **page) is None
    found = house.store.read(other, lambda seen: list(seen.texts(Dimension.REFERRER)))
    assert [text for text in found if text not in ("", "(other)")] == [
        *("example.com/reset/…", "example.com/about", "example.com", "a.example/reset/b")
    ]


@pytest_twisted.ensureDeferred
async def test_views_from_an_allowed_host_are_ended_from_there(house: House) -> None:
    await house.set(allowed_hosts=["elsewhere.example"])
    origin = {"origin": "https://elsewhere.example"}
    assert await house.send(origin) is None
    sender = Sender(house.sender.address, FIREFOX, **origin)
    unload = json.dumps({"e": "unload", "b": "b", "m": 4_000}).encode()
    assert await received(house.pipeline, unload, sender) is None
    (website,) = house.store.websites.all()
    durations = house.store.read(
        website, lambda seen: [ms for part in seen.parts for ms in part.duration_ms.tolist()]
    )
    assert durations == [4_000]


@pytest.mark.parametrize("origins", ["website", "any"])
@pytest_twisted.ensureDeferred
async def test_a_view_is_ended_by_the_settings_of_its_website(
    house: House, origins: OriginRule
) -> None:
    house.pipeline.rules = evolve(house.pipeline.rules, respect_gpc=True, origins=origins)
    await house.set(allowed_hosts=["elsewhere.example"], respect_gpc=False)
    unload = json.dumps({"e": "unload", "b": "b", "m": 4_000}).encode()
    sent = {"gpc": True, "origin": "https://elsewhere.example"}
    sender = Sender(house.sender.address, FIREFOX, **sent)
    if origins == "website":
        assert await received(house.pipeline, unload, sender) is None
    await house.set(bots="strict", allowed_hosts=["elsewhere.example"])
    for agent in ("curl/8.5.0", FIREFOX):
        sender = Sender(house.sender.address, agent, "", "https://example.com")
        reason = await received(house.pipeline, unload, sender)
        assert reason == ("bot" if agent != FIREFOX else "origin")


@pytest_twisted.ensureDeferred
async def test_a_view_that_is_left_out_is_not_ended(house: House) -> None:
    await house.set(excluded_paths=["/admin"])
    assert await house.send(u="https://example.com/admin") == "path"
    unload = json.dumps({"e": "unload", "b": "b", "m": 4_000}).encode()
    assert await received(house.pipeline, unload, house.sender) == "path"


@pytest_twisted.ensureDeferred
async def test_a_website_that_counts_visitors_with_gpc_knows_their_durations(house: House) -> None:
    house.pipeline.rules = evolve(house.pipeline.rules, respect_gpc=True)
    await house.set(respect_gpc=False)
    sent = {"gpc": True, "origin": "https://example.com"}
    assert await house.send(sent) is None
    unload = json.dumps({"e": "unload", "b": "b", "m": 4_000}).encode()
    sender = Sender(house.sender.address, FIREFOX, **sent)
    assert await received(house.pipeline, unload, sender) is None
