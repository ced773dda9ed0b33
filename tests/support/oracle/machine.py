"""Random histories of a queue, on an engine and on the memory engine at the same time.

Each request is made of both, and they must reply the same. A client that has to wait is left
standing in line on both, and a later rule lets it look again, give up, or cancels it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from oracle.delivery_clients import Ahead
from oracle.replies import plain
from oracle.steps import Client, Pair, call_once, is_later
from pressure_mp.encoding import sort_keys
from pressure_mp.encoding.large import CHUNK, HEAD_SIZE, Large, Manifest, is_manifest, token_of
from pressure_mp.engines import registry
from pressure_mp.engines.contract.contents import ReadChunks, StoreChunks, SweepContents
from pressure_mp.engines.contract.fair import GetKeys, GetQueued, GetSnapshot
from pressure_mp.engines.contract.forwarding import Forward
from pressure_mp.engines.contract.items import (
    Acknowledge,
    Added,
    DropRejected,
    EndPrefetch,
    GetRejected,
    Hold,
    PeekItems,
    Prefetch,
    Purge,
    Put,
    Renew,
    Requeue,
    RequeueRejected,
    Retire,
    SetAside,
    Take,
    Taken,
)
from pressure_mp.engines.contract.queues import (
    Close,
    CountDone,
    Delete,
    Dismiss,
    Enlist,
    Exists,
    GetDiscipline,
    GetLength,
    GetStats,
    GetUsers,
    How,
    Inspect,
    IsClosed,
    Join,
    Open,
    SetBound,
    Stats,
)
from pressure_mp.engines.contract.replies import Outcome
from pressure_mp.engines.contract.session import Options
from pressure_mp.engines.memory.address import MemoryAddress
from pressure_mp.engines.memory.engine import MemoryEngine
from pressure_mp.operations.large import in_requests

CLIENTS = 4
#: Milliseconds; longer than any history takes.
LEASE = 60_000
OWNERS = "AB"

clients = st.integers(0, CLIENTS - 1)
bounds = st.integers(0, 3)
owners = st.sampled_from(OWNERS)
READERS = ["A#1", "A#2", "B#1"]
readers = st.sampled_from(READERS)
may_be_reader = st.sampled_from(["", "A#1", "B#1"])
rarely = st.integers(0, 3).map(lambda number: number == 0)
_DRAWN_KEYS = {
    "priority": st.sampled_from([1, 2, "text", (1, "text")]).map(sort_keys.encode),
    "fair": st.tuples(st.integers(1, 2), st.sampled_from("abc")).map(
        lambda drawn: b"%d %b" % (drawn[0], sort_keys.encode(drawn[1]))
    ),
}


def in_fifo(machine: Oracle) -> bool:
    """Only items of such a queue are ever in flight."""
    return machine.discipline == "fifo"


class Oracle(RuleBasedStateMachine):
    """An engine against the memory engine."""

    url = ""
    discipline = "fifo"

    def __init__(self) -> None:
        super().__init__()
        self.name = f"test-{secrets.token_hex(8)}"
        engines = (
            MemoryEngine(MemoryAddress()),
            registry.engine(registry.parse(self.url)),
        )
        options = Options(lease=LEASE)
        self.bindings = tuple(
            engine.bind(self.name, self.discipline, options) for engine in engines
        )
        self.clients = [Client() for _ in range(CLIENTS)]
        self.waiting: dict[int, Pair] = {}
        #: What to do with both replies when a client is served.
        self.thens: dict[int, Callable[[Any, Any], Any]] = {}
        self.broken = False
        #: Whether items were dropped by a shutdown.
        self.dropped = False
        self.items = 0
        self.calls = 0
        self.got: list[bytes] = []
        #: Of each taken item its owner, its numbers on both engines, and the item.
        self.in_flight: list[tuple[str, tuple[int, int], bytes]] = []
        self.ahead = {reader: Ahead() for reader in READERS}

    # What the rules are made of

    def ask(self, client: int, request: Any, other: Any = None) -> Any:
        """The reply to a request that does not wait. ``other`` is the same one in other words."""
        self.broken = True
        mine, theirs = (
            self.clients[client].do(call_once, binding, asked)
            for binding, asked in zip(self.bindings, (request, other or request), strict=True)
        )
        assert plain(theirs, request) == plain(mine, request), (request, mine, theirs)
        self.broken = False
        return mine, theirs

    def begin(self, client: int, request: Any, then: Callable[[Any, Any], Any]) -> None:
        """A client that does not wait begins an operation that may."""
        free = (client + number for number in range(CLIENTS))
        number = next(other % CLIENTS for other in free if other % CLIENTS not in self.waiting)
        pair = Pair(self.clients[number], self.bindings, request)
        self.thens[number] = then
        self.go_on(number, pair)

    def go_on(self, number: int, pair: Pair, in_vain: bool = False) -> None:
        """Let an operation call; until the next step it waits, or it is over."""
        self.broken = True
        mine, theirs = pair.call(in_vain, self.has_enough_for_all(pair))
        assert plain(theirs) == plain(mine), (pair.request, mine, theirs)
        if is_later(mine) and not in_vain:
            if number not in self.waiting:
                pair.stand(self.new_place())
            self.waiting[number] = pair
        else:
            pair.end()
            self.waiting.pop(number, None)
            self.thens[number](mine, theirs)
        self.broken = False

    def new_place(self) -> Callable[[], bool]:
        """Tells whether one more stands in line at the engine than now."""
        return lambda: True

    def no_caller_waits(self) -> None:
        """Called when all operations are over."""

    def stats(self) -> Any:
        """Of the queue in memory."""
        return call_once(self.bindings[0], GetStats())

    def has_enough_for_all(self, pair: Pair) -> bool:
        """Whether it waits for an item, or for space, and there is enough for all calls
        that wait for the same."""
        stats, kind = self.stats(), type(pair.request)
        alike = [other for other in self.waiting.values() if type(other.request) is kind]
        if pair not in alike or not isinstance(stats, Stats):
            return False
        if kind is Put and stats.maxsize > 0:
            others = len(alike) - 1
            return stats.maxsize - stats.length >= len(pair.request.items) + others
        return kind is Put or (kind is Take and stats.length >= len(alike))

    def new_item(self) -> bytes:
        self.items += 1
        return (b"item-%d" % self.items).ljust(0 if self.items % 3 else 3000)

    def next_call(self) -> int:
        self.calls += 1
        return self.calls

    def sort_key(self, data: st.DataObject) -> tuple[bytes, ...]:
        keys = _DRAWN_KEYS.get(self.discipline)
        return () if keys is None else (data.draw(keys),)

    def note_got(self, mine: Any, theirs: Any) -> None:
        """Items were taken for good."""
        if isinstance(mine, Taken):
            self.got += mine.items

    def note_deliveries(self, owner: str) -> Callable[[Any, Any], None]:
        """Items were taken, and are in flight."""

        def note(mine: Any, theirs: Any) -> None:
            if isinstance(mine, Taken):
                numbers = zip(mine.numbers, theirs.numbers, strict=True)
                self.in_flight += zip([owner] * len(mine.items), numbers, mine.items, strict=True)

        return note

    # What does not wait

    @initialize(bound=bounds)
    def create(self, bound: int) -> None:
        self.ask(0, Open(How.CREATE, bound))

    @rule(client=clients, how=st.sampled_from(How), bound=bounds)
    def open(self, client: int, how: How, bound: int) -> None:
        self.ask(client, Open(how, bound, f"user-{client}" if bound == 2 else ""))

    @rule(client=clients, overfill=rarely, data=st.data())
    def put_now(self, client: int, overfill: bool, data: st.DataObject) -> None:
        keys = self.sort_key(data)
        self.ask(client, Put([self.new_item()], keys, overfill=overfill, waits=False))

    @precondition(in_fifo)
    @rule(client=clients, number=st.integers(2, 4))
    def put_many_now(self, client: int, number: int) -> None:
        self.ask(client, Put([self.new_item() for _ in range(number)], waits=False))

    @rule(client=clients, length=st.sampled_from([5, CHUNK + 1]), data=st.data())
    def put_large_now(self, client: int, length: int, data: st.DataObject) -> None:
        content = self.new_item().ljust(length)
        item = Large([memoryview(content)], bytes, is_signed=False)
        for first, chunks in in_requests(item.segments):
            self.ask(client, StoreChunks(item.token, first, chunks))
        keys = self.sort_key(data)
        put, _ = self.ask(client, Put([item.manifest], keys, has_content=True, waits=False))
        if not isinstance(put, Added):
            self.sweep(client, item.token)

    @precondition(lambda self: self.got and is_manifest(self.got[-1]))
    @rule(client=clients, really=st.booleans())
    def read_content(self, client: int, really: bool) -> None:
        item = self.got[-1]
        manifest = Manifest(item, item[HEAD_SIZE:], is_signed=False)
        mine, theirs = manifest.allocate(), manifest.allocate()
        rooms = (in_requests([memoryview(segment) for segment in half]) for half in (mine, theirs))
        for ours, others in zip(*rooms, strict=True):
            reads = (ReadChunks(manifest.token, first, some) for first, some in (ours, others))
            self.ask(client, *reads)
        assert theirs == mine
        if really:
            self.sweep(client, manifest.token)

    def sweep(self, client: int, token: str) -> None:
        """Until there is nothing more to remove, which one engine sees sooner than another."""
        for binding in self.bindings:
            while self.clients[client].do(call_once, binding, SweepContents(token)):
                pass

    @rule(client=clients, limit=st.integers(1, 4), until_ended=st.booleans())
    def get_now(self, client: int, limit: int, until_ended: bool) -> None:
        self.note_got(*self.ask(client, Take(limit, until_ended=until_ended, waits=False)))

    @precondition(in_fifo)
    @rule(
        client=clients,
        owner=owners,
        limit=st.integers(1, 4),
        most=st.integers(0, 2),
        reader=may_be_reader,
        until_ended=st.booleans(),
    )
    def take_now(
        self, client: int, owner: str, limit: int, most: int, reader: str, until_ended: bool
    ) -> None:
        hold = Hold(owner, self.next_call(), most, reader)
        replies = self.ask(client, Take(limit, hold, until_ended, waits=False))
        self.note_deliveries(owner)(*replies)

    @precondition(in_fifo)
    @rule(
        client=clients,
        reader=readers,
        limit=st.integers(1, 4),
        kept=st.integers(0, 4),
        strange=rarely,
        until_ended=st.booleans(),
    )
    def prefetch(
        self, client: int, reader: str, limit: int, kept: int, strange: bool, until_ended: bool
    ) -> None:
        """A reader that is strange says that it keeps what it does not have."""
        ahead = self.ahead[reader]
        kept = kept if strange else min(kept, ahead.left)
        ahead.call = self.next_call()
        ahead.hand_out(max(ahead.left - kept, 0))
        asking = Prefetch(reader, ahead.call, ahead.handed, kept, limit, until_ended)
        reply, _ = self.ask(client, asking)
        if isinstance(reply, Taken):
            ahead.left += len(reply.items)

    @precondition(in_fifo)
    @rule(client=clients, reader=readers, part=st.integers(0, 4), strange=rarely)
    def tell(self, client: int, reader: str, part: int, strange: bool) -> None:
        ahead = self.ahead[reader]
        ahead.hand_out(part if strange else min(part, ahead.left))
        self.ask(client, Prefetch(reader, ahead.call, ahead.handed, 0, 0))

    @precondition(in_fifo)
    @rule(client=clients, reader=readers, part=st.integers(0, 4), is_heard=st.booleans())
    def end_prefetch(self, client: int, reader: str, part: int, is_heard: bool) -> None:
        ahead = self.ahead[reader]
        ahead.hand_out(min(part, ahead.left))
        ahead.call = ahead.call if is_heard else self.next_call()
        self.ask(client, EndPrefetch(reader, ahead.call, ahead.handed))
        ahead.left = 0

    @precondition(lambda self: self.in_flight)
    @rule(client=clients, owner=owners, own=st.booleans(), data=st.data())
    def acknowledge(self, client: int, owner: str, own: bool, data: st.DataObject) -> None:
        whose, numbers, _ = data.draw(st.sampled_from(self.in_flight))
        self.ask(client, *(Acknowledge(whose if own else owner, number) for number in numbers))

    @precondition(lambda self: self.in_flight)
    @rule(client=clients, owner=owners, own=st.booleans(), data=st.data())
    def forward_now(self, client: int, owner: str, own: bool, data: st.DataObject) -> None:
        """To the queue itself."""
        whose, numbers, _ = data.draw(st.sampled_from(self.in_flight))
        put = Put([self.new_item()], waits=False)
        settles = (Acknowledge(whose if own else owner, number) for number in numbers)
        both = zip(self.bindings, settles, strict=True)
        self.ask(client, *(Forward(binding, settle, put) for binding, settle in both))

    @precondition(in_fifo)
    @rule(client=clients, owner=owners)
    def acknowledge_the_oldest(self, client: int, owner: str) -> None:
        self.ask(client, Acknowledge(owner, None))

    @precondition(lambda self: self.in_flight)
    @rule(client=clients, data=st.data())
    def set_aside(self, client: int, data: st.DataObject) -> None:
        owner, numbers, item = data.draw(st.sampled_from(self.in_flight))
        self.ask(client, *(SetAside(item, owner, number) for number in numbers))

    @precondition(lambda self: self.got)
    @rule(client=clients)
    def set_aside_what_was_got(self, client: int) -> None:
        self.ask(client, SetAside(self.got.pop()))

    @precondition(in_fifo)
    @rule(client=clients, owner=owners, part=st.integers(0, 2))
    def requeue(self, client: int, owner: str, part: int = 0) -> None:
        """Perhaps of readers that are seen to have handed out more than they told."""
        handed = [(reader, ahead.handed + part) for reader, ahead in self.ahead.items()]
        self.ask(client, Requeue(owner, handed=handed if part else ()))

    @precondition(lambda self: in_fifo(self) and self.calls)
    @rule(client=clients, owner=owners, data=st.data())
    def requeue_a_call(self, client: int, owner: str, data: st.DataObject) -> None:
        self.ask(client, Requeue(owner, call=data.draw(st.integers(1, self.calls))))

    @precondition(lambda self: self.in_flight)
    @rule(client=clients, data=st.data())
    def requeue_items(self, client: int, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.in_flight), min_size=1, max_size=3))
        numbers = zip(*(numbers for _, numbers, _ in chosen), strict=True)
        self.ask(client, *(Requeue(chosen[0][0], numbers=half) for half in numbers))

    @rule(
        client=clients,
        owner=owners,
        consumes=st.booleans(),
        produces=st.booleans(),
        old=st.booleans(),
    )
    def renew(self, client: int, owner: str, consumes: bool, produces: bool, old: bool) -> None:
        found = self.ask(client, Renew(owner, consumes and in_fifo(self), produces))
        if Outcome.MISSING in found:
            return
        seen = [there.consumers.get(owner, 1) - old for there in found]
        if in_fifo(self):
            self.ask(client, *(Requeue(owner, seen=until) for until in seen))
        seen = [there.producers.get(owner, 1) - old for there in found]
        self.ask(client, *(Retire(owner, seen=until) for until in seen))

    @rule(client=clients, owner=owners)
    def retire(self, client: int, owner: str) -> None:
        self.ask(client, Retire(owner))

    @rule(client=clients, really=rarely)
    def purge(self, client: int, really: bool) -> None:
        if really:  # little can happen in an empty queue
            self.ask(client, Purge(waits=False))

    @rule(client=clients, back=st.booleans(), strange=rarely)
    def settle_rejected(self, client: int, back: bool, strange: bool) -> None:
        """One that was set aside goes back, where it can, or goes; or there is none like it."""
        rejected, _ = self.ask(client, GetRejected(2))
        item = b"strange" if strange or rejected in ([], Outcome.MISSING) else rejected[-1]
        if back and self.discipline in ("fifo", "lifo"):
            self.ask(client, RequeueRejected(item))
        else:
            self.ask(client, DropRejected(item))
            self.sweep(client, token_of(item) if is_manifest(item) else "")

    @rule(client=clients, number=st.integers(0, 2))
    def count_done(self, client: int, number: int) -> None:
        for _ in range(number):
            self.ask(client, CountDone())

    @rule(client=clients, bound=bounds)
    def set_bound(self, client: int, bound: int) -> None:
        self.ask(client, SetBound(bound))

    @rule(
        client=clients,
        request=st.sampled_from(
            [
                Exists(),
                GetDiscipline(),
                GetLength(),
                IsClosed(),
                Inspect(100),
                Inspect(100),
                GetUsers(),
                Join(),
                GetRejected(2),
                PeekItems(0, 3),
                PeekItems(1, 2),
                Enlist("user-1"),
                Enlist("user-2"),
            ]
        ),
    )
    def look(self, client: int, request: Any) -> None:
        self.ask(client, request)

    @precondition(lambda self: self.discipline == "fair")
    @rule(client=clients, limit=st.integers(1, 5), key=st.sampled_from("abc"))
    def look_at_keys(self, client: int, limit: int, key: str) -> None:
        self.ask(client, GetSnapshot(limit))
        self.ask(client, GetKeys())
        self.ask(client, GetQueued(sort_keys.encode(key)))

    @rule(client=clients, users=st.sampled_from([("user-1",), ("user-2",), ("user-1", "user-2")]))
    def dismiss(self, client: int, users: tuple[str, ...]) -> None:
        left, _ = self.ask(client, Dismiss(users))
        if left == 0:
            self.everyone_sees_that_it_is_gone(client)

    @rule(client=clients, once=st.booleans(), immediate=st.booleans(), really=rarely)
    def close(self, client: int, once: bool, immediate: bool, really: bool) -> None:
        if really:  # not much happens after it
            reply, _ = self.ask(client, Close(once, immediate, waits=False))
            self.dropped |= immediate and reply is Outcome.DONE

    @rule(client=clients, waits=st.booleans(), really=rarely)
    def delete(self, client: int, waits: bool, really: bool) -> None:
        if really:
            # A delete that may wait ends only when all waiters in line are told; in memory they are
            # told at once.
            self.ask(client, Delete(waits=waits and not self.waiting))
            self.everyone_sees_that_it_is_gone(client)

    def everyone_sees_that_it_is_gone(self, client: int) -> None:
        self.dropped = False
        self.got.clear()
        self.in_flight.clear()
        self.ahead = {reader: Ahead() for reader in READERS}
        for number, pair in sorted(self.waiting.items()):
            self.go_on(number, pair)
        assert not self.waiting

    # What waits

    @precondition(lambda self: len(self.waiting) < CLIENTS)
    @rule(client=clients, data=st.data())
    def put_and_wait(self, client: int, data: st.DataObject) -> None:
        self.begin(client, Put([self.new_item()], self.sort_key(data)), lambda *replies: None)

    @precondition(lambda self: len(self.waiting) < CLIENTS)
    @rule(client=clients, until_ended=st.booleans())
    def get_and_wait(self, client: int, until_ended: bool) -> None:
        self.begin(client, Take(until_ended=until_ended), self.note_got)

    @precondition(lambda self: in_fifo(self) and len(self.waiting) < CLIENTS)
    @rule(client=clients, owner=owners, limit=st.integers(1, 2), until_ended=st.booleans())
    def take_and_wait(self, client: int, owner: str, limit: int, until_ended: bool) -> None:
        hold = Hold(owner, self.next_call(), 2)
        self.begin(client, Take(limit, hold, until_ended), self.note_deliveries(owner))

    @precondition(lambda self: len(self.waiting) < CLIENTS)
    @rule(client=clients)
    def join_and_wait(self, client: int) -> None:
        self.begin(client, Join(), lambda *replies: None)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), ready=st.booleans())
    def look_again(self, data: st.DataObject, ready: bool) -> None:
        found = [
            number
            for number, pair in sorted(self.waiting.items())
            if pair.may_be_served() or not ready
        ]
        if found:
            number = data.draw(st.sampled_from(found))
            self.go_on(number, self.waiting[number])

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.waiting)))
        pair = self.waiting[number]
        if isinstance(pair.request, Join):
            self.cancel_one(number)
        else:
            self.go_on(number, pair, in_vain=True)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.cancel_one(data.draw(st.sampled_from(sorted(self.waiting))))

    def cancel_one(self, number: int) -> None:
        self.waiting.pop(number).end()

    # Invariants

    @invariant()
    def all_that_is_counted_is_the_same(self) -> None:
        stats, _ = self.ask(0, GetStats())
        if stats is not Outcome.MISSING and not self.dropped:
            assert stats.length == stats.produced_messages - stats.consumed_messages

    def teardown(self) -> None:
        try:
            if not self.broken:
                self.end_all()
        finally:
            for client in self.clients:
                client.end()

    def end_all(self) -> None:
        """Serve the waiters that can be served, and cancel the others: the same items are left."""
        while ready := [number for number, pair in self.waiting.items() if pair.may_be_served()]:
            self.go_on(ready[0], self.waiting[ready[0]])
        for number in list(self.waiting):
            self.cancel_one(number)
        self.no_caller_waits()
        if in_fifo(self):
            for owner in OWNERS:
                self.requeue(0, owner)
        reply: Any = Taken([])
        while isinstance(reply, Taken):
            reply, _ = self.ask(0, Take(waits=False))
        self.all_that_is_counted_is_the_same()
        self.ask(0, Inspect(100))
        self.ask(0, Delete(waits=False))
