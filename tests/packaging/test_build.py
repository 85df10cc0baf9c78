from importlib.metadata import version

import pytest

from medamad import __version__
from medamad.build import GENERATED, commit, shipped_file


@pytest.mark.parametrize("name", ["referrers.toml", "spam.txt", "blocked.txt"])
def test_the_files_of_etc_are_found(name: str) -> None:
    assert shipped_file(name).read_text("utf-8").startswith("#")


@pytest.mark.parametrize("name", ["absent.txt", "", "."])
def test_a_file_that_is_not_shipped_is_reported(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="without etc/"):
        shipped_file(name)


def test_a_build_is_named_by_its_commit_or_version() -> None:
    generated = GENERATED / "commit.txt"
    expected = generated.read_text("ascii").strip() if generated.exists() else __version__
    assert commit() == expected
    assert commit().strip() == commit() != ""


def test_the_package_has_one_version() -> None:
    assert version("medamad") == __version__
