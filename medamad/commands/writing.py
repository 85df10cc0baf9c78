"""How commands write lists, and what numbers they take."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from medamad.config_values import Size, read_value

MAX_DAYS: Final = 36_500
_DAY_S: Final = 86_400


def add_json(parser: ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="write JSON, for programs")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Give what reads a whole number from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"expected a whole number from {least} to {most}")
        return int(text)

    return read


def size(text: str) -> int:
    """Read bytes, as the configuration has them."""
    try:
        return read_value(Size, int(text) if text.isascii() and text.isdigit() else text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def days(text: str) -> int:
    """Read a number of days as seconds."""
    return whole(1, MAX_DAYS)(text) * _DAY_S


def day(unix_s: int | None) -> str:
    """Write a moment as its day, UTC; a dash for none."""
    return "-" if unix_s is None else datetime.fromtimestamp(unix_s, UTC).date().isoformat()


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Write rows in columns, the first one of headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
