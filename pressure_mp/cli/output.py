"""Write results: for a terminal in columns of its width, for a program in lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import click

from ..encoding.display import printable
from ..operations import phrases

if TYPE_CHECKING:  # only a terminal needs rich, and it takes long to load
    from rich.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])


class Decorator(Protocol):
    """Adds an option or an argument to a command."""

    def __call__(self, command: Command, /) -> Command: ...


#: The option of every command that reports something.
as_json = click.option(
    "--json", "in_json", is_flag=True, help="Write JSON, one value on each line."
)


def at_most(help: str, default: int | None = None) -> Decorator:
    """Make the option ``-n``, which limits a number; the command gets it as ``limit``."""
    return click.option("-n", "limit", type=click.IntRange(min=1), default=default, help=help)


def seconds(
    name: str, help: str, least: float = 0, default: float | None = None, is_open: bool = False
) -> Decorator:
    """Make an option of a number of seconds; ``is_open``: it is more than the ``least``."""
    number = click.FloatRange(min=least, min_open=is_open)
    return click.option(name, type=number, default=default, metavar="SECONDS", help=help)


#: A long text is not cut to less.
_LEAST = 8
#: The least width that a column's cells usually have, and a long column's.
_USUAL, _USUAL_LONG = 6, 16
#: Seconds of a wait before a message about it.
_QUIET = 1.0


class Column(NamedTuple):
    """A column: its head, its cell for a row, whether that is a number, when the column is left out
    in a narrow terminal (0: never; of the others the greatest first), and whether it may be cut."""

    head: str
    cell: Callable[[Any], str]
    is_number: bool = False
    leaves: int = 0
    is_long: bool = False


def write_json(value: Any, err: bool = False) -> None:
    """Write a value on a line of its own."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")), err=err)


def write_count(number: int, done: str, in_json: bool, err: bool = False) -> None:
    """Write how many were dealt with, and how: as JSON ``{"put_back":2}``."""
    if in_json:
        write_json({done.replace(" ", "_"): number}, err)
    else:
        click.echo(f"{number} {done}.", err=err)


def write_rows(rows: Iterable[Any], columns: Sequence[Column], head: bool = True) -> None:
    """Write the rows of a table. Without a terminal: with tabs between the cells, and no head."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(printable(column.cell(row)) for column in columns))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    shown = fitting(columns, console.width)
    console.print(table_of(rows, shown, console.width, head))


def table_of(rows: Iterable[Any], columns: Sequence[Column], room: int, head: bool = True) -> Table:
    """Make a table of that width."""
    from rich.table import Table
    from rich.text import Text

    cells = [[printable(column.cell(row)) for column in columns] for row in rows]
    table = Table(box=None, show_header=head, pad_edge=False, padding=(0, 2, 0, 0))
    for column, width in zip(columns, _widths(columns, cells, room), strict=True):
        side: Any = "right" if column.is_number else "left"
        table.add_column(column.head, justify=side, no_wrap=True, overflow="ellipsis", width=width)
    for texts in cells:
        table.add_row(*map(Text, texts))
    return table


def fitting(columns: Sequence[Column], room: int) -> list[Column]:
    """Return the columns that a terminal has room for. This does not depend on the rows, so that it
    is the same for all pages of a table."""
    shown = list(columns)
    while (last := max(one.leaves for one in shown)) and _needed(shown) > room:
        shown = [one for one in shown if one.leaves < last]
    return shown


def _needed(columns: Sequence[Column]) -> int:
    widths = [max(len(one.head), _USUAL_LONG if one.is_long else _USUAL) for one in columns]
    return sum(widths) + 2 * (len(widths) - 1)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the width of each column: of its widest cell, but long columns share the rest."""
    from rich.cells import cell_len

    widths = [
        max(cell_len(text) for text in (column.head, *(row[place] for row in cells)))
        for place, column in enumerate(columns)
    ]
    long = [place for place, column in enumerate(columns) if column.is_long]
    left = room - sum(widths) - 2 * len(widths)
    while left < 0 and long:
        widest = max(long, key=lambda place: widths[place])
        if widths[widest] <= _LEAST:
            break
        widths[widest] -= 1
        left += 1
    return widths


def write_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Write names and values, one pair below the other."""
    found = list(pairs)
    width = max((len(what) for what, _ in found), default=0)
    for what, value in found:
        click.echo(f"{what:<{width}}  {printable(value)}")


def turns(interval: float, timeout: float | None, tell: Callable[[], str]) -> Iterator[None]:
    """Iterate until the time is up, with an interval between two tries; after a second say once
    what the command waits for."""
    began, is_told = time.monotonic(), False
    while True:
        yield
        passed = time.monotonic() - began
        if timeout is not None and passed >= timeout:
            return
        if passed >= _QUIET and not is_told:
            click.echo(tell(), err=True)
            is_told = True
        time.sleep(interval)


def number(value: float) -> str:
    """Write a count; without a terminal only its digits."""
    return f"{value:,.0f}" if sys.stdout.isatty() else f"{value:.0f}"


def duration(seconds: float | None) -> str:
    """Write a time that passed, in one unit; an empty text where it is not known."""
    return "" if seconds is None else phrases.duration(seconds)
