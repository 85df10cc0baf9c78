"""Build the Debian package: `python packaging/deb.py`.

The package contains a virtual environment, /usr/lib/medamad, with everything but the interpreter,
which is Debian's python3: the package is for the Debian release whose python3 has the version of
the interpreter that runs this script. This script stages the environment and what the program
generates; debhelper makes the package of it, as packaging/debian says. Needs pip, docutils (for the
manual pages) and debhelper; is faster with uv. SOURCE_DATE_EPOCH sets the date of the package.
"""

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from contextlib import redirect_stdout
from email.utils import formatdate
from importlib.util import find_spec
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
ENVIRONMENT: Final = Path("usr/lib/medamad")
PROGRAMS: Final = ("medamad", "twist", "twistd")
"""The programs to install; those of other packages in the environment are left out."""
TESTS: Final = ("test", "tests")
"""The folders to leave out: a third of the libraries' code is their own tests."""
COMPLETIONS: Final = {
    "bash": "usr/share/bash-completion/completions/medamad",
    "zsh": "usr/share/zsh/vendor-completions/_medamad",
}
"""Where Debian's shells look."""
EXTRAS: Final = ("duckdb", "parquet")
CHANGELOG: Final = """\
medamad ({version}) stable; urgency=medium

  * Built from the sources; changelog.gz has what is new.

 -- The medamad authors <medamad@localhost>  {date}
"""
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
NEXT_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor + 1}"


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
    parser.add_argument("--revision", default="1", help="what follows the version")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "medamad"
        wheel = build_wheel(Path(folder) / "wheels")
        fill_environment(source, requirement(wheel, arguments.extra))
        fill_rest(source)
        version = debian_version(wheel.name.split("-")[1])
        package = pack(source, f"{version}-{arguments.revision}")
        print(shutil.move(package, arguments.out / package.name))


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout in a folder; return its path."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT))
    (wheel,) = folder.iterdir()
    return wheel


def debian_version(version: str) -> str:
    """Return a version as Debian writes it, which sorts 1.0.0~rc1 before 1.0.0."""
    return re.sub(r"\.?(a|b|rc|dev)(?=\d)", r"~\1", version)


def requirement(wheel: Path, extras: list[str]) -> str:
    """Return the requirement for pip."""
    return f"{wheel}[{','.join(extras)}]" if extras else str(wheel)


def fill_environment(source: Path, wanted: str) -> None:
    """Make the virtual environment with the paths it will have once installed."""
    target = source / ENVIRONMENT
    venv.create(target, symlinks=True)
    python = target / "bin" / "python3"
    run(sys.executable, "-m", *installer(python), wanted)
    for pattern in TESTS:
        for folder in list((target / "lib").rglob(pattern)):
            shutil.rmtree(folder)
    # Not by date: the package's own date is set back to that of its changelog.
    compileall.compile_dir(
        target / "lib",
        quiet=2,
        stripdir=str(source),
        prependdir="/",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    programs = target / "bin"
    for program in list(programs.iterdir()):
        if program.name in PROGRAMS:
            text = program.read_text("utf-8").replace(str(target), f"/{ENVIRONMENT}")
            program.write_text(text, "utf-8")
        else:
            program.unlink()
    for name in ("python", "python3", f"python{PYTHON}"):
        (programs / name).symlink_to(f"../../../bin/python{PYTHON}")
    (target / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n", "utf-8"
    )
    for name in (".gitignore", ".lock"):
        (target / name).unlink(missing_ok=True)
    # They say where it was staged; Debian's own packages are without them, too.
    for about in (target / "lib").rglob("*.dist-info"):
        for name in ("RECORD", "direct_url.json", "uv_cache.json"):
            (about / name).unlink(missing_ok=True)


def installer(python: Path) -> list[str]:
    """Return the module, with arguments, that installs for a Python: uv, the faster, or else pip.

    It compiles nothing: the bytecode would name the files by where they are staged.
    """
    if find_spec("uv"):
        return ["uv", "pip", "install", "-q", "--link-mode=copy", "--python", str(python)]
    return ["pip", "-q", "--python", str(python), "install", "--no-compile"]


def fill_rest(source: Path) -> None:
    """Stage the folder debian with the units, the configuration, documents and completions."""
    sys.path.insert(0, str(ROOT))
    from manual import man  # noqa: PLC0415 - of this checkout
    from medamad import cli  # noqa: PLC0415
    from medamad.daemon.install import Installation  # noqa: PLC0415

    shutil.copytree(ROOT / "packaging" / "debian", source / "debian")
    for _ in Installation(source, Path("/debian")).install([f"/{ENVIRONMENT}/bin/medamad"]):
        pass
    for name in ("CHANGELOG.md", "README.md"):
        shutil.copyfile(ROOT / name, source / name)
    man.write(source / "man")
    for shell, name in COMPLETIONS.items():
        target = source / name
        target.parent.mkdir(parents=True)
        with target.open("w", encoding="utf-8") as script, redirect_stdout(script):
            cli.main(["completion", shell])


def pack(source: Path, version: str) -> Path:
    """Make the package of what is staged; return its path, beside the staged folder."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    date = formatdate(float(epoch) if epoch else None)
    changelog = CHANGELOG.format(version=version, date=date)
    (source / "debian" / "changelog").write_text(changelog, "utf-8")
    depends = f"python3 (>= {PYTHON}), python3 (<< {NEXT_PYTHON})"
    run("dpkg-buildpackage", "--rules-target=binary", cwd=source, PYTHON_DEPENDS=depends)
    (package,) = source.parent.glob("*.deb")
    return package


def run(*command: str, cwd: Path = ROOT, **environ: str) -> None:
    """Run a command that must succeed; its output goes to standard error."""
    subprocess.run(command, check=True, stdout=sys.stderr, cwd=cwd, env=os.environ | environ)


if __name__ == "__main__":
    main()
