"""A class or an option that needs more than the engine has is refused, and the error says why."""

from __future__ import annotations

from functools import partial

import pytest

from pressure_mp import (
    FairQueue,
    JoinableQueue,
    LifoQueue,
    NotSupportedError,
    PriorityQueue,
    Queue,
    SimpleQueue,
    TaskQueue,
)
from pressure_mp.engines.contract.address import SimpleAddress
from pressure_mp.engines.contract.items import Renew
from pressure_mp.engines.contract.levels import Level
from pressure_mp.engines.memory import address
from pressure_mp.engines.requests.dispatch import for_items


@pytest.fixture(autouse=True)
def only_items(monkeypatch):
    """The memory engine says that it has the first level only."""
    scheme, capabilities = address.MemoryAddress.args
    limited = capabilities._replace(levels=frozenset({Level.ITEMS}))
    monkeypatch.setattr(address, "MemoryAddress", partial(SimpleAddress, scheme, limited))


def fair(name, **options):
    return FairQueue(key=str, name=name, **options)


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (JoinableQueue, "deliveries"),
        (LifoQueue, "deliveries"),
        (PriorityQueue, "deliveries"),
        (TaskQueue, "tasks"),
    ],
)
def test_a_class_that_needs_another_level_names_itself_the_engine_and_the_level(
    kind, level, world, name
):
    with pytest.raises(NotSupportedError) as caught:
        world(kind)(name=name, url="memory://")
    said = f"{kind.__name__} needs '{level}', a level that the engine of memory:// does not have"
    assert str(caught.value).startswith(said)
    assert "use Queue or SimpleQueue there, or a broker at" in str(caught.value)


def test_a_fair_queue_needs_more(name):
    with pytest.raises(NotSupportedError, match="FairQueue needs 'deliveries'"):
        fair(name, url="memory://")


@pytest.mark.parametrize(
    ("option", "value", "level"), [("prefetch", 9, "ahead"), ("eof", "producers", "deliveries")]
)
def test_so_does_an_option(option, value, level, name):
    with pytest.raises(NotSupportedError, match=f"{option} needs '{level}', a level"):
        Queue(name=name, url="memory://", **{option: value})


@pytest.mark.parametrize("kind", [Queue, SimpleQueue])
def test_queues_of_items_need_no_more(kind, name):
    queue = kind(name=name, url="memory://")
    queue.put("item")
    assert queue.get() == "item"
    assert queue.empty()


def test_a_process_has_no_lease_in_a_queue_without_deliveries(name, monkeypatch):
    queue = Queue(name=name, url="memory://")
    monkeypatch.delitem(for_items, Renew)
    queue._at.here.renew_and_return(None)
