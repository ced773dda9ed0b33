"""The client of FoundationDB: a library in C, of which a process has one, with a thread of its own.

A forked child has the library without its thread, and cannot use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ... import lifecycle
from ...exceptions import (
    BrokerError,
    BrokerUnavailable,
    ItemTooLargeError,
    NotSupportedError,
    PressureError,
)

#: The oldest version of the interface that has all that is used here.
_VERSION = 710
#: FoundationDB's errors: a transaction's time is over; it, or a value, is too large.
TIMED_OUT = 1031
_TOO_LARGE = 2101, 2103


def open_database(path: str) -> Any:
    """Return the database of a cluster file, of the default one if ``path`` is empty. Raises
    NotSupportedError where the library is missing or cannot be used, and BrokerUnavailable for a
    cluster file that cannot be read."""
    fdb = _load()
    try:
        database = fdb.open(path or None)
    except fdb.FDBError as error:
        raise translated(error, path, BrokerUnavailable) from error
    if not fdb.impl._network_thread.is_alive():
        raise NotSupportedError(
            "FoundationDB's client was used in this process's parent, and does not run in a forked "
            "child; start processes with 'spawn' or 'forkserver', or use the queue only in children"
        )
    return database


def _load() -> Any:
    fdb: Any = import_module("fdb")
    if not fdb.is_api_version_selected():
        try:
            fdb.api_version(_VERSION)
        except Exception as error:  # the package has no class for it
            raise NotSupportedError(
                f"FoundationDB's client library cannot be used: {error} It comes with the packages "
                "foundationdb-clients of https://github.com/apple/foundationdb/releases"
            ) from error
    # Functions of atexit run before the last steps of this package, which need the thread.
    lifecycle.take_over("stop the client of FoundationDB", _stop, fdb.impl._stop_on_exit)
    return fdb


def _stop() -> None:
    impl = import_module("fdb.impl")
    if impl._network_thread is not None and impl._network_thread.is_alive():
        impl._stop_on_exit()


def ready(future: Any) -> Any:
    """Wait until a future is ready, and return it."""
    # A signal handler that waits in the midst of this can end it too early.
    while not future.is_ready():
        future.block_until_ready()
    return future


def fdb_error() -> Any:
    """Return the class of FoundationDB's errors."""
    return import_module("fdb").FDBError


def translated(error: Any, path: str, kind: type[PressureError] = BrokerError) -> PressureError:
    """Return the error of this package for one of FoundationDB's, of ``kind`` if it can be any."""
    if error.code == TIMED_OUT:
        return BrokerUnavailable(f"foundationdb://{path}: the cluster did not answer in time")
    text = f"foundationdb://{path}: {error.description.decode()} ({error.code})"
    return (ItemTooLargeError if error.code in _TOO_LARGE else kind)(text)
