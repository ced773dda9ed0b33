"""The page of what loses data, or holds queues up."""

from __future__ import annotations

import threading
import time

from ...administration.place import Place
from ...administration.troubles import Trouble, find_troubles
from ..markup import element
from . import layout
from .layout import Context

#: Things that are shown; and seconds for which they are believed, and nobody looks anew.
_MOST = 200
_FRESH = 30.0


class Doctor:
    """Looks for troubles, at most every half minute: it asks the server and each queue."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._found: tuple[float, list[Trouble]] | None = None

    def troubles(self) -> list[Trouble]:
        """What was found. Raises what the broker does."""
        with self._lock:
            if self._found is None or time.monotonic() - self._found[0] > _FRESH:
                found = list(find_troubles(self._place))
                self._found = time.monotonic(), sorted(found, key=lambda one: not one.loses)
            return self._found[1]


def make(context: Context, doctor: Doctor) -> str:
    """The page."""
    found = doctor.troubles()
    items = [
        element(
            "li",
            element("strong", "Loses data" if one.loses else "Note"),
            " ",
            element("span", one.subject, class_="subject"),
            element("p", one.problem),
            element("p", layout.with_commands(one.advice), class_="note"),
            class_="loses" if one.loses else None,
        )
        for one in found[:_MOST]
    ]
    left = len(found) - len(items)
    return layout.page(
        context,
        "Health",
        element("h1", "Health"),
        layout.live(
            "health",
            element("ul", items, class_="troubles") if items else element("p", "Nothing is wrong."),
            element("p", f"{left:,} more: see `pressure-mp doctor`.") if left else None,
        ),
        here="health",
    )
