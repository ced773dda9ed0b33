"""Encode a call for its way to a worker, run it, and encode its outcome for the way back."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from ..encoding.large import THRESHOLD
from ..encoding.serializers import LargeBuffers, checked
from ..encoding.user_exceptions import in_words, set_cause
from ..exceptions import RemoteTraceback
from .errors import CallDecodingError

#: The outcome of a call: whether it is a value, its pickle, and the large buffers that are not in
#: the pickle. No large buffer is copied to make one.
Outcome = tuple[Any, ...]

#: Makes bytes of an object.
Dumps = Callable[[Any], bytes]


def dumps(obj: Any) -> bytes:
    """Pickle an object. If pickle cannot find a function or a class by its name, use cloudpickle,
    if that is installed, which pickles the code. Raises what pickle raised."""
    try:
        return checked(pickle.dumps(obj, 5))
    except _NOT_FOUND as error:
        return _dumps_whole_or_raise(obj, error)


#: Raised by pickle for an object without a name by which other processes find it.
_NOT_FOUND = (pickle.PicklingError, AttributeError, TypeError)


def dumps_for_others(obj: Any) -> bytes:
    """Pickle an object for workers that may have another main module, or none."""
    made = dumps(obj)
    return (_dumps_whole(obj) or made) if b"__main__" in made else made


def _dumps_whole(obj: Any) -> bytes | None:
    """Pickle with cloudpickle; None if that is not installed, or cannot either."""
    try:
        import cloudpickle  # type: ignore[import-untyped]  # which takes long, and few need

        made = cloudpickle.dumps(obj, 5)
    except Exception:
        return None
    return checked(made)


def _dumps_whole_or_raise(obj: Any, problem: Exception) -> bytes:
    """Pickle with cloudpickle; raise pickle's ``problem`` if that cannot."""
    made = _dumps_whole(obj)
    if made is None:
        raise problem
    return made


def has_a_main_module() -> bool:
    """Tell whether a started process can import this one's main module, as multiprocessing has it
    do: not from a notebook or an interactive session."""
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is not None or hasattr(main, "__file__")


def run(call: bytes) -> Outcome:
    """Do a call; return its outcome. Each error is an outcome too."""
    try:
        fn, args, kwargs = pickle.loads(call)
    except BaseException as error:
        return failed(_unreadable("the worker could not unpickle the call", call, error))
    try:
        value = fn(*args, **kwargs)
        if type(value) is CoroutineType:
            value = _run_coroutine(value)
    except BaseException as error:
        return failed(error, hides_frame=True)  # the frame of this function
    try:
        return _outcome(True, value)
    except BaseException as error:
        return failed(error)


def _run_coroutine(coroutine: CoroutineType[Any, Any, Any]) -> Any:
    """Run the call of a coroutine function in an event loop of its own."""
    import asyncio  # most calls do not need it

    return asyncio.run(coroutine)


def _outcome(is_value: bool, obj: Any) -> Outcome:
    buffers = LargeBuffers()
    try:
        payload = checked(pickle.dumps(obj, 5, buffer_callback=buffers.keep_apart))
    except _NOT_FOUND as error:
        payload, buffers = _dumps_whole_or_raise(obj, error), LargeBuffers()
    if len(payload) >= THRESHOLD:
        return is_value, pickle.PickleBuffer(payload), *buffers
    return is_value, payload, *buffers


def failed(error: BaseException, hides_frame: bool = False) -> Outcome:
    """Return the outcome of a call that raised. An exception whose own methods raise is sent as
    text. ``hides_frame``: its traceback is sent without the first frame."""
    try:
        return _failed(error, hides_frame)
    except BaseException as problem:
        text = f"the call raised an exception that cannot be sent: {in_words(problem)}"
        return _failed(pickle.PicklingError(text))


def _failed(error: BaseException, hides_frame: bool = False) -> Outcome:
    frames = error.__traceback__
    if hides_frame and frames is not None:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    try:
        pickled = dumps(error)
    except BaseException as problem:
        return _failed(_unpicklable(error, problem))
    return _outcome(False, (pickled, text))


def _unpicklable(error: BaseException, problem: BaseException) -> BaseException:
    """Return an exception to send for an exception that cannot be pickled: with pickle's error, if
    that can be sent."""
    try:
        dumps(problem)
    except BaseException:
        name, why = type(error).__name__, in_words(problem)
        return pickle.PicklingError(f"the call raised {name}, which cannot be pickled: {why}")
    set_cause(problem, error)
    return problem


def decode(outcome: Outcome) -> tuple[Any, BaseException | None]:
    """Return the value of a call, or its exception; or an exception that says why neither can be
    decoded."""
    payload: Any = b""
    try:
        is_value, payload, *buffers = outcome
        found = pickle.loads(payload, buffers=buffers)
        if is_value:
            return found, None
        pickled, text = found
    except BaseException as error:
        return None, _unreadable("the result of the call cannot be unpickled", payload, error)
    try:
        raised = _load_exception(pickled)
    except BaseException as error:
        raised = _unreadable("the exception of the call cannot be unpickled", payload, error)
    set_cause(raised, RemoteTraceback(text))
    return None, raised


def _load_exception(pickled: bytes) -> BaseException:
    raised = pickle.loads(pickled)
    if not issubclass(type(raised), BaseException):
        raise TypeError(f"its pickle makes an object of type {type(raised).__name__}")
    return raised  # type: ignore[no-any-return]


_BYTES = bytes, bytearray, memoryview, pickle.PickleBuffer


def _unreadable(what: str, payload: Any, error: BaseException) -> CallDecodingError:
    there = bytes(payload) if isinstance(payload, _BYTES) else b""
    found = CallDecodingError(f"{what}: {in_words(error)}", there)
    found.__cause__ = error
    return found
