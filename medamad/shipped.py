"""Where the files of etc/ are that come with the package."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
_FOLDERS: Final = (_PACKAGE / "etc", _PACKAGE.parent / "etc")
"""In an installed wheel; in a checkout, also one installed with `pip install -e`."""


def shipped_file(name: str) -> Path:
    """Give the path of a file of etc/, such as "spam.txt".

    Raises FileNotFoundError when the package has no such file.
    """
    for folder in _FOLDERS:
        path = folder / name
        if path.is_file():
            return path
    raise FileNotFoundError(f"medamad was installed without etc/{name}")
