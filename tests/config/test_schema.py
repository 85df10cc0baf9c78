import re
from datetime import date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve

from medamad.build import shipped_file
from medamad.config.schema import EXEMPT_DAYS, Config, ConfigError, load


def config_of(folder: Path, text: str) -> Config:
    file = folder / "medamad.toml"
    file.write_text(f"{text}\n", "utf-8")
    return load(file)


def test_no_file_gives_the_defaults() -> None:
    config = load(None)
    assert config == Config()
    assert config.server.listen == ("tcp:8080:interface=127.0.0.1",)
    assert config.store.map_size == 64 * 1024**3


def test_the_shipped_file_sets_nothing() -> None:
    assert evolve(load(shipped_file("medamad.toml")), file=None) == Config()


def test_the_shipped_file_documents_every_key_and_default(tmp_path: Path) -> None:
    shipped = shipped_file("medamad.toml").read_text("utf-8")
    uncommented = re.sub(r"^#([a-z_]+ = )", r"\1", shipped, flags=re.MULTILINE)
    assert evolve(config_of(tmp_path, uncommented), file=None) == Config()
    documented = set(re.findall(r"^([a-z_]+) = ", uncommented, flags=re.MULTILINE))
    defaults = Config()
    sections = (
        *(defaults.server, defaults.store, defaults.events, defaults.limits),
        *(defaults.privacy, defaults.retention, defaults.backup),
        *(defaults.alerts, defaults.mail, defaults.cluster, defaults.log),
    )
    # Tables of websites and of collectors are shown as examples.
    tables = {"websites", "collectors"}
    assert (
        documented
        == {key for section in sections for key in section.__struct_encode_fields__} - tables
    )


def test_every_setting_is_read(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        """
        [server]
        listen = ["tcp:80", "tcp6:80"]
        data_dir = "data"
        demo = true
        hostnames = ["Stats.Example.com", "bücher.example"]
        cors_origins = ["https://app.example.com", "http://localhost:5173"]
        trusted_proxies = ["10.0.0.0/8", "::1", "unix"]
        metrics_from = ["192.0.2.0/24", "unix"]
        script_name = "s.js"
        event_name = "pulse"
        [store]
        map_size = "1 TiB"
        min_free_disk = 1048576
        [events]
        timezone = "Europe/Berlin"
        bots = "strict"
        origins = "any"
        respect_gpc = true
        [retention]
        raw_days = 400
        after = "nothing"
        [retention.websites."Example.com."]
        raw_days = 30
        [retention.websites."bücher.example"]
        after = "sums"
        [mail]
        host = "mail.example.com"
        port = 2525
        tls = "implicit"
        user = "stats"
        password_file = "password"
        from = "stats@example.com"
        [log]
        format = "json"
        level = "warning"
        """,
    )
    assert config.mail.host == "mail.example.com"
    assert (config.mail.port, config.mail.tls) == (2525, "implicit")
    assert (config.mail.user, config.mail.password_file) == ("stats", "password")
    assert config.mail.sender == "stats@example.com"
    assert config.server.listen == ("tcp:80", "tcp6:80")
    assert config.data_dir({}) == tmp_path / "data"
    assert config.server.demo
    assert config.server.hostnames == ("stats.example.com", "xn--bcher-kva.example")
    assert config.server.cors_origins == ("https://app.example.com", "http://localhost:5173")
    assert config.server.trusted_proxies == ("10.0.0.0/8", "::1", "unix")
    assert config.server.script_name == "s.js"
    assert config.server.event_name == "pulse"
    assert config.store.map_size == 1024**4
    assert config.store.min_free_disk == 1024**2
    assert config.events.timezone == ZoneInfo("Europe/Berlin")
    assert config.events.bots == "strict"
    assert config.events.origins == "any"
    assert config.events.respect_gpc
    assert config.server.metrics_from == ("192.0.2.0/24", "unix")
    assert (config.log.format, config.log.level) == ("json", "warning")
    assert (config.retention.raw_days, config.retention.after) == (400, "nothing")
    assert set(config.retention.websites) == {"example.com", "xn--bcher-kva.example"}


SIZE = 'expected bytes as a whole number, or a text such as "64 GiB"'
MAIL_HOST = 'expected a hostname such as "mail.example.com", without a port'
MAIL_ADDRESS = 'expected an address such as "stats@example.com"'
USER_WITHOUT_TLS = 'user and tls = "off" contradict each other: the password could be read'
BASE_PATH = 'expected a path such as "/stats", without a slash at its end'
SERVER_URL = 'expected an address such as "https://clickhouse.example.com:8443"'
QUOTED = 'expected the name in quotation marks: [retention.websites."a.b.c"]'
HOSTNAME = 'expected a hostname such as "stats.example.com"'
ZONE = 'expected a time zone such as "UTC" or "Europe/Berlin"'
ORIGIN = 'expected an origin such as "https://app.example.com"'
PROXY = 'expected an address, a network or "unix"'
ENDPOINT = 'expected a port, an endpoint such as "tcp:8080", or a list of them'
PATH = "expected a path as text without NUL"
SERVER = 'expected an address such as "https://clickhouse.example.com:8443"'
DATABASE = "expected a name of letters, digits and underscores"
NAME = "expected a name of letters, digits, dots, hyphens and underscores"
CLUSTER = "expected a name of letters, digits, hyphens and underscores"
OWN = "is a path of the interface"


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        (
            "[events]\nreturning = true\nvisits = false",
            "events",
            "returning needs visits = true",
        ),
        (
            '[events]\nunique = "none"\nvisits = false',
            "events",
            'unique = "none" needs visits = true',
        ),
        (
            '[events]\nunique = "none"\nreturning = true',
            "events",
            'unique = "none" and returning = true contradict each other',
        ),
        ('[events]\nunique = "day"', "events.unique", "expected one of cache, none"),
        ('[cluster]\nurls = ["clickhouse:8123"]', "cluster.urls[0]", SERVER),
        ('[cluster]\nurls = ["http://clickhouse"]', "cluster.urls[0]", SERVER),
        ('[cluster]\nurls = ["http://ada@clickhouse:8123"]', "cluster.urls[0]", SERVER),
        ('[cluster]\nurls = ["http://clickhouse:8123/?user=ada"]', "cluster.urls[0]", SERVER),
        ('[cluster]\ndatabase = "a-b"', "cluster.database", DATABASE),
        ('[cluster]\nname = "it\'s"', "cluster.name", CLUSTER),
        ("[cluster]\ncollector = 65536", "cluster.collector", "expected int <= 65535"),
        ("[cluster]\nkeep = 49", "cluster.keep", "expected int >= 50"),
        ("flavour = 1", "flavour", "unknown key"),
        ("[colours]\nred = 1", "colours", "unknown key"),
        ("[server]\ncolour = 1", "server.colour", "unknown key"),
        ("server = 3", "server", "expected object, got int"),
        ("[server]\ndemo = 1", "server.demo", "expected bool, got int"),
        ("[server]\nlisten = true", "server.listen", ENDPOINT),
        ('[server]\nlisten = "0.0.0.0"', "server.listen", ENDPOINT),
        ("[server]\nlisten = []", "server.listen", ENDPOINT),
        ('[server]\nlisten = ["tcp:80", 8.1]', "server.listen", ENDPOINT),
        ('[server]\npublic_url = "https://a.com/stats"', "server.public_url", ORIGIN),
        ('[mail]\nhost = "a:25"', "mail.host", MAIL_HOST),
        ('[mail]\nhost = "mail..example.com"', "mail.host", MAIL_HOST),
        ('[mail]\nhost = "-mail.example.com"', "mail.host", MAIL_HOST),
        (f'[mail]\nhost = "{"a" * 64}.example.com"', "mail.host", MAIL_HOST),
        ('[mail]\nuser = "a\\nb"', "mail.user", "expected a name of one line"),
        ("[mail]\nport = 65536", "mail.port", "expected int <= 65535"),
        ('[mail]\ntls = "maybe"', "mail.tls", "expected one of starttls, implicit, off"),
        ('[mail]\nfrom = "me"', "mail.from", MAIL_ADDRESS),
        ('[mail]\nuser = "a"\ntls = "off"', "mail", USER_WITHOUT_TLS),
        ('[mail]\nsender = "a@b"', "mail.sender", "unknown key; did you mean user?"),
        ('[server]\ncors_origins = "x"', "server.cors_origins", "expected array, got str"),
        ('[server]\ncors_origins = ["*"]', "server.cors_origins[0]", ORIGIN),
        ('[server]\ncors_origins = ["https://a.com/"]', "server.cors_origins[0]", ORIGIN),
        ('[server]\ncors_origins = ["https://A.com"]', "server.cors_origins[0]", ORIGIN),
        ('[server]\nhostnames = ["https://a.com"]', "server.hostnames[0]", HOSTNAME),
        ('[server]\nhostnames = ["a.com:8080"]', "server.hostnames[0]", HOSTNAME),
        ("[server]\nhostnames = [1]", "server.hostnames[0]", HOSTNAME),
        ('[server]\ntrusted_proxies = ["10/8"]', "server.trusted_proxies[0]", f"{PROXY}: "),
        ("[server]\ntrusted_proxies = [1]", "server.trusted_proxies[0]", PROXY),
        ('[server]\nscript_name = "a/b.js"', "server.script_name", NAME),
        ('[server]\nscript_name = ""', "server.script_name", NAME),
        ('[server]\nscript_name = "api"', "server.script_name", f"api {OWN}"),
        ('[server]\nscript_name = "event"', "server.script_name", f"event {OWN}"),
        ('[server]\nevent_name = "a/b"', "server.event_name", NAME),
        ('[server]\nevent_name = ".."', "server.event_name", NAME),
        ('[server]\nevent_name = "ö"', "server.event_name", NAME),
        ("[server]\nevent_name = 1", "server.event_name", NAME),
        *(
            (f'[server]\nevent_name = "{name}"', "server.event_name", f"{name} {OWN}")
            for name in (
                *("api", "auth", "dashboard", "openapi.yaml", "script.js", "scripts"),
                *("user", "website", "websites"),
            )
        ),
        ('[store]\nmap_size = "64 GB"', "store.map_size", SIZE),
        ("[store]\nmap_size = true", "store.map_size", SIZE),
        ("[store]\nmap_size = -1", "store.map_size", SIZE),
        ('[store]\nmap_size = "1 MiB"', "store.map_size", "expected 16 MiB to 64 TiB"),
        ("[store]\nmin_free_disk = 1.5", "store.min_free_disk", SIZE),
        (
            '[store]\nmin_free_disk = "99999999 TiB"',
            "store.min_free_disk",
            "expected at most 1048576 TiB",
        ),
        ("[store]\ncommit_interval_ms = -1", "store.commit_interval_ms", "expected int >= 0"),
        ('[store]\ncommit_max_hits = "9"', "store.commit_max_hits", "expected int, got str"),
        (
            '[server]\nproxy_header = "x-forwarded-for"',
            "server.proxy_header",
            "expected one of X-Forwarded-For, Forwarded",
        ),
        ('[events]\nbots = "none"', "events.bots", "expected one of declared, strict, off"),
        (
            '[events]\nhosting = "apart"',
            "events.hosting",
            "expected one of count, count apart, ignore",
        ),
        ('[events]\norigins = "own"', "events.origins", "expected one of website, any"),
        ('[events]\ntimezone = "Mars/Olympus"', "events.timezone", ZONE),
        ('[events]\ntimezone = "../etc"', "events.timezone", ZONE),
        ('[events]\ntimezone = "Europe"', "events.timezone", ZONE),
        ("[events]\ntimezone = 1", "events.timezone", ZONE),
        ("[limits]\nmax_body_bytes = 10", "limits.max_body_bytes", "expected int >= 1024"),
        ("[limits]\nhits_per_minute = -1", "limits.hits_per_minute", "expected int >= 0"),
        ('[server]\ndata_dir = "a\\u0000b"', "server.data_dir", PATH),
        ("[server]\ndata_dir = 1", "server.data_dir", PATH),
        ('[server]\nlisten = "unix:a\\u0000b"', "server.listen", ENDPOINT),
        ('[events]\nreferrers = "\\u0000"', "events.referrers", PATH),
        ('[events]\nspam = "\\u0000"', "events.spam", PATH),
        ('[events]\nblocked = "\\u0000"', "events.blocked", PATH),
        ('[server]\nmetrics_from = ["::1/8"]', "server.metrics_from[0]", f"{PROXY}: "),
        ('[log]\nformat = "xml"', "log.format", "expected one of text, json"),
        ('[log]\nlevel = "all"', "log.level", "expected one of debug, info, warning, error"),
        ("[backup]\nmax_age_hours = -1", "backup.max_age_hours", "expected int >= 0"),
        ("[backup]\nkeep = 0", "backup.keep", "expected int >= 1"),
        ("[retention]\nraw_days = -1", "retention.raw_days", "expected int >= 0"),
        ('[retention]\nafter = "all"', "retention.after", "expected one of sums, nothing"),
        (
            "[retention.websites.example.com]\nraw_days = 1",
            "retention.websites.example.com",
            'expected the name in quotation marks: [retention.websites."example.com"]',
        ),
        (
            "[retention.websites]\nraw_days = { raw_days = 1 }\nb.example.com.raw_days = 1",
            "retention.websites.raw_days",
            HOSTNAME,
        ),
        (
            '[cluster.collectors]\n1 = "http://a:8080"\n2 = "b:8080"',
            "cluster.collectors.2",
            SERVER_URL,
        ),
        ("[cluster.collectors]\n3 = 8080", "cluster.collectors.3", SERVER_URL),
        ("[retention.websites.a.b.c]", "retention.websites.a.b.c", QUOTED),
        ('[retention.websites."a.com".x]', "retention.websites.a.com.x", "unknown key"),
        ("[retention.x.b]\ny = 1", "retention.x", "unknown key"),
        ('[retention.websites."a b"]', "retention.websites.a b", HOSTNAME),
        (
            '[retention.websites."a.com"]\nraw_days = "1"',
            "retention.websites.a.com.raw_days",
            "expected int | null, got str",
        ),
        (
            '[retention.websites."a.com"]\nafter = ""',
            "retention.websites.a.com.after",
            "expected one of sums, nothing",
        ),
        (
            '[retention.websites."a.com"]\ndays = 1',
            "retention.websites.a.com.days",
            "unknown key; did you mean raw_days?",
        ),
        ("[server]\nlissten = 1", "server.lissten", "unknown key; did you mean listen?"),
        ("[sever]", "sever", "unknown key; did you mean server?"),
        ("timezone = 'UTC'", "timezone", "unknown key; did you mean events.timezone?"),
        ("[limits]\nlisten = 1", "limits.listen", "unknown key; did you mean server.listen?"),
        ("[server]\nbase_path = '/'", "server.base_path", BASE_PATH),
        ("[server]\nbase_path = 'stats'", "server.base_path", BASE_PATH),
        ("[server]\nbase_path = '/stats/'", "server.base_path", BASE_PATH),
        ("[server]\nbase_path = '/a\"b'", "server.base_path", BASE_PATH),
        ("[server]\nbase_path = '/..'", "server.base_path", BASE_PATH),
        ("[server]\nbase_path = '/api/x'", "server.base_path", "api is a path of the interface"),
        ("[limits", "", "not TOML: "),
        (f"x = {'[' * 9_999}", "", "arrays or tables are nested too deeply"),
        (f"x = {'{a = ' * 9_999}", "", "arrays or tables are nested too deeply"),
    ],
)
def test_invalid_input_is_reported_by_name(
    tmp_path: Path, text: str, key: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        config_of(tmp_path, text)
    assert raised.value.file == tmp_path / "medamad.toml"
    assert raised.value.key == key
    if reason.endswith(": "):
        assert raised.value.reason.startswith(reason)
    else:
        assert raised.value.reason == reason
    parts = [str(tmp_path / "medamad.toml"), key, raised.value.reason]
    assert str(raised.value) == ": ".join(filter(None, parts))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: No such file or directory$"):
        load(tmp_path / "absent.toml")


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"bad\.toml: expected UTF-8$"):
        load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("text", "environ", "wanted"),
    [
        ("", {}, "{cwd}/medamad-data"),
        ("", {"STATE_DIRECTORY": "/var/lib/medamad"}, "/var/lib/medamad"),
        ("", {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a"),
        ('data_dir = "/srv/m"', {"STATE_DIRECTORY": "/var/lib/medamad"}, "/srv/m"),
        ('data_dir = "m"', {}, "{file}/m"),
    ],
)
def test_the_data_directory_can_be_configured(
    tmp_path: Path, text: str, environ: dict[str, str], wanted: str
) -> None:
    config = config_of(tmp_path, f"[server]\n{text}")
    assert config.data_dir(environ) == Path(wanted.format(cwd=Path.cwd(), file=tmp_path))


def test_a_retired_backup_time_warns_and_names_the_timer(tmp_path: Path) -> None:
    config = config_of(tmp_path, '[backup]\nat = "03:30"\nfolder = "elsewhere"')
    assert config.backup.folder == "elsewhere"
    (warning,) = config.warnings
    assert "backup.at" in warning
    assert "systemctl enable --now medamad-backup.timer" in warning
    assert config_of(tmp_path, "[backup]\nkeep = 3").warnings == ()


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
def test_a_file_without_settings_gives_the_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "medamad.toml").write_text(text, "utf-8")
    assert evolve(load(tmp_path / "medamad.toml"), file=None) == Config()


def test_a_file_may_end_without_a_newline(tmp_path: Path) -> None:
    (tmp_path / "medamad.toml").write_text("[retention]\nraw_days = 36", "utf-8")
    assert load(tmp_path / "medamad.toml").retention.raw_days == 36


@pytest.mark.parametrize(
    ("proxies", "widest"),
    [
        ('["127.0.0.1", "0.0.0.0/0"]', "0.0.0.0/0"),
        ('["::/0", "unix"]', "::/0"),
        ('["10.0.0.0/8", "unix", "::1"]', ""),
    ],
)
def test_trusting_every_client_triggers_a_warning(
    tmp_path: Path, proxies: str, widest: str
) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text(f"[server]\ntrusted_proxies = {proxies}\n", "utf-8")
    warnings = load(file).warnings
    assert [f"server.trusted_proxies: {widest} trusts everybody" in text for text in warnings] == (
        [True] if widest else []
    )


def test_every_error_of_a_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        config_of(
            tmp_path,
            """
            colour = 1
            [server]
            lissten = "x"
            demo = 1
            [retention.websites."a.example"]
            raw_days = -1
            aftr = "sums"
            [retention.websites.b.example]
            raw_days = 5
            [events]
            timezone = "Mars"
            returning = true
            visits = false
            """,
        )
    assert [error.key for error in (raised.value, *raised.value.others)] == [
        *("colour", "server.lissten", "server.demo"),
        *("retention.websites.a.example.raw_days", "retention.websites.a.example.aftr"),
        *("retention.websites.b.example", "events.timezone"),
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("8080", "tcp:8080:interface=127.0.0.1"),
        ('"8080"', "tcp:8080:interface=127.0.0.1"),
        ('"127.0.0.1:8080"', "tcp:8080:interface=127.0.0.1"),
        ('"0.0.0.0:80"', "tcp:80:interface=0.0.0.0"),
        ('"[::1]:8080"', r"tcp6:8080:interface=\:\:1"),
        ('"localhost:8080"', "tcp:8080:interface=127.0.0.1"),
        ('"[::]:8080"', r"tcp6:8080:interface=\:\:"),
        ('"tcp:8080"', "tcp:8080"),
        ('"unix:/run/x.sock"', "unix:/run/x.sock"),
    ],
)
def test_a_port_stands_for_one_of_this_machine(tmp_path: Path, written: str, meant: str) -> None:
    config = config_of(tmp_path, f"[server]\nlisten = {written}")
    assert config.server.listen == (meant,)
    assert Config().with_overrides(None, [written.strip('"')]).server.listen == (meant,)


EXEMPT = '[privacy]\npreset = "exempt"\n'


def test_a_preset_sets_what_the_file_does_not(tmp_path: Path) -> None:
    config = config_of(tmp_path, EXEMPT)
    assert (config.events.respect_gpc, config.retention.raw_days) == (True, 750)
    config = config_of(tmp_path, f"{EXEMPT}[retention]\nraw_days = 90\n[events]\nreturning = true")
    assert (config.events.respect_gpc, config.retention.raw_days) == (True, 90)


def test_views_of_the_preset_are_younger_than_any_25_months() -> None:
    """Those of a day go when it has ended, or a day later."""
    for start in (date(2024, 1, 1) + timedelta(days) for days in range(4 * 366)):
        months = start.year * 12 + start.month - 1 + 25
        later = date(months // 12, months % 12 + 1, min(start.day, 28))
        assert start + timedelta(EXEMPT_DAYS + 2) < later


def test_what_contradicts_a_preset_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        config_of(
            tmp_path,
            EXEMPT
            + """
            [events]
            respect_gpc = false
            origins = "any"
            [retention]
            raw_days = 0
            [retention.websites."a.example"]
            raw_days = 800
            [retention.websites."b.example"]
            after = "nothing"
            """,
        )
    assert raised.value.key == "privacy.preset"
    assert raised.value.reason == (
        '"exempt" is contradicted by retention.raw_days = 0 (expected 1 to 750),'
        " retention.websites.a.example.raw_days = 800 (expected 1 to 750),"
        ' events.respect_gpc = false (expected true), events.origins = "any" (expected "website")'
    )


@pytest.mark.parametrize("preset", ['"strict"', "1"])
def test_an_unknown_preset(tmp_path: Path, preset: str) -> None:
    with pytest.raises(ConfigError, match=r'privacy\.preset: expected one of "", exempt'):
        config_of(tmp_path, f"[privacy]\npreset = {preset}")
