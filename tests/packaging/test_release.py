"""A release: what is built for it, what stops it, and the workflows that publish it."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml
from support.distributions import ROOT, Release, commit, release, released

from medamad import __version__

HOST = ROOT / ".github"
SCHEMAS = {
    "vendor.dependabot": "dependabot.yml",
    "vendor.github-issue-forms": "ISSUE_TEMPLATE/*.yml",
    "vendor.github-workflows": "workflows/*.yml",
}
PROGRAM = re.compile(r"^(?:packaging|\.ci)/\w+", re.MULTILINE)
FAKE = '#!/bin/sh\necho "$(basename "$0")" "$@" >>"$CALLS"\n'
DIGESTS = ("a" * 64, "b" * 64)
READY = "## {}\n\nThe [first](docs/install.md) version.\n\n## 0.9\n\nNot this.\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a repository with no more than a release begins with."""
    folder = tmp_path / "small"
    shutil.copytree(ROOT / "packaging", folder / "packaging")
    (folder / "medamad").mkdir()
    (folder / "medamad/__init__.py").write_text(f'__version__ = "{__version__}"\n', "utf-8")
    (folder / "CHANGELOG.md").write_text(READY.format(__version__), "utf-8")
    (folder / ".gitignore").write_text("dist/\n", "utf-8")
    commit(folder)
    return folder


@pytest.fixture
def whole(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return released(tmp_path_factory.getbasetemp())


@pytest.mark.skipif(shutil.which("dh") is None, reason="debhelper is missing")
def test_a_release_is_built_and_not_uploaded(whole: Release) -> None:
    out = whole.out
    assert (whole.ran.stdout, whole.ran.returncode) == (f"{out}\n", 0), whole.ran.stderr
    sources, wheel, package, checksums, notes = sorted(
        out.iterdir(), key=lambda file: (".gz", ".whl", ".deb", "", ".md").index(file.suffix)
    )
    assert sources.name == f"medamad-{__version__}.tar.gz"
    assert wheel.name.startswith(f"medamad-{__version__}-py3-none-manylinux_")
    assert "~" not in package.name
    assert notes.read_text("utf-8").startswith("The first version.")

    listed = {line.split("  ")[1] for line in checksums.read_text("utf-8").splitlines()}
    assert listed == {sources.name, wheel.name, package.name}
    subprocess.run(["sha256sum", "--check", "--quiet", checksums], cwd=out, check=True)

    with zipfile.ZipFile(wheel) as archive:
        about = message_from_bytes(archive.read(f"medamad-{__version__}.dist-info/METADATA"))
    assert about["Version"] == __version__
    with tarfile.open(sources) as archive:
        assert f"medamad-{__version__}/packaging/release" in archive.getnames()
    field = ["dpkg-deb", "--field", package, "Version"]
    version = subprocess.run(field, check=True, capture_output=True, text=True).stdout.strip()
    final = re.sub(r"[a-z].*", "", __version__)
    subprocess.run(["dpkg", "--compare-versions", version, "lt", f"{final}-2"], check=True)


def test_the_same_commit_gives_the_same_wheel(whole: Release) -> None:
    assert whole.ran.returncode == 0, whole.ran.stderr
    made = [distributions(whole.out)]
    ran = release(whole.copy, __version__, "python")
    assert ran.returncode == 0, ran.stderr
    made.append(distributions(whole.out))
    assert len(made[0]) == 2
    assert made[0] == made[1]


def distributions(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("medamad-*")}


def test_a_release_of_another_version_is_refused(small: Path) -> None:
    ran = release(small, "7.0.0")
    reason = "release: medamad/__init__.py has not the version 7.0.0\n"
    assert (ran.stderr, ran.returncode) == (reason, 1)
    assert not (small / "dist").exists()


@pytest.mark.parametrize(
    "text", ["", "## {}\n\n## 0.9\n\nNot this.\n", "## {}, not released yet\n\nThe first.\n"]
)
def test_a_release_without_notes_is_refused(small: Path, text: str) -> None:
    (small / "CHANGELOG.md").write_text(text.format(__version__), "utf-8")
    ran = release(small, __version__)
    reason = f"release: CHANGELOG.md has nothing under the heading '## {__version__}'\n"
    assert (ran.stderr, ran.returncode) == (reason, 1)


def test_a_release_of_what_is_not_committed_is_refused(small: Path) -> None:
    (small / "new.py").write_text("", "utf-8")
    ran = release(small, __version__)
    assert (ran.stderr, ran.returncode) == ("release: not committed:\n?? new.py\n", 1)


def test_a_step_that_fails_fails_the_release(small: Path) -> None:
    ran = release(small, __version__, "python")
    assert ran.returncode == 1
    assert ran.stderr.endswith(" ended with 1\n")
    unknown = release(small, __version__, "upload")
    assert unknown.stderr.endswith("error: no such step: upload\n")


@pytest.mark.parametrize("final", [False, True])
def test_only_a_final_version_becomes_the_latest(small: Path, tmp_path: Path, final: bool) -> None:
    version = "1.0.0" if final else "1.0.0rc1"
    (small / "CHANGELOG.md").write_text(READY.format(version), "utf-8")
    for folder, names in {"files": ["medamad.whl", "medamad.deb"], "digests": DIGESTS}.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(name, "utf-8")
    (tmp_path / "bin").mkdir()
    for name in ("docker", "gh"):
        (tmp_path / "bin" / name).write_text(FAKE, "utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    environ = {
        "CALLS": str(tmp_path / "calls.txt"),
        "GITHUB_REPOSITORY": "Ada/Medamad",
        "GITHUB_SERVER_URL": "https://host.example",
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
    }
    command = ["packaging/publish", version, tmp_path / "files", tmp_path / "digests"]
    subprocess.run(command, cwd=small, env=os.environ | environ, check=True, capture_output=True)

    image = "ghcr.io/ada/medamad"
    latest = f" --tag {image}:latest" if final else ""
    marked = "" if final else " --prerelease"
    options = f"v{version} --verify-tag --title {version}{marked} --notes-file notes.md"
    files = " ".join(
        f"dist/{version}/{name}" for name in ("SHA256SUMS", "medamad.deb", "medamad.whl")
    )
    images = " ".join(f"{image}@sha256:{digest}" for digest in DIGESTS)
    assert (tmp_path / "calls.txt").read_text("utf-8").splitlines() == [
        f"docker buildx imagetools create --tag {image}:{version}{latest} {images}",
        f"gh release create {options} {files}",
    ]
    assert (small / "notes.md").read_text("utf-8") == (
        f"The [first](https://host.example/Ada/Medamad/blob/v{version}/docs/install.md) version.\n"
    )


def test_the_files_for_the_code_host_have_its_form() -> None:
    for schema, pattern in SCHEMAS.items():
        files = [str(file) for file in HOST.glob(pattern)]
        assert files
        checked = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
        ran = subprocess.run(checked, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout


def test_the_workflows_have_no_known_weakness() -> None:
    """That is: pinned actions, the least permissions, no text of strangers in a script."""
    program = Path(sys.executable).parent / "zizmor"
    check = [program, "--offline", "--quiet", "--min-severity", "medium", HOST]
    ran = subprocess.run(check, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_workflows_run_what_exists_and_name_no_repository() -> None:
    programs = set()
    for file in (HOST / "workflows").iterdir():
        text = file.read_text("utf-8")
        assert "ghcr.io/" not in text.replace("ghcr.io/${GITHUB_REPOSITORY,,}", "")
        jobs = yaml.safe_load(text)["jobs"]
        for job in jobs.values():
            needed = job.get("needs", [])
            assert set([needed] if isinstance(needed, str) else needed) <= jobs.keys()
            for step in job.get("steps", ()):
                programs |= set(PROGRAM.findall(step.get("run", "")))
    assert programs == {".ci/run", "packaging/release", "packaging/publish"}
    assert all(os.access(ROOT / program, os.X_OK) for program in programs)


def test_the_files_of_a_release_lie_in_the_root_of_its_artifacts() -> None:
    """An artifact keeps the folders from a path's first wildcard on."""
    jobs = yaml.safe_load((HOST / "workflows/release.yml").read_text("utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job.get("steps", ())]
    paths = [step["with"]["path"] for step in steps if "upload-artifact@" in step.get("uses", "")]
    assert paths == ["built/*.whl", "built/*.tar.gz", "built/*.deb", "digests"]
    assert 'mv "dist/${GITHUB_REF_NAME#v}" built\n' in "".join(
        step.get("run", "") for step in steps
    )
