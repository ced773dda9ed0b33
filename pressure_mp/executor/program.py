"""The worker program: it serves a named executor until it is told to end."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import math
import multiprocessing
import os
import runpy
import signal
import sys
import time
import types
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..encoding.task_values import check_tube
from ..exceptions import ArgumentError, BrokerUnavailable, PressureError, QueueDoesNotExistError
from ..sync.brokers import check_shared
from ..sync.tasks.outages import Outages
from ..telemetry.json_logs import JsonFormatter
from .call_queue import CallQueue
from .worker import Setup
from .worker_processes import WorkerProcesses

#: Exit codes: told to end, or the executor has ended; the broker does not answer; an argument
#: cannot be used; workers cannot start; calls were given back after the grace.
ENDED, FAILED, USAGE, BROKEN, GAVE_BACK = 0, 1, 2, 3, 4

DEFAULT_GRACE = 30.0

#: Seconds from one check whether the executor is there to the next.
_FIND_INTERVAL = 1.0
_INTERVAL = 5.0

#: The last is the default: forkserver, where there is one.
_START_METHODS = [
    method
    for method in ("fork", "spawn", "forkserver")
    if method in multiprocessing.get_all_start_methods()
]

_SIGNALS = signal.SIGTERM, signal.SIGINT

_log = logging.getLogger("pressure_mp")


def main(arguments: Sequence[str] | None = None, prog: str = "python -m pressure_mp.worker") -> int:
    """Run the program with these arguments; return its exit code."""
    asked = make_parser(prog).parse_args(arguments)
    begin_logging(asked.log_json)
    try:
        return Program(asked).run()
    except ArgumentError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return USAGE
    except PressureError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return FAILED


def begin_logging(in_json: bool) -> None:
    """Log to the standard error, unless this process logs already."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if in_json else plain)
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def make_parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog,
        description="Do the calls of a named executor, until SIGTERM or SIGINT: then finish the "
        "calls in hand. A second signal ends the grace.",
        epilog=f"Exit codes: {ENDED} it was told to end, or the executor was shut down; {FAILED} "
        f"the broker did not answer for --max-outage, or cannot be used; {USAGE} wrong arguments; "
        f"{BROKEN} the workers cannot start; {GAVE_BACK} the grace was over, and calls were given "
        "back.",
    )
    parser.add_argument("name", help="the executor's name")
    parser.add_argument(
        "-c", "--concurrency", type=_positive, default=1, help="worker processes (default: 1)"
    )
    parser.add_argument("--url", help="the broker (default: $PRESSURE_URL)")
    parser.add_argument(
        "--tube", help="take only calls that were submitted with options(tube=TUBE)"
    )
    parser.add_argument(
        "--preload",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this module in each worker before it takes calls",
    )
    parser.add_argument(
        "--main",
        metavar="MODULE_OR_FILE",
        help="the program whose functions are called: it is imported as __mp_main__, as "
        "multiprocessing does it, so that calls find the functions and classes of __main__",
    )
    parser.add_argument(
        "--initializer",
        metavar="MODULE:FUNCTION",
        help="call this in each worker before it takes calls",
    )
    parser.add_argument(
        "--max-tasks-per-child",
        type=_positive,
        metavar="N",
        help="a worker process ends after so many calls, and another takes its place",
    )
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=DEFAULT_GRACE,
        metavar="SECONDS",
        help=f"how long running calls may take after a signal (default: {DEFAULT_GRACE:g})",
    )
    parser.add_argument(
        "--max-outage",
        type=_seconds,
        metavar="SECONDS",
        help="end when the broker has not answered for so long (default: wait for it)",
    )
    parser.add_argument(
        "--health-file",
        type=Path,
        metavar="FILE",
        help=f"touched every {_INTERVAL:g} seconds while the workers run and the broker answers",
    )
    parser.add_argument("--log-json", action="store_true", help="log one JSON object a line")
    parser.add_argument(
        "--start-method",
        choices=_START_METHODS,
        default=_START_METHODS[-1],
        help="how worker processes are started (default: %(default)s)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


def _check_writable(health_file: Path | None) -> None:
    """Raise ArgumentError if the health file could not be touched. It is not touched before the
    program serves."""
    if health_file is None:
        return
    there = health_file if os.path.exists(health_file) else health_file.parent
    if not os.access(there, os.W_OK) or (there is not health_file and not there.is_dir()):
        raise ArgumentError(f"the health file {str(health_file)!r} cannot be written")


class Program:
    """One run of the program."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._signals = 0
        #: Whether the health file could not be touched the last time.
        self._is_untold = False
        self._workers: WorkerProcesses | None = None
        self._outages = Outages(f"executor {asked.name!r}", asked.max_outage)

    def run(self) -> int:
        """Serve until told to end; return the exit code. Raises ArgumentError, and the broker's
        errors."""
        asked = self._asked
        check_tube(asked.tube)
        check_shared(asked.url)
        _check_writable(asked.health_file)
        with self._handling_signals():
            queue = self._find()
            if queue is None:
                return ENDED
            context: Any = multiprocessing.get_context(asked.start_method)
            if asked.start_method == "forkserver":
                context.set_forkserver_preload(asked.preload)
            begin = partial(prepare, asked.preload, asked.main, asked.initializer, asked.log_json)
            setup = Setup(begin, (), asked.max_tasks_per_child, _SIGNALS, asked.tube)
            self._workers = workers = WorkerProcesses(queue, asked.concurrency, context, setup)
            _log.info("executor %r at %s: %d workers", queue.name, queue.url, asked.concurrency)
            try:
                broken = self._serve(queue, workers)
            except BaseException:  # such as: no more processes can be started
                self._end(workers)  # else this process would wait for them, and serve nothing
                raise
            return self._end(workers) or (BROKEN if broken else ENDED)

    def _find(self) -> CallQueue | None:
        """Return the executor's queue, once it and the broker are there; None if the program was
        told to end before."""
        waits = False
        options = {} if self._asked.url is None else {"url": self._asked.url}
        while not self._signals:
            tried = time.monotonic()
            try:
                return CallQueue.attach(self._asked.name, **options)
            except QueueDoesNotExistError as error:
                self._outages.answered()
                if not waits:
                    _log.info("%s; waiting for it", error)
                waits = True
            except BrokerUnavailable as error:
                self._outages.failed(error, tried)
            time.sleep(_FIND_INTERVAL)
        return None

    def _serve(self, queue: CallQueue, workers: WorkerProcesses) -> bool:
        """Have workers as long as the executor is there; return whether they cannot start."""
        checked = 0.0
        while not self._signals and workers.broken is None:
            workers.fill(self._asked.concurrency)
            workers.wait(_INTERVAL)
            if time.monotonic() - checked >= _INTERVAL or workers.has_lost_some:
                checked = time.monotonic()
                if not self._is_there(queue):
                    _log.info("executor %r has ended", queue.name)
                    break
        if workers.broken is not None:
            _log.critical("executor %r: %s", queue.name, workers.broken)
        return workers.broken is not None

    def _is_there(self, queue: CallQueue) -> bool:
        """Tell whether the executor is there; touch the health file if it is."""
        tried = time.monotonic()
        try:
            if queue.is_shutdown:
                return False
        except QueueDoesNotExistError:
            return False
        except BrokerUnavailable as error:
            self._outages.failed(error, tried)
            return True
        self._outages.answered()
        self._touch(self._asked.health_file)
        return True

    def _touch(self, health_file: Path | None) -> None:
        """Touch the health file. If that fails, the file gets old, and the work goes on."""
        if health_file is None:
            return
        try:
            health_file.touch()
        except OSError as error:
            if not self._is_untold:
                _log.error("the health file cannot be touched: %s", error)
            self._is_untold = True
        else:
            self._is_untold = False

    def _end(self, workers: WorkerProcesses) -> int:
        killed = workers.stop(self._asked.grace, lambda: self._signals > 1)
        workers.close()
        if killed:
            _log.warning(
                "%d workers were killed after the grace; their calls are given back", killed
            )
        return GAVE_BACK if killed else ENDED

    @contextlib.contextmanager
    def _handling_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: object) -> None:
        self._signals += 1
        if self._workers is not None:
            self._workers.wake()


def prepare(
    preload: Sequence[str], main: str | None, initializer: str | None, log_json: bool
) -> None:
    """Do the first work of each worker: imports, logging, the main module."""
    begin_logging(log_json)
    if main is not None:
        import_main(main)
    for module in preload:
        importlib.import_module(module)
    if initializer is not None:
        module, _, function = initializer.partition(":")
        if not function:
            raise ArgumentError(f"an initializer is MODULE:FUNCTION, not {initializer!r}")
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
        found()


def import_main(main: str) -> None:
    """Make a program's functions available where its calls look for them: it is run under the name
    ``__mp_main__``, as :mod:`multiprocessing` does it, and stands for ``__main__`` too."""
    module = types.ModuleType("__mp_main__")
    if main.endswith(".py"):
        found = runpy.run_path(main, run_name="__mp_main__")
    else:
        found = runpy.run_module(main, run_name="__mp_main__", alter_sys=True)
    module.__dict__.update(found)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
