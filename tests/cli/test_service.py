import os

import pytest

from medamad.cli import main
from medamad.cli.service import steps


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_it_needs_root(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["service", action]) == 1
    assert "only root may install services" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["remove"]])
def test_an_action_is_required(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["service", *arguments])
    assert left.value.code == 64
    assert "usage: medamad service" in capsys.readouterr().err


def test_changed_units_are_restarted() -> None:
    units = ["medamad.socket", "medamad.service"]
    enabled = [("enable", *units), ("restart", "medamad.service")]
    assert list(steps(units, moved=False)) == enabled
    assert list(steps(units, moved=True)) == [("stop", *units), *enabled]
