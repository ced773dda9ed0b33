"""A server as a whole: which queues it has, page by page, and how it is set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from ... import states
from ...exceptions import BrokerError
from ...exhaustive import assert_never
from ..contract.brokers import (
    AppendSample,
    Damage,
    DamagedPage,
    ExamineServer,
    FindDamaged,
    Finding,
    Identify,
    ListQueues,
    QueuePage,
    QueueSummary,
    ReadSamples,
    Sample,
    of_tasks,
)
from ..contract.requests import BrokerRequest
from ..contract.session import Options
from . import keys, scripts
from .hosts import AsyncHostSession, HostSession, Server
from .packing import KeyNames
from .plain_commands import PlainCommands
from .scripts import Script
from .settings import examine

#: So many queues are looked at in one call, which takes the server a few milliseconds.
_AT_ONCE = 500
#: A queue has at least so many keys, most of the time: so many are looked at for each queue.
_KEYS_OF_ONE = 4
#: A counter that each queue of the protocol has, from when it is created.
_COUNTER = "consumed_bytes"
#: Before the place of a search for damaged queues that is among those of other disciplines.
_OWN = "own "
#: Of a queue that is neither closed nor used by anybody now.
_NOTHING_MORE = (0, 0, 0, 0, 0, 0)
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
            case FindDamaged():
                return await self._find_damaged(request, commands)
            case ExamineServer():
                return await self._examine(commands)
            case Identify():
                drawn = os.urandom(8).hex()
                key = keys.identity(self._prefix)
                _, told = await self._run(commands, "identify", key, drawn)
                return told.decode()
            case AppendSample(data, every, keep, ttl):
                key, args = keys.samples(self._prefix), (every, keep, ttl, data)
                (status,) = await self._run(commands, "append", key, *args)
                return status == b"done"
            case ReadSamples(after):
                key = keys.samples(self._prefix)
                _, told = await self._run(commands, "samples", key, after)
                return [Sample(int(time), data) for time, data in _pairs(told)]
            case _:
                assert_never(request)

    async def _list(self, request: ListQueues, commands: PlainCommands) -> QueuePage:
        found, after = await self._scan(keys.every(self._prefix, "bound"), request, commands)
        return QueuePage(await self._summaries(found, commands), after)

    async def _scan(
        self,
        pattern: str,
        request: ListQueues | FindDamaged,
        commands: PlainCommands,
        kind: str | None = "string",
    ) -> tuple[set[bytes], str]:
        """What one step of the server's own iteration finds: nothing holds the server up."""
        if request.after:
            place = _Place.read(request.after)
        else:
            place = _Place(tuple(await commands.slots()), "0")
        slot, *others = place.slots
        asked: tuple[Any, ...] = ("MATCH", pattern, "COUNT", _KEYS_OF_ONE * request.limit)
        if kind is not None:
            asked += ("TYPE", kind)
        cursor, found = await commands.request(slot, "SCAN", place.cursor, *asked)
        if cursor == b"0":
            return set(found), str(_Place(tuple(others), "0"))
        return set(found), str(place._replace(cursor=cursor.decode()))

    async def _find_damaged(self, request: FindDamaged, commands: PlainCommands) -> DamagedPage:
        if request.after.startswith(_OWN):
            return await self._find_damaged_own(request, commands)
        found, after = await self._scan(keys.every(self._prefix, _COUNTER), request, commands)
        names = [keys.name_of(self._prefix, _COUNTER, counter) for counter in found]
        told = await self._ask("damages", scripts.EXAMINED, names, commands)
        return DamagedPage(_damages(told), after or _OWN)

    async def _find_damaged_own(self, request: FindDamaged, commands: PlainCommands) -> DamagedPage:
        request = request._replace(after=request.after.removeprefix(_OWN))
        found, after = await self._scan(keys.every_own(self._prefix), request, commands, None)
        names = {keys.name_of_own(self._prefix, key) for key in found}
        told = await self._damages_of_own(list(filter(None, names)), commands)
        return DamagedPage(_damages(told), after and _OWN + after)

    async def _damages_of_own(self, names: list[str], commands: PlainCommands) -> dict[str, Any]:
        parts = scripts.EXAMINED_OWN
        return await self._ask("own_damages", parts, names, commands, _WAYS, is_own=True)

    async def _summaries(
        self, bounds: Iterable[bytes], commands: PlainCommands
    ) -> list[QueueSummary]:
        """The queues that have these keys; but not those that were deleted meanwhile."""
        own, plain = {}, []
        for bound in bounds:
            name, own_name = keys.names_of(self._prefix, bound)
            if own_name is None:
                plain.append(name)
            else:
                own[own_name] = name
        found = await self._ask("list", scripts.LISTED_OWN, list(own), commands, (1, *_WAYS), True)
        # A queue of the protocol can have a name that looks like another discipline's key. So does
        # one that lost what says of which kind it is.
        unknown = [own_name for own_name in own if not found[own_name]]
        damages = await self._damages_of_own(unknown, commands)
        plain += [own[own_name] for own_name in unknown if not damages[own_name]]
        others = await self._ask("list", scripts.LISTED, plain, commands, (0,))
        told = [*found.items(), *others.items()]
        return [_read(name, queue) for name, queue in told if queue]

    async def _ask(
        self,
        op: str,
        parts: Sequence[str],
        names: list[str],
        commands: PlainCommands,
        args: Sequence[Any] = (),
        is_own: bool = False,
    ) -> dict[str, Any]:
        """What a script says of each queue, by its name, which is given these parts of it."""
        names_of_keys = KeyNames(keys.endings(parts, is_own))
        script = scripts.load_for_broker(op)
        by_slot: dict[int, list[tuple[str, bytes]]] = {}
        for name in names:
            begins = keys.beginning(self._prefix, name, is_own)
            by_slot.setdefault(self._server.slot(begins), []).append((name, begins))
        found: dict[str, Any] = {}
        for slot, queues in by_slot.items():
            await _load(commands, slot, script)
            for first in range(0, len(queues), _AT_ONCE):
                some = queues[first : first + _AT_ONCE]
                asked = names_of_keys.pack("EVALSHA", script.sha, [one for _, one in some], args)
                _, told = await commands.exchange(slot, "EVALSHA", asked)
                found.update(zip((name for name, _ in some), told, strict=True))
        return found

    async def _run(self, commands: PlainCommands, name: str, key: bytes, *args: Any) -> list[Any]:
        """What a script says that is about one key."""
        slot, script = self._server.slot(key), scripts.load_for_broker(name)
        await _load(commands, slot, script)
        return await _call(commands, slot, script, [key], args)

    async def _examine(self, commands: PlainCommands) -> list[Finding]:
        found: dict[Finding, None] = {}
        for slot in await commands.slots():
            info = await _told(commands, slot, "INFO")
            config = await _told(commands, slot, "CONFIG", "GET", "*")
            found |= dict.fromkeys(examine(info, config))
        return list(found)


async def _load(commands: PlainCommands, slot: int, script: Script) -> None:
    """Give the server a script. It may be another one than a moment ago."""
    await commands.request(slot, "SCRIPT", "LOAD", script.source)


async def _call(
    commands: PlainCommands, slot: int, script: Script, asked: Sequence[bytes], args: Sequence[Any]
) -> list[Any]:
    """The reply of a script, to these keys and arguments."""
    called = (script.sha, len(asked), *asked, *args)
    reply: list[Any] = await commands.request(slot, "EVALSHA", *called)
    return reply


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
    discipline, bound, length, put, got, *more = told
    closed, in_flight, rejected, putting, getting, returned = more or _NOTHING_MORE
    return QueueSummary(
        name=name,
        discipline=discipline.decode(errors="replace"),
        length=length,
        maxsize=int(bound),
        closed=bool(closed),
        produced=int(put),
        consumed=int(got),
        in_flight=in_flight,
        rejected=rejected,
        putting=putting,
        getting=getting,
        age=None,
        tasks={},
        returned=int(returned),
    )


def _damages(told: dict[str, Any]) -> list[tuple[str, Damage]]:
    return [(name, Damage(word.decode())) for name, word in told.items() if word]


def _pairs(flat: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)
