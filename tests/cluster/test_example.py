"""The example of a cluster in etc/cluster, as far as it can be tried without Docker."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from support.clickhouse.servers import await_answer, server_in
from support.daemon import free_port

from medamad.cli import make_parser
from medamad.config.schema import load
from medamad.config.settings import cluster_settings

EXAMPLE = Path(__file__).parents[2] / "etc" / "cluster"


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLE / "compose.yaml").read_text("utf-8"))
    return found


def test_the_composition_is_valid() -> None:
    checked = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec")
    done = subprocess.run(
        (*checked, EXAMPLE / "compose.yaml"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_steps_at_its_top_name_what_there_is(composed: dict[str, Any]) -> None:
    text = (EXAMPLE / "compose.yaml").read_text("utf-8")
    steps = re.findall(r"^#     (.+)", text, re.MULTILINE)
    given = re.findall(r'echo "(\w+)=', "\n".join(steps))
    assert sorted(given) == sorted(set(re.findall(r"\$\{(\w+):\?\}", text)))
    written = [step.rpartition(" > ")[2] for step in steps if step.startswith("openssl")]
    assert [f"./{name}" for name in written] == [
        secret["file"] for secret in composed["secrets"].values()
    ]
    commands = [composed["services"]["medamad1"]["command"]]
    for step in steps:
        _, kind, *words = step.split()[:2] + [w for w in step.split()[2:] if w != "--rm"]
        if kind == "compose" and words[0] in ("exec", "run"):
            service, *words = words[1:]
            assert composed["services"][service]["image"] == "medamad"
            # To `run` is to give other arguments to the image's program.
            commands.append(words[words[0] == "medamad" :])
    ours = [command for command in commands if command[0] != "cat"]
    assert [command[:2] for command in ours] == [
        ["run", "--config"],
        ["cluster", "init"],
        ["cluster", "join"],
        ["cluster", "join"],
    ]
    for command in ours:
        make_parser(command[:1]).parse_args(command)


def parsed(name: str) -> ET.Element:
    return ET.fromstring((EXAMPLE / name).read_text("utf-8"))  # noqa: S314 - our own


def test_every_file_and_volume_that_is_mounted_is_there(composed: dict[str, Any]) -> None:
    used = set()
    for service in composed["services"].values():
        for volume in service["volumes"]:
            source, _, _ = volume.partition(":")
            if source.startswith("./"):
                assert (EXAMPLE / source).is_file()
            else:
                used.add(source)
    assert used == set(composed["volumes"])
    assert (
        EXAMPLE / composed["services"]["medamad1"]["build"]["context"] / "Containerfile"
    ).exists()


def test_keepers_know_each_other(composed: dict[str, Any]) -> None:
    raft = parsed("keeper.xml").find("keeper_server/raft_configuration")
    assert raft is not None
    known = {each.findtext("hostname"): int(each.findtext("id", "")) for each in raft}
    services = composed["services"].items()
    assert known == {
        name: service["environment"]["KEEPER_ID"]
        for name, service in services
        if name.startswith("keeper")
    }


def test_the_servers_know_their_cluster(
    composed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = {
        name: service["environment"]
        for name, service in composed["services"].items()
        if name.startswith("clickhouse")
    }
    for name in services["clickhouse-2b"].keys() | {"HOSTNAME"}:
        monkeypatch.setenv(name, str(services["clickhouse-2b"].get(name) or "given"))
    shutil.copy(EXAMPLE / "clickhouse.xml", tmp_path / "config.xml")
    with server_in(tmp_path, free_port(), free_port()) as server:
        await_answer(server)
        found = server.client("default").query(
            "SELECT toString(host_name) AS host, toUInt8(shard_num) AS shard"
            " FROM system.clusters WHERE cluster = 'medamad' ORDER BY shard, replica_num"
        )
        macros = server.client("default").query(
            "SELECT getMacro('shard') AS shard, getMacro('replica') AS replica"
        )
    assert dict(zip(found["host"], found["shard"], strict=True)) == {
        name: given["SHARD"] for name, given in services.items()
    }
    assert macros == {"shard": ["2"], "replica": ["b"]}
    assert len({(given["SHARD"], given["REPLICA"]) for given in services.values()}) == 4


def test_the_user_is_the_one_that_the_collector_is() -> None:
    users = parsed("users.xml").find("users")
    assert users is not None
    assert [user.tag for user in users] == ["medamad"]


def test_the_collectors_reach_the_servers_and_each_other(
    composed: dict[str, Any], tmp_path: Path
) -> None:
    secrets = {"clickhouse-password": "given", "collectors-secret": "0123456789" * 4}
    services = composed["services"]
    names = [name for name in services if name.startswith("medamad")]
    hosts = [name for name in services if name.startswith("clickhouse")]
    caddy = services["caddy"]["networks"]["default"]["ipv4_address"]
    texts = set()
    for number, name in enumerate(names, 1):
        assert services[name]["secrets"] == list(secrets)
        assert f"./{name}.toml:/etc/medamad/medamad.toml:ro" in services[name]["volumes"]
        text = (EXAMPLE / f"{name}.toml").read_text("utf-8")
        texts.add(text.replace(f"collector {number}", "").replace(f"collector = {number}", ""))
        for secret, content in secrets.items():
            (tmp_path / secret).write_text(content)
        file = tmp_path / "medamad.toml"
        file.write_text(text.replace("/run/secrets", str(tmp_path)), "utf-8")
        cluster = cluster_settings(load(file), {})
        assert cluster is not None
        assert sorted(cluster.urls) == [f"http://{host}:8123" for host in hosts]
        assert (cluster.name, cluster.user, cluster.password, cluster.quorum) == (
            *("medamad", "medamad", "given"),
            2,
        )
        assert cluster.collector == number
        assert cluster.collectors == {n: f"http://{each}:8080" for n, each in enumerate(names, 1)}
        assert cluster.secret == secrets["collectors-secret"]
        assert f'trusted_proxies = ["{caddy}"]' in text
    assert (len(names), len(texts)) == (3, 1)


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
def test_caddy_accepts_its_configuration(tmp_path: Path) -> None:
    environ = os.environ | {"STATS_HOST": "stats.example.com", "HOME": str(tmp_path)}
    command = ("caddy", "validate", "--adapter", "caddyfile", "--config", EXAMPLE / "Caddyfile")
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, done.stderr
