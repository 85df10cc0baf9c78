import pytest

import medamad
from medamad.build import commit
from medamad.commands import COMMANDS, main


def test_it_says_the_version_and_the_commit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"medamad {medamad.__version__}")
    assert commit() in said


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_says_what_the_exit_status_means(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*filter(None, [command]), "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for status in ("0", "1", "64", "78"):
        assert f"\n  {status} " in said


@pytest.mark.parametrize("arguments", [[], ["dance"], ["version", "more"]])
def test_what_is_not_understood_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 64
    assert capsys.readouterr().err.startswith("usage: medamad")
