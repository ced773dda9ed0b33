"""Random histories: a real engine and the memory engine, which is the specification, agree."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from random_histories import drawn
from tasks.pair import INBOXES, MANY, Pair, ask, tasks_of
from tasks.replies import SETTINGS

from pressure_mp.engines.contract.items import Acknowledge, Put
from pressure_mp.engines.contract.queues import Delete, GetStats, How, Open
from pressure_mp.engines.contract.task_administration import ChangeTask, KickTasks
from pressure_mp.engines.contract.task_records import Edit
from pressure_mp.engines.contract.task_results import (
    NO_RESULT,
    WITH_INBOX,
    CloseInbox,
    OpenInbox,
    Result,
    TakenNotices,
    TakeNotices,
    WatchTasks,
)
from pressure_mp.engines.contract.tasks import (
    AckTask,
    AckTasks,
    AwaitTask,
    BuryTask,
    CloseTasks,
    ConfigureTasks,
    CountReady,
    DeleteTasks,
    GetTask,
    LimitTasks,
    OpenTasks,
    PauseTasks,
    PutTasks,
    ReleaseTask,
    RenewTaker,
    RequeueTasks,
    TakeTasks,
    TouchTask,
    UniqueKeys,
)
from pressure_mp.states import FOR_GOOD, sources

OWNERS = st.sampled_from(["host/1/1/aaaaaaaa", "host/2/2/bbbbbbbb"])
TUBES = st.sampled_from(["", "a", "b"])
SHIFTS = st.sampled_from([None, "", "a", "b"])
PRIORITIES = st.sampled_from([0, -1, 2.5])
KEYS = st.sampled_from(["", "k", "k", "l"])
#: Times in milliseconds that have passed after a short sleep, and such as never pass.
SOON, LATE = 1, 3_600_000
TIMES = st.sampled_from([SOON, LATE])
ON_CONFLICT = st.sampled_from(["skip", "replace", "error"]), st.sampled_from([0, 0, SOON, LATE])
UNIQUE = st.builds(
    UniqueKeys, st.lists(st.sampled_from("uv"), min_size=1, max_size=1), *ON_CONFLICT
)
#: The keys of several tasks, of which one may have none.
UNIQUES = st.builds(UniqueKeys, st.permutations(["u", "v", "", "w"]), *ON_CONFLICT)
PAUSE = 0.004
NUMBERS = st.integers(1, 12)
INBOX = st.sampled_from(INBOXES)
#: What puts ask for of the results of tasks, and the results and errors that takers give.
KEPT = [(LATE, ""), (SOON, "first"), (LATE, "second"), (WITH_INBOX, "first")]
ASKED = st.sampled_from([(0, ""), (0, ""), *KEPT])
SAID = st.sampled_from([NO_RESULT, Result(b"said"), Result(b"lost", "0" * 24)])
REPORTS = st.sampled_from(["", "why", "why\x1ftraceback\x1f1 host/1/1/aaaaaaaa =="])
EDITS = st.sampled_from([None, Edit(b"edited"), Edit(b"x", b"what it never was")])


#: The options of a put.
PUT = {
    "id": st.one_of(st.none(), NUMBERS),
    "delay": st.sampled_from([0, 0, SOON, LATE]),
    "ttl": st.sampled_from([None, None, SOON, LATE]),
    "priority": PRIORITIES,
    "tube": TUBES,
    "asked": ASKED,
    "key": KEYS,
}
#: Bounds of queues: mostly none.
BOUNDS = st.sampled_from([0, 0, 1, 3])


class Histories(RuleBasedStateMachine):
    """The same operations on both; after each the same tasks in the same states."""

    url = ""

    def __init__(self):
        super().__init__()
        self.pair = Pair(self.url)
        self.calls = itertools.count(1)
        self.created = False
        self.ids = []  # that the broker made

    @precondition(lambda self: not self.created)
    @rule(
        kind=st.sampled_from(["auto_increment", "time64"]),
        ttl=st.sampled_from([None, 3600]),
        kept=st.sampled_from([{}, {"keep": True}, {"zombie": 3600}, {"zombie": True}]),
        limit=st.sampled_from([None, 1, 2]),
        ttr=st.sampled_from([None, 3600]),
        per_key=st.sampled_from([None, 1, 2]),
        maxsize=BOUNDS,
    )
    def create(self, kind, ttl, kept, limit, ttr, per_key, maxsize):
        self.kind = kind
        most = {"max_deliveries": limit, "per_key": per_key, "maxsize": maxsize}
        self.pair.create(ttr=ttr, ttl=ttl, id=kind, **most, **kept)
        self.created = True
        self.pair.ask_items(Open(How.CREATE, 3))
        _, self.settings = self.ask(OpenTasks(How.ATTACH, SETTINGS))

    @precondition(lambda self: self.created)
    @rule(
        ttl=st.sampled_from([0, 3_600_000]),
        ttr=st.sampled_from([0, 3_600_000]),
        kept=st.sampled_from([(False, 0), (True, 0), (False, 3_600_000), (False, FOR_GOOD)]),
        limit=st.sampled_from([0, 1, 2]),
        per_key=st.sampled_from([0, 1, 2]),
        kind=st.sampled_from(["auto_increment", "time64"]),
        maxsize=BOUNDS,
        is_known=st.booleans(),
    )
    def configure(self, ttl, ttr, kept, limit, per_key, kind, maxsize, is_known):
        keep, zombie = kept
        changes = {"ttl": ttl, "ttr": ttr, "keep": keep, "zombie": zombie, "max_deliveries": limit}
        changes |= {"per_key": per_key, "id": kind, "maxsize": maxsize}
        wanted = replace(self.settings, **changes)
        was = self.settings if is_known else replace(self.settings, ttr=1)
        before = self.settings
        _, self.settings = self.ask(ConfigureTasks(wanted, was))
        assert self.settings == (wanted if is_known else before)
        self.kind = self.settings.id

    def ask(self, request):
        """Ask both, and wait until what is due at once has happened."""
        ours = self.pair.ask(request)
        time.sleep(PAUSE)
        return ours

    def named(self, number):
        """The id of that task, which may be there."""
        ids = self.ids if self.kind == "time64" else []
        return ids[number - 1] if number <= len(ids) else b"%d" % number

    def put_both(self, tasks, *options):
        """The specification is given the broker's ids too, where the time makes them."""
        putting = PutTasks(tasks, self.kind, *options)._replace(waits=False)
        if self.kind == "auto_increment":
            self.ask(putting)
            return
        theirs = ask(self.pair.bindings[0], putting)
        if isinstance(theirs, list):
            tasks = tasks[: len(theirs)]  # for the others there was no space
            made = [(id, data) for id, (_, data) in zip(theirs, tasks, strict=True)]
            putting = putting._replace(tasks=made)
            self.ids += [id for id, (given, _) in zip(theirs, tasks, strict=True) if not given]
        assert ask(self.pair.bindings[1], putting) == theirs
        time.sleep(PAUSE)

    def teardown(self):
        if self.created:
            self.ask(DeleteTasks())
            self.pair.ask_items(Delete())

    @precondition(lambda self: self.created)
    @rule(
        number=st.integers(1, 3),
        **PUT,
    )
    def put(self, number, id, delay, ttl, priority, tube, asked, key):
        first = self.named(id) if id else b""
        tasks = [(first, b"0"), *((b"", b"%d" % other) for other in range(1, number))]
        self.put_both(tasks, delay, ttl, priority, tube, *asked, key)

    @precondition(lambda self: self.created)
    @rule(
        number=st.integers(1, 4),
        unique=UNIQUES,
        **PUT,
    )
    def put_unique(self, number, id, delay, ttl, priority, tube, asked, key, unique):
        first = self.named(id) if id else b""
        tasks = [(first, b"0"), *((b"", b"%d" % other) for other in range(1, number))]
        unique = unique._replace(keys=unique.keys[:number])
        self.put_both(tasks, delay, ttl, priority, tube, *asked, key, unique)

    @precondition(lambda self: self.created)
    @rule(
        owner=OWNERS,
        limit=st.integers(1, 3),
        tube=TUBES,
        ttr=st.sampled_from([None, SOON, LATE]),
        retries_alone=st.booleans(),
    )
    def take(self, owner, limit, tube, ttr, retries_alone):
        call = next(self.calls)
        self.ask(TakeTasks(owner, call, limit, tube, ttr, (), False, retries_alone))

    def fence(self, id, owner, is_right):
        """The number of the take that has a task; or one that is wrong."""
        records = {task.id: task.record for task in tasks_of(self.pair.bindings[1], "T")}
        if is_right and id in records:
            return records[id].owner, records[id].call
        return owner, 1

    @precondition(lambda self: self.created)
    @rule(
        id=NUMBERS,
        owner=OWNERS,
        is_right=st.booleans(),
        delay=st.sampled_from([None, SOON, LATE]),
        tube=SHIFTS,
        edit=EDITS,
        whole=st.booleans(),
        said=SAID,
    )
    def ack(self, id, owner, is_right, delay, tube, edit, whole, said):
        id = self.named(id)
        owner, call = self.fence(id, owner, is_right)
        self.ask(AckTask(id, owner, call, delay, tube, edit, whole, said))

    @precondition(lambda self: self.created)
    @rule(owner=OWNERS, then_next=st.booleans())
    def ordinary_cycle(self, owner, then_next):
        """One task is put, and the next task is taken and acknowledged, as it mostly happens: by
        itself, or by the take of the next one."""
        call, task = next(self.calls), [(b"", b"1")]
        self.put_both(task)
        taken = self.ask(TakeTasks(owner, call, waits=False))
        if not isinstance(taken, list):
            return
        if then_next:
            self.pair.take_next(taken[0][0], call, owner, next(self.calls))
            time.sleep(PAUSE)  # its result may be kept for a moment
        else:
            self.ask(AckTask(taken[0][0], owner, call))

    @precondition(lambda self: self.created)
    @rule(
        owner=OWNERS,
        inbox=INBOX,
        asked=st.sampled_from(KEPT),
        said=SAID,
        report=REPORTS,
        how=st.sampled_from(["ack", "next", "bury", "release", "ack_many"]),
    )
    def cycle_with_result(self, owner, inbox, asked, said, report, how):
        """A task is put, perhaps with an inbox; it is taken, and what came of it is said."""
        call = next(self.calls)
        self.ask(OpenInbox(inbox, LATE))
        self.put_both([(b"", b"1")], 0, None, 0, "cycle", *asked)
        taken = self.ask(TakeTasks(owner, call, 1, "cycle", waits=False))
        if not isinstance(taken, list):
            return
        id = taken[0][0]
        self.ask(TouchTask(id, owner, call, 0, report=report))
        if how == "ack":
            self.ask(AckTask(id, owner, call, result=said))
        elif how == "next":
            self.pair.take_next(id, call, owner, next(self.calls), said=said)
            time.sleep(PAUSE)
        elif how == "bury":
            self.ask(BuryTask(id, owner, call, report="why", result=said))
        elif how == "release":
            self.ask(ReleaseTask(id, owner, call, report="why", result=said))
        else:
            self.ask(AckTasks(owner, [(b"none", 1), (id, call)], [(1, said)]))
        self.ask(AwaitTask(id, waits=False))

    @precondition(lambda self: self.created)
    @rule(
        owner=OWNERS,
        inbox=INBOX,
        asked=ASKED,
        key=KEYS,
        priority=PRIORITIES,
        said=st.lists(st.tuples(st.integers(0, 2), SAID), max_size=3, unique_by=lambda one: one[0]),
        wrong=st.sets(st.integers(0, 2)),
        limit=st.integers(0, 3),
    )
    def batch_with_results(self, owner, inbox, asked, key, priority, said, wrong, limit):
        """Tasks are put together, taken together and acknowledged together: by themselves, or by
        the take of the next ones, some with the number of a take that is wrong."""
        call = next(self.calls)
        self.ask(OpenInbox(inbox, LATE))
        tasks = [(b"", b"%d" % number) for number in range(3)]
        self.put_both(tasks, 0, None, priority, "batch", *asked, key)
        taken = self.ask(TakeTasks(owner, call, 3, "batch", waits=False))
        if not isinstance(taken, list):
            return
        told = [(place, one) for place, one in said if place < len(taken)]
        held = [(id, call - (place in wrong)) for place, (id, *_) in enumerate(taken)]
        if limit and len(held) > 1:
            results = dict(told)
            done = [(*one, results.get(place, NO_RESULT)) for place, one in enumerate(held)]
            self.pair.take_after(done, owner, next(self.calls), limit, "batch")
            time.sleep(PAUSE)  # its result may be kept for a moment
        else:
            self.ask(AckTasks(owner, held, told))
        for id, *_ in taken:
            self.ask(AwaitTask(id, waits=False))

    @precondition(lambda self: self.created)
    @rule(
        id=NUMBERS,
        owner=OWNERS,
        is_right=st.booleans(),
        said=SAID,
        to_items=st.booleans(),
        new=NUMBERS,
        unique=st.one_of(st.none(), UNIQUE),
        delay=st.sampled_from([0, LATE]),
        tube=TUBES,
        key=KEYS,
    )
    def forward_task(self, id, owner, is_right, said, to_items, new, unique, delay, tube, key):
        id = self.named(id)
        owner, call = self.fence(id, owner, is_right)
        putting = PutTasks([(self.named(new), b"new")], self.kind, delay, None, 0, tube, key=key)
        putting = putting._replace(unique=unique, waits=False)
        put = Put((b"item",), waits=False) if to_items else putting
        self.pair.forward([AckTask(id, owner, call, result=said)] * 2, put)
        time.sleep(PAUSE)

    @precondition(lambda self: self.created)
    @rule(owner=OWNERS, is_right=st.booleans(), to_items=st.booleans(), new=NUMBERS)
    def forward_item(self, owner, is_right, to_items, new):
        self.pair.ask_items(Put((b"item",), waits=False))
        numbers = self.pair.take_item(owner, next(self.calls))
        whose = owner if is_right else "host/3/3/cccccccc"
        put = PutTasks([(self.named(new), b"of an item")], self.kind, waits=False)
        if to_items:
            put = Put((b"next",), waits=False)
        self.pair.forward([Acknowledge(whose, number) for number in numbers], put)
        time.sleep(PAUSE)

    @precondition(lambda self: self.created)
    @rule(ids=st.lists(NUMBERS, min_size=1, max_size=4), owner=OWNERS)
    def ack_many(self, ids, owner):
        named = [self.named(id) for id in ids]
        self.ask(AckTasks(owner, [(id, self.fence(id, owner, True)[1]) for id in named]))

    @precondition(lambda self: self.created)
    @rule(
        id=NUMBERS,
        owner=OWNERS,
        is_right=st.booleans(),
        delay=st.sampled_from([0, 0, SOON, LATE]),
        ttl=st.sampled_from([None, SOON, LATE]),
        tube=SHIFTS,
        edit=EDITS,
        priority=st.one_of(st.none(), PRIORITIES),
        said=SAID,
        unbegun=st.booleans(),
    )
    def release(self, id, owner, is_right, delay, ttl, tube, edit, priority, said, unbegun):
        id = self.named(id)
        owner, call = self.fence(id, owner, is_right)
        args = id, owner, call, delay, ttl, priority, tube, "an error", edit, True, said, unbegun
        self.ask(ReleaseTask(*args))

    @precondition(lambda self: self.created)
    @rule(
        id=NUMBERS,
        owner=OWNERS,
        is_right=st.booleans(),
        ttl=st.sampled_from([0, 0, SOON, LATE]),
        tube=SHIFTS,
        edit=EDITS,
        said=SAID,
    )
    def bury(self, id, owner, is_right, ttl, tube, edit, said):
        id = self.named(id)
        owner, call = self.fence(id, owner, is_right)
        self.ask(BuryTask(id, owner, call, ttl, tube, "why", edit, False, said))

    @precondition(lambda self: self.created)
    @rule(
        id=NUMBERS,
        owner=OWNERS,
        whose=st.sampled_from(["right", "wrong", "nobody"]),
        increment=st.sampled_from([None, 0, LATE]),
        edit=EDITS,
        report=REPORTS,
    )
    def touch(self, id, owner, whose, increment, edit, report):
        id = self.named(id)
        owner, call = self.fence(id, owner, whose == "right")
        call = 0 if whose == "nobody" else call
        self.ask(TouchTask(id, owner, call, increment, edit, True, report))

    @precondition(lambda self: self.created)
    @rule(
        id=NUMBERS,
        op=st.sampled_from(["kick", "kill", "move", "snatch", "restart"]),
        delay=st.sampled_from([0, SOON, LATE]),
        tube=TUBES,
        edit=EDITS,
    )
    def change(self, id, op, delay, tube, edit):
        to = {"kill": "X", "move": ""}.get(op, "W" if delay else "R")
        where = tube if op == "move" else None
        self.change_both(op, id, to, delay, None, where, edit)

    @precondition(lambda self: self.created)
    @rule(id=NUMBERS, to=st.sampled_from("RWBZD"), delay=TIMES)
    def switch(self, id, to, delay):
        self.change_both("switch", id, to, delay if to in "WZ" else 0)

    def change_both(self, op, id, to, *options):
        origins = "".join(sorted(sources(op) - {to}))
        self.ask(ChangeTask(self.named(id), origins, to, *options))

    @precondition(lambda self: self.created)
    @rule(limit=st.sampled_from([0, 1, 2, None]), delay=st.sampled_from([0, LATE]))
    def kick(self, limit, delay):
        self.ask(KickTasks(MANY if limit is None else limit, delay))

    @precondition(lambda self: self.created)
    @rule(
        owner=OWNERS,
        holds=st.booleans(),
        workers=st.sampled_from([None, [], ["one"], ["one", "two"]]),
    )
    def renew(self, owner, holds, workers):
        self.ask(RenewTaker(owner, holds, workers))

    @precondition(lambda self: self.created)
    @rule(owner=OWNERS, whole=st.booleans())
    def requeue(self, owner, whole):
        call = None if whole else 1
        self.ask(RequeueTasks(owner, "it died", MANY, call=call))

    @precondition(lambda self: self.created)
    @rule(tube=TUBES)
    def length(self, tube):
        self.ask(CountReady(tube))

    @precondition(lambda self: self.created)
    @rule(id=NUMBERS)
    def look(self, id):
        self.ask(GetTask(self.named(id)))

    @precondition(lambda self: self.created)
    @rule(id=NUMBERS)
    def wait(self, id):
        self.ask(AwaitTask(self.named(id), waits=False))

    @precondition(lambda self: self.created)
    @rule(inbox=INBOX, lease=TIMES, takes=st.booleans())
    def open_inbox(self, inbox, lease, takes):
        self.ask(OpenInbox(inbox, lease, takes))

    @precondition(lambda self: self.created)
    @rule(inbox=INBOX)
    def close_inbox(self, inbox):
        self.ask(CloseInbox(inbox))

    @precondition(lambda self: self.created)
    @rule(inbox=INBOX, ids=st.lists(NUMBERS, min_size=1, max_size=4))
    def watch(self, inbox, ids):
        self.ask(WatchTasks(inbox, [self.named(id) for id in ids]))

    @precondition(lambda self: self.created)
    @rule(inbox=INBOX, is_all=st.booleans())
    def see_notices(self, inbox, is_all):
        """The first notice was seen, or all."""

        def see(binding):
            there = ask(binding, TakeNotices(inbox, 0, MANY, waits=False))
            if not isinstance(there, TakenNotices):
                return there
            seen = there.notices[-1 if is_all else 0].number
            return ask(binding, TakeNotices(inbox, seen, MANY, waits=False))

        self.pair.run(see)
        time.sleep(PAUSE)

    @precondition(lambda self: self.created)
    @rule(tube=TUBES, paused=st.booleans())
    def pause(self, tube, paused):
        self.ask(PauseTasks(tube, paused))
        # An engine may list the tasks of a tube that is, or was, paused behind all others.
        self.pair.lists_in_order = self.pair.lists_in_order and not tube

    @precondition(lambda self: self.created)
    @rule(
        tube=TUBES,
        number=st.sampled_from([0, 1, 2, 5, 300]),
        per=TIMES,
        each_key=st.booleans(),
    )
    def limit(self, tube, number, per, each_key):
        self.ask(LimitTasks(tube, number, per, each_key))
        self.pair.lists_in_order = self.pair.lists_in_order and (each_key or not tube)

    @precondition(lambda self: self.created)
    @rule(which=st.integers(0, 9))
    def truncate_or_close(self, which):
        if which == 0:
            self.pair.truncate()
        if which == 1:
            self.ask(CloseTasks())

    @invariant()
    def counts_are_exact(self):
        if not self.created:
            return
        self.pair.check()
        self.pair.ask_items(GetStats())


@pytest.mark.timeout(600)  # a busy machine
def test_random_histories_agree_with_the_specification(any_server):
    class Here(Histories):
        url = any_server.url

    run_state_machine_as_test(
        Here,
        settings=drawn(10, stateful_step_count=25),
    )
