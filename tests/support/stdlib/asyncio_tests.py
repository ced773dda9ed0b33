"""CPython's own tests of ``asyncio.Queue``, over queues of ``pressure_mp.aio``.

Their source is rewritten where a method that the tests call is a coroutine here:

- ``q.put_nowait(1)`` is awaited, and so is all else in ``COROUTINES``; also where it is passed to
  ``assertRaises`` or to ``call_later``;
- ``asyncio.sleep(0)``, one step of the event loop, lasts until every other task has ended or waits:
  for another one, or at the broker;
- an assertion about what tasks have done has some seconds to come true.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import sys
import unittest
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from test.test_asyncio import test_queues
from waiting import is_of_engine

from pressure_mp import aio

COROUTINES = {"put_nowait", "get_nowait", "qsize", "empty", "full", "task_done", "shutdown"}
#: Seconds for what other tasks do.
LIMIT = 5.0


class _Awaiting(ast.NodeTransformer):
    """Rewrites tests of queues for threads: calls that are coroutines here are awaited."""

    def visit_Import(self, node: ast.Import) -> Any:
        kept = [name for name in node.names if name.name != "asyncio"]
        return ast.Import(kept) if kept else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        if not _awaits(node.body):
            return node
        return ast.copy_location(ast.AsyncFunctionDef(**dict(ast.iter_fields(node))), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        return ast.Await(ast.Call(node, [], [])) if node.attr == "maxsize" else node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        called, args = node.func, node.args
        if not isinstance(called, ast.Attribute):
            return node
        if called.attr in COROUTINES:
            return ast.Await(node)
        if len(args) > 1 and getattr(args[1], "attr", "") in COROUTINES:
            if called.attr == "call_later":
                args.insert(1, ast.Name("begin", ast.Load()))
            elif called.attr == "assertRaises":
                begun = ast.Call(args[1], args[2:], [])
                return ast.Await(ast.Call(_name("raises"), [args[0], begun], []))
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        self.generic_visit(node)
        call = node.value
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "").startswith("assert"):
            if _awaits([node]):
                return node
            nothing = ast.arguments([], [], None, [], [], None, [])
            return ast.Expr(ast.Await(ast.Call(_name("soon"), [ast.Lambda(nothing, call)], [])))
        return node


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _awaits(body: list[Any]) -> bool:
    """Whether there is an await, but in functions that are defined there."""
    for node in body:
        if isinstance(node, (ast.Await, ast.AsyncWith, ast.AsyncFor)):
            return True
        inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
        if not inner and _awaits(list(ast.iter_child_nodes(node))):
            return True
    return False


_begun: set[asyncio.Task[Any]] = set()


def begin(method: Callable[..., Any], *args: Any) -> None:
    """Call a method in a task of its own; later if the queue is empty now."""

    async def call() -> None:
        while True:
            try:
                await method(*args)
                return
            except aio.QueueEmpty:
                await asyncio.sleep(0.002)

    task = asyncio.ensure_future(call())
    _begun.add(task)
    task.add_done_callback(_begun.discard)


async def raises(error: type[BaseException], begun: Any) -> None:
    """``assertRaises`` of a coroutine."""
    with pytest.raises(error):
        await begun


async def soon(assertion: Callable[[], object]) -> None:
    """The assertion holds, or will do so."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LIMIT
    while True:
        try:
            assertion()
            return
        except AssertionError:
            if loop.time() > end:
                raise
        await asyncio.sleep(0.002)


async def rest() -> None:
    """Every other task of the event loop has ended or waits."""
    loop, rested = asyncio.get_running_loop(), 0
    end = loop.time() + LIMIT
    while rested < 2 and loop.time() < end:
        await asyncio.sleep(0.001)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        rested = rested + 1 if all(map(_waits, others)) else 0


def _waits(task: asyncio.Task[Any]) -> bool:
    codes = list(_codes(task.get_coro()))
    if not codes or inspect.getcoroutinestate(task.get_coro()) == inspect.CORO_CREATED:
        return not codes
    ours = [code for code in codes if "pressure_mp" in code.co_filename]
    parks = [one for one in ours if is_of_engine(one) and one.co_name in ("wait", "park")]
    return not ours or bool(parks) or is_of_engine(codes[0])


def _codes(waiting: Any) -> Iterator[Any]:
    """The code of a coroutine, and of what it waits for."""
    while (
        frame := getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
    ) is not None:
        yield frame.f_code
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)


class _Asyncio(ModuleType):
    """``asyncio``, with queues of ours."""

    LifoQueue = aio.LifoQueue
    PriorityQueue = aio.PriorityQueue

    def __init__(self, queue: type[aio.Queue[Any]]) -> None:
        super().__init__("asyncio")
        self.Queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(delay: float) -> None:
        await (asyncio.sleep(delay) if delay else rest())


def rewritten(queue: type[aio.Queue[Any]]) -> ModuleType:
    """CPython's module of tests, with that class for ``asyncio.Queue``."""
    tree = _Awaiting().visit(ast.parse(inspect.getsource(test_queues)))
    module = ModuleType(f"test_queues_with_{queue.__name__}")
    vars(module).update(asyncio=_Asyncio(queue), begin=begin, raises=raises, soon=soon)
    sys.modules[module.__name__] = module
    exec(compile(ast.fix_missing_locations(tree), str(test_queues.__file__), "exec"), vars(module))
    return module


def cases(module: ModuleType) -> list[type[unittest.TestCase]]:
    """The classes of tests in it."""
    found = [one for one in vars(module).values() if isinstance(one, type)]
    return [one for one in found if issubclass(one, unittest.TestCase)]
