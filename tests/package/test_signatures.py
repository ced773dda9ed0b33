"""The options in signatures, the error of an unknown option, and subscripts of classes."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from types import GenericAlias

import pytest

from pressure_mp import (
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueAlreadyExistsError,
    QueueDoesNotExistError,
    SimpleQueue,
    Task,
    TaskQueue,
)
from pressure_mp.handles.options import ConnectionOptions, QueueOptions, TaskQueueOptions

ROOT = Path(__file__).parents[2]
KINDS = {
    PressureQueue: ConnectionOptions,
    **dict.fromkeys(
        (Queue, JoinableQueue, SimpleQueue, LifoQueue, PriorityQueue, FairQueue), QueueOptions
    ),
    TaskQueue: TaskQueueOptions,
}
#: Those whose queue the constructor opens, and what they need beside a name.
OPENED = [
    *((kind, {}) for kind in (Queue, JoinableQueue, LifoQueue, PriorityQueue, TaskQueue)),
    (FairQueue, {"key": bool}),
]
URL = "memory://signatures"


def parameters(function):
    return inspect.signature(function).parameters


@pytest.mark.parametrize("kind", KINDS)
def test_a_signature_has_every_option_by_name(kind):
    shown = parameters(kind)
    assert not any(one.kind is one.VAR_KEYWORD for one in shown.values())
    assert set(KINDS[kind].__annotations__) < set(shown)
    assert shown["lease"].default == 5.0
    assert shown["lease"].annotation is float
    assert shown["lease"].kind is inspect.Parameter.KEYWORD_ONLY


def test_a_class_of_a_user_has_its_own_signature():
    class Mine(Queue[int]):
        def __init__(self, size, **options):
            super().__init__(size, **options)

    assert list(parameters(Mine)) == ["size", "options"]


@pytest.mark.parametrize("kind", [*KINDS, Task])
def test_no_public_signature_has_a_private_argument(kind):
    public = [kind] if kind in KINDS else []  # programs do not make a Task: a take returns it
    for name, method in inspect.getmembers(kind, inspect.isroutine):
        if not name.startswith("_"):
            public.append(method)
    for function in public:
        for one in parameters(function).values():
            assert not one.name.startswith("_"), function
            assert one.kind is not one.VAR_KEYWORD or one.annotation.startswith("Unpack["), function


def test_the_readme_shows_the_signature_of_a_queue():
    shown = [f"{one.name}={one.default!r}".replace("'", '"') for one in parameters(Queue).values()]
    call = f"`Queue({', '.join([*shown[:2], '*', *shown[2:]])})`"
    assert call in re.sub(r"\s+", " ", (ROOT / "README.md").read_text())


@pytest.mark.parametrize("kind", [Queue, TaskQueue])
def test_every_option_is_described(kind):
    own = set(parameters(kind)) - {"self"}
    described = kind.__init__.__doc__ + (Queue.__init__.__doc__ if kind is TaskQueue else "")
    for option in own - {"name"}:
        assert f":param {option}:" in described or f"``{option}``" in described, option


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_option_is_a_type_error_that_names_it(kind):
    needed = {"key": bool} if kind is FairQueue else {}
    for unknown in ("leese", "_how"):
        with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) .* argument '{unknown}'$"):
            kind(name="a queue", url=URL, **needed, **{unknown: "create"})


@pytest.mark.parametrize(("kind", "needed"), OPENED)
@pytest.mark.parametrize("how", ["create", "attach"])
def test_create_and_attach_refuse_it_too(kind, needed, how):
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) .* argument 'leese'$"):
        getattr(kind, how)("a queue", url=URL, leese=1, **needed)


@pytest.mark.parametrize(("kind", "needed"), OPENED)
def test_create_and_attach_insist_and_a_pickle_of_theirs_does_not(kind, needed, name):
    url = f"memory://{name}"
    with pytest.raises(QueueDoesNotExistError):
        kind.attach("a queue", url=url, **needed)
    made = kind.create("a queue", url=url, **needed)
    with pytest.raises(QueueAlreadyExistsError):
        kind.create("a queue", url=url, **needed)
    assert pickle.loads(pickle.dumps(made)).exists()
    assert kind.attach("a queue", url=url, **needed).exists()


def test_a_fair_queue_is_created_with_its_usual_bound(name):
    url = f"memory://{name}"
    assert FairQueue.create("usual", url=url, key=bool).maxsize == 128
    assert FairQueue.create("none", None, url=url, key=bool).maxsize == 0
    assert FairQueue.attach("usual", url=url, key=bool).maxsize == 128


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not PressureQueue])
def test_a_class_with_a_subscript_makes_a_queue_like_any_other(kind):
    class Local:
        """A class that a pickle cannot name."""

    needed = {"key": bool} if kind is FairQueue else {}
    queue = kind[Local](url=URL, **needed)
    assert type(queue) is kind
    again = pickle.loads(pickle.dumps(queue))
    assert again.name == queue.name
    assert type(again) is kind


def test_a_subscript_is_what_it_is_in_the_standard_library():
    assert type(Queue[int]) is GenericAlias
    assert Queue[int].__origin__ is Queue
    assert issubclass(type("Mine", (Queue,), {}), Queue)

    class Mine(Queue[int]):
        pass

    assert isinstance(Mine(url=URL), Queue)
