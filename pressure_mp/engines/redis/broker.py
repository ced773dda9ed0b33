"""Requests to a server, not to a single queue: its queues, page by page, its samples, its settings;
and the notes of the processes of a host, a set of the anonymous queues that they use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from ... import states
from ...exceptions import BrokerError
from ...identity.client import is_gone, is_reader, process_of, ticket
from ..contract import brokers as b
from ..contract import hosts as h
from ..contract.implementations import Implementations
from ..contract.items import Attendance
from ..contract.queues import ANONYMOUS
from ..contract.replies import Outcome
from ..contract.requests import Request
from ..contract.session import Options
from ..host_sessions import Asked
from . import keys, scripts
from .binding import Server, as_noted
from .packing import KeyNames, pack_command
from .plain_commands import PlainCommands
from .pool import Pool
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


class RedisBroker(Asked):
    """One server, or the nodes of a cluster; for the processes of a host, with their notes."""

    def __init__(self, server: Server, options: Options, host: str = "") -> None:
        super().__init__(server, options)
        self._server = server
        self._prefix = server.address.prefix
        self._notes = keys.registry(self._prefix, host)

    async def call(self, request: Request, pool: Pool, end: float | None) -> Any:
        commands = PlainCommands(pool, self._options)
        return await for_brokers[type(request)](self, request, commands)

    @for_brokers.does(b.Identify)
    async def _identify(self, request: b.Identify, commands: PlainCommands) -> b.IdentifyReply:
        drawn, key = os.urandom(8).hex(), keys.identity(self._prefix)
        _, told = await self._run(commands, "identify", key, drawn)
        identity: str = told.decode()
        return identity

    @for_brokers.does(b.AppendSample)
    async def _append(
        self, request: b.AppendSample, commands: PlainCommands
    ) -> b.AppendSampleReply:
        data, *numbers = request
        key = keys.samples(self._prefix)
        (status,) = await self._run(commands, "append", key, *numbers, data)
        return bool(status == b"done")

    @for_brokers.does(b.ReadSamples)
    async def _read_samples(
        self, request: b.ReadSamples, commands: PlainCommands
    ) -> b.ReadSamplesReply:
        _, told = await self._run(commands, "samples", keys.samples(self._prefix), request.after)
        return [b.Sample(int(time), data) for time, data in _pairs(told)]

    @for_brokers.does(b.ListQueues)
    async def _list(self, request: b.ListQueues, commands: PlainCommands) -> b.QueuePage:
        found, after = await self._scan(keys.every(self._prefix, "bound"), request, commands)
        return b.QueuePage(await self._summaries(found, commands), after)

    async def _scan(
        self,
        pattern: str,
        request: b.ListQueues | b.FindDamaged,
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

    @for_brokers.does(b.FindDamaged)
    async def _find_damaged(self, request: b.FindDamaged, commands: PlainCommands) -> b.DamagedPage:
        if request.after.startswith(_OWN):
            return await self._find_damaged_own(request, commands)
        found, after = await self._scan(keys.every(self._prefix, _COUNTER), request, commands)
        names = [keys.name_of(self._prefix, _COUNTER, counter) for counter in found]
        told = await self._ask("damages", scripts.EXAMINED, names, commands)
        return b.DamagedPage(_damages(told), after or _OWN)

    async def _find_damaged_own(
        self, request: b.FindDamaged, commands: PlainCommands
    ) -> b.DamagedPage:
        request = request._replace(after=request.after.removeprefix(_OWN))
        found, after = await self._scan(keys.every_own(self._prefix), request, commands, None)
        names = {keys.name_of_own(self._prefix, key) for key in found}
        told = await self._damages_of_own(list(filter(None, names)), commands)
        return b.DamagedPage(_damages(told), after and _OWN + after)

    async def _damages_of_own(self, names: list[str], commands: PlainCommands) -> dict[str, Any]:
        parts = scripts.EXAMINED_OWN
        return await self._ask("own_damages", parts, names, commands, _WAYS, keys.ANY_OWN)

    async def _summaries(
        self, bounds: Iterable[bytes], commands: PlainCommands
    ) -> list[b.QueueSummary]:
        """Make the summaries of the queues that have these keys, without queues that were deleted
        meanwhile."""
        own, plain = {}, []
        for bound in bounds:
            name, own_name = keys.names_of(self._prefix, bound)
            if own_name is None:
                plain.append(name)
            else:
                own[own_name] = name
        given = (1, *_WAYS)
        found = await self._ask("list", scripts.LISTED_OWN, own, commands, given, keys.ANY_OWN)
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
        discipline: str = keys.FIFO,
        own_args: Mapping[str, str] | None = None,
        at_once: int = _AT_ONCE,
    ) -> dict[str, Any]:
        """Call a script for several queues; return its replies by the queues' names. The script
        gets these parts of each queue as keys, and each queue's own argument."""
        is_own = discipline != keys.FIFO
        names_of_keys = KeyNames(keys.endings(parts, is_own))
        script = scripts.load_for_broker(op, discipline)
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

    @for_brokers.does(b.MayGet)
    async def _may_get(self, request: b.MayGet, commands: PlainCommands) -> b.MayGetReply:
        by_kind: dict[str, list[str]] = {}
        for name, discipline in request.queues:
            by_kind.setdefault(discipline, []).append(name)
        found: dict[h.QueueKey, bool] = {}
        for discipline, names in by_kind.items():
            parts = ("bound", "closed", scripts.storage(discipline).item)
            told = await self._ask("may_get", parts, {*names}, commands, (), discipline)
            found |= {(name, discipline): said == 1 for name, said in told.items()}
        return [found[queue] for queue in request.queues]

    @for_brokers.does(b.RenewAll)
    async def _renew_all(self, request: b.RenewAll, commands: PlainCommands) -> b.RenewAllReply:
        by_kind: dict[str, list[b.QueueRenewal]] = {}
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
            given = (some[0].renew.owner,)
            told = await self._ask(
                "renew", parts, args, commands, given, discipline, args, _RENEWED
            )
            for name, reply in told.items():
                if reply and reply[0] == DONE and _are_there(reply[5], gone) and reply[4]:
                    note_renewal(asked[name], began, reply[6])
                    self._server.role_checks(name, discipline).note(
                        reply[4] / 1000, by_renewal=True
                    )
                    found[name, discipline] = attendance(reply)
        return [found.get((one.name, one.discipline)) for one in request.queues]

    @for_brokers.does(b.ExamineServer)
    async def _examine(
        self, request: b.ExamineServer, commands: PlainCommands
    ) -> b.ExamineServerReply:
        found: dict[b.Finding, None] = {}
        for slot in await commands.slots():
            info = await _reply_or_none(commands, slot, "INFO")
            config = await _reply_or_none(commands, slot, "CONFIG", "GET", "*")
            found |= dict.fromkeys(examine(info, config))
        return list(found)

    @for_brokers.does(h.Remember)
    async def _remember(self, request: h.Remember, commands: PlainCommands) -> h.RememberReply:
        await self._note(commands, "SADD", as_noted(request.queue))
        return Outcome.DONE

    @for_brokers.does(h.GetRemembered)
    async def _get_remembered(
        self, request: h.GetRemembered, commands: PlainCommands
    ) -> h.GetRememberedReply:
        told = self._server.notes_of_host.take()
        if told is None:
            told = await self._note(commands, "SMEMBERS")
        return [_read_note(noted) for noted in told]

    @for_brokers.does(h.Forget)
    async def _forget(self, request: h.Forget, commands: PlainCommands) -> h.ForgetReply:
        if request.queues:
            await self._note(commands, "SREM", *map(as_noted, request.queues))
        return Outcome.DONE

    async def _note(self, commands: PlainCommands, command: str, *notes: str) -> Any:
        slot = self._server.slot(self._notes)
        return await commands.request(slot, command, self._notes, *notes)

    @for_brokers.does(h.Leave)
    async def _leave(self, request: h.Leave, commands: PlainCommands) -> h.LeaveReply:
        for slot, kept in self._kept(request.queues).items():
            await commands.request(slot, "UNLINK", *kept)
        return Outcome.DONE

    def _kept(self, queues: Iterable[h.QueueKey]) -> dict[int, list[bytes]]:
        """List the keys in which replies are kept for this process, by their slots."""
        lanes, found = self._server.lanes(), dict[int, list[bytes]]()
        for name, discipline in queues if lanes else ():
            kept = keys.kept(self._prefix, name, discipline)
            found.setdefault(self._server.slot(kept), []).extend(kept + lane for lane in lanes)
        return found


async def _reply_or_none(commands: PlainCommands, slot: int, *command: str) -> Any:
    """Return the reply to a command; None where this user may not ask."""
    try:
        return await commands.request(slot, *command)
    except BrokerError:
        return None


def _asked(queue: b.QueueRenewal, waiting: Iterable[WaitingOperation]) -> str:
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


def _read(name: str, told: list[Any]) -> b.QueueSummary:
    if told[0] == b"tasks":
        _, closed, getting, age, ways, pauses, workers, *bound = told
        numbers = {way.decode(): int(number) for way, number in _pairs(ways)}
        seconds = max(int(age), 0) / 1000 if age else None
        paused = read_paused(pauses)
        return b.of_tasks(
            name, bool(closed), paused, numbers, int(getting), seconds, workers, *bound
        )
    discipline, bound, length, put, got, *more = told
    closed, in_flight, rejected, putting, getting, returned = more or _NOTHING_MORE
    summary = b.QueueSummary(
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
    if name.startswith(ANONYMOUS) and summary.discipline == keys.FIFO:
        from ..shared.ring_files import add_counts  # only anonymous queues need it

        return add_counts(summary)
    return summary


def _read_note(noted: bytes) -> h.QueueKey:
    discipline, _, name = noted.decode().partition(" ")
    return name, discipline


def _damages(told: dict[str, Any]) -> list[tuple[str, b.Damage]]:
    return [(name, b.Damage(word.decode())) for name, word in told.items() if word]


def _pairs(flat: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)
