"""What a handle is made of. Tests that run operations themselves, or look at the keys of a broker,
get them here and nowhere else."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import redis

from pressure_mp.aio import buffered_put
from pressure_mp.engines import registry
from pressure_mp.engines.contract.session import Options
from pressure_mp.engines.redis import keys
from pressure_mp.sync.handles import Handle


def address(handle: Handle) -> Any:
    """The address of its broker."""
    return handle._at.address


def operations(handle: Handle) -> Any:
    """The operations that its methods run."""
    return handle._at.operations


def run(handle: Handle, operation: Any) -> Any:
    """Run an operation as its methods do: in this thread, with the handle's own binding."""
    return handle._run(operation)


def engine(handle: Handle) -> Any:
    """The engine of its broker in this process."""
    return registry.engine(handle._at.address)


def replies_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """What a coroutine function of a module or class returns from now on."""
    replies, function = [], getattr(owner, name)

    async def note(*args: Any) -> Any:
        replies.append(await function(*args))
        return replies[-1]

    monkeypatch.setattr(owner, name, note)
    return replies


def in_lines(engine: Any) -> int:
    """How many of this process's tasks wait in a line of their event loop, behind another one."""
    return sum(len(pool.lines) for pool in list(engine._loops.values()))


def calls_under_way(handle: Handle) -> int:
    """How many calls of the running event loop wait for a reply over its shared connections."""
    servers = engine(handle).loop_pool._servers.values()
    return sum(len(server._shared._slots) for server in servers if server._shared)


def binding(handle: Handle) -> Any:
    """What it has bound; None before its first operation."""
    return handle._at.binding


def rebind(handle: Handle, binding: Any) -> None:
    """From now on its methods run their operations on another one."""
    handle._at.binding = binding


def bind(handle: Handle, options: Options | None = None) -> Any:
    """A binding of its queue besides its own, with its options or others."""
    return engine(handle).bind(handle.name, discipline(handle), options or handle._at.options)


def discipline(handle: Handle) -> str:
    return handle._at.operations.discipline


def key(handle: Handle, part: str) -> bytes:
    """The name of one of its queue's keys, at Redis."""
    return keys.key(handle.prefix, handle.name, part, discipline(handle))


def client(handle: Handle) -> redis.Redis:
    """A connection to its server."""
    return redis.Redis.from_url(handle.url)


def copy(handle: Handle) -> Any:
    """Another handle to its queue, in this process."""
    return pickle.loads(pickle.dumps(handle))


def unsent(handle: Any) -> int:
    """How many of the items that were put through it wait to be sent."""
    return len(handle._puts)


def buffered(handle: Any) -> int:
    """How many items wait in it, both ways."""
    return sum(len(each) for each in (handle._puts, handle._gets))


def encode(handle: Any, item: Any) -> bytes:
    """An object as its queue has it."""
    encoded: bytes = handle._at.codec.encode(item)
    return encoded


def read_ahead(handle: Any) -> int:
    """How many items are reserved for it, and here."""
    return len(handle._gets.window.ahead)


def has_asked_ahead(handle: Any) -> bool:
    """Whether it has asked for more than is here, and not yet read the reply."""
    return handle._gets._asked is not None


def last_call(handle: Any) -> int:
    """The number of its last call that reserves items."""
    return int(handle._gets.window.last.call)


def end_reservation(handle: Any) -> None:
    """Give back prefetched items that were not handed out."""
    handle._gets.give_back(handle._at, 5.0)


def holds(handle: Any) -> bool:
    """Whether it may have items reserved."""
    return bool(handle._gets.window.holds)


def let_reservation_lapse(handle: Any) -> None:
    """As if a third of its lease had passed since it asked for the items that are here."""
    handle._gets.window.until = 0.0


def has_reader_thread(handle: Any) -> bool:
    """Whether a thread sees to it that its reservations end."""
    return handle._gets._due_thread.is_there


def presence(handle: Any) -> Any:
    """Its process in its queue."""
    return handle._at.here


def reserves(handle: Any) -> None:
    """Have a handle of asyncio read ahead, as one that was made without options does."""
    handle._at.buffering = handle._at.buffering._replace(reserves=True)


def incoming_in_loop(handle: Any) -> Any:
    """What reads ahead for a handle of asyncio in the running event loop."""
    return handle._here.incoming


def reserved_in_loop(handle: Any) -> int:
    """How many items are reserved for a handle of asyncio in the running event loop, and here."""
    incoming = incoming_in_loop(handle)
    return len(incoming.window.ahead) if hasattr(incoming, "window") else 0


def senders_in_loop() -> list[Any]:
    """The tasks of this process that send in the background."""
    return [one._task for one in buffered_put.busy if one._task is not None]


def outgoing_in_loops(handle: Any) -> list[Any]:
    """The items that a handle of asyncio has not yet sent, in each of its event loops."""
    found = [buffers.outgoing for buffers in handle._buffers.values()]
    return [outgoing for outgoing in found if isinstance(outgoing, buffered_put.BufferedPut)]


def memory_results(queue: Any) -> Any:
    """What a queue of tasks in memory keeps of the ends of tasks, by their ids."""
    return queue._at.binding.queue.place.state.results.kept


def memory_data(queue: Any, id: int) -> bytes:
    """The data of a task of a queue in memory, as the broker has it."""
    data: bytes = queue._at.binding.queue.place.state.tasks[b"%d" % id].data
    return data
