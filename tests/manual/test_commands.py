from manual.commands import page, read_commands
from medamad.cli import COMMANDS

WHAT = ("add", "list", "revoke")


def test_every_command_is_documented_with_its_arguments() -> None:
    described = {command.name: command for command in read_commands()}
    assert list(described) == list(COMMANDS)
    written = [argument.written for argument in described["run"].arguments]
    assert written == ["--config FILE", "--data DIR", "--listen ENDPOINT"]
    assert [each.name for each in described["token"].below] == [
        "token add",
        "token list",
        "token revoke",
    ]
    assert "Writes nothing" in described["check"].notes
    assert "exit status" not in described["check"].notes


def test_every_command_has_a_chapter() -> None:
    chapters = [line for line in page().splitlines() if line.startswith("## ")]
    assert chapters == [f"## medamad {name}" for name in COMMANDS]
