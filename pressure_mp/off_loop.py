"""Run functions of asyncio tasks in other threads, and coroutines in tasks of their own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from . import lifecycle

T = TypeVar("T")


async def off_loop(function: Callable[..., T], *args: object) -> T:
    """Do what ``asyncio.to_thread`` does, also while functions of atexit run."""
    return await begin_off_loop(function, *args)


def begin_off_loop(function: Callable[..., T], *args: object) -> asyncio.Future[T]:
    """Call a function in another thread. The end of the loop, which cancels all its tasks, does not
    cancel the future."""
    prepare_loop()
    call = partial(contextvars.copy_context().run, function, *args)
    return asyncio.get_running_loop().run_in_executor(None, call)


def begin_later(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Make a task of the running loop that begins when the caller suspends or returns to the loop,
    also where ``asyncio.eager_task_factory`` has tasks begin before the caller goes on."""
    return asyncio.Task(work, loop=asyncio.get_running_loop())


def prepare_loop() -> None:
    """Replace the running loop's thread pool while functions of atexit run: a pool refuses new
    calls then, such as the look-up of a host's address."""
    if lifecycle.is_interpreter_ending():
        asyncio.get_running_loop().set_default_executor(_WithoutPool())


class _WithoutPool(ThreadPoolExecutor):
    """Runs each call in a new thread, or in the caller's thread where no thread can be started."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        call = partial(_complete, future, partial(fn, *args, **kwargs))
        try:
            threading.Thread(target=call, daemon=True).start()
        except RuntimeError:
            call()
        return future


def _complete(future: Future[T], call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)
