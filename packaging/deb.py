"""Build the Debian package: `python packaging/deb.py`.

The package contains a virtual environment, /usr/lib/medamad, with everything but the interpreter,
which is Debian's python3: the package is for the Debian release whose python3 has the version of
the interpreter that runs this script. Needs pip, docutils (for the manual pages) and dpkg-deb.

debhelper would need a source package around a tree that is staged already (a virtual environment
with its final paths, and the files of `Installation`), only to write what takes thirty lines here:
control, conffiles and md5sums. dpkg-deb does the packing.
"""

import argparse
import compileall
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = ROOT / "packaging" / "debian"
ENVIRONMENT: Final = Path("usr/lib/medamad")
UNITS: Final = Path("/usr/lib/systemd/system")
PROGRAMS: Final = ("medamad", "twist", "twistd")
"""The programs to install; those of other packages in the environment are left out."""
COMPLETIONS: Final = {
    "bash": "bash-completion/completions/medamad",
    "zsh": "zsh/vendor-completions/_medamad",
}
"""Where Debian's shells look, below /usr/share."""
EXTRAS: Final = ("duckdb", "parquet")
CHANGELOG: Final = """\
medamad ({version}) stable; urgency=medium

  * Built from the sources; changelog.gz has what is new.

 -- The medamad authors <medamad@localhost>  {date}
"""
SCRIPTS: Final = ("postinst", "prerm", "postrm")
PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"


def main() -> None:
    """Build the package and print its path, and nothing else."""
    parser = argparse.ArgumentParser(description="Build the Debian package.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder for it")
    parser.add_argument(
        "--extra",
        action="append",
        choices=EXTRAS,
        default=[],
        help="an extra to include, for files of DuckDB or Parquet; may be repeated",
    )
    parser.add_argument("--revision", type=int, default=1, help="what follows the version")
    parser.add_argument(
        "--upgrade", action="store_true", help="build the next revision too, to test upgrades"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage, version = fill(Path(folder), arguments.extra)
        for revision in range(arguments.revision, arguments.revision + 1 + arguments.upgrade):
            print(pack(stage, f"{version}-{revision}", arguments.out))


def fill(folder: Path, extras: list[str]) -> tuple[Path, str]:
    """Stage the package in a scratch folder; return the stage and the version."""
    wheels = folder / "wheels"
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT))
    (wheel,) = wheels.iterdir()
    stage = folder / "stage"
    fill_environment(stage, requirement(wheel, extras))
    fill_system(stage)
    return stage, wheel.name.split("-")[1]


def requirement(wheel: Path, extras: list[str]) -> str:
    """Return the requirement for pip."""
    return f"{wheel}[{','.join(extras)}]" if extras else str(wheel)


def pack(stage: Path, version: str, out: Path) -> Path:
    """Build the package; return its path."""
    architecture = output("dpkg", "--print-architecture")
    describe(stage, version, architecture)
    package = out / f"medamad_{version}_{architecture}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(stage), str(package))
    return package


def fill_environment(stage: Path, wanted: str) -> None:
    """Make the virtual environment with the paths it will have once installed."""
    target = stage / ENVIRONMENT
    venv.create(target, symlinks=True)
    python = target / "bin" / "python3"
    # What pip compiles would name the files by where they are staged.
    install = ["install", "--no-compile", wanted]
    run(sys.executable, "-m", "pip", "-q", "--python", str(python), *install)
    compileall.compile_dir(target / "lib", quiet=2, stripdir=str(stage), prependdir="/")
    programs = target / "bin"
    for program in list(programs.iterdir()):
        if program.name in PROGRAMS:
            text = program.read_text("utf-8").replace(str(target), f"/{ENVIRONMENT}")
            program.write_text(text, "utf-8")
        else:
            program.unlink()
    for name in ("python", "python3", PYTHON):
        (programs / name).symlink_to(f"../../../bin/{PYTHON}")
    (target / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON[6:]}\n", "utf-8"
    )
    (target / ".gitignore").unlink(missing_ok=True)


def fill_system(stage: Path) -> None:
    """Stage the rest: the link to the program, units, configuration, licence and changelog."""
    sys.path.insert(0, str(ROOT))
    from medamad.daemon.install import Installation  # noqa: PLC0415 - of this checkout

    for _ in Installation(stage, UNITS).install([f"/{ENVIRONMENT}/bin/medamad"]):
        pass
    (stage / "usr/bin").mkdir(parents=True)
    (stage / "usr/bin/medamad").symlink_to("../lib/medamad/bin/medamad")
    documents = stage / "usr/share/doc/medamad"
    documents.mkdir(parents=True)
    for source in (SOURCES / "copyright", ROOT / "README.md"):
        shutil.copyfile(source, documents / source.name)
    compress(ROOT / "CHANGELOG.md", documents / "changelog.gz")
    overrides = stage / "usr/share/lintian/overrides"
    overrides.mkdir(parents=True)
    shutil.copyfile(SOURCES / "lintian-overrides", overrides / "medamad")
    fill_manual(stage / "usr/share")


def fill_manual(share: Path) -> None:
    """Write the manual pages and the shell completions."""
    from manual import man  # noqa: PLC0415 - of this checkout

    with tempfile.TemporaryDirectory() as folder:
        man.write(Path(folder))
        for page in Path(folder).iterdir():
            target = share / "man" / f"man{page.suffix[1:]}" / f"{page.name}.gz"
            target.parent.mkdir(parents=True)
            compress(page, target)
    for shell, name in COMPLETIONS.items():
        target = share / name
        target.parent.mkdir(parents=True)
        command = [sys.executable, "-m", "medamad", "completion", shell]
        script = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        target.write_bytes(script)


def compress(source: Path, target: Path) -> None:
    """Write a file compressed, the same in every build."""
    target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))


def describe(stage: Path, version: str, architecture: str) -> None:
    """Write the DEBIAN folder."""
    about = stage / "DEBIAN"
    shutil.rmtree(about, ignore_errors=True)
    text = CHANGELOG.format(version=version, date=formatdate())
    log = stage / "usr/share/doc/medamad/changelog.Debian.gz"
    log.write_bytes(gzip.compress(text.encode(), mtime=0))
    files = sorted(path for path in stage.rglob("*") if path.is_file() and not path.is_symlink())
    for path in files:
        is_program = os.access(path, os.X_OK) and ".so" not in path.suffixes
        path.chmod(0o755 if is_program else 0o644)
    for path in (stage, *(path for path in stage.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    about.mkdir()
    fields = {
        "version": version,
        "architecture": architecture,
        "python": PYTHON[6:],
        "next_python": f"{sys.version_info.major}.{sys.version_info.minor + 1}",
        "kilobytes": sum(path.stat().st_size for path in files) // 1024,
    }
    control = (SOURCES / "control").read_text("utf-8").format(**fields)
    (about / "control").write_text(control, "utf-8")
    (about / "md5sums").write_text("".join(sums(stage, files)), "utf-8")
    edited = [
        f"/{path.relative_to(stage)}\n" for path in files if path.is_relative_to(stage / "etc")
    ]
    (about / "conffiles").write_text("".join(edited), "utf-8")
    for name in SCRIPTS:
        shutil.copyfile(SOURCES / name, about / name)
        (about / name).chmod(0o755)


def sums(stage: Path, files: list[Path]) -> Iterator[str]:
    """Return a line for each file in the format of md5sum."""
    for path in files:
        digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        yield f"{digest}  {path.relative_to(stage)}\n"


def run(*command: str) -> None:
    """Run a command that must succeed; its output goes to standard error."""
    subprocess.run(command, check=True, stdout=sys.stderr)


def output(*command: str) -> str:
    """Return the output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
