from manual.commands import page, read_commands
from medamad.cli import COMMANDS

WHAT = ("add", "list", "revoke")


def test_every_command_is_documented_with_its_arguments() -> None:
    told = {command.name: command for command in read_commands()}
    assert list(told) == list(COMMANDS)
    written = [argument.written for argument in told["run"].arguments]
    assert written == ["--config FILE", "--data DIR", "--listen ENDPOINT"]
    assert [each.name for each in told["token"].below] == [
        "token add",
        "token list",
        "token revoke",
    ]
    assert "Writes nothing" in told["check"].notes
    assert "exit status" not in told["check"].notes


def test_every_command_has_a_chapter() -> None:
    chapters = [line for line in page().splitlines() if line.startswith("## ")]
    assert chapters == [f"## medamad {name}" for name in COMMANDS]
