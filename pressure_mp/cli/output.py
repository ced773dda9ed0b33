"""How results are written: for a terminal in columns as wide as it is, for a program in lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from ..encoding.showing import printable

#: Columns of a terminal from which on all is shown.
_WIDE = 80


class Column(NamedTuple):
    """A column: its head, what it shows of a row, whether that is a number, and whether it is left
    out where there is little room."""

    head: str
    cell: Callable[[Any], str]
    is_number: bool = False
    is_extra: bool = False


def write_json(value: Any) -> None:
    """One value, on a line of its own."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def write_rows(rows: Iterable[Any], columns: Sequence[Column], head: bool = True) -> None:
    """Rows of a table. Without a terminal: with tabs between the cells, and no head."""
    if not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(printable(column.cell(row)) for column in columns))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    shown = [one for one in columns if console.width >= _WIDE or not one.is_extra]
    table = Table(box=None, show_header=head, pad_edge=False, padding=(0, 2, 0, 0), expand=False)
    for column in shown:
        side: Any = "right" if column.is_number else "left"
        table.add_column(column.head, justify=side, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(printable(column.cell(row)) for column in shown))
    console.print(table)


def write_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """A thing and what it is, one below the other."""
    found = list(pairs)
    width = max((len(what) for what, _ in found), default=0)
    for what, value in found:
        click.echo(f"{what:<{width}}  {printable(value)}")


def number(value: float) -> str:
    """A count; without a terminal without anything between its digits."""
    return f"{value:,.0f}" if sys.stdout.isatty() else f"{value:.0f}"


def duration(seconds: float | None) -> str:
    """A time that passed, in one unit and a part of it."""
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
