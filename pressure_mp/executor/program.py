"""The worker program: it does the calls of a named executor, or runs the handlers of a queue of
tasks, until it is told to end."""

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
from ..exceptions import ArgumentError, PressureError, QueueDoesNotExistError
from ..sync.brokers import check_shared
from ..sync.tasks.outages import PASSING, Outages
from ..sync.tasks.task_queue import TaskQueue
from ..telemetry.json_logs import JsonFormatter
from .call_queue import CallQueue
from .task_workers import Handlers, load, longest_silence, opened
from .worker import Calls, Service, Setup
from .worker_processes import WorkerProcesses

#: Exit codes: told to end, or the queue was shut down; the broker does not answer; an argument
#: cannot be used; workers cannot start; tasks were given back after the grace.
ENDED, FAILED, USAGE, BROKEN, GAVE_BACK = 0, 1, 2, 3, 4

DEFAULT_GRACE = 30.0

#: Seconds from one check whether the queue is there to the next.
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
    if not {"", os.getcwd()} & set(sys.path):  # as with python -m
        sys.path.insert(0, os.getcwd())
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
        description="Do the calls of a named executor, or run the handlers of a TaskQueue, until "
        "SIGTERM or SIGINT: then finish the tasks in hand. A second signal ends the grace.",
        epilog=f"Exit codes: {ENDED} it was told to end, or the queue was shut down; {FAILED} "
        f"the broker did not answer for --max-outage, or cannot be used; {USAGE} wrong arguments; "
        f"{BROKEN} the workers cannot start; {GAVE_BACK} the grace was over, and tasks were given "
        "back.",
    )
    parser.add_argument(
        "name",
        help="the executor's name; or MODULE:QUEUE, the TaskQueue or aio.TaskQueue of that name in "
        "a module, which registers its handlers with @QUEUE.worker()",
    )
    parser.add_argument(
        "--executor", action="store_true", help="NAME is an executor's, though it has a colon"
    )
    parser.add_argument(
        "-p", "--processes", type=_positive, default=1, help="worker processes (default: 1)"
    )
    parser.add_argument(
        "-c",
        "--concurrency",
        type=_positive,
        metavar="N",
        help="how many tasks each handler processes at a time in each process, in threads, or in "
        "the event loop of an aio.TaskQueue (default: as registered)",
    )
    parser.add_argument("--url", help="the broker of the executor (default: $PRESSURE_URL)")
    parser.add_argument(
        "--tube", help="take only calls that were submitted with options(tube=TUBE)"
    )
    parser.add_argument(
        "--preload",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this module in each worker before it takes tasks",
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
        help="call this in each worker before it takes tasks",
    )
    parser.add_argument(
        "--max-tasks",
        type=_positive,
        metavar="N",
        help="a worker process ends after so many tasks, and another takes its place",
    )
    parser.add_argument(
        "--max-memory",
        type=_positive,
        metavar="MB",
        help="a worker process that has needed so much memory ends after the tasks in hand, and "
        "another takes its place",
    )
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=DEFAULT_GRACE,
        metavar="SECONDS",
        help=f"how long running tasks may take after a signal (default: {DEFAULT_GRACE:g})",
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
        self._is_of_tasks = ":" in asked.name and not asked.executor
        self._subject = f"{'queue' if self._is_of_tasks else 'executor'} {asked.name!r}"
        self._outages = Outages(self._subject, asked.max_outage)

    def run(self) -> int:
        """Serve until told to end; return the exit code. Raises ArgumentError, and the broker's
        errors."""
        asked = self._asked
        self._check_options()
        _check_writable(asked.health_file)
        with self._handling_signals():
            queue = self._find()
            if queue is None:
                return ENDED
            context: Any = multiprocessing.get_context(asked.start_method)
            if asked.start_method == "forkserver":
                context.set_forkserver_preload(asked.preload)
            begin = partial(prepare, asked.preload, asked.main, asked.initializer, asked.log_json)
            memory = None if asked.max_memory is None else asked.max_memory * 1_000_000
            silence = longest_silence(load(asked.name)) if self._is_of_tasks else None
            setup = Setup(begin, (), _SIGNALS, silence, memory)
            parts = queue, self._service(queue), asked.processes, context, setup
            self._workers = workers = WorkerProcesses(*parts)
            _log.info("%s at %s: %d workers", self._subject, queue.url, asked.processes)
            try:
                broken = self._serve(queue, workers)
            except BaseException:  # such as: no more processes can be started
                self._end(workers)  # else this process would wait for them, and serve nothing
                raise
            return self._end(workers) or (BROKEN if broken else ENDED)

    def _check_options(self) -> None:
        """Raise ArgumentError for options that do not go together, or cannot be used."""
        asked = self._asked
        if not self._is_of_tasks:
            if asked.concurrency is not None:
                raise ArgumentError("--concurrency is for MODULE:QUEUE: give --processes")
            check_tube(asked.tube)
            check_shared(asked.url)
        elif asked.url or asked.tube or asked.main:
            raise ArgumentError(
                "--url, --tube and --main are for executors: the module says its queue's URL and "
                "the tubes of its handlers"
            )

    def _service(self, queue: TaskQueue[Any]) -> Service:
        asked = self._asked
        if isinstance(queue, CallQueue):
            return Calls(queue, asked.max_tasks, asked.tube)
        return Handlers(asked.name, asked.concurrency, asked.max_tasks)

    def _attach(self) -> TaskQueue[Any]:
        """Return the queue. Raises what its class raises, and the module."""
        if self._is_of_tasks:
            found = load(self._asked.name)
            self._hear_signals()  # the module may set handlers, which are for its workers
            return opened(found)
        options = {} if self._asked.url is None else {"url": self._asked.url}
        return CallQueue.attach(self._asked.name, **options)

    def _find(self) -> TaskQueue[Any] | None:
        """Return the queue, once it and the broker are there; None if the program was told to end
        before."""
        waits = False
        while not self._signals:
            tried = time.monotonic()
            try:
                return self._attach()
            except QueueDoesNotExistError as error:
                self._outages.answered()
                if not waits:
                    _log.info("%s; waiting for it", error)
                waits = True
            except PASSING as error:
                self._outages.failed(error, tried)
            time.sleep(_FIND_INTERVAL)
        return None

    def _serve(self, queue: TaskQueue[Any], workers: WorkerProcesses) -> bool:
        """Have workers as long as the queue is there, and until they have ended then, as they do
        when no task is ready; return whether they cannot start."""
        checked, is_there, has_tasks = 0.0, True, True
        while not self._signals and workers.broken is None and (has_tasks or workers.processes):
            if has_tasks:
                workers.fill(self._asked.processes)
            workers.wait(_INTERVAL)
            workers.kill_silent()
            if time.monotonic() - checked >= _INTERVAL or workers.has_lost_some:
                checked = time.monotonic()
                was_there, is_there = is_there, self._is_there(queue) and is_there
                has_tasks = is_there or self._has_ready_tasks(queue)
                if was_there and not is_there:
                    _log.info("%s has ended", self._subject)
        if workers.broken is not None:
            _log.critical("%s: %s", self._subject, workers.broken)
        return workers.broken is not None

    def _has_ready_tasks(self, queue: TaskQueue[Any]) -> bool:
        """Tell whether a queue that was shut down has tasks for its workers."""
        jobs = load(self._asked.name)._jobs if self._is_of_tasks else [self._asked]
        try:
            return any(queue.qsize(tube) for tube in {job.tube for job in jobs})
        except QueueDoesNotExistError:
            return False
        except PASSING:
            return True

    def _is_there(self, queue: TaskQueue[Any]) -> bool:
        """Tell whether the queue is there, and not shut down; touch the health file if the broker
        answers so."""
        tried = time.monotonic()
        try:
            is_there = not queue.is_shutdown
        except QueueDoesNotExistError:
            return False
        except PASSING as error:
            self._outages.failed(error, tried)
            return True
        self._outages.answered()
        self._touch(self._asked.health_file)
        return is_there

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
        if self._signals:
            _log.info("%s: this program takes no more tasks", self._subject)
        killed = workers.stop(self._asked.grace, lambda: self._signals > 1)
        workers.close()
        if killed:
            _log.warning(
                "%d workers were killed after the grace; their tasks are given back", killed
            )
        return GAVE_BACK if killed else ENDED

    @contextlib.contextmanager
    def _handling_signals(self) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        self._hear_signals()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear_signals(self) -> None:
        for number in _SIGNALS:
            signal.signal(number, self._hear)

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
