import json

import pytest

import medamad
from medamad.build import commit
from medamad.cli import main


def test_it_prints_the_version_and_the_commit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"medamad {medamad.__version__}")
    assert commit() in printed


def test_the_option_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    main(["version"])
    printed = capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == printed


def test_it_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"version": medamad.__version__, "commit": commit()}


@pytest.mark.parametrize("arguments", [[], ["dance"], ["version", "more"]])
def test_unknown_arguments_are_rejected(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 64
    assert capsys.readouterr().err.startswith("usage: medamad")
