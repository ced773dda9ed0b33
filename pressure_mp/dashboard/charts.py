"""Draw lines and bars, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .history import EVERY, Point
from .markup import Child, Markup, element

_WIDTH, _HEIGHT = 600, 120
#: Seconds without a sample after which a line is broken.
_GAP = 3 * EVERY / 1000


class Curve(NamedTuple):
    """Values at times, and the line's class in the style sheet."""

    style: str
    points: Sequence[tuple[float, float]]


def _picture(class_: str, box: str, shown: Child, **attributes: str) -> Markup:
    scale = {"viewBox": box, "preserveAspectRatio": "none"}
    return element("svg", shown, class_=class_, **scale, **attributes)


def bar(part: float, whole: float) -> Markup:
    """Draw the part of something that is used."""
    share = 100 * min(max(part / whole, 0.0), 1.0) if whole else 0.0
    filled = element(
        "rect", width=f"{share:.1f}", height=8, class_="full" if share >= 100 else None
    )
    whole_bar = element("rect", width=100, height=8, class_="whole")
    return _picture("bar", "0 0 100 8", [whole_bar, filled], aria_hidden="true")


def spark(values: Sequence[float], top: float) -> Markup:
    """Draw a small line of the last depths, without axes."""
    top = top or max(values, default=0) or 1
    step = 100 / max(len(values) - 1, 1)
    points = " ".join(
        f"{place * step:.1f},{18 - 16 * min(value / top, 1):.1f}"
        for place, value in enumerate(values)
        # A level line needs no points between its ends: most queues are at rest.
        if not 0 < place < len(values) - 1 or len({*values[place - 1 : place + 2]}) > 1
    )
    return _picture("spark", "0 0 100 20", element("polyline", points=points), aria_hidden="true")


def chart(lines: Sequence[Curve], text: str, bound: float = 0) -> Markup:
    """Draw lines over time, from the first point to the last one. ``text`` describes them in
    words."""
    times = [time for line in lines for time, _ in line.points]
    values = [value for line in lines for _, value in line.points]
    first, last = min(times, default=0.0), max(times, default=1.0)
    top = max(bound, *values, 0.0) or 1.0

    def place(time: float, value: float) -> str:
        x = _WIDTH * (time - first) / max(last - first, 1.0)
        return f"{x:.1f},{_HEIGHT - (_HEIGHT - 8) * value / top:.1f}"

    shown = []
    if bound:
        y = place(first, bound).partition(",")[2]
        shown.append(element("line", x1=0, x2=_WIDTH, y1=y, y2=y, class_="bound"))
    for line in lines:
        for part in _unbroken(line.points):
            drawn = " ".join(place(*point) for point in part)
            shown.append(element("polyline", points=drawn, class_=line.style))
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    picture = _picture("chart", box, shown, role="img", aria_label=text)
    highest = f"{top:,.0f}" if top >= 10 else f"{top:.2g}"
    scale = element("div", element("span", highest), element("span", "0"), class_="scale")
    since = element(
        "div", element("span", ago(last - first)), element("span", "now"), class_="times"
    )
    return element("figure", element("div", scale, picture, class_="drawing"), since)


def _unbroken(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Split a line where no samples were taken."""
    parts: list[list[tuple[float, float]]] = []
    for point in points:
        if not parts or point[0] - parts[-1][-1][0] > _GAP:
            parts.append([])
        parts[-1].append(point)
    return parts


def ago(seconds: float) -> str:
    """Write a time that has passed, for the beginning of a chart."""
    if seconds < 90:
        return f"{seconds:.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 5400 else f"{seconds / 3600:.1f} h ago"


def rates(points: Sequence[Point], which: str) -> list[tuple[float, float]]:
    """Return how many items a second came (``produced``) or went (``consumed``) between the points,
    as a line that is level from one point to the next. A queue that was deleted and made again
    counts from 0."""
    found: list[tuple[float, float]] = []
    for before, after in pairwise(points):
        passed = after.time - before.time
        more = getattr(after, which) - getattr(before, which)
        if 0 < passed <= _GAP and more >= 0:
            found += [(before.time, more / passed), (after.time, more / passed)]
    return found
