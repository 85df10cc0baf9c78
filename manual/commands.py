"""The command-line reference, from the argument parsers: as values and as a Markdown page."""

from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator

from attrs import frozen

from medamad.cli import COMMANDS, epilog, make_parser, module_of
from medamad.cli.exit_statuses import statuses


@frozen
class Argument:
    """An argument: as it is written, such as `--data DIR`, and what it means."""

    written: str
    meaning: str


@frozen(kw_only=True)
class Command:
    """A command or subcommand (`token add`)."""

    name: str
    usage: str
    purpose: str
    arguments: list[Argument]
    below: list["Command"]
    notes: str
    examples: tuple[tuple[str, str], ...]
    statuses: dict[int, str]


def read_commands() -> list[Command]:
    """Return every command."""
    parser = make_parser(COMMANDS)
    (subparsers,) = (each for each in parser._actions if isinstance(each, _SubParsersAction))  # noqa: SLF001 - argparse has no public way
    return [
        _command(
            name,
            subparsers.choices[name],
            purpose[:1].upper() + purpose[1:] + ".",
            module_of(name).EXAMPLES,
        )
        for name, purpose in COMMANDS.items()
    ]


def _command(
    name: str, parser: ArgumentParser, purpose: str, examples: tuple[tuple[str, str], ...]
) -> Command:
    arguments = []
    below = []
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, _SubParsersAction):
            purposes = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            for what, its_parser in action.choices.items():
                its_purpose = its_parser.description or f"{purposes[what].capitalize()}."
                below.append(_command(f"{name} {what}", its_parser, its_purpose, ()))
        elif action.dest != "help" and action.help != SUPPRESS:
            arguments.append(Argument(_written(action), (action.help or "").replace("%%", "%")))
    notes = (parser.epilog or "").removesuffix(epilog(name, examples))
    return Command(
        name=name,
        usage=" ".join(parser.format_usage().split()).removeprefix("usage: "),
        purpose=purpose,
        arguments=arguments,
        below=below,
        notes=" ".join(notes.split()),
        examples=examples,
        statuses=statuses(name),
    )


def _written(action: Action) -> str:
    if action.nargs == 0:
        return ", ".join(action.option_strings)
    value = str(action.metavar or f"{{{','.join(map(str, action.choices or ()))}}}")
    if not action.option_strings:
        return f"{value} ..." if action.nargs in ("*", "+") else value
    return f"{', '.join(action.option_strings)} {value}"


def page() -> str:
    """Return the page."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield "# Commands\n"
    yield "`medamad COMMAND --help` prints the same; `medamad completion` is for shells.\n"
    for command in read_commands():
        yield f"## medamad {command.name}\n"
        yield f"{command.purpose}\n"
        yield from _called(command)
        for each in command.below:
            yield f"### medamad {each.name}\n"
            yield f"{each.purpose}\n"
            yield from _called(each)
        if command.notes:
            yield f"{command.notes}\n"
        yield "Examples:\n"
        yield "```sh"
        for line, purpose in command.examples:
            yield f"# {purpose}"
            yield line
        yield "```\n"
        yield "| exit status | |\n| ---: | --- |"
        for status, meaning in command.statuses.items():
            yield f"| {status} | {meaning} |"
        yield ""


def _called(command: Command) -> Iterator[str]:
    yield f"```text\n{command.usage}\n```\n"
    if command.arguments:
        yield "| | |\n| --- | --- |"
        for argument in command.arguments:
            yield f"| `{argument.written}` | {argument.meaning} |"
        yield ""
