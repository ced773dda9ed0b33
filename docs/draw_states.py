"""Draw the states of a task, and write the table of transitions: ``python docs/draw_states.py``.

Both are made of the table in ``pressure_mp/states.py``. The picture is ``docs/task-states.svg``;
the table is in ``docs/task-reference.md`` between two marks. A test draws them again and compares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from pressure_mp.states import NAMES, REQUEUE, SHIFT, TIME, TRANSITIONS, VOID, Transition

DOCS = Path(__file__).parent
BEGIN = "<!-- what follows is written by draw_states.py -->"
END = "<!-- what precedes is written by draw_states.py -->"

WIDTH, HEIGHT, RADIUS = 960, 520, 34
PLACES = {
    "R": (240, 260),
    "W": (350, 90),
    "T": (560, 260),
    "B": (350, 450),
    "Z": (750, 150),
    "D": (890, 330),
}
START = (50, 260)
#: Where a task goes that leaves a state for good.
ENDS = {"R": (100, 400), "T": (700, 262), "Z": (775, 244), "B": (500, 480)}
#: What an administrator does from any state; and what changes no state, or only the time of one.
NOT_DRAWN = {"cancel", "kill", "truncate", "switch", "move", "replace"}

#: For each way: how far it is bent to its left, and where on it its label is.
BENDS = {
    "X-R": (0, 0.42),
    "X-W": (60, 0.5),
    "W-R": (0, 0.5),
    "R-X": (0, 0.55),
    "R-T": (38, 0.6),
    "T-R": (60, 0.42),
    "T-W": (30, 0.3),
    "T-B": (-30, 0.72),
    "T-X": (0, 0.5),
    "T-Z": (0, 0.5),
    "T-D": (-50, 0.55),
    "Z-X": (0, 0.5),
    "Z-R": (-110, 0.3),
    "Z-W": (-50, 0.5),
    "D-R": (150, 0.4),
    "D-W": (-345, 0.55),
    "B-R": (30, 0.5),
    "B-X": (0, 0.5),
    "B-W": (-30, 0.17),
}

Point = tuple[float, float]


def ways() -> dict[str, list[Transition]]:
    """The transitions that are drawn, by name."""
    found: dict[str, list[Transition]] = {}
    for row in TRANSITIONS:
        if row.operation not in NOT_DRAWN and SHIFT not in (row.before, row.after):
            found.setdefault(row.name, []).append(row)
    return found


def labels(rows: list[Transition]) -> Iterator[str]:
    """What is written at a way: what is done, or what happens."""
    for row in rows:
        if "max_deliveries" in row.when:
            yield "max_deliveries"
        elif row.operation == TIME:
            (what,) = re.findall(r"when (?:the )?(.+) has passed", row.when)
            yield f"{what} over"
        elif row.operation == REQUEUE:
            yield "taker died"
        elif "with a delay" in row.when:
            yield f"{row.operation} (delay)"
        else:
            yield row.operation


def draw() -> str:
    """The picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">',
        "<title>The states of a task</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#456"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    drawn = ways()
    parts += [arrow(name) for name in drawn]
    parts += [label(name, rows) for name, rows in drawn.items()]
    parts.append(f'<circle cx="{START[0]}" cy="{START[1]}" r="9" fill="#456"/>')
    for x, y in ENDS.values():
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="10" fill="white" stroke="#456" stroke-width="1.5"/>'
            f'<circle cx="{x}" cy="{y}" r="5" fill="#456"/>'
        )
    parts += [state(letter) for letter in NAMES]
    return "\n".join([*parts, "</svg>", ""])


def state(letter: str) -> str:
    x, y = PLACES[letter]
    return (
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="#e8eef6" stroke="#456" stroke-width="1.5"/>'
        f'<text x="{x}" y="{y}" font-size="18" font-weight="bold">{letter}</text>'
        f'<text x="{x}" y="{y + 16}">{NAMES[letter]}</text>'
    )


def curve(name: str) -> tuple[Point, Point, Point]:
    """From where, around what, to where."""
    before, after = name.split("-")
    begin = START if before == VOID else PLACES[before]
    end = ENDS[before] if after == VOID else PLACES[after]
    (dx, dy), bend = (end[0] - begin[0], end[1] - begin[1]), BENDS[name][0]
    length = math.hypot(dx, dy)
    around = (
        (begin[0] + end[0]) / 2 + dy / length * bend,
        (begin[1] + end[1]) / 2 - dx / length * bend,
    )
    sizes = (9 if before == VOID else RADIUS, (10 if after == VOID else RADIUS) + 2)
    return toward(begin, around, sizes[0]), around, toward(end, around, sizes[1])


def toward(point: Point, other: Point, distance: float) -> Point:
    part = distance / math.dist(point, other)
    return (
        point[0] + (other[0] - point[0]) * part,
        point[1] + (other[1] - point[1]) * part,
    )


def arrow(name: str) -> str:
    (x0, y0), (x1, y1), (x2, y2) = curve(name)
    return (
        f'<path d="M{x0:.1f} {y0:.1f} Q{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f}" fill="none" '
        'stroke="#456" stroke-width="1.5" marker-end="url(#arrow)"/>'
    )


def label(name: str, rows: list[Transition]) -> str:
    (x0, y0), (x1, y1), (x2, y2) = curve(name)
    t = BENDS[name][1]
    x = (1 - t) ** 2 * x0 + 2 * t * (1 - t) * x1 + t**2 * x2
    y = (1 - t) ** 2 * y0 + 2 * t * (1 - t) * y1 + t**2 * y2
    lines = list(dict.fromkeys(labels(rows)))
    top = y + 4 - 7.5 * (len(lines) - 1)
    return "".join(
        f'<text x="{x:.1f}" y="{top + 15 * number:.1f}" stroke="white" stroke-width="5" '
        f'stroke-linejoin="round" paint-order="stroke">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )


def table() -> str:
    """Every transition, for the page; a line has all of one operation and condition."""
    rows: dict[tuple[str, str], list[str]] = {}
    for row in TRANSITIONS:
        rows.setdefault((row.operation, row.when), []).append(row.name)
    lines = ["| by | transitions | |", "| --- | --- | --- |"]
    for (operation, when), names in rows.items():
        by = f"`{operation}`" if operation not in (TIME, REQUEUE) else operation
        lines.append(f"| {by} | {', '.join(names)} | {when} |")
    return "\n".join([BEGIN, *lines, END])


def write(page: str) -> str:
    """The page with the table in its place."""
    before, rest = page.split(BEGIN)
    return before + table() + rest.split(END)[1]


def main() -> None:
    (DOCS / "task-states.svg").write_text(draw())
    page = DOCS / "task-reference.md"
    page.write_text(write(page.read_text()))


if __name__ == "__main__":
    main()
