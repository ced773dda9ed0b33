"""Requests to a server, not to a single queue: its queues, page by page, its samples, its
settings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from ... import states
from ...exceptions import BrokerError
from ...identity.client import is_gone, is_reader, process_of, ticket
from ..contract.brokers import (
    AppendSample,
    AppendSampleReply,
    Damage,
    DamagedPage,
    ExamineServer,
    ExamineServerReply,
    FindDamaged,
    Finding,
    Identify,
    IdentifyReply,
    ListQueues,
    MayGet,
    MayGetReply,
    QueuePage,
    QueueRenewal,
    QueueSummary,
    ReadSamples,
    ReadSamplesReply,
    RenewAll,
    RenewAllReply,
    Sample,
    of_tasks,
)
from ..contract.hosts import QueueKey
from ..contract.implementations import Implementations
from ..contract.items import Attendance
from ..contract.requests import Request
from ..contract.session import Options
from ..host_sessions import AsyncHostSession, HostSession
from . import keys, scripts
from .hosts import PooledServer
from .packing import KeyNames, pack_command
from .plain_commands import PlainCommands
from .requests.items import attendance
from .role_checks import WaitingOperation, note_renewal
from .settings import examine
from .statuses import DONE
from .task_records import read_paused

#: The most queues that one call reads, which takes the server a few milliseconds.
_AT_ONCE = 500
#: The most queues in which one call renews leases.
_RENEWED = 200
#: The keys that are scanned for each queue: most queues have at least so many.
_KEYS_OF_ONE = 4
#: A counter that each queue of the protocol has, from when it is created.
_COUNTER = "consumed_bytes"
#: Begins the position of a search for damaged queues that has come to other disciplines.
_OWN = "own "
#: The last counts of a queue that is neither closed nor in use now.
_NOTHING_MORE = (0, 0, 0, 0, 0, 0)
_WAYS = tuple(f"{before}-{after}" for before, after in permutations(states.TaskState, 2))


class _ScanPosition(NamedTuple):
    """The position of a listing: the slots of the remaining servers, and the cursor at the first of
    these."""

    slots: tuple[int, ...]
    cursor: str

    @classmethod
    def read(cls, text: str) -> _ScanPosition:
        cursor, _, slots = text.partition(" ")
        return cls(tuple(map(int, slots.split(","))), cursor)

    def __str__(self) -> str:
        return f"{self.cursor} {','.join(map(str, self.slots))}" if self.slots else ""


for_brokers: Implementations[RedisBroker, [PlainCommands]] = Implementations()


class RedisBroker:
    """One server, or the nodes of a cluster."""

    def __init__(self, server: PooledServer, options: Options) -> None:
        self._server = server
        self._options = options
        self._prefix = server.address.prefix

    def session(self) -> HostSession:
        return HostSession(self, PlainCommands(self._server.thread_pool, self._options))

    def asession(self) -> AsyncHostSession:
        return AsyncHostSession(self, PlainCommands(self._server.loop_pool, self._options))

    async def call(self, request: Request, commands: PlainCommands, end: float | None) -> Any:
        return await for_brokers[type(request)](self, request, commands)

    @for_brokers.does(Identify)
    async def _identify(self, request: Identify, commands: PlainCommands) -> IdentifyReply:
        drawn, key = os.urandom(8).hex(), keys.identity(self._prefix)
        _, told = await self._run(commands, "identify", key, drawn)
        identity: str = told.decode()
        return identity

    @for_brokers.does(AppendSample)
    async def _append(self, request: AppendSample, commands: PlainCommands) -> AppendSampleReply:
        data, *numbers = request
        key = keys.samples(self._prefix)
        (status,) = await self._run(commands, "append", key, *numbers, data)
        return bool(status == b"done")

    @for_brokers.does(ReadSamples)
    async def _read_samples(
        self, request: ReadSamples, commands: PlainCommands
    ) -> ReadSamplesReply:
        _, told = await self._run(commands, "samples", keys.samples(self._prefix), request.after)
        return [Sample(int(time), data) for time, data in _pairs(told)]

    @for_brokers.does(ListQueues)
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
        """Find keys by one step of the server's own iteration, which does not hold the server
        up."""
        if request.after:
            position = _ScanPosition.read(request.after)
        else:
            position = _ScanPosition(tuple(await commands.slots()), "0")
        slot, *others = position.slots
        asked: tuple[Any, ...] = ("MATCH", pattern, "COUNT", _KEYS_OF_ONE * request.limit)
        if kind is not None:
            asked += ("TYPE", kind)
        cursor, found = await commands.request(slot, "SCAN", position.cursor, *asked)
        if cursor == b"0":
            return set(found), str(_ScanPosition(tuple(others), "0"))
        return set(found), str(position._replace(cursor=cursor.decode()))

    @for_brokers.does(FindDamaged)
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
        """Make the summaries of the queues that have these keys, without queues that were deleted
        meanwhile."""
        own, plain = {}, []
        for bound in bounds:
            name, own_name = keys.names_of(self._prefix, bound)
            if own_name is None:
                plain.append(name)
            else:
                own[own_name] = name
        found = await self._ask("list", scripts.LISTED_OWN, list(own), commands, (1, *_WAYS), True)
        # A queue of the protocol can have a name that looks like another discipline's key. So does
        # a queue that lost the record of its kind.
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
        names: Iterable[str],
        commands: PlainCommands,
        args: Sequence[Any] = (),
        is_own: bool = False,
        own_args: Mapping[str, str] | None = None,
        at_once: int = _AT_ONCE,
    ) -> dict[str, Any]:
        """Call a script for several queues; return its replies by the queues' names. The script
        gets these parts of each queue as keys, and each queue's own argument."""
        names_of_keys = KeyNames(keys.endings(parts, is_own))
        script = scripts.load_for_broker(op)
        by_slot: dict[int, list[tuple[str, bytes]]] = {}
        for name in names:
            begins = keys.beginning(self._prefix, name, is_own)
            by_slot.setdefault(self._server.slot(begins), []).append((name, begins))
        found: dict[str, Any] = {}
        for slot, queues in by_slot.items():
            for first in range(0, len(queues), at_once):
                some = queues[first : first + at_once]
                given = (*args, *(own_args[name] for name, _ in some)) if own_args else args
                asked = names_of_keys.pack("EVALSHA", script.sha, [one for _, one in some], given)
                _, told = await commands.exchange(slot, "EVALSHA", asked, script)
                found.update(zip((name for name, _ in some), told, strict=True))
        return found

    async def _run(self, commands: PlainCommands, name: str, key: bytes, *args: Any) -> list[Any]:
        """Run a script with one key, and return its reply."""
        slot, script = self._server.slot(key), scripts.load_for_broker(name)
        packed = pack_command(("EVALSHA", script.sha, 1, key, *args))
        told: list[Any] = await commands.exchange(slot, "EVALSHA", packed, script)
        return told

    @for_brokers.does(MayGet)
    async def _may_get(self, request: MayGet, commands: PlainCommands) -> MayGetReply:
        by_kind: dict[str, list[str]] = {}
        for name, discipline in request.queues:
            by_kind.setdefault(discipline, []).append(name)
        found: dict[QueueKey, bool] = {}
        for discipline, names in by_kind.items():
            parts = ("bound", "closed", scripts.storage(discipline).item)
            is_own = discipline != keys.FIFO
            told = await self._ask("may_get", parts, {*names}, commands, is_own=is_own)
            found |= {(name, discipline): said == 1 for name, said in told.items()}
        return [found[queue] for queue in request.queues]

    @for_brokers.does(RenewAll)
    async def _renew_all(self, request: RenewAll, commands: PlainCommands) -> RenewAllReply:
        by_kind: dict[str, list[QueueRenewal]] = {}
        for queue in request.queues:
            by_kind.setdefault(queue.discipline, []).append(queue)
        found: dict[tuple[str, str], Attendance | None] = {}
        gone: dict[str, bool] = {process_of(ticket()): False}
        for discipline, some in by_kind.items():
            began = time.monotonic()
            asked = {
                one.name: self._server.role_checks(one.name, discipline).present() for one in some
            }
            args = {one.name: _asked(one, asked[one.name]) for one in some}
            parts = (*scripts.RENEWED, scripts.storage(discipline).item)
            is_own = discipline != keys.FIFO
            given = (some[0].renew.owner, int(not is_own))
            told = await self._ask("renew", parts, args, commands, given, is_own, args, _RENEWED)
            for name, reply in told.items():
                if reply and reply[0] == DONE and _are_there(reply[5], gone) and reply[4]:
                    note_renewal(asked[name], began, reply[6])
                    self._server.role_checks(name, discipline).note(
                        reply[4] / 1000, by_renewal=True
                    )
                    found[name, discipline] = attendance(reply)
        return [found.get((one.name, one.discipline)) for one in request.queues]

    @for_brokers.does(ExamineServer)
    async def _examine(self, request: ExamineServer, commands: PlainCommands) -> ExamineServerReply:
        found: dict[Finding, None] = {}
        for slot in await commands.slots():
            info = await _reply_or_none(commands, slot, "INFO")
            config = await _reply_or_none(commands, slot, "CONFIG", "GET", "*")
            found |= dict.fromkeys(examine(info, config))
        return list(found)


async def _reply_or_none(commands: PlainCommands, slot: int, *command: str) -> Any:
    """Return the reply to a command; None where this user may not ask."""
    try:
        return await commands.request(slot, *command)
    except BrokerError:
        return None


def _asked(queue: QueueRenewal, waiting: Iterable[WaitingOperation]) -> str:
    flags = (queue.lease, int(queue.renew.consumes), int(queue.renew.produces))
    return "\n".join([*map(str, flags), *(one.ticket for one in waiting)])


def _are_there(tickets: list[bytes], gone: dict[str, bool]) -> bool:
    """Tell whether no holder of a queue's roles is known to have ended, and none is a reader."""
    for named in tickets:
        holder = named.decode(errors="replace")
        process = process_of(holder)
        if process not in gone:
            gone[process] = bool(is_gone(holder))
        if gone[process] or is_reader(holder):
            return False
    return True


def _read(name: str, told: list[Any]) -> QueueSummary:
    if told[0] == b"tasks":
        _, closed, getting, age, ways, pauses, workers, *bound = told
        numbers = {way.decode(): int(number) for way, number in _pairs(ways)}
        seconds = max(int(age), 0) / 1000 if age else None
        paused = read_paused(pauses)
        return of_tasks(name, bool(closed), paused, numbers, int(getting), seconds, workers, *bound)
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
