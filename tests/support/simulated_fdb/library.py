"""The functions of ``libfdb_c`` that the binding calls, with ctypes' conventions."""

from __future__ import annotations

import ctypes
import itertools
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

from simulated_fdb.addresses import reach
from simulated_fdb.errors import DESCRIPTIONS, MAYBE_COMMITTED, NOT_COMMITTED, RETRYABLE, Failed
from simulated_fdb.futures import Future
from simulated_fdb.mutations import Op
from simulated_fdb.transaction import Database, Transaction

#: The newest version of the functions that it has.
API = 800
#: Bytes of one answer to a range read, for each streaming mode (small, medium, large, serial).
_MODES = {1: 256, 2: 1000, 3: 4096, 4: 120_000}
_EXACT, _ITERATOR, _WANT_ALL = 0, -1, -2
_GROWING = (4096, 6144, 9216, 13824, 20736, 31104, 46656, 69984, 80_000, 120_000)
_Bytes = ctypes.POINTER(ctypes.c_byte)

#: By their names in the library.
_functions: dict[str, Callable[..., Any]] = {}


def function(body: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function in the library, with ``fdb_`` before its name."""
    _functions[f"fdb_{body.__name__}"] = body
    return body


class Function:
    """One function. The binding states the types of its arguments and what checks its result."""

    argtypes: Any = None
    restype: Any = None
    errcheck: Any = None

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body = body

    def __call__(self, *arguments: Any) -> Any:
        if self.errcheck is None:
            return self._body(*arguments)
        try:
            self._body(*arguments)
            code = 0
        except Failed as error:
            code = error.code
        return self.errcheck(code, self, arguments)


class Library:
    """In place of the shared library."""

    def __getattr__(self, name: str) -> Function:
        if name not in _functions:

            def missing(*arguments: Any) -> Any:
                raise NotImplementedError(name)

            return Function(missing)
        found = Function(_functions[name])
        setattr(self, name, found)
        return found


#: By the numbers that the binding has as pointers.
_objects: dict[int, Any] = {}
_numbers = itertools.count(1)


def _pointer(thing: Any) -> int:
    number = next(_numbers)
    _objects[number] = thing
    return number


def _destroy(pointer: Any) -> None:
    _objects.pop(_number(pointer), None)


for _kind in ("database", "transaction", "future"):
    _functions[f"fdb_{_kind}_destroy"] = _destroy


def _number(pointer: Any) -> int:
    return int(getattr(pointer, "value", pointer))


def _of(pointer: Any) -> Any:
    return _objects[_number(pointer)]


_stopped = threading.Event()


@function
def select_api_version_impl(version: int, header: int) -> int:
    return 0 if version <= API else 2203


@function
def get_max_api_version() -> int:
    return API


@function
def get_error(code: int) -> bytes:
    return DESCRIPTIONS.get(code, "Unknown error").encode()


@function
def error_predicate(predicate: int, code: int) -> int:
    return code in {50000: RETRYABLE, 50001: MAYBE_COMMITTED, 50002: NOT_COMMITTED}[predicate]


@function
def setup_network() -> None:
    _stopped.clear()


@function
def run_network() -> None:
    _stopped.wait()


@function
def stop_network() -> None:
    _stopped.set()


@function
def create_database(cluster_file: bytes | None, out: Any) -> None:
    out._obj.value = _pointer(Database(reach(cluster_file)))


@function
def database_set_option(database: Any, code: int, value: bytes | None, length: int) -> None:
    if code != 20:
        raise NotImplementedError(f"the option {code}")
    _of(database).most_watches = _whole(value)


@function
def database_create_transaction(database: Any, out: Any) -> None:
    out._obj.value = _pointer(Transaction(_of(database)))


@function
def transaction_set_option(pointer: Any, code: int, value: bytes | None, length: int) -> None:
    _of(pointer).set_option(code, _whole(value))


def _whole(value: bytes | None) -> int:
    return struct.unpack("<q", value)[0] if value is not None else 0


@function
def transaction_get_read_version(pointer: Any) -> int:
    return _pointer(_of(pointer).get_read_version())


@function
def transaction_get(pointer: Any, key: bytes, length: int, snapshot: bool) -> int:
    return _pointer(_of(pointer).get(key, bool(snapshot)))


@function
def transaction_get_range(
    pointer: Any,
    begin: bytes,
    begin_length: int,
    begin_or_equal: bool,
    begin_offset: int,
    end: bytes,
    end_length: int,
    end_or_equal: bool,
    end_offset: int,
    limit: int,
    target_bytes: int,
    mode: int,
    iteration: int,
    snapshot: bool,
    reverse: bool,
) -> int:
    transaction = _of(pointer)
    first = _selected(begin, begin_or_equal, begin_offset)
    last = _selected(end, end_or_equal, end_offset)
    if mode == _EXACT and not limit:
        return _pointer(transaction.failed(2210))
    if mode == _ITERATOR:
        most = _GROWING[min(iteration, len(_GROWING)) - 1]
    else:
        most = _MODES[4] if mode == _WANT_ALL else _MODES.get(mode, 0)
    return _pointer(transaction.get_range(first, last, limit, most, bool(reverse), bool(snapshot)))


def _selected(key: bytes, or_equal: bool, offset: int) -> bytes:
    """The key of a selector of the first key from one on, or behind it."""
    if offset != 1:
        raise NotImplementedError("a key selector that is not first_greater_…")
    return key + b"\0" if or_equal else key


@function
def transaction_set(pointer: Any, key: bytes, length: int, value: bytes, size: int) -> None:
    _of(pointer).mutate(Op.SET, key, value)


@function
def transaction_atomic_op(
    pointer: Any, key: bytes, length: int, operand: bytes, size: int, op: int
) -> None:
    _of(pointer).mutate(Op(op), key, operand)


@function
def transaction_clear(pointer: Any, key: bytes, length: int) -> None:
    _of(pointer).clear_range(key, key + b"\0")


@function
def transaction_clear_range(
    pointer: Any, begin: bytes, length: int, end: bytes, end_length: int
) -> None:
    _of(pointer).clear_range(begin, end)


@function
def transaction_add_conflict_range(
    pointer: Any, begin: bytes, length: int, end: bytes, end_length: int, kind: int
) -> None:
    _of(pointer).add_conflict(begin, end, kind == 1)


@function
def transaction_watch(pointer: Any, key: bytes, length: int) -> int:
    return _pointer(_of(pointer).watch(key))


@function
def transaction_commit(pointer: Any) -> int:
    return _pointer(_of(pointer).commit())


@function
def transaction_get_committed_version(pointer: Any, out: Any) -> None:
    out._obj.value = _of(pointer).version


@function
def transaction_get_versionstamp(pointer: Any) -> int:
    return _pointer(_of(pointer).stamped)


@function
def transaction_get_approximate_size(pointer: Any) -> int:
    return _pointer(_of(pointer).get_approximate_size())


@function
def transaction_on_error(pointer: Any, code: int) -> int:
    return _pointer(_of(pointer).on_error(code))


@function
def transaction_reset(pointer: Any) -> None:
    _of(pointer).reset()


@function
def transaction_cancel(pointer: Any) -> None:
    _of(pointer).cancel()


@function
def future_cancel(pointer: Any) -> None:
    _of(pointer).cancel()


@function
def future_release_memory(pointer: Any) -> None:
    _of(pointer).kept = None


@function
def future_is_ready(pointer: Any) -> int:
    return _of(pointer).is_ready


@function
def future_set_callback(pointer: Any, callback: Callable[[int], None], argument: None) -> None:
    number = _number(pointer)
    _of(pointer).on_ready(lambda: callback(number))


@function
def future_get_error(pointer: Any) -> None:
    _of(pointer).check()


@function
def future_get_int64(pointer: Any, out: Any) -> None:
    out._obj.value = _of(pointer).check()


@function
def future_get_value(pointer: Any, present: Any, value: Any, length: Any) -> None:
    future = _of(pointer)
    found = future.check()
    present._obj.value = found is not None
    if found is not None:
        _show(future, found, value, length)


@function
def future_get_key(pointer: Any, key: Any, length: Any) -> None:
    future = _of(pointer)
    _show(future, future.check(), key, length)


def _show(future: Future, found: bytes, out: Any, length: Any) -> None:
    future.kept = found
    out._obj.contents = ctypes.cast(found, _Bytes).contents
    length._obj.value = len(found)


@function
def future_get_keyvalue_array(pointer: Any, out: Any, count: Any, more: Any) -> None:
    future = _of(pointer)
    found, has_more = future.check()
    count._obj.value, more._obj.value = len(found), has_more
    if not found:
        return
    array = (sys.modules["fdb.impl"].KeyValueStruct * len(found))()
    for place, (key, value) in zip(array, found, strict=True):
        place.key, place.key_length = ctypes.cast(key, _Bytes), len(key)
        place.value, place.value_length = ctypes.cast(value, _Bytes), len(value)
    future.kept = array
    out._obj.contents = array[0]


def wait(pointer: Any) -> None:
    """Let others go on until a future is ready, if its driver says which client goes on."""
    future = _of(pointer)
    if not future.is_ready:
        future.driver.wait(lambda: future.is_ready)
