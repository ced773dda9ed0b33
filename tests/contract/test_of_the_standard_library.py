"""Uses of a queue of the standard library that are not possible here raise errors that say so."""

from __future__ import annotations

import pytest

from pressure_mp import (
    ArgumentTypeError,
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PriorityQueue,
    Queue,
    SimpleQueue,
    aio,
)

KINDS = [Queue, JoinableQueue, SimpleQueue, LifoQueue, PriorityQueue, FairQueue]
AIO_KINDS = [aio.Queue, aio.JoinableQueue, aio.LifoQueue, aio.PriorityQueue, aio.FairQueue]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("attribute", "advice"),
    [
        ("mutex", r"purge\(\)"),
        ("queue", r"purge\(\)"),
        ("not_empty", r"get\(\)"),
        ("not_full", r"put\(\)"),
        ("all_tasks_done", r"join\(\)"),
    ],
)
def test_the_error_of_a_missing_attribute_of_queue_queue_gives_advice(kind, attribute, advice):
    q = kind(url="memory://") if kind is not FairQueue else kind(str, url="memory://")
    with pytest.raises(AttributeError, match=f"a {kind.__name__} has no {attribute}: .*{advice}"):
        getattr(q, attribute)
    with pytest.raises(AttributeError, match=advice):
        setattr(q, attribute, None)


@pytest.mark.parametrize("kind", AIO_KINDS)
def test_the_items_of_asyncios_queue_are_not_there(kind):
    q = kind(url="memory://") if kind is not aio.FairQueue else kind(str, url="memory://")
    with pytest.raises(AttributeError, match=r"has no _queue: .*purge\(\)"):
        q._queue.clear()


@pytest.mark.parametrize("hook", ["_init", "_qsize", "_put", "_get"])
@pytest.mark.parametrize("kind", [*KINDS, *AIO_KINDS])
def test_a_class_that_overrides_a_method_that_is_not_called_is_refused(kind, hook):
    with pytest.raises(ArgumentTypeError, match=rf"class Unique defines {hook}, .*put\(\)"):
        type("Unique", (kind,), {hook: lambda self, *args: None})
    mixin = type("Mixin", (), {hook: lambda self, *args: None})
    with pytest.raises(TypeError, match="class Unique defines"):
        type("Unique", (mixin, kind), {})


def test_a_class_that_overrides_put_and_get_can_be_used():
    class Doubling(Queue):
        def put(self, item, *args, **options):
            super().put(2 * item, *args, **options)

        def get(self, *args, **options):
            return super().get(*args, **options) + 1

    q = Doubling(url="memory://")
    q.put_nowait(3)
    assert q.get_nowait() == 7
