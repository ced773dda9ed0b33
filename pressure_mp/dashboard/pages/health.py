"""The page of troubles: what loses data, or holds queues up."""

from __future__ import annotations

import threading
import time

from ...administration.broker import Broker
from ...administration.troubles import Trouble, find_troubles
from ...exceptions import PressureError
from ..markup import Markup, element
from . import layout
from .layout import Context

#: The most troubles that are shown; and seconds for which they are shown before a new search.
_MOST = 200
_FRESH = 30.0
#: Seconds for which a page waits for a search: each queue is asked, and there may be many.
_PATIENCE = 2.0


class Doctor:
    """Searches for troubles, in a thread and at most every half minute: it asks the server and each
    queue."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._changed = threading.Condition()
        self._is_searching = False
        self._searched = -_FRESH
        self._found: list[Trouble] | PressureError | None = None

    def troubles(self) -> list[Trouble] | None:
        """Return the troubles that were found last; None before the first search has ended. Raises
        the broker's errors."""
        with self._changed:
            if not self._is_searching and time.monotonic() - self._searched >= _FRESH:
                self._is_searching = True
                threading.Thread(
                    target=self._search, name="pressure_mp-health", daemon=True
                ).start()
            self._changed.wait_for(lambda: not self._is_searching, _PATIENCE)
            found = self._found
        if isinstance(found, PressureError):
            raise found
        return found

    def _search(self) -> None:
        found: list[Trouble] | PressureError | None = None
        try:
            found = sorted(find_troubles(self._broker), key=lambda one: not one.loses)
        except PressureError as error:
            found = error
        finally:
            with self._changed:
                self._is_searching, self._searched = False, time.monotonic()
                self._found = found
                self._changed.notify_all()


def make(context: Context, doctor: Doctor) -> str:
    found = doctor.troubles()
    shown = element("p", "Each queue is being asked …", class_="note")
    if found is not None:
        shown = _troubles(found) if found else element("p", "Nothing is wrong.")
    return layout.page(
        context,
        "Health",
        element("h1", "Health"),
        layout.live("health", shown),
        here="health",
    )


def _troubles(found: list[Trouble]) -> Markup:
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
    return element(
        "div",
        element("ul", items, class_="troubles"),
        element("p", f"{left:,} more: see `pressure-mp doctor`.") if left else None,
    )
