"""The classes for threads and of asyncio have the same methods, with the same arguments."""

from __future__ import annotations

import ast
import asyncio
import inspect
import traceback
from pathlib import Path
from typing import Any

import pytest

import pressure_mp
from pressure_mp import aio
from pressure_mp.aio import awaited

#: Each class that there is in both worlds. Another one needs a line here.
NAMES = [
    *("FairQueue", "JoinableQueue", "LifoQueue", "PressureQueue", "PriorityQueue", "Queue"),
    *("Task", "TaskInbox", "TaskQueue"),
]

#: A class that differs: a call returns a future for threads, and in asyncio its awaited result.
APART = ["Executor"]

#: Methods that only the classes for threads have, and why.
ONLY_FOR_THREADS = {
    "cancel_join_thread": "no thread sends what was put: a task of the event loop does",
    "fileno": "an event loop awaits get() itself",
    "join_thread": "no thread sends what was put: close() waits for the task that does",
}
#: Methods that only the classes of asyncio have, and why.
ONLY_OF_ASYNCIO = {
    "of": "the handle of asyncio for a handle for threads",
    "set_maxsize": "to set a property cannot be awaited",
    "sync": "the handle for threads",
}
#: Methods that ask no broker, and are called without ``await`` in both worlds.
AT_ONCE = {
    "batch",
    "become",
    "become_record",
    "have_returned",
    "leave_unwatched",
    "watch_loss",
    "processing",
    "when_lost",
    "results",
    "worker",
}
#: Parameters that are not the same in both worlds, or are there in one.
OTHER_PARAMETERS = {
    "results": set(),  # what they return is iterated over in each world as it is done there
    "run": {"handler", "stop", "executor"},
    "worker": {"executor"},
}
#: Properties for threads which are coroutines of asyncio: they ask the broker.
ASKED = {"is_shutdown", "maxsize", "unfinished_tasks"}
#: The methods that have a body of their own in asyncio, and why. All others are made of those for
#: threads: their arguments, what they check and what they run are written once.
OF_THEIR_OWN = {
    **dict.fromkeys(("create", "attach"), "no type says that they return this class"),
    **dict.fromkeys(("of", "set_maxsize"), "threads have none"),
    "open": "tasks that open it at the same time wait for one of them",
    **dict.fromkeys(ASKED, "a property cannot be awaited"),
    **dict.fromkeys(("put", "get", "get_many", "flush", "empty"), "each world has its own buffers"),
    **dict.fromkeys(("shutdown", "close", "delete"), "they empty the buffers of an event loop"),
    **dict.fromkeys(
        ("task_done", "forward", "join"), "an asyncio task has got the items, not a thread"
    ),
    **dict.fromkeys(("inbox", "run"), "what it makes, or runs, is another thing in each world"),
    "qsize": "of a FairQueue: mypy sees the arguments of the base class otherwise",
}

#: The same, spelled as the language asks for it.
SPELLED = {
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__iter__": "__aiter__",
}


def both(name: str) -> tuple[type, type]:
    return getattr(pressure_mp, name), getattr(aio, name)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and hasattr(kind, name)}


def parameters(function: Any) -> list[tuple[str, Any, Any, str]]:
    """Of each: name, kind, default and annotation."""
    return [
        (one.name, one.kind, one.default, str(one.annotation))
        for one in inspect.signature(function).parameters.values()
    ]


def static(kind: type, name: str) -> Any:
    return inspect.getattr_static(kind, name)


def test_every_class_of_asyncio_is_in_the_table():
    assert [name for name in aio.__all__ if inspect.isclass(getattr(aio, name))] == sorted(
        [*NAMES, *APART, "QueueEmpty", "QueueFull", "QueueShutDown"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_both_have_the_same_public_names(name):
    for_threads, of_asyncio = map(public, both(name))
    assert for_threads - set(ONLY_FOR_THREADS) == of_asyncio - set(ONLY_OF_ASYNCIO)


def test_every_exception_is_one():
    for only, index in ((ONLY_FOR_THREADS, 0), (ONLY_OF_ASYNCIO, 1)):
        here = set().union(*(public(both(name)[index]) for name in NAMES))
        there = set().union(*(public(both(name)[1 - index]) for name in NAMES))
        assert set(only) <= here - there
    assert all(isinstance(static(pressure_mp.Queue, name), property) for name in ASKED)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_that_asks_the_broker_is_a_coroutine_and_takes_the_same_arguments(name):
    for_threads, of_asyncio = both(name)
    for method in sorted(public(for_threads) & public(of_asyncio)):
        theirs, ours = static(for_threads, method), static(of_asyncio, method)
        if inspect.ismemberdescriptor(theirs):
            assert theirs is ours, method
            continue
        if isinstance(theirs, property):
            assert (method in ASKED) == inspect.iscoroutinefunction(ours), method
            assert method in ASKED or isinstance(ours, property), method
            continue
        assert type(theirs) is type(ours), method
        ours = getattr(of_asyncio, method)
        assert inspect.iscoroutinefunction(ours) == (method not in AT_ONCE), method
        others = OTHER_PARAMETERS.get(method, set())
        same = [
            [one for one in parameters(getattr(kind, method)) if one[0] not in others]
            for kind in both(name)
        ]
        assert same[0] == same[1], method
        returned = [
            inspect.signature(getattr(kind, method)).return_annotation for kind in both(name)
        ]
        assert returned[0] == returned[1] or method in OTHER_PARAMETERS, method


@pytest.mark.parametrize("name", NAMES)
def test_a_property_is_annotated_as_its_coroutine(name):
    for_threads, of_asyncio = both(name)
    for asked in ASKED & public(for_threads):
        theirs, ours = static(for_threads, asked).fget, static(of_asyncio, asked)
        assert parameters(theirs) == parameters(ours)
        assert inspect.signature(theirs).return_annotation == (
            inspect.signature(ours).return_annotation
        )


@pytest.mark.parametrize("name", NAMES)
def test_both_are_made_with_the_same_arguments(name):
    for_threads, of_asyncio = both(name)
    assert parameters(for_threads) == parameters(of_asyncio)
    assert parameters(for_threads.__init__) == parameters(of_asyncio.__init__)


@pytest.mark.parametrize("name", NAMES)
def test_methods_that_the_language_calls_are_there_in_both(name):
    for_threads, of_asyncio = both(name)
    for theirs, ours in SPELLED.items():
        assert hasattr(for_threads, theirs) == hasattr(of_asyncio, ours), ours
        assert not hasattr(of_asyncio, theirs), theirs


@pytest.mark.parametrize("name", NAMES)
def test_every_public_method_of_asyncio_says_what_it_does(name):
    kind = getattr(aio, name)
    assert kind.__doc__
    for method in sorted(public(kind)):
        found = static(kind, method)
        if not inspect.ismemberdescriptor(found):
            assert inspect.getdoc(getattr(found, "__func__", found)), method


def is_made(method: Any) -> bool:
    """Whether a method of asyncio is one for threads, awaited."""
    return Path(method.__code__.co_filename) == Path(awaited.__file__)


def test_a_method_is_written_once_unless_the_table_says_why_not():
    own = set()
    for name in NAMES:
        kind = getattr(aio, name)
        for method in public(kind):
            found = getattr(kind, method)
            if inspect.iscoroutinefunction(found) and not is_made(found):
                own.add(method)
    assert own == set(OF_THEIR_OWN) - {"of"}


def test_a_traceback_names_the_method_that_was_called():
    async def fail() -> None:
        await aio.PressureQueue("name", url="memory://twins").put("no bytes")  # type: ignore[arg-type]

    with pytest.raises(pressure_mp.ArgumentTypeError) as raised:
        asyncio.run(fail())
    names = [frame.name for frame in traceback.extract_tb(raised.tb)]
    assert names[names.index("fail") :] == ["fail", "put", "put", "_check_item"]


def test_no_module_of_asyncio_reaches_into_a_handle_for_threads():
    """It knows the attachment, which both have, and the public methods."""
    for path in Path(aio.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                owner = ast.unparse(node.value).partition("[")[0]
                assert not owner.startswith(("sync.", "handle.", "self._sync.", "self.sync.")), (
                    path,
                    ast.unparse(node),
                )
