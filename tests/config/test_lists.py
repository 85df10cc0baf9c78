from pathlib import Path

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from medamad.build import shipped_file
from medamad.config.lists import load_lists
from medamad.config.schema import Config, ConfigError, load
from medamad.ingest.networks import address_of
from medamad.lookup.robots import Purpose, Robot


def config_in(folder: Path, text: str = "") -> Config:
    file = folder / "medamad.toml"
    file.write_text(f"{text}\n", "utf-8")
    return load(file)


def test_the_shipped_lists_are_the_default() -> None:
    lists = load_lists(Config())
    assert lists.referrer_names == {}
    assert "semalt.com" in lists.spam_hosts
    assert len(lists.blocked) == 0
    assert lists.robots.of("gptbot") == Robot("OpenAI", Purpose.AI_TRAINING)


def test_lists_next_to_the_configuration_are_read(tmp_path: Path) -> None:
    (tmp_path / "referrers.toml").write_text('"intra.example.com" = "Intranet"\n', "utf-8")
    (tmp_path / "spam.txt").write_text("# ours\nBad.example  # worst\n\n", "utf-8")
    (tmp_path / "blocked.txt").write_text("192.0.2.7\n2001:db8::/32\n", "utf-8")
    (tmp_path / "robots.toml").write_text('"Curl" = { purpose = "monitoring" }\n', "utf-8")
    lists = load_lists(config_in(tmp_path))
    assert lists.referrer_names == {"intra.example.com": "Intranet"}
    assert list(lists.spam_hosts) == ["bad.example"]
    assert len(lists.blocked) == 2
    assert lists.robots.of("curl") == Robot("", Purpose.MONITORING)
    assert lists.robots.of("bingbot") == Robot("Microsoft", Purpose.SEARCH)
    assert address_of("192.0.2.7") in lists.blocked
    assert address_of("2001:db8::1") in lists.blocked


def test_configured_lists_are_read(tmp_path: Path) -> None:
    (tmp_path / "spam.txt").write_text("beside.example\n", "utf-8")
    (tmp_path / "mine.txt").write_text("named.example\n", "utf-8")
    config = config_in(tmp_path, '[events]\nspam = "mine.txt"\n')
    assert list(load_lists(config).spam_hosts) == ["named.example"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("referrers.toml", b"example = ", "Invalid value"),
        ("referrers.toml", b'"a.example" = 3', "a.example: expected a line"),
        ("referrers.toml", b"a = " + b"[" * 9_999, "arrays or tables are nested too deeply"),
        ("spam.txt", b"fine.example\nhttp://bad.example/", "line 2: expected a hostname"),
        ("spam.txt", b"\xff", "expected UTF-8"),
        ("robots.toml", b'"a" = 3', "a: Expected `object`, got `int`; expected a line such as"),
        ("robots.toml", b'"a" = {}', "a: Object missing required field `purpose`; expected a line"),
        ("robots.toml", b'"a" = { purpose = "fun" }', "a: Invalid enum value 'fun'"),
        (
            "robots.toml",
            b'"a" = { purpose = "search", by = 1 }',
            "a: Object contains unknown field",
        ),
        ("blocked.txt", b"\nnowhere", "line 2: expected an address or a network"),
    ],
)
def test_invalid_input_is_reported_by_name(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load_lists(config_in(tmp_path))
    assert raised.value.file == tmp_path / name
    assert raised.value.reason.startswith(reason)


@pytest.mark.parametrize("name", ["spam.txt", "blocked.txt", "robots.toml"])
def test_a_missing_shipped_list_is_reported(tmp_path: Path, name: str) -> None:
    def shipped(wanted: str) -> Path:
        return shipped_file("absent.txt" if wanted == name else wanted)

    with pytest.raises(ConfigError, match=r"/medamad: medamad was installed without etc/absent"):
        load_lists(Config(), shipped)
    if name != "robots.toml":  # of which the operator's is only a part
        (tmp_path / name).write_text("", "utf-8")
        load_lists(config_in(tmp_path), shipped)


def test_a_missing_configured_list_is_reported(tmp_path: Path) -> None:
    for key in ("referrers", "spam", "blocked", "robots"):
        config = config_in(tmp_path, f'[events]\n{key} = "absent.txt"\n')
        with pytest.raises(ConfigError) as raised:
            load_lists(config)
        message = f"{config.file}: events.{key}: {tmp_path}/absent.txt: No such file or directory"
        assert str(raised.value) == message


def test_networks_of_hosting_providers_are_read(tmp_path: Path) -> None:
    assert len(load_lists(Config()).hosting) == 0
    (tmp_path / "clouds.txt").write_text("192.0.2.0/24 # a\n\n2001:db8::/32\n", "utf-8")
    config = config_in(tmp_path, '[events]\nhosting_networks = "clouds.txt"\n')
    hosting = load_lists(config).hosting
    assert [address_of(each) in hosting for each in ("192.0.2.7", "2001:db8::7", "::1")] == [
        *(True, True, False)
    ]


SYSTEMS = 'hosting_networks = "asn.mmdb"\nhosting_systems = "systems.txt"'


def test_an_asn_file_and_a_list_of_systems_name_networks(tmp_path: Path) -> None:
    writer = MMDBWriter(6, "Test-ASN", ipv4_compatible=True)
    for system, network in enumerate(("192.0.2.0/24", "2001:db8::/32", "203.0.113.0/24")):
        writer.insert_network(IPSet([network]), {"autonomous_system_number": system})
    writer.to_db_file(str(tmp_path / "asn.mmdb"))
    (tmp_path / "systems.txt").write_text("AS0\n1\n7 # unused\n", "utf-8")
    hosting = load_lists(config_in(tmp_path, f"[events]\n{SYSTEMS}\n")).hosting
    addresses = ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7", "203.0.113.7")
    assert [address_of(each) in hosting for each in addresses] == [True, True, True, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            'hosting_networks = "clouds.txt"',
            "{0}/clouds.txt: line 2: expected an address or a network",
        ),
        (
            'hosting_networks = "absent"',
            "{0}/medamad.toml: events.hosting_networks: {0}/absent: No such file or directory",
        ),
        (
            'hosting_networks = "asn.mmdb"',
            "{0}/medamad.toml: events.hosting_systems: expected the AS numbers of hosting",
        ),
        (
            'hosting_networks = "clouds.txt"\nhosting_systems = "systems.txt"',
            "{0}/medamad.toml: events.hosting_systems: expected the AS numbers of hosting",
        ),
        (
            'hosting_systems = "systems.txt"',
            "{0}/medamad.toml: events.hosting_systems: expected the AS numbers of hosting",
        ),
        (SYSTEMS, "{0}/asn.mmdb: expected an ASN file in MaxMind's format"),
        (SYSTEMS.replace("systems.txt", "clouds.txt"), "{0}/clouds.txt: line 1: expected an AS"),
        (
            SYSTEMS.replace("asn.mmdb", "absent.mmdb"),
            "{0}/medamad.toml: events.hosting_networks: {0}/absent.mmdb: No such file or directory",
        ),
        (
            SYSTEMS.replace("systems.txt", "absent"),
            "{0}/medamad.toml: events.hosting_systems: {0}/absent: No such file or directory",
        ),
    ],
)
def test_faults_in_what_names_hosting_providers_are_reported(
    tmp_path: Path, settings: str, message: str
) -> None:
    (tmp_path / "clouds.txt").write_text("192.0.2.1\nAS1\n", "utf-8")
    (tmp_path / "systems.txt").write_text("AS1\n", "utf-8")
    (tmp_path / "asn.mmdb").write_bytes(b"nothing")
    with pytest.raises(ConfigError) as raised:
        load_lists(config_in(tmp_path, f"[events]\n{settings}\n"))
    assert str(raised.value).startswith(message.format(tmp_path))


@pytest.mark.parametrize("name", ["blocked.txt", "spam.txt", "referrers.toml"])
def test_a_list_may_end_without_a_newline(tmp_path: Path, name: str) -> None:
    text = '"a.example" = "A"' if name == "referrers.toml" else "a.example"
    file = tmp_path / name
    file.write_text("192.0.2.1" if name == "blocked.txt" else text, "utf-8")
    lists = load_lists(config_in(tmp_path))
    read = {
        "blocked.txt": address_of("192.0.2.1") in lists.blocked,
        "spam.txt": list(lists.spam_hosts) == ["a.example"],
        "referrers.toml": lists.referrer_names == {"a.example": "A"},
    }
    assert read[name]
