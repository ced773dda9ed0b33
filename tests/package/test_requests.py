"""Each engine does each request of the contract, by functions that have the request's types."""

from __future__ import annotations

import sys
from typing import get_args, get_type_hints

import pytest

from pressure_mp.engines import registry
from pressure_mp.engines.contract import task_results, tasks
from pressure_mp.engines.contract.default_replies import OPTIONAL, default_reply
from pressure_mp.engines.contract.implementations import Implementations
from pressure_mp.engines.contract.levels import Level
from pressure_mp.engines.contract.requests import LEVELS, QueueRequest
from pressure_mp.engines.postgres import broker as postgres_broker
from pressure_mp.engines.postgres import engine as _postgres_engine  # noqa: F401
from pressure_mp.engines.postgres.ways import ways
from pressure_mp.engines.redis import broker as redis_broker
from pressure_mp.engines.redis.one_script import FirstScript, OneScript, ReadFirst
from pressure_mp.engines.redis.requests import implementations
from pressure_mp.engines.requests.brokers import for_brokers
from pressure_mp.engines.requests.dispatch import (
    for_items,
    for_pairs,
    for_places,
    for_slots,
    for_tasks,
)
from pressure_mp.exceptions import NotSupportedError

ITEMS_IN_MEMORY = for_items | for_slots
TASKS_IN_MEMORY = for_tasks | for_places

#: What an engine does, by an URL of it.
TABLES = {
    "memory://": ITEMS_IN_MEMORY | TASKS_IN_MEMORY | for_pairs | for_brokers,
    "redis://": implementations | redis_broker.for_brokers,
    "postgresql:///any": ways | postgres_broker.for_brokers,
}
#: The tables of functions of which mypy knows what they return.
TYPED = [
    *(for_items, for_slots, for_tasks, for_places, for_pairs, for_brokers),
    *(implementations, redis_broker.for_brokers, postgres_broker.for_brokers),
]

#: Of requests that share their replies with others.
REPLIES = {
    **dict.fromkeys(get_args(tasks.SettleRequest), tasks.SettledReply),
    **dict.fromkeys((task_results.OpenInbox, task_results.CloseInbox), task_results.InboxReply),
}


def names(kinds):
    return {kind.__name__ for kind in kinds}


@pytest.mark.parametrize("url", TABLES)
def test_an_engine_does_each_request_of_its_levels_and_no_other(url):
    levels = registry.parse(url).capabilities.levels
    wanted = {kind for level in levels for kind in LEVELS[level]}
    assert names(wanted - OPTIONAL.keys()) <= names(TABLES[url]) <= names(wanted)


def test_a_queue_of_tasks_in_memory_does_requests_of_tasks_and_of_every_queue():
    wanted = {*LEVELS[Level.TASKS], *get_args(QueueRequest)}
    assert names(TASKS_IN_MEMORY) == names(wanted)
    assert names(get_args(QueueRequest)) <= names(ITEMS_IN_MEMORY)


def test_a_request_belongs_to_one_level():
    kinds = [kind for level in Level for kind in LEVELS[level]]
    assert len(kinds) == len({*kinds})
    assert OPTIONAL.keys() <= {*kinds}


@pytest.mark.parametrize(
    ("level", "kind"), [(level, kind) for level in Level for kind in LEVELS[level]]
)
def test_a_request_that_an_engine_does_not_do_has_a_default_reply_or_names_its_level(level, kind):
    request = kind(*[()] * len(kind._fields))
    if kind in OPTIONAL:
        assert type(default_reply(request)) is not type(None)
    else:
        with pytest.raises(NotSupportedError, match=f"{kind.__name__} needs '{level.value}'"):
            default_reply(request)


def functions():
    """Each function of which mypy knows what it returns, and the request that it does."""
    for table in TYPED:
        for kind, does in table.items():
            if isinstance(does, FirstScript):
                yield kind, does.rest
            elif isinstance(does, ReadFirst):
                yield kind, does.read
            elif not isinstance(does, OneScript):
                yield kind, does
            elif does.value.__name__.startswith("_read"):
                yield kind, does.value


@pytest.mark.parametrize(("kind", "function"), [*functions()])
def test_a_function_returns_the_replies_of_its_request(kind, function):
    replies = REPLIES.get(kind) or vars(sys.modules[kind.__module__])[f"{kind.__name__}Reply"]
    assert get_type_hints(function)["return"] == replies


def test_two_functions_that_do_the_same_request_are_an_error():
    table = Implementations()
    table.does(int)(abs)
    with pytest.raises(AssertionError, match="two functions do int"):
        table.does(int)(bool)
