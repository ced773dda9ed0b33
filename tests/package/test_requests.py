"""Each engine does each request of the contract, by functions that have the request's types."""

from __future__ import annotations

import sys
from typing import get_args, get_type_hints

import pytest

from pressure_mp.engines.contract import task_results, tasks
from pressure_mp.engines.contract.implementations import Implementations
from pressure_mp.engines.contract.items import EndReservation, Reserve
from pressure_mp.engines.contract.queues import Unlock
from pressure_mp.engines.contract.requests import ItemRequest, QueueRequest, Request, TaskRequest
from pressure_mp.engines.memory import dispatch as memory
from pressure_mp.engines.memory import engine as _memory_engine  # noqa: F401
from pressure_mp.engines.memory.tasks import for_places
from pressure_mp.engines.postgres import engine as _postgres_engine  # noqa: F401
from pressure_mp.engines.postgres.ways import ways
from pressure_mp.engines.redis.one_script import FirstScript, OneScript
from pressure_mp.engines.redis.requests import implementations as redis

#: What PostgreSQL's engine answers without asking the server.
UNASKED = (Reserve, EndReservation, Unlock)

#: The table of an engine, and the requests that it has to have.
TABLES = {
    "items in memory": (memory.for_items | memory.for_slots, ItemRequest | QueueRequest),
    "tasks in memory": (memory.for_tasks | for_places, TaskRequest | QueueRequest),
    "redis": (redis, Request),
    "postgres": (ways | dict.fromkeys(UNASKED), Request),
}

#: Of requests that share their replies with others.
REPLIES = {
    tasks.PutAwaited: tasks.PutTasksReply,
    **dict.fromkeys(get_args(tasks.SettleRequest), tasks.SettledReply),
    **dict.fromkeys((task_results.OpenInbox, task_results.CloseInbox), task_results.InboxReply),
}


@pytest.mark.parametrize("name", TABLES)
def test_an_engine_does_each_request_and_no_other(name):
    table, requests = TABLES[name]
    assert {kind.__name__ for kind in table} == {kind.__name__ for kind in get_args(requests)}


def functions():
    """Each function of which mypy knows what it returns, and the request that it does."""
    for table in (memory.for_items, memory.for_slots, memory.for_tasks, for_places, redis):
        for kind, does in table.items():
            if isinstance(does, FirstScript):
                yield kind, does.rest
            elif not isinstance(does, OneScript):
                yield kind, does
            elif does.read.__name__ != "<lambda>":
                yield kind, does.read


@pytest.mark.parametrize(("kind", "function"), [*functions()])
def test_a_function_returns_the_replies_of_its_request(kind, function):
    replies = REPLIES.get(kind) or vars(sys.modules[kind.__module__])[f"{kind.__name__}Reply"]
    assert get_type_hints(function)["return"] == replies


def test_two_functions_that_do_the_same_request_are_an_error():
    table = Implementations()
    table.does(int)(abs)
    with pytest.raises(AssertionError, match="two functions do int"):
        table.does(int)(bool)
