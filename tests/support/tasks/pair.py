"""A queue of tasks on a real engine, and the same one in memory, which is the specification."""

from __future__ import annotations

import contextlib
import secrets
import time

from pressure_mp import states
from pressure_mp.engines import registry
from pressure_mp.engines.contract.forwarding import Forward, Forwarded
from pressure_mp.engines.contract.items import Hold, Put, Take
from pressure_mp.engines.contract.queues import How
from pressure_mp.engines.contract.replies import NoTask
from pressure_mp.engines.contract.task_administration import (
    GetTaskCounts,
    GetWorkers,
    ListTasks,
    TakerTexts,
    TruncateTasks,
)
from pressure_mp.engines.contract.task_records import StoredTask
from pressure_mp.engines.contract.task_results import NO_RESULT, TakenNotices, TakeNotices
from pressure_mp.engines.contract.tasks import (
    Acknowledged,
    AckTask,
    DeleteTasks,
    OpenTasks,
    Processed,
    PutTasks,
    TakenTasks,
    Takers,
    TakeTasks,
)
from pressure_mp.engines.redis.task_records import HEAD, PackedRecord
from pressure_mp.sync.tasks import settings

#: More tasks than any test has.
MANY = 1000
#: Inboxes that a test may open.
INBOXES = ("first", "second")


class Pair:
    """Each request is made to both, and must come to the same."""

    #: Whether both list ready tasks in the same order.
    lists_in_order = True

    def __init__(self, url):
        self.name = f"test-{secrets.token_hex(8)}"
        addresses = [registry.parse(one) for one in (url, "memory://model")]
        engines = [registry.engine(address.started()) for address in addresses]
        self.bindings = [engine.bind(self.name, "tasks") for engine in engines]
        #: A queue of items beside each.
        self.items = [engine.bind(f"{self.name}-items", "fifo") for engine in engines]

    def create(self, **options):
        chosen = {"ttr": 3600, "ttl": None, "zombie": None, "keep": False, "per_key": None}
        chosen |= {"max_deliveries": None, "id": "auto_increment", "maxsize": 0, **options}
        self.ask(OpenTasks(How.CREATE, settings.of_all(chosen)))

    def ask(self, request):
        """The reply to a request, without what may differ."""
        return self.run(lambda binding: ask(binding, request))

    def agree(self, request):
        """Look at both. A result that is kept for a millisecond may be gone at one of them and not
        yet at the other: then look again."""
        if len({str(plain(ask(binding, request))) for binding in self.bindings}) > 1:
            time.sleep(0.02)
        return self.ask(request)

    def ask_items(self, request):
        """The same for the queues of items."""
        return self.run(lambda binding: ask(binding, request), self.items)

    def run(self, act, bindings=None):
        """What comes of requests to one of them, for both."""
        theirs, ours = (plain(act(binding)) for binding in bindings or self.bindings)
        assert theirs == ours
        return ours

    def take_item(self, owner, call):
        """The numbers under which both have the next item in flight; each counts in its own way."""
        taking = Take(1, Hold(owner, call), waits=False)
        taken = [ask(binding, taking) for binding in self.items]
        assert taken[0].items == taken[1].items
        return [one.numbers[0] for one in taken]

    def forward(self, settles, put):
        """Forward in both. The specification is given the ids that the broker made."""
        sources = self.bindings if isinstance(settles[0], AckTask) else self.items
        targets = self.items if isinstance(put, Put) else self.bindings
        theirs = ask(targets[0], Forward(sources[0], settles[0], put))
        made = isinstance(put, PutTasks) and put.ids == "time64" and not put.tasks[0][0]
        if made and isinstance(theirs, Forwarded):
            put = put._replace(tasks=[(theirs.put[0], put.tasks[0][1])])
        ours = ask(targets[1], Forward(sources[1], settles[1], put))
        assert plain(theirs) == plain(ours)
        return theirs

    def list(self, state):
        """The tasks of a state."""
        return self.run(lambda binding: tasks_of(binding, state))

    def check(self):
        """The same tasks are in the same states, and the statistics count them."""
        counts = [ask(binding, GetTaskCounts()) for binding in self.bindings]
        assert counts[0].transitions == counts[1].transitions
        assert counts[0].tubes == counts[1].tubes
        assert sorted(counts[0].paused) == sorted(counts[1].paused)
        assert counts[0].maxsize == counts[1].maxsize
        self.ask(GetWorkers())
        limits = [sorted(map(lasting, one.limits)) for one in counts]
        assert limits[0] == limits[1]
        known = {transition.name for transition in states.TRANSITIONS}
        for ways in (counts[0].transitions, *counts[0].tubes.values()):
            assert ways.keys() <= known
        for inbox in INBOXES:
            self.agree(TakeNotices(inbox, 0, MANY, waits=False))
        for state in states.NAMES:
            theirs, ours = (plain(tasks_of(binding, state)) for binding in self.bindings)
            in_order = state == states.READY and self.lists_in_order
            assert theirs == ours if in_order else sorted(theirs) == sorted(ours)
            assert len(ours) == number_in(state, counts[0].transitions)

    def truncate(self):
        """Remove all tasks; how many there were."""
        return self.run(truncate)

    def delete(self):
        self.ask(DeleteTasks())

    def take_next(self, id, fence, owner, call, limit=1, tube="", ttr=None, said=NO_RESULT):
        """Acknowledge a task and take the next, as a take of the queue does that is given one."""
        acks = [acknowledged(id, fence, owner, said)]
        taking = TakeTasks(owner, call, limit, tube, ttr, acks, waits=False)
        return self.run(lambda binding: ack_and_take(binding, taking))

    def take_after(self, done, owner, call, limit=1, tube=""):
        """Acknowledge several tasks, with their results, by one request that may take too."""
        acks = [acknowledged(id, fence, owner, said) for id, fence, said in done]
        taking = TakeTasks(owner, call, limit, tube, None, acks, waits=False)
        return self.run(lambda binding: refused_and_taken(binding, taking))


def lasting(limit):
    """A limit without the values that differ a millisecond later."""
    told = (0, 0) if limit.per == 1 else (limit.used, bool(limit.until))
    return limit[:3], limit.each_key, *told


def acknowledged(id, fence, owner, said):
    numbers = 0, 0, 0, 1, fence, bool(said.data)
    packed = HEAD.pack(states.TAKEN.encode(), bytes(8), *numbers)
    return Acknowledged(id, PackedRecord(packed + b"\0\0%s\0\0\0" % owner.encode()), said)


def ask(binding, request):
    """The reply to one request."""
    session = binding.session()
    try:
        return session.call(request)
    finally:
        session.end()


def ack_and_take(binding, taking):
    """The state in which the task is that was acknowledged, and what was taken."""
    reply = ask(binding, taking)
    if not isinstance(reply, TakenTasks):
        return reply
    if reply.refused:
        return reply.refused[0]
    state, tasks = reply.processed.state, reply.tasks
    if not tasks:
        reply = ask(binding, taking._replace(acks=()))
        tasks = reply.tasks if isinstance(reply, TakenTasks) else reply
    return state, tasks


def refused_and_taken(binding, taking):
    """Why some tasks were not acknowledged, the state of the others, and what was taken then."""
    reply = ask(binding, taking)
    if not isinstance(reply, TakenTasks):
        return reply
    tasks = reply.tasks
    if not tasks and len(reply.refused) < len(taking.acks):
        again = ask(binding, taking._replace(acks=()))
        tasks = again.tasks if isinstance(again, TakenTasks) else again
    states_now = reply.processed.state if len(reply.refused) < len(taking.acks) else ""
    return dict(reply.refused), states_now, tasks


def tasks_of(binding, state):
    found, start, looked = [], 0, 1
    while looked:
        looked, tasks = ask(binding, ListTasks(state, "", start, MANY))
        found += tasks
        start += looked
    return found


def number_in(state, transitions):
    ends = [(way.split("-"), number) for way, number in transitions.items()]
    came = sum(number for (_, after), number in ends if after == state)
    return came - sum(number for (before, _), number in ends if before == state)


def truncate(binding):
    removed, number = 0, 1
    while number:
        number = ask(binding, TruncateTasks(MANY))
        removed += number
    return removed


@contextlib.contextmanager
def each_checked(kind, url):
    """Makes pairs of a kind, with its options; in the end each is looked at and deleted."""
    made = []

    def making(**options):
        made.append(kind(url, **options))
        return made[-1]

    yield making
    for pair in made:
        pair.check()
        pair.delete()


def plain(reply):
    """A reply without what differs between two brokers: moments."""
    if isinstance(reply, StoredTask):
        record = reply.record
        same = record.state, record.priority, record.deliveries, record.call, bool(record.due)
        asked = record.result_ttl
        texts = record.tube, record.key, record.unique, record.owner, record.report
        return reply.id, reply.data, *same, *texts, asked
    if isinstance(reply, NoTask):
        return "no task", reply.tube, reply.due is not None
    if isinstance(reply, TakenTasks):
        return plain(reply.tasks)
    if isinstance(reply, Processed):
        return reply.state, bool(reply.due)
    if isinstance(reply, TakerTexts):
        return sorted(reply.leases), {owner: list(texts) for owner, texts in reply.workers.items()}
    if isinstance(reply, Takers):
        return sorted(reply.leases)
    if isinstance(reply, TakenNotices):  # of one request on many tasks in whatever order
        return sorted(repr(notice[1:]) for notice in reply.notices), len(reply.notices)
    if isinstance(reply, dict):
        return {key: plain(value) for key, value in reply.items()}
    if isinstance(reply, list):
        return [plain(one) for one in reply]
    if isinstance(reply, tuple):
        return type(reply).__name__, *(plain(one) for one in reply)
    return reply
