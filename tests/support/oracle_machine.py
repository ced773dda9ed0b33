"""Random histories of a queue, on the Redis engine and on the memory engine at the same time.

Every operation runs as two generators, one for each engine, side by side: each yields the same
effects, gets the same answers, and ends in the same way, or the two engines disagree. A client
that has to wait is left standing where it parks, and a later rule resumes or cancels it.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import redis
import waiting
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pressure_mp import config
from pressure_mp.effects import DONE, Call, Gone, Now, Park
from pressure_mp.engines import registry
from pressure_mp.engines.memory.engine import MemoryEngine
from pressure_mp.exceptions import PressureError, QueueDoesNotExistError
from pressure_mp.large import HEAD_SIZE, PART, Large, Manifest, is_manifest
from pressure_mp.operations import turns
from pressure_mp.operations.diagnosis import Diagnosis
from pressure_mp.operations.flights import FlightOperations

CLIENTS = 4
#: Milliseconds; longer than any history takes.
LEASE = 60_000
ROLES = ("producer", "consumer")

clients = st.integers(0, CLIENTS - 1)
bounds = st.integers(0, 3)
owners = st.sampled_from("AB")
readers = st.sampled_from(["A#1", "A#2", "B#1"])

#: What a reader fetched, and is not known to have handed out.
AHEAD = """
local left, all = {}, redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local handed, apart = string.match(all[i + 1], ' (%d+) (%d+)$')
  local packed = redis.call('HGET', KEYS[1], all[i])
  local items = packed and cmsgpack.unpack(packed)[1] or {}
  for number = 1, apart do items[number] = redis.call('HGET', KEYS[1], all[i] .. ':' .. number) end
  for place = handed + 1, #items do left[#left + 1] = items[place] end
end
return left
"""
timeouts = st.sampled_from([None, 5.0])


class Outcome(Exception):
    """How an operation ended: a value, or the type of what it raised."""

    def __init__(self, value: Any, error: type[BaseException] | None = None) -> None:
        super().__init__(value, error)


class Side:
    """One engine's half of an operation."""

    def __init__(self, operation: Any, session: Any) -> None:
        self.operation = operation
        self.session = session

    def step(self, answer: Any) -> Any:
        """The next effect, or the outcome."""
        try:
            if isinstance(answer, BaseException):
                return self.operation.throw(answer)
            return self.operation.send(answer)
        except StopIteration as stop:
            return Outcome(stop.value)
        except (PressureError, asyncio.CancelledError) as error:
            return Outcome(None, type(error))


class Threaded:
    """The Redis engine's session for threads, which these tests never let wait."""

    def __init__(self, binding: Any) -> None:
        self._session = binding.session()

    def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Any:
        return self._session.call(op, args)

    def end(self) -> None:
        self._session.end()


class Looped:
    """The Redis engine's session for asyncio, in an event loop that stands still in between."""

    def __init__(self, binding: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._session = self._run(self._begin(binding))
        self._park: asyncio.Future[bool] | None = None

    @staticmethod
    async def _begin(binding: Any) -> Any:
        return binding.asession()

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Any:
        return self._run(self._session.call(op, args))

    def end(self) -> None:
        self._run(self._session.end())

    @property
    def connection(self) -> int:
        return self._session._wire.id

    def begin_park(self, signal: str) -> None:
        self._park = self._loop.create_task(self._session.park(signal, None))
        self._run(asyncio.sleep(0))

    def end_park(self) -> bool:
        """What the wait answers, which may be that nothing came within a tick."""
        park, self._park = self._park, None
        return self._run(park)

    def cancel_park(self) -> bool | None:
        """None; or what the wait answered, when that was there already."""
        park, self._park = self._park, None
        park.cancel()
        self._run(asyncio.wait([park]))
        return None if park.cancelled() else park.result()


class Pair:
    """One operation of one client on both engines."""

    def __init__(self, machine: Oracle, client: int, make: Any, looped: bool) -> None:
        self.machine = machine
        self.client = client
        ours, others = machine.operations
        self.memory = Side(make(ours), machine.memory.session())
        theirs = Looped(machine.redis, machine.loops[client]) if looped else Threaded(machine.redis)
        self.redis = Side(make(others), theirs)
        self.parked: str | None = None
        self.signalled = False

    def advance(self, memory_answer: Any, redis_answer: Any) -> Outcome | None:
        """Go on until both halves end, with their outcome, or both park, with None."""
        self.parked = None
        while True:
            ours = self.memory.step(memory_answer)
            theirs = self.redis.step(redis_answer)
            while isinstance(theirs, Call) and theirs.op == "wake":
                theirs = self.redis.step(self.redis.session.call(*theirs))
            if (memory_answer, redis_answer) != (True, False):
                assert plain_effect(theirs) == plain_effect(ours)
            if isinstance(ours, Outcome):
                assert plain_effect(theirs) == plain_effect(ours)
                self.memory.session.end()
                self.redis.session.end()
                return ours
            if isinstance(ours, Park):
                self.park(ours.signal)
                return None
            if isinstance(ours, Now):
                memory_answer = redis_answer = self.machine.clock
                continue
            if isinstance(ours, Gone):
                memory_answer = redis_answer = False
                continue
            memory_answer = self.memory.session.call(*ours)
            redis_answer = self.redis.session.call(*theirs)
            assert plain_reply(ours.op, redis_answer) == plain_reply(ours.op, memory_answer), ours

    def park(self, signal: str) -> None:
        self.parked = signal
        self.signalled = False
        self.redis.session.begin_park(signal)
        if not self.look():
            self.machine.wait_until_parked(self.redis.session.connection)

    def look(self) -> bool:
        """Whether memory says that the wait is over."""
        if not self.signalled:
            self.signalled = self.memory.session.park(self.parked, 0)
        return self.signalled

    def resume(self) -> Outcome | None:
        """The wait is over in memory; so it must be on the server."""
        waiting.until(self._is_over_on_the_server, 5)
        return self.advance(True, True)

    def _is_over_on_the_server(self) -> bool:
        if self.redis.session.end_park():
            return True
        # A tick passed. Whoever waits for an item, for space or for the end of all work may have
        # missed a sign that was up for a moment in between; it looks again, as memory's does.
        if self.parked not in ROLES and not self.machine.observer.llen(self._sign()):
            return True
        self.redis.session.begin_park(self.parked)
        return False

    def _sign(self) -> bytes:
        part = {"item": "data", "space": "not_full", "finished": "finished"}[self.parked]
        return self.machine.key(part)

    def tick(self) -> Outcome | None:
        """The engines say, as they may at any time: nothing yet."""
        assert not self.redis.session.end_park()
        return self.advance(False, False)

    def cancel(self) -> Outcome | None:
        signal = self.parked
        answer = self.redis.session.cancel_park()
        while answer is False:  # a tick: the task goes on, and parks again
            self.redis.session.begin_park(signal)
            answer = self.redis.session.cancel_park()
        if answer:
            assert self.look()
            return self.advance(True, True)
        self.memory.session.end()
        if self.signalled and self.parked in ROLES:
            # The look that saw the grant took it out of the session, which would give it back.
            self.memory.session.call("release", ("", self.parked, LEASE))
        return self.advance(asyncio.CancelledError(), asyncio.CancelledError())


def plain_effect(effect: Any) -> Any:
    """An effect without what is different on each engine: tickets, and when to look again for a
    grant that nobody came for, since nobody dies in memory."""
    if isinstance(effect, Outcome):
        value, error = effect.args
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = sorted(value)  # users, in no order
        if isinstance(value, Diagnosis):
            value = plain_diagnosis(value)
        return value, error
    if isinstance(effect, Call):
        return effect.op, [arg for arg in effect.args if not is_ticket(arg)]
    if isinstance(effect, Park):
        return effect.signal
    if isinstance(effect, Gone):
        return Gone
    return effect


def plain_diagnosis(found: Diagnosis) -> Any:
    """A diagnosis without times, and without an order in the line of those who came together."""
    sides = []
    for side in (found.put, found.get):
        holder = side.holder and (side.holder.state, side.holder.peer and side.holder.peer.id)
        line = sorted(waiter.peer.id for waiter in side.line)
        partners = sorted(peer.id for peer in side.partners)
        sides.append((side.operation, side.role, side.waits_for, holder, line, partners))
    return found.length, found.maxsize, found.closed, found.deleting, found.partial, sides


def is_ticket(arg: Any) -> bool:
    return isinstance(arg, str) and arg.startswith("ticket-")


def plain_reply(op: str, reply: Any) -> Any:
    """A reply without what is different on each engine: who has a role, and numbers as text."""
    if op in ("close", "delete") and reply[0] == DONE:
        return [DONE]
    if op == "keepers" and reply[0] == DONE:
        return [DONE, bool(reply[2])]  # whether there are any
    if op == "get_many" and reply[0] == DONE:
        return [DONE, *(item for items in reply[1:] for item in items)]
    if op == "inspect" and reply[0] == DONE:
        return [DONE]  # the operation's outcome says it
    if op == "users" and reply[0] == DONE:
        return [DONE, sorted(reply[1])]
    return [int(part) if isinstance(part, bytes) and part.isdigit() else part for part in reply]


class Oracle(RuleBasedStateMachine):
    """The Redis engine against the memory engine."""

    url = ""
    observer: redis.Redis

    def __init__(self) -> None:
        super().__init__()
        self.name = f"test-{secrets.token_hex(8)}"
        self.operations = [FlightOperations(self.name, LEASE) for _ in range(2)]  # one for each
        self.memory = MemoryEngine(config.parse_url("memory://")).bind(self.name, "fifo")
        self.redis = registry.engine(config.parse_url(self.url)).bind(self.name, "fifo")
        self.loops = [asyncio.new_event_loop() for _ in range(CLIENTS)]
        self.broken = False
        self.clock = 0.0
        self.parked: dict[int, Pair] = {}
        self.tickets = 0
        self.items = 0
        self.put: list[bytes] = []
        self.came_out: list[bytes] = []
        self.got: list[bytes] = []
        self.flights: list[tuple[str, Any]] = []
        self.takes = 0
        self.calls: dict[str, int] = {}  # of each reader, the last one that was answered

    # What the rules are made of

    def ticket(self) -> str:
        self.tickets += 1
        return f"ticket-{self.name}-{self.tickets}"

    def run(self, client: int, operation: str, *args: Any, looped: bool = False) -> Outcome | None:
        """Begin an operation of a client; None when it parks."""
        pair = Pair(self, client, lambda side: getattr(side, operation)(*args), looped)
        return self.go(pair, lambda: pair.advance(None, None))

    def go(self, pair: Pair, advance: Any) -> Outcome | None:
        who = f"client-{pair.client}"
        with (
            mock.patch.object(turns, "client_id", return_value=who),
            mock.patch.object(turns, "ticket", self.ticket),
        ):
            self.broken = True
            outcome = advance()
            self.broken = False
        if outcome is None:
            self.parked[pair.client] = pair
        elif self.parked.get(pair.client) is pair:
            del self.parked[pair.client]
        return outcome

    def count(self, operation: str, item: bytes | None, outcome: Outcome | None) -> None:
        """Keep the books: what was put, and what came out."""
        if outcome is None or outcome.args[1] is not None:
            return
        if operation == "put":
            self.put.append(item)
        if operation == "take":
            self.flights.append((item, outcome.args[0]))
        if operation == "get":
            self.came_out.append(outcome.args[0])
            self.got.append(outcome.args[0])

    def queued(self) -> list[bytes]:
        return self.observer.lrange(self.key("data"), 0, -1)[::-1]

    def flying(self) -> list[bytes]:
        ahead = self.observer.eval(AHEAD, 2, self.key("fetched"), self.key("readers"))
        return self.observer.hvals(self.key("flying")) + ahead

    def count_from_1(self) -> None:
        """Where the server's numbers begin with the time."""
        if self.exists():
            self.observer.hsetnx(self.key("flights"), "next", 1)

    def settle(self, client: int, operation: str, *args: Any) -> Outcome | None:
        """An operation after which items may be gone for good."""
        before = self.queued() + self.flying()
        outcome = self.run(client, operation, *args)
        after = self.queued() + self.flying()
        self.came_out += [item for item in before if item not in after]
        return outcome

    def key(self, part: str) -> bytes:
        return self.redis.key(part)

    def new_item(self) -> bytes:
        self.items += 1
        return (b"item-%d" % self.items).ljust(0 if self.items % 3 else 3000)

    def exists(self) -> bool:
        return bool(self.observer.exists(self.key("bound")))

    def wait_until_parked(self, connection: int) -> None:
        """The place in line is the server's to give: only then may the next client come."""

        def parked() -> bool:
            (found,) = self.observer.client_list(client_id=[connection])
            return bool(found["cmd"] == "blmove")

        waiting.until(parked)

    def free_client(self, client: int) -> int | None:
        """The client, or the next one that does not wait."""
        free = [(client + n) % CLIENTS for n in range(CLIENTS)]
        return next((number for number in free if number not in self.parked), None)

    # What never waits

    @initialize(bound=bounds)
    def create(self, bound: int) -> None:
        self.run(0, "open", "create", bound)
        self.count_from_1()

    @rule(client=clients, how=st.sampled_from(["open", "create", "attach"]), bound=bounds)
    def open(self, client: int, how: str, bound: int) -> None:
        self.run(client, "open", how, bound, f"user-{client}" if bound == 2 else "")
        self.count_from_1()

    @rule(client=clients, block=st.booleans(), overfill=st.sampled_from([False, False, True]))
    def put_now(self, client: int, block: bool, overfill: bool) -> None:
        item = self.new_item()
        self.count("put", item, self.run(client, "put", item, block, 0, overfill))

    @rule(client=clients, block=st.booleans(), length=st.sampled_from([5, PART + 1]))
    def put_large_now(self, client: int, block: bool, length: int) -> None:
        content = self.new_item().ljust(length)
        item = Large([memoryview(content)], bytes, is_signed=False)
        self.count("put", item.manifest, self.run(client, "put", item, block, 0))

    @precondition(lambda self: self.got and is_manifest(self.got[-1]))
    @rule(client=clients, really=st.booleans())
    def read_content(self, client: int, really: bool) -> None:
        item = self.got[-1]
        manifest = Manifest(item, item[HEAD_SIZE:], is_signed=False)
        self.run(client, "fetch", manifest)
        if really:
            self.run(client, "let_go", manifest)

    @rule(client=clients, block=st.booleans())
    def get_now(self, client: int, block: bool) -> None:
        self.count("get", None, self.run(client, "get", block, 0))

    @rule(client=clients, number=st.integers(1, 4), block=st.booleans())
    def put_many_now(self, client: int, number: int, block: bool) -> None:
        items = [self.new_item() for _ in range(number)]
        self.run(client, "put_many", items, block, 0)
        queued = self.queued()
        self.put += [item for item in items if item in queued]

    @rule(client=clients, number=st.integers(1, 4), block=st.booleans())
    def get_many_now(self, client: int, number: int, block: bool) -> None:
        outcome = self.run(client, "get_many", number, block, 0)
        if outcome is not None and outcome.args[1] is None:
            self.came_out += outcome.args[0]
            self.got += outcome.args[0]

    @rule(client=clients, owner=owners, limit=st.integers(0, 2), block=st.booleans())
    def take_now(self, client: int, owner: str, limit: int, block: bool) -> None:
        self.takes += 1
        outcome = self.run(client, "take", owner, self.takes, limit, block, 0)
        self.count("take", owner, outcome)

    @rule(
        client=clients,
        owner=owners,
        number=st.integers(1, 4),
        reader=st.sampled_from(["", "A#1", "B#1"]),
    )
    def take_many_now(self, client: int, owner: str, number: int, reader: str) -> None:
        self.takes += 1
        args = (owner, self.takes, 0, number, False, None, False, reader)
        outcome = self.settle(client, "take_many", *args)
        if outcome is not None and outcome.args[1] is None:
            self.flights += [(owner, flight) for flight in outcome.args[0]]
            record = self.observer.hget(self.key("readers"), reader) if reader else None
            if record and int(record.split()[1]) != self.calls.get(reader):
                self.calls.pop(reader, None)  # nothing was left of it

    @rule(client=clients, reader=readers, number=st.integers(1, 4), again=st.booleans())
    def prefetch_now(self, client: int, reader: str, number: int, again: bool) -> None:
        self.takes += 1
        call = self.calls.pop(reader, self.takes) if again else self.takes
        outcome = self.settle(client, "prefetch", reader, call, number, False, None)
        if outcome is not None and outcome.args[1] is None:
            self.calls[reader] = call

    @precondition(lambda self: self.calls)
    @rule(client=clients, number=st.integers(0, 4), back=st.booleans(), data=st.data())
    def hand_out(self, client: int, number: int, back: bool, data: st.DataObject) -> None:
        reader, call = data.draw(st.sampled_from(sorted(self.calls.items())))
        record = self.observer.hget(self.key("readers"), reader) or b"0 0 0 0"
        number = min(number, int(record.split()[2]))
        if back:
            self.calls.pop(reader)
            self.settle(client, "put_back", reader, call, number)
        else:
            self.calls.pop(reader)  # it was answered: it is not asked for again
            self.settle(client, "handed", reader, call, number)

    @precondition(lambda self: self.flights)
    @rule(client=clients, owner=owners, own=st.booleans(), data=st.data())
    def acknowledge(self, client: int, owner: str, own: bool, data: st.DataObject) -> None:
        whose, flight = data.draw(st.sampled_from(self.flights))
        self.settle(client, "acknowledge", whose if own else owner, flight.seq)

    @rule(client=clients, owner=owners)
    def acknowledge_the_oldest(self, client: int, owner: str) -> None:
        self.settle(client, "acknowledge", owner, None)

    @precondition(lambda self: self.flights)
    @rule(client=clients, data=st.data())
    def set_aside(self, client: int, data: st.DataObject) -> None:
        owner, flight = data.draw(st.sampled_from(self.flights))
        self.settle(client, "set_aside", flight.item, owner, flight.seq)

    @rule(client=clients, owner=owners)
    def requeue(self, client: int, owner: str) -> None:
        self.settle(client, "requeue", owner)

    @precondition(lambda self: self.takes)
    @rule(client=clients, owner=owners, data=st.data())
    def requeue_one(self, client: int, owner: str, data: st.DataObject) -> None:
        call = data.draw(st.integers(1, self.takes))
        self.settle(client, "requeue", owner, None, call)

    @rule(client=clients, number=st.integers(0, 2))
    def task_done(self, client: int, number: int) -> None:
        for _ in range(number):
            self.run(client, "task_done")

    @rule(client=clients, bound=bounds)
    def set_bound(self, client: int, bound: int) -> None:
        self.run(client, "set_bound", bound)

    @rule(
        client=clients,
        operation=st.sampled_from(
            [
                ("exists",),
                ("length",),
                ("closed",),
                ("stats",),
                ("why_blocked",),
                ("why_blocked",),
                ("users",),
                ("join", 0),
                ("rejected", 2),
                ("enlist", "user-1"),
                ("enlist", "user-2"),
            ]
        ),
    )
    def other(self, client: int, operation: tuple[Any, ...]) -> None:
        self.run(client, *operation)

    @precondition(lambda self: self.got)
    @rule(client=clients)
    def reject(self, client: int) -> None:
        self.run(client, "reject", self.got.pop())

    @rule(client=clients, users=st.sampled_from([["user-1"], ["user-2"], ["user-1", "user-2"]]))
    def dismiss(self, client: int, users: list[str]) -> None:
        before = self.queued() + self.flying()
        self.run(client, "dismiss", users)
        if not self.exists():
            self.came_out += before
            self.everyone_sees_that_it_is_gone()

    @rule(client=clients, once=st.booleans(), immediate=st.booleans(), really=st.integers(0, 2))
    def close(self, client: int, once: bool, immediate: bool, really: int) -> None:
        if really:  # one in three: not much happens after it
            return
        before = self.queued()
        outcome = self.run(client, "close", once, None, once, immediate)
        if immediate and outcome.args[1] is None:
            self.came_out += before

    @rule(client=clients, block=st.booleans(), really=st.integers(0, 3))
    def delete(self, client: int, block: bool, really: int) -> None:
        if really:
            return
        self.came_out += self.queued() + self.flying()
        # One that may wait sees to it that all who stand in line are told before it ends, which
        # in memory they are at once.
        self.run(client, "delete", block and not self.parked, None)
        self.everyone_sees_that_it_is_gone()

    def everyone_sees_that_it_is_gone(self) -> None:
        self.got.clear()
        self.flights.clear()
        for pair in list(self.parked.values()):
            if not pair.look():
                outcome = self.go(pair, pair.tick)
            elif pair.parked in ROLES:
                # Memory passes the role on to the first in line; on the server nothing is left
                # of it, and those in line look again by themselves.
                pair.redis.session.end_park()
                outcome = self.go(pair, lambda pair=pair: pair.advance(True, False))
            else:
                outcome = self.go(pair, pair.resume)
            assert outcome is not None
            if outcome.args[1] is not None:
                assert outcome.args[1] is QueueDoesNotExistError

    # What waits

    @precondition(lambda self: len(self.parked) < CLIENTS)
    @rule(client=clients, timeout=timeouts)
    def put_and_wait(self, client: int, timeout: float | None) -> None:
        item = self.new_item()
        self.start("put", item, client, item, True, timeout)

    @precondition(lambda self: len(self.parked) < CLIENTS)
    @rule(client=clients, timeout=timeouts)
    def take_and_wait(self, client: int, timeout: float | None) -> None:
        self.takes += 1
        self.start("take", "A", client, "A", self.takes, 2, True, timeout)

    @precondition(lambda self: len(self.parked) < CLIENTS)
    @rule(client=clients, timeout=timeouts)
    def get_and_wait(self, client: int, timeout: float | None) -> None:
        self.start("get", None, client, True, timeout)

    @precondition(lambda self: len(self.parked) < CLIENTS)
    @rule(client=clients, timeout=timeouts)
    def join_and_wait(self, client: int, timeout: float | None) -> None:
        self.start("join", None, client, timeout)

    def start(self, operation: str, item: bytes | None, client: int, *args: Any) -> None:
        outcome = self.run(self.free_client(client), operation, *args, looped=True)
        self.count(operation, item, outcome)
        for pair in self.parked.values():
            if not hasattr(pair, "what"):
                pair.what = operation, item

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        ready = [client for client, pair in sorted(self.parked.items()) if pair.look()]
        if ready:
            pair = self.parked[data.draw(st.sampled_from(ready))]
            self.count(*pair.what, self.go(pair, pair.resume))

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def tick(self, data: st.DataObject) -> None:
        idle = [client for client, pair in sorted(self.parked.items()) if not pair.look()]
        if idle:
            pair = self.parked[data.draw(st.sampled_from(idle))]
            self.count(*pair.what, self.go(pair, pair.tick))

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        pair = self.parked[data.draw(st.sampled_from(sorted(self.parked)))]
        self.count(*pair.what, self.go(pair, pair.cancel))

    @rule()
    def time_passes(self) -> None:
        self.clock += 10

    # What is always true

    @invariant()
    def each_role_has_one_token(self) -> None:
        if not self.exists():
            assert waiting.lasting(self.observer, f"*{self.name}*") == []
            return
        for role in ROLES:
            free = self.observer.llen(self.key(f"{role}_free"))
            claimed = self.observer.llen(self.key(f"{role}_claim"))
            ticket = self.observer.hget(self.key(f"{role}_holder"), "ticket")
            held = ticket not in (None, b"promised")
            assert free + claimed + held == 1, (role, free, claimed, ticket)

    @invariant()
    def the_sign_says_whether_there_is_room(self) -> None:
        if not self.exists():
            return
        bound = int(self.observer.get(self.key("bound")))
        length = self.observer.llen(self.key("data"))
        signs = self.observer.llen(self.key("not_full"))
        assert signs == (bound == 0 or length < bound), (bound, length, signs)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert sorted(self.put) == sorted(self.came_out + self.queued() + self.flying())

    def teardown(self) -> None:
        try:
            if not self.broken:
                self.end_all()
        finally:
            for loop in self.loops:
                tasks = asyncio.all_tasks(loop)
                for task in tasks:
                    task.cancel()
                if tasks:
                    loop.run_until_complete(asyncio.wait(tasks))
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.close()

    def end_all(self) -> None:
        while True:
            ready = [pair for _, pair in sorted(self.parked.items()) if pair.look()]
            if not ready:
                break
            self.count(*ready[0].what, self.go(ready[0], ready[0].resume))
        for pair in list(self.parked.values()):
            self.count(*pair.what, self.go(pair, pair.cancel))
        self.nothing_is_lost()
        if self.exists():
            for role in ROLES:
                assert self.observer.llen(self.key(f"{role}_free")) == 1
                assert self.observer.llen(self.key(f"{role}_claim")) == 0
                assert self.observer.exists(self.key(f"{role}_holder")) == 0
            self.requeue(0, "A")
            self.requeue(0, "B")
            while self.queued():
                self.get_now(0, False)
            self.nothing_is_lost()
            self.run(0, "stats")
            self.run(0, "delete", False, None)
        assert waiting.lasting(self.observer, f"*{self.name}*") == []
