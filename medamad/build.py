"""The installed build: version, commit, and the files of etc/ and systemd/ that come with it."""

from ctypes import CDLL
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from medamad import __version__

VERSION: Final = __version__
LICENCE: Final = "Apache-2.0"
"""An SPDX expression, the same as in pyproject.toml."""

GENERATED: Final = Path(__file__).parent / "_build"
"""The folder of generated files (see hatch_build.py)."""
DASHBOARD: Final = GENERATED / "frontend" / "dashboard"
SCRIPTS: Final = GENERATED / "frontend" / "scripts"
KERNEL: Final = GENERATED / "kernel.so"
KERNEL_SOURCE: Final = Path(__file__).parent / "query" / "embedded" / "kernel.c"
PAGE: Final = "index.html"
SHARE_PAGE: Final = "share.html"


def check_frontend(dashboard: Path = DASHBOARD, scripts: Path = SCRIPTS) -> None:
    """Raise FileNotFoundError if the package was built without the dashboard or the scripts."""
    for needed in (dashboard / PAGE, dashboard / SHARE_PAGE, scripts):
        if not needed.exists():
            raise FileNotFoundError(f"medamad was installed without {needed}")


@cache
def load_kernel(library: Path = KERNEL, source: Path = KERNEL_SOURCE) -> CDLL:
    """Return the compiled loops of queries.

    Raises OSError if the package was built without them, if they are damaged, or if their source
    has changed since, as it may in a checkout.
    """
    stamp = library.with_suffix(".sha256")
    if not library.exists() or not stamp.exists():
        raise FileNotFoundError(f"medamad was installed without {library}")
    digests = stamp.read_text("ascii").split()
    for file in (library, source):
        if sha256(file.read_bytes()).hexdigest() not in digests:
            raise OSError(f"{file} has changed since medamad was installed: install it again")
    return CDLL(str(library))


@cache
def commit() -> str:
    """Return the short commit id of the build, or the package's version where none is known."""
    try:
        return (GENERATED / "commit.txt").read_text("ascii").strip() or VERSION
    except FileNotFoundError:
        return VERSION


def version_text() -> str:
    """Return the version, and the commit that it was built from if known."""
    return f"medamad {VERSION}" + ("" if commit() == VERSION else f" ({commit()})")


_PACKAGE: Final = Path(__file__).parent


def shipped_file(name: str) -> Path:
    """Return the path of a file of etc/, such as "spam.txt".

    Raises FileNotFoundError when the package has no such file.
    """
    return _found("etc", "etc", name)


def shipped_unit(name: str) -> Path:
    """Return the path of a unit, such as "medamad.socket". Raises FileNotFoundError."""
    return _found("systemd", "units", name)


def _found(in_checkout: str, in_wheel: str, name: str) -> Path:
    # An editable install uses the checkout too.
    for folder in (_PACKAGE / in_wheel, _PACKAGE.parent / in_checkout):
        path = folder / name
        if path.is_file():
            return path
    raise FileNotFoundError(f"medamad was installed without {in_checkout}/{name}")
