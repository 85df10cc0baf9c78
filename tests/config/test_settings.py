from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve
from support.certificates import Authority

from medamad.config import settings
from medamad.config.lists import load_lists
from medamad.config.schema import (
    Config,
    ConfigError,
    EventsSection,
    LimitsSection,
    LogSection,
    ServerSection,
    StoreSection,
    load,
)
from medamad.config.values import Endpoints, MapSize
from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.ingest.networks import address_of
from medamad.ingest.write_queue import QueueSettings
from medamad.lookup.referrers import Sources
from medamad.storage.settings import Keep, StoreSettings
from medamad.storage.wal.visit_keys import VisitSettings
from medamad.web.settings import WebSettings


def config_of(folder: Path, text: str) -> Config:
    file = folder / "medamad.toml"
    file.write_text(f"{text}\n", "utf-8")
    return load(file)


def bounds(of: StoreSettings) -> dict[Dimension, int]:
    dimensions = (*VIEW_DIMENSIONS, Dimension.PROPERTY_NAME, Dimension.PROPERTY)
    return {one: of.new_values.get(one, of.other_new_values) for one in dimensions}


def test_the_defaults_match_those_in_the_code() -> None:
    store = settings.store_settings(Config())
    assert bounds(store) == bounds(StoreSettings())
    assert evolve(store, new_values={}) == evolve(StoreSettings(), new_values={})
    assert settings.queue_settings(Config()) == QueueSettings()
    lists = load_lists(Config())
    web = settings.web_settings(Config(), lists, Path("/data"))
    default = WebSettings(
        sources=web.sources, robots=web.robots, data_dir=Path("/data"), commit=web.commit
    )
    assert web.trusted_proxies is not default.trusted_proxies
    networks = {
        "trusted_proxies": default.trusted_proxies,
        "metrics_from": default.metrics_from,
        "webhook_networks": default.webhook_networks,
    }
    assert evolve(web, **networks) == default
    for address in ("127.0.0.1", "::1"):
        assert address_of(address) in web.metrics_from
    assert address_of("192.0.2.1") not in web.metrics_from


def test_every_setting_reaches_its_package(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        [server]
        demo = true
        hostnames = ["stats.example.com"]
        cors_origins = ["https://app.example.com"]
        trusted_proxies = ["10.0.0.0/8", "unix"]
        proxy_header = "Forwarded"
        script_name = "s.js"
        event_name = "pulse"
        [store]
        map_size = "1 GiB"
        commit_interval_ms = 5
        commit_max_hits = 6
        min_free_disk = "7 MiB"
        [events]
        timezone = "Asia/Kathmandu"
        bots = "off"
        origins = "any"
        hosting = "count apart"
        hosting_networks = "clouds.txt"
        respect_gpc = true
        [limits]
        hits_per_minute = 0
        max_body_bytes = 2048
        max_connections = 9
        max_connections_per_network = 8
        max_waiting_hits = 10
        new_paths = 11
        new_referrers = 12
        new_utm = 13
        new_property_names = 14
        new_property_values = 15
        new_values = 16
        [retention]
        raw_days = 400
        [retention.websites."a.example"]
        raw_days = 30
        [retention.websites."b.example"]
        after = "nothing"
        """,
    )
    (tmp_path / "spam.txt").write_text("spam.example\n", "utf-8")
    (tmp_path / "blocked.txt").write_text("192.0.2.0/24\n", "utf-8")
    (tmp_path / "clouds.txt").write_text("198.51.100.0/24\n", "utf-8")
    (tmp_path / "referrers.toml").write_text('"intra.example" = "Intranet"\n', "utf-8")
    lists = load_lists(config)
    assert settings.queue_settings(config) == QueueSettings(
        interval_s=0.005, max_records=6, max_waiting=10
    )
    store = settings.store_settings(config)
    assert (store.map_size, store.min_free_disk) == (1 << 30, 7 << 20)
    assert bounds(store) == dict.fromkeys(VIEW_DIMENSIONS, 16) | {
        Dimension.PATH: 11,
        Dimension.REFERRER: 12,
        Dimension.UTM_SOURCE: 13,
        Dimension.UTM_MEDIUM: 13,
        Dimension.UTM_CAMPAIGN: 13,
        Dimension.UTM_TERM: 13,
        Dimension.UTM_CONTENT: 13,
        Dimension.PROPERTY_NAME: 14,
        Dimension.PROPERTY: 15,
    }
    retention = store.retention
    assert str(retention.zone) == "Asia/Kathmandu"
    names = {"a.example", "b.example", "other.example"}
    assert retention.of("other.example", names) == Keep(400, "sums")
    assert retention.of("a.example", names) == Keep(30, "sums")
    assert retention.of("b.example", names) == Keep(400, "nothing")
    rules = settings.rules(config, lists)
    assert (rules.bots, rules.respect_gpc, rules.hits_per_minute) == ("off", True, 0)
    assert rules.origins == "any"
    assert not rules.logs_uncounted
    rules = settings.rules(evolve(config, log=LogSection(level="debug")), lists)
    assert rules.logs_uncounted
    assert str(rules.zone) == "Asia/Kathmandu"
    assert address_of("192.0.2.7") in rules.blocked
    assert "spam.example" in rules.spam
    assert address_of("198.51.100.7") in rules.hosting
    assert rules.hosting_rule == "count apart"
    web = settings.web_settings(config, lists, tmp_path)
    assert web.sources.name_of("intra.example/page") == "Intranet"
    assert web.hostnames == {"stats.example.com"}
    assert {type(name) for name in web.hostnames} == {str}
    assert web.cors_origins == {"https://app.example.com"}
    assert address_of("10.1.2.3") in web.trusted_proxies
    assert address_of("11.1.2.3") not in web.trusted_proxies
    assert (web.demo, web.trust_unix) == (True, True)
    assert web.proxy_header == "Forwarded"
    assert (web.script_name, web.event_name) == ("s.js", "pulse")
    # No answer can be made of a subclass.
    assert {type(web.script_name), type(web.event_name)} == {str}
    assert (web.max_body_bytes, web.max_connections, web.data_dir) == (2048, 9, tmp_path)
    assert web.max_connections_per_network == 8


@pytest.mark.parametrize("error", [FileNotFoundError("not installed"), ValueError("not installed")])
def test_a_missing_list_of_sources_is_reported(error: Exception) -> None:
    def shipped(_names: Mapping[str, str]) -> Sources:
        raise error

    with pytest.raises(ConfigError, match=r"/medamad: not installed$"):
        settings.sources(load_lists(Config()), shipped)


def test_settings_that_need_a_restart_are_named() -> None:
    old = Config()
    assert settings.needing_restart(old, evolve(old, store=StoreSection(commit_max_hits=1))) == []
    changed = evolve(
        old,
        server=ServerSection(listen=Endpoints(["tcp:1"]), data_dir="elsewhere"),
        store=StoreSection(map_size=MapSize(1 << 30)),
    )
    assert settings.needing_restart(old, changed) == [
        "server.listen",
        "server.data_dir",
        "store.map_size",
    ]


def test_the_configuration_says_what_a_visit_is() -> None:
    config = Config(
        events=EventsSection(visits=False, visit_timeout=10, timezone=ZoneInfo("Europe/Berlin")),
        limits=LimitsSection(live_visits=500),
    )
    assert settings.store_settings(config).visits == VisitSettings(
        is_on=False, timeout_ms=600_000, capacity=500, zone=ZoneInfo("Europe/Berlin")
    )
    assert not settings.rules(config, load_lists(config)).has_visits


def test_browsers_remember_for_longer_only_if_configured() -> None:
    for is_on in (True, False):
        config = Config(events=EventsSection(returning=is_on))
        assert settings.rules(config, load_lists(config)).has_returning is is_on
    assert not settings.rules(Config(), load_lists(Config())).has_returning


def test_visits_are_on_by_default() -> None:
    assert settings.store_settings(Config()).visits == VisitSettings()


MAIL = """
[server]
public_url = "https://stats.example.com"
base_path = "/stats"
[mail]
host = "mail.example.com"
from = "stats@example.com"
"""


@pytest.mark.parametrize(
    ("tls", "port"), [("", 587), ("tls = 'implicit'", 465), ("tls = 'off'", 25), ("port = 26", 26)]
)
def test_mails_go_to_the_usual_port(tmp_path: Path, tls: str, port: int) -> None:
    found = settings.mail_settings(config_of(tmp_path, MAIL + tls), {})
    assert (found.host, found.port) == ("mail.example.com", port)
    assert found.sender == "stats@example.com"
    assert found.url == "https://stats.example.com/stats"
    assert found.password == ""


def test_the_password_is_in_a_file_or_a_credential_and_in_no_message(tmp_path: Path) -> None:
    config = config_of(tmp_path, f"{MAIL}user = 'stats'")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "medamad.mail-password").write_text("from systemd\n", "utf-8")
    environ = {"CREDENTIALS_DIRECTORY": str(credentials)}
    assert settings.mail_settings(config, environ).password == "from systemd"
    (tmp_path / "secret").write_text("from a file\r\n", "utf-8")
    config = config_of(tmp_path, f"{MAIL}user = 'stats'\npassword_file = 'secret'")
    found = settings.mail_settings(config, environ)
    assert found.password == "from a file"
    assert "from a file" not in repr(found)


@pytest.mark.parametrize(
    ("text", "content", "reason"),
    [
        ("[mail]\nhost = 'a.example'", None, "mail.from: required, since mail.host is set"),
        (f"{MAIL}user = 'stats'", None, "mail.password_file: expected a file, or a systemd"),
        (f"{MAIL}user = 'stats'\npassword_file = 'secret'", None, "secret: No such file"),
        (f"{MAIL}user = 'stats'\npassword_file = 'secret'", b"\xff", "secret: expected UTF-8"),
        (f"{MAIL}user = 'stats'\npassword_file = 'secret'", b"\n", "secret: expected one line"),
        (f"{MAIL}user = 'stats'\npassword_file = 'secret'", b"a\nb", "secret: expected one line"),
    ],
)
def test_what_is_missing_for_mails_is_named(
    tmp_path: Path, text: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigError) as failed:
        settings.mail_settings(config_of(tmp_path, text), {})
    assert reason in str(failed.value)


def test_without_a_cluster_there_is_none(tmp_path: Path) -> None:
    config = config_of(tmp_path, '[events]\nbots = "off"')
    assert settings.cluster_settings(config, {}) is None
    assert settings.store_settings(config).spool_hours == 0


def test_a_cluster_reaches_the_store_and_the_shipper(tmp_path: Path) -> None:
    Authority(tmp_path)
    (tmp_path / "secret").write_text("open\n", "utf-8")
    (tmp_path / "of-collectors").write_text("0123456789abcdef0123456789abcdef\n", "utf-8")
    config = config_of(
        tmp_path,
        """
        [cluster]
        urls = ["http://one:8123/", "https://two:8443"]
        database = "stats"
        user = "ada"
        password_file = "secret"
        ca_file = "chain.pem"
        name = "all-of-them"
        quorum = 3
        collector = 7
        keep = 100
        secret_file = "of-collectors"
        [cluster.collectors]
        1 = "http://a:8080"
        7 = "https://b:8443/"
        """,
    )
    assert settings.cluster_settings(config, {}) == settings.ClusterSettings(
        urls=("http://one:8123", "https://two:8443"),
        database="stats",
        user="ada",
        password="open",
        ca_file=str(tmp_path / "chain.pem"),
        name="all-of-them",
        is_replicated=True,
        quorum=3,
        collector=7,
        collectors={1: "http://a:8080", 7: "https://b:8443"},
        secret="0123456789abcdef0123456789abcdef",
    )
    assert settings.store_settings(config).spool_hours == 100
    changed = config_of(tmp_path, '[cluster]\nurls = ["http://one:8123"]')
    assert "cluster.urls" in settings.needing_restart(config, changed)


def test_a_single_server_has_no_replicas_and_may_have_no_password(tmp_path: Path) -> None:
    config = config_of(tmp_path, '[cluster]\nurls = ["http://one:8123"]')
    found = settings.cluster_settings(config, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert found is not None
    assert (found.quorum, found.password) == (1, "")
    (tmp_path / settings.CLUSTER_CREDENTIAL).write_text("open", "utf-8")
    found = settings.cluster_settings(config, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert found is not None
    assert found.password == "open"


def test_shards_without_replicas_need_no_quorum(tmp_path: Path) -> None:
    text = '[cluster]\nurls = ["http://one:8123"]\nname = "all"\nreplicated = false'
    found = settings.cluster_settings(config_of(tmp_path, text), {})
    assert found is not None
    assert (found.is_replicated, found.quorum) == (False, 1)
    with_one = text.replace("replicated = false", "quorum = 1")
    found = settings.cluster_settings(config_of(tmp_path, with_one), {})
    assert found is not None
    assert (found.is_replicated, found.quorum) == (True, 1)


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("collector = 2", "cluster.urls", "required, since [cluster] is there"),
        (
            'urls = ["http://one:8123"]\n[retention]\nraw_days = 90',
            "retention.after",
            'expected "nothing", since [cluster] is set',
        ),
        (
            'urls = ["http://one:8123"]\n[retention.websites."example.com"]\nraw_days = 90',
            "retention.websites.example.com.after",
            'expected "nothing", since [cluster] is set',
        ),
        (
            'urls = ["http://one:8123"]\npassword_file = "none"',
            "cluster.password_file",
            "No such file",
        ),
        ('urls = ["https://one:8443"]\nca_file = "none"', "cluster.ca_file", "No such file"),
        (
            'urls = ["https://one:8443"]\nca_file = "medamad.toml"',
            "cluster.ca_file",
            "medamad.toml: expected certificates in PEM",
        ),
        (
            'urls = ["http://one:8123"]\n[cluster.collectors]\n1 = "http://a:8080"',
            "cluster.secret_file",
            "required, since cluster.collectors is set",
        ),
        (
            'urls = ["http://one:8123"]\ncollector = 3\n[cluster.collectors]\n1 = "http://a:8080"',
            "cluster.collectors",
            "expected the addresses of all collectors, and there is none of this one, 3",
        ),
        (
            'urls = ["http://one:8123"]\n[cluster.collectors]\nfirst = "http://a:8080"',
            "cluster.collectors.first",
            "expected a number from 1 to 65535",
        ),
    ],
)
def test_what_a_cluster_cannot_have_is_reported_by_name(
    tmp_path: Path, text: str, key: str, reason: str
) -> None:
    config = config_of(tmp_path, f"[cluster]\n{text}")
    with pytest.raises(ConfigError) as raised:
        settings.cluster_settings(config, {})
    assert raised.value.key == key
    assert reason in raised.value.reason
