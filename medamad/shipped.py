"""Where the files of etc/ and systemd/ are that come with the package."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent


def shipped_file(name: str) -> Path:
    """Give the path of a file of etc/, such as "spam.txt".

    Raises FileNotFoundError when the package has no such file.
    """
    return _found("etc", "etc", name)


def shipped_unit(name: str) -> Path:
    """Give the path of a unit, such as "medamad.socket". Raises FileNotFoundError."""
    return _found("systemd", "units", name)


def _found(in_checkout: str, in_wheel: str, name: str) -> Path:
    # A checkout is also what `pip install -e` leaves in place.
    for folder in (_PACKAGE / in_wheel, _PACKAGE.parent / in_checkout):
        path = folder / name
        if path.is_file():
            return path
    raise FileNotFoundError(f"medamad was installed without {in_checkout}/{name}")
