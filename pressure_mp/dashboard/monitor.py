"""Read all queues again and again, for every page."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field, replace

from ..administration.broker import Broker
from ..administration.rates import BrokerRates, Key, QueueRates
from ..exceptions import PressureError
from . import history
from .survey import Survey, survey

_log = logging.getLogger(__name__)

#: Seconds after a page was made for which a browser counts as looking at it.
_WATCHED_FOR = 15.0
#: Updates take no more than this part of the time.
_SHARE = 0.2
#: Seconds for which a page waits for an update.
_PATIENCE = 8.0


@dataclass(frozen=True)
class View:
    """All queues, as they were at the last update."""

    queues: dict[Key, QueueRates] = field(default_factory=dict)
    #: The names of the queues with consumers that delay other queues.
    slow: frozenset[str] = frozenset()
    #: The error of a later update.
    error: str = ""


class Monitor:
    """A thread that reads the queues every ``interval`` seconds while a browser shows a page, and
    else as often as the history needs it."""

    def __init__(self, broker: Broker, interval: float) -> None:
        self.broker = broker
        self.history = history.History(broker)
        self._rates = BrokerRates(broker)
        self._interval = interval
        self._changed = threading.Condition()
        self._view = View()
        self._tries = 0
        self._wanted = -_WATCHED_FOR
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._surveying = threading.Lock()
        self._survey: tuple[float, Survey] | None = None

    def start(self) -> None:
        with self._changed:
            if self._thread is None:
                self._is_stopped = False
                self._thread = threading.Thread(
                    target=self._run, name="pressure_mp-dashboard", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """End the thread. Waits for an update that is under way."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._is_stopped = True
            self._changed.notify_all()
        if thread is not None:
            thread.join()

    def view(self) -> View:
        """Return the last view. Waits for an update if no page was made for some time."""
        self.start()
        with self._changed:
            now = time.monotonic()
            was_idle = now - self._wanted > _WATCHED_FOR
            self._wanted = now
            if was_idle or not self._tries:
                tries = self._tries
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._tries > tries, _PATIENCE)
            return self._view

    def survey(self) -> Survey:
        """Return the processes that use queues, as they were at most some seconds ago. Raises the
        broker's errors."""
        view = self.view()
        with self._surveying:
            if self._survey is None or time.monotonic() - self._survey[0] > self._interval:
                found = survey(self.broker, view.queues.values())
                self._survey = time.monotonic(), found
            return self._survey[1]

    def _run(self) -> None:
        next_note = time.monotonic()
        while not self._is_stopped:
            started = time.monotonic()
            is_noted = started >= next_note
            if is_noted:
                next_note = started + history.EVERY / 1000
            view = self._update(is_noted)
            took = time.monotonic() - started
            with self._changed:
                self._view = view
                self._tries += 1
                self._changed.notify_all()
                self._rest(started + max(self._interval, took / _SHARE), next_note)

    def _update(self, is_noted: bool) -> View:
        """Return the queues as they are; after an error the last view, with the error."""
        try:
            self._rates.update()
            view = View(dict(self._rates.queues), frozenset(self._rates.slow))
            if is_noted:
                self.history.note(one.queue for one in view.queues.values())
        except PressureError as error:
            _log.warning("the queues could not be read: %s", error)
            return replace(self._view, error=str(error))
        except Exception as error:  # without this thread pages would never change
            _log.exception("the queues could not be read")
            return replace(self._view, error=repr(error))
        return view

    def _rest(self, next_update: float, next_note: float) -> None:
        """Wait until it is time for the next update."""
        while not self._is_stopped:
            now = time.monotonic()
            end = next_update if now - self._wanted <= _WATCHED_FOR else next_note
            if now >= end:
                return
            self._changed.wait(end - now)
