"""What calls of tests do, and how workers of tests begin."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

#: What the initializer of this process was given.
status: Any = None


def begin(value: Any) -> None:
    """An initializer."""
    global status
    status = value


def get_status() -> Any:
    """What the initializer was given."""
    return status


def begin_well() -> None:
    """An initializer without arguments."""
    begin("well")


def has_imported(module: str) -> bool:
    """Whether this process has imported it."""
    return module in sys.modules


def log_to(path: str) -> None:
    """An initializer: what this package says goes into a file."""
    logging.getLogger("pressure_mp").addHandler(logging.FileHandler(path))


def begin_badly() -> None:
    """An initializer that fails."""
    raise ValueError("this one cannot begin")


def begin_badly_and_end_slowly(path: str) -> None:
    """An initializer that fails, in a process that does something else before it ends."""

    def end() -> None:
        time.sleep(0.3)
        Path(path).write_text("ended")

    Finalize(None, end, exitpriority=0)
    begin_badly()


def begin_never() -> None:
    """An initializer that does not end."""
    threading.Event().wait()


def pid(_: object = None) -> int:
    """Which process this is."""
    return os.getpid()


def note(path: str, value: Any = None) -> Any:
    """Write down that this ran, once for each time; returns the value."""
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    return value


def note_and_work(path: str, value: Any) -> Any:
    """The same, and be at it for a while: most processes that are killed are then."""
    note(path)
    time.sleep(0.01)
    return value


def runs(path: str) -> list[int]:
    """The processes in which :func:`note` ran."""
    file = Path(path)
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def die(path: str, number: signal.Signals = signal.SIGKILL) -> None:
    """Note that this ran, and kill the process that does."""
    note(path)
    faulthandler.disable()  # the test's own, under fork
    os.kill(os.getpid(), number)


def die_once(path: str) -> str:
    """The same the first time; then it is done."""
    if not runs(path):
        die(path)
    return "done"


def hold(path: str, until: str) -> str:
    """Note that this runs, and go on until there is the other file."""
    note(path)
    while not os.path.exists(until):
        time.sleep(0.005)
    return "held"


def hold_or_fail(paths: list[str], number: int) -> str:
    """Hold; the last one fails when all others hold."""
    if number < len(paths):
        return hold(paths[number], "never")
    while not all(map(runs, paths)):
        time.sleep(0.005)
    raise ValueError("the last one")


def kill_and_hold(pid: int, path: str, until: str) -> str:
    """Kill another process first."""
    os.kill(pid, signal.SIGKILL)
    return hold(path, until)


class Unpicklable(Exception):
    """An exception that pickle cannot make again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def raise_unpicklable() -> None:
    """Raise it."""
    raise Unpicklable("this", "that")


def return_lambda() -> Any:
    """What cannot be pickled."""
    return lambda: None


class Tried:
    """What only cloudpickle can pickle; it notes how often that was tried."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        note(self._path)
        return (lambda: "made"), ()


async def double(value: int) -> int:
    """A coroutine function."""
    await asyncio.sleep(0)
    return 2 * value


async def hold_event_loop(path: str, until: str) -> str:
    """A coroutine function that does what :func:`hold` does."""
    note(path)
    while not os.path.exists(until):
        await asyncio.sleep(0.005)
    return "held"


def end_process(code: int) -> None:
    """End the process at once."""
    os._exit(code)


def leave(code: int) -> None:
    """Exit."""
    raise SystemExit(code)


async def leave_event_loop(code: int) -> None:
    """A coroutine function that exits."""
    await asyncio.sleep(0)
    leave(code)


def run_in_parallel(number: int) -> tuple[list[int], list[int]]:
    """A call of joblib that uses joblib: what its calls return, and where they ran."""
    import joblib  # type: ignore[import-untyped]

    found = joblib.Parallel(n_jobs=2)([joblib.delayed(max)(number, 0)] * 2)
    pids = joblib.Parallel(n_jobs=2)([joblib.delayed(pid)()] * 2)
    return found, pids


class Mean:
    """An estimator, as in scikit-learn: it can be pickled, fitted, and asked."""

    def fit(self, rows: Any) -> Mean:
        """Know the mean of the rows."""
        if not len(rows):
            raise ValueError("there is nothing to fit")
        self.mean = rows.mean(0)
        return self

    def score(self, row: Any) -> float:
        """How far a row is from it, below zero."""
        return -float(((row - self.mean) ** 2).sum() ** 0.5)


def fit(estimator: Mean, rows: Any, row: Any) -> tuple[Mean, float]:
    """Fit an estimator, and score it."""
    fitted = estimator.fit(rows)
    return fitted, fitted.score(row)


class Frozen(Exception):
    """An exception whose attributes cannot be set, like a frozen dataclass."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("this one is frozen")


class Mute(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("this one is mute")


class Disguised(Exception):
    """An exception whose pickle makes a text."""

    def __reduce__(self) -> Any:
        return str, ("no exception",)


class Boxed(Exception):
    """An exception that none of what belongs to it can be had of."""

    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("this one is boxed")

    __cause__ = __context__ = __reduce__ = __traceback__


class Trap:
    """What raises such an exception when it is unpickled."""

    def __reduce__(self) -> Any:
        return throw, (Mute,)


def throw(kind: type[BaseException]) -> None:
    """Raise it."""
    raise kind


def note_here(what: str) -> None:
    """Note what a handler does, and in which process."""
    with open(os.environ["RUNS"], "a") as file:
        file.write(f"{what} {os.getpid()}\n")
