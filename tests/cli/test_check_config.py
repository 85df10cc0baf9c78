from pathlib import Path

import pytest

from medamad.build import shipped_file
from medamad.cli import main


def test_the_shipped_configuration_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(shipped_file("medamad.toml"))
    assert main(["check-config", file]) == 0
    assert capsys.readouterr().out == f"{file}: no problems found\n"


def test_each_error_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text("[server]\nlissten = 1\n[limits]\nnew_utm = 0\n", "utf-8")
    assert main(["check-config", str(file)]) == 78
    assert capsys.readouterr().err == (
        f"medamad: {file}: server.lissten: unknown key; did you mean listen?\n"
        f"medamad: {file}: limits.new_utm: expected int >= 1\n"
    )


def test_an_unknown_section_has_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text("[evnts]\nvisits = false\nreturning = true\n", "utf-8")
    assert main(["check-config", str(file)]) == 78
    assert capsys.readouterr().err == (
        f"medamad: {file}: evnts: unknown key; did you mean events?\n"
    )


def test_each_endpoint_and_list_that_is_refused_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text(
        '[server]\nlisten = ["banana:1", "8080", "0.0.0.0:99999"]\n[events]\nspam = "no.txt"\n',
        "utf-8",
    )
    assert main(["check-config", str(file)]) == 78
    assert capsys.readouterr().err == (
        f"medamad: {file}: events.spam: {tmp_path}/no.txt: No such file or directory\n"
        f"medamad: {file}: server.listen: banana:1: Unknown endpoint type: 'banana'\n"
        f"medamad: {file}: server.listen: tcp:99999:interface=0.0.0.0:"
        " expected a port from 0 to 65535\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[limits]\nnew_utm = 0", "medamad.toml: limits.new_utm: expected int >= 1"),
        (f"x = {'[' * 9_999}", "medamad.toml: arrays or tables are nested too deeply"),
        ('[events]\nspam = "none.txt"', "medamad.toml: events.spam: "),
        (
            '[server]\nlisten = "tcp:8080:colour=red"',
            "medamad.toml: server.listen: tcp:8080:colour=red: ",
        ),
        (
            '[server]\nlisten = "ssl:443:privateKey=/no.pem"',
            "medamad.toml: server.listen: ssl:443:privateKey=/no.pem: /no.pem: No such file",
        ),
    ],
)
def test_errors_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text(f"{text}\n", "utf-8")
    assert main(["check-config", str(file)]) == 78
    printed = capsys.readouterr().err
    assert printed.startswith(f"medamad: {tmp_path}/{reason}")
    assert printed.count("\n") == 1


def test_a_file_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check-config"])
    assert ended.value.code == 64
    assert "FILE" in capsys.readouterr().err


def test_a_retired_key_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text('[backup]\nat = "03:30"\n', "utf-8")
    assert main(["check-config", str(file)]) == 0
    assert "medamad-backup.timer" in capsys.readouterr().err
