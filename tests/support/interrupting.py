"""Interrupts a call at every place where Python looks for signals, one after the other.

Just before a step behind which Python looks (a call, the begin of a function, the end of a loop's
body) a signal is made pending. So its handler runs exactly where it would run for a real one that
came during that step: no place is tried that cannot happen.
"""

from __future__ import annotations

import _thread
import dis
import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

_SIGNAL = signal.SIGUSR1
_LOOKS = ("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "POP_JUMP_BACKWARD")
_NOT = ("CALL_INTRINSIC_1", "CALL_INTRINSIC_2", "JUMP_BACKWARD_NO_INTERRUPT")


class Interrupted(BaseException):
    """What the signal handler raises; it is no Exception."""


class Alarm(Exception):
    """What the signal handler raises; it is an Exception."""


_places: dict[CodeType, frozenset[int]] = {}


def _places_of(code: CodeType) -> frozenset[int]:
    found = _places.get(code)
    if found is None:
        found = _places[code] = frozenset(
            step.offset
            for step in dis.get_instructions(code)
            if step.opname.startswith(_LOOKS)
            and step.opname not in _NOT
            and not (step.opname == "RESUME" and (step.arg or 0) & 3 >= 2)  # in a yield from
        )
    return found


class Interrupter:
    """Makes one call, and interrupts it at the place of the number given: ``use()`` is called
    there, and ``error`` raised unless it is None."""

    def __init__(
        self,
        error: type[BaseException] | None = Interrupted,
        use: Callable[[], Any] = lambda: None,
    ) -> None:
        self._errors, self._use = () if error is None else (error,), use
        self.where = ""
        self._left = 0
        # One object for all frames, which lives as long as they do. Where each frame had one of its
        # own, Python 3.11 called other objects in the place of objects that were freed meanwhile.
        self._tracer = self._trace

    def __enter__(self) -> Interrupter:
        def handle(number: int, frame: FrameType | None) -> None:
            self._use()
            for error in self._errors:
                raise error

        self._before = signal.signal(_SIGNAL, handle)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(_SIGNAL, self._before)

    def call(self, number: int, act: Callable[[], Any]) -> tuple[bool, Any]:
        """Whether it was interrupted, and what it returned; other errors are raised."""
        self._left, self.where = number, ""
        before, ended, value = sys.gettrace(), False, None
        # Whatever is told of finalizers is told afterwards: to interrupt that would not be a place
        # of the call.
        tell, told = sys.unraisablehook, []
        try:
            sys.unraisablehook = told.append
            sys.settrace(self._tracer)
            try:
                value = act()
                ended = True  # what comes from now on comes after the call
            finally:
                sys.settrace(before)
                sys.unraisablehook = tell
        except self._errors:
            return not ended, value
        finally:
            for one in told:
                tell(one)
        return False, value

    @property
    def came(self) -> bool:
        """Whether there was a place of that number."""
        return self._left < 0

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == __file__ or self._left < 0:
            return None
        frame.f_trace_opcodes = True
        begins = event == "call" and frame.f_lasti <= 0
        if begins or (event == "opcode" and frame.f_lasti in _places_of(frame.f_code)):
            if self._left == 0:
                self._left = -1
                code = frame.f_code
                self.where = f"{code.co_filename}:{frame.f_lineno} {code.co_name} {frame.f_lasti}"
                sys.settrace(None)
                # In a step behind which Python does not look, or it would run the handler here.
                for _ in map(_thread.interrupt_main, (_SIGNAL,)):
                    return None
            self._left -= 1
        return self._tracer


def sweep(
    act: Callable[[], Any],
    check: Callable[[bool, Any], None],
    *,
    prepare: Callable[[], Any] = lambda: None,
    error: type[BaseException] | None = Interrupted,
    use: Callable[[], Any] = lambda: None,
    every: int = 1,
    first: int = 0,
    limit: int = 100_000,
) -> int:
    """Interrupt ``act()`` at each of its places, as :class:`Interrupter` says; ``check`` is told
    whether it was, and the value.

    Answers how many places there were.
    """
    with Interrupter(error, use) as interrupter:
        for number in range(first, limit, every):
            prepare()
            interrupted, value = interrupter.call(number, act)
            try:
                check(interrupted, value)
            except BaseException as problem:
                said = f"after an interrupt at place {number}, {interrupter.where}"
                raise AssertionError(said) from problem
            if not interrupter.came:
                return number
    raise AssertionError(f"more than {limit} places")
