"""Shell completion."""

import shutil
import subprocess
from pathlib import Path

import pytest

from medamad.cli import COMMANDS, main

COMPLETE = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_medamad
printf '%s\n' "${COMPREPLY[@]}"
"""
LOADED = r"""
fpath=("$0" $fpath)
autoload -Uz compinit && compinit -u -D
autoload +X _medamad
print ${_comps[medamad]}
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("bash") / "medamad", "bash")


def written(file: Path, shell: str) -> Path:
    with pytest.MonkeyPatch.context() as patch, file.open("w", encoding="utf-8") as out:
        patch.setattr("sys.stdout", out)
        assert main(["completion", shell]) == 0
    return file


def completed(script: Path, *words: str) -> set[str]:
    ran = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", script, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_bash_completes_commands(bash: Path) -> None:
    assert set(COMMANDS) <= completed(bash, "medamad", "")
    assert completed(bash, "medamad", "sta") == {"status"}


def test_bash_completes_options_and_their_values(bash: Path) -> None:
    assert "--config" in completed(bash, "medamad", "run", "--")
    assert completed(bash, "medamad", "export", "--format", "nd") == {"ndjson"}
    assert completed(bash, "medamad", "token", "re") == {"revoke"}


def test_bash_completes_files_and_folders(bash: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.toml").touch()
    given = f"{tmp_path}/f"
    assert completed(bash, "medamad", "run", "--data", given) == {f"{tmp_path}/folder"}
    for before in (("check-config",), ("import",), ("export", "-o"), ("export", "--output")):
        assert f"{tmp_path}/file.toml" in completed(bash, "medamad", *before, given)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_the_zsh_script_is_valid(tmp_path: Path) -> None:
    script = written(tmp_path / "_medamad", "zsh")
    assert script.read_text("utf-8").startswith("#compdef medamad\n")
    ran = subprocess.run(
        ["zsh", "-f", "-c", LOADED, script.parent],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "_medamad\n")
