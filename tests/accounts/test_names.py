import pytest

from medamad.accounts.credentials import check_name
from medamad.domain.errors import BadRequest


@pytest.mark.parametrize("name", ["a", "weekly report", "日本", "x" * 64])
def test_a_name_is_given_back(name: str) -> None:
    assert check_name(name) == name
    assert check_name(f"  {name}\t") == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "name: expected 1 to 64 characters, got 0"),
        (" \n ", "name: expected 1 to 64 characters, got 0"),
        ("x" * 65, "name: expected 1 to 64 characters, got 65"),
        ("a\nb", "name: expected text of one line, without control characters"),
        ("a\x1b[31mb", "name: expected text of one line, without control characters"),
        ("a\ud800b", "name: expected text of one line, without control characters"),
    ],
)
def test_what_is_no_name_is_refused(name: str, reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_name(name)
    assert str(refused.value) == reason
