"""A server as a whole: which queues it has, page by page, and how it is set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

from ... import states
from ...exceptions import BrokerError
from ...exhaustive import assert_never
from ..contract.brokers import ExamineServer, Finding, ListQueues, QueuePage, QueueSummary, of_tasks
from ..contract.requests import BrokerRequest
from ..contract.session import Options
from . import keys, scripts
from .hosts import AsyncHostSession, HostSession, Server
from .plain_commands import PlainCommands
from .settings import examine

#: So many queues are looked at in one call, which takes the server about a millisecond.
_AT_ONCE = 200
_WAYS = tuple(f"{before}-{after}" for before, after in permutations(states.TaskState, 2))


class _Place(NamedTuple):
    """Where a listing is: the slots of the servers that are not done, and the cursor at the first
    of them."""

    slots: tuple[int, ...]
    cursor: str

    @classmethod
    def read(cls, text: str) -> _Place:
        cursor, _, slots = text.partition(" ")
        return cls(tuple(map(int, slots.split(","))), cursor)

    def __str__(self) -> str:
        return f"{self.cursor} {','.join(map(str, self.slots))}" if self.slots else ""


class RedisBroker:
    """One server, or the nodes of a cluster."""

    def __init__(self, server: Server, options: Options) -> None:
        self._server = server
        self._options = options
        self._prefix = server.address.prefix

    def session(self) -> HostSession:
        return HostSession(self, PlainCommands(self._server.thread_pool, self._options))

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, PlainCommands(self._server.loop_pool, self._options))

    async def call(self, request: BrokerRequest, commands: PlainCommands) -> Any:
        """Do it."""
        match request:
            case ListQueues():
                return await self._list(request, commands)
            case ExamineServer():
                return await self._examine(commands)
            case _:
                assert_never(request)

    async def _list(self, request: ListQueues, commands: PlainCommands) -> QueuePage:
        """What one step of the server's own iteration finds: nothing holds the server up."""
        if request.after:
            place = _Place.read(request.after)
        else:
            place = _Place(tuple(await commands.slots()), "0")
        slot, *others = place.slots
        asked = ("MATCH", keys.bounds(self._prefix), "COUNT", request.limit, "TYPE", "string")
        cursor, found = await commands.request(slot, "SCAN", place.cursor, *asked)
        queues = [queue async for queue in self._summaries(set(found), commands)]
        if cursor == b"0":
            return QueuePage(queues, str(_Place(tuple(others), "0")))
        return QueuePage(queues, str(place._replace(cursor=cursor.decode())))

    async def _summaries(self, bounds: Iterable[bytes], commands: PlainCommands) -> Any:
        """The queues that have these keys; but not those that were deleted meanwhile."""
        own, plain = [], []
        for bound in bounds:
            name, own_name = keys.names_of(self._prefix, bound)
            if own_name is None:
                plain.append(name)
            else:
                own.append((name, own_name))
        by_own_name = dict(zip((name for _, name in own), (name for name, _ in own), strict=True))
        async for name, told in self._ask(list(by_own_name), True, commands):
            if told:
                yield _read(name, told)
            else:
                plain.append(by_own_name[name])
        async for name, told in self._ask(plain, False, commands):
            if told:
                yield _read(name, told)

    async def _ask(self, names: list[str], own: bool, commands: PlainCommands) -> Any:
        """What the script says of each, by name."""
        make = keys.own_key if own else keys.key
        parts = scripts.LISTED_OWN if own else scripts.LISTED
        script = scripts.load_for_broker("list")
        for slot, some in self._by_slot(names, make).items():
            for first in range(0, len(some), _AT_ONCE):
                asked = some[first : first + _AT_ONCE]
                names_of_keys = [make(self._prefix, name, part) for name in asked for part in parts]
                # The server may be another one than a moment ago.
                await commands.request(slot, "SCRIPT", "LOAD", script.source)
                args = (int(own), *(_WAYS if own else ()))
                called = (script.sha, len(names_of_keys), *names_of_keys, *args)
                _, told = await commands.request(slot, "EVALSHA", *called)
                for pair in zip(asked, told, strict=True):
                    yield pair

    def _by_slot(self, names: list[str], make: Any) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in names:
            slot = self._server.slot(make(self._prefix, name, "data"))
            found.setdefault(slot, []).append(name)
        return found

    async def _examine(self, commands: PlainCommands) -> list[Finding]:
        found: dict[Finding, None] = {}
        for slot in await commands.slots():
            info = await _told(commands, slot, "INFO")
            config = await _told(commands, slot, "CONFIG", "GET", "*")
            found |= dict.fromkeys(examine(info, config))
        return list(found)


async def _told(commands: PlainCommands, slot: int, *command: str) -> Any:
    """The reply; None where this user may not ask."""
    try:
        return await commands.request(slot, *command)
    except BrokerError:
        return None


def _read(name: str, told: list[Any]) -> QueueSummary:
    if told[0] == b"tasks":
        _, closed, getting, age, ways = told
        numbers = {way.decode(): int(number) for way, number in _pairs(ways)}
        seconds = max(int(age), 0) / 1000 if age else None
        return of_tasks(name, bool(closed), numbers, int(getting), seconds)
    discipline, bound, length, closed, put, got, in_flight, rejected, putting, getting = told
    return QueueSummary(
        name=name,
        discipline=discipline.decode(errors="replace"),
        length=int(length),
        maxsize=int(bound),
        closed=bool(closed),
        produced=int(put),
        consumed=int(got),
        in_flight=int(in_flight),
        rejected=int(rejected),
        putting=int(putting),
        getting=int(getting),
        age=None,
        tasks={},
    )


def _pairs(flat: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)
