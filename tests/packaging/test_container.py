"""The image of the Containerfile, built by podman on a small Debian of mmdebstrap's."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = "python3,python3-venv,passwd,ca-certificates"
MAX_BYTES = 300_000_000
"""What the image may add to its base."""


def missing() -> str:
    """Return why no image can be built here; "" if one can."""
    if os.geteuid() != 0:
        return "only root can make the base image"
    absent = [name for name in ("podman", "mmdebstrap") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def podman(*arguments: str) -> str:
    ran = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (arguments, ran.stdout[-2_000:], ran.stderr[-2_000:])
    return ran.stdout.strip()


RUN = """
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
podman run --detach --name "$1" --network none --cgroups=disabled --ulimit nofile=1024:1024 \\
  --ulimit nproc=1024:1024 --read-only --tmpfs /tmp --cap-drop all \\
  --security-opt no-new-privileges "$2" >/dev/null
tries=0
until podman healthcheck run "$1" >/dev/null 2>&1; do
  tries=$((tries + 1))
  [ $tries -lt 60 ] || { podman logs "$1"; exit 1; }
  sleep 1
done
podman exec "$1" id -u
podman exec "$1" stat --format '%U %a' /data/store.mdb
podman exec "$1" medamad status --data /data | grep -o 'listening .*;'
podman exec "$1" medamad backup --rotate --nice --data /data >/dev/null && echo 'a backup'
podman stop --time 30 "$1" >/dev/null
podman inspect --format '{{.State.ExitCode}}' "$1"
"""
"""Where cgroups of both versions are mounted, a container can be run beside them only."""


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    """Make a base image that has what python:slim has."""
    archive = tmp_path / "base.tar"
    make = ("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm")
    subprocess.run([*make, str(archive)], check=True)
    name = "localhost/medamad-test-base"
    podman("import", str(archive), name)
    yield name
    podman("rmi", "--force", name)


@pytest.fixture
def image(base: str, tmp_path: Path) -> Iterator[str]:
    name = "localhost/medamad-test"
    # The certificates that this machine trusts: its registries may be behind a proxy.
    trusted = "/etc/ssl/certs"
    npm = tmp_path / "npmrc"
    npm.write_text(f"cafile={trusted}/ca-certificates.crt\n", "utf-8")
    outside = ["--volume", f"{trusted}:{trusted}:ro", "--volume", f"{npm}:/root/.npmrc:ro"]
    if Path("/etc/pip.conf").exists():
        outside += ["--volume", "/etc/pip.conf:/etc/pip.conf:ro"]
    podman(
        *("build", "--isolation", "chroot", "--network", "host", "--build-arg", f"BASE={base}"),
        *(*outside, "--format", "docker", "--tag", name, str(ROOT)),
    )
    yield name
    podman("rmi", "--force", name)


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
@pytest.mark.timeout(1_800)
def test_the_image_runs_as_a_user_of_its_own(base: str, image: str) -> None:
    container = "medamad-test"
    try:
        ran = subprocess.run(
            ["unshare", "-m", "sh", "-ec", RUN, "-", container, image],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        podman("rm", "--force", "--volumes", container)
    assert (ran.stdout.splitlines(), ran.returncode) == (
        ["10001", "medamad 600", "listening    tcp:8080;", "a backup", "0"],
        0,
    ), ran.stderr
    (details,) = json.loads(podman("image", "inspect", image))
    config = details["Config"]
    assert config["StopSignal"] == "SIGTERM"
    assert list(config["Volumes"]) == ["/data"]
    (of_base,) = json.loads(podman("image", "inspect", base))
    assert details["Size"] - of_base["Size"] < MAX_BYTES


def test_compose_builds_and_protects_the_same_image() -> None:
    service: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    medamad = service["services"]["medamad"]
    assert medamad["build"] == {"context": ".", "dockerfile": "Containerfile"}
    text = (ROOT / "Containerfile").read_text("utf-8")
    assert f"CMD {json.dumps(medamad['command'])}\n" in text
    assert medamad["volumes"] == ["data:/data"]
    assert (medamad["read_only"], medamad["cap_drop"]) == (True, ["ALL"])
