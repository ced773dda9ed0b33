"""The Lua files: their headers say what they do, and all of it happens."""

from __future__ import annotations

import multiprocessing
import operator
import re
from functools import partial
from importlib import resources

import contents
import engines
import inside
import pytest
from brokers.servers import Server
from engines import Can
from oracle.delivery_clients import alone, end_alone, ended
from programs import dying_clients
from stepwise import StepwiseClient
from tasks import replies
from waiting import Background, blocked, until

from pressure_mp import (
    FairQueue,
    LifoQueue,
    PressureError,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueDoesNotExistError,
    TaskQueue,
)
from pressure_mp.drivers import drive, drive_on
from pressure_mp.engines.contract.items import (
    EndPrefetch,
    NextIsLarge,
    Prefetch,
    TakeBack,
    Taken,
)
from pressure_mp.engines.contract.replies import InUse, NoItem, Outcome
from pressure_mp.engines.redis import contents as redis_contents
from pressure_mp.engines.redis import keys, loading, scripts
from pressure_mp.engines.redis.blocking import BlockingSession
from pressure_mp.engines.redis.lanes import Lane
from pressure_mp.engines.redis.session import RedisSession
from pressure_mp.engines.redis.statuses import MISMATCH
from pressure_mp.identity.client import client_id, process_prefix
from pressure_mp.operations.deliveries import DeliveryOperations
from pressure_mp.operations.items import ItemOperations

LUA = resources.files("pressure_mp.engines.redis") / "lua"


def names(folder):
    """The operations whose scripts are in a folder."""
    return {file.name.removesuffix(".lua") for file in (LUA / folder).iterdir()} - {"storage"}


DISCIPLINES = ["fifo", "lifo", "priority", "fair", "tasks"]
#: Each script once, by its folder and its name; and a discipline that has it.
SCRIPTS = {
    f"{folder}/{op}": (discipline, scripts.load(discipline)[op])
    for discipline in DISCIPLINES
    for folder in scripts.folders(discipline)
    for op in sorted(names(folder))
}
PRELUDES = sorted(file.name for file in (LUA / "prelude").iterdir())

#: What an operation that may wait adds to its own arguments; a script need not use all of it.
TURN = ["client", "ticket", "mode", "turn", "lease", "conn"]

#: Statuses that are followed by the name of what to wait for.
LATER = {"busy", "full", "empty", "unfinished"}

#: Files that put replies, records or members of sets together; no names of keys.
PUT_TOGETHER = (
    *("once.lua", "storage.lua", "prelude/ready.lua", "prelude/transitions.lua"),
    *("prelude/limits.lua", "prelude/groups.lua", "prelude/take_one.lua", "prelude/ack_one.lua"),
    *("tasks/put_one.lua", "tasks/ack_one.lua"),
    *("tasks/put.lua", "tasks/take.lua", "tasks/ack_many.lua", "tasks/stats.lua"),
    *("prelude/changes.lua", "prelude/notices.lua", "tasks/watch.lua", "tasks/notices.lua"),
    *("tasks/store.lua", "tasks/sweep.lua", "broker/append.lua"),
)

#: Commands without a key.
KEYLESS = {"TIME"}


def path(op):
    return LUA / f"{op}.lua"


def body(op):
    """A script's own file, without its comments."""
    text = path(op).read_text(encoding="utf-8")
    return re.sub(r"--.*", "", text)


def header(op, field):
    text = path(op).read_text(encoding="utf-8")
    found = re.search(rf"^-- {field}: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def declared(op):
    """The answers in a script's header; of answers that say what to wait for, that as well."""
    answers = [answer.split() for answer in header(op, "replies").split("|")]
    waits = {*LATER} if not op.startswith("tasks/") else set()
    return {" ".join(words[: 2 if words[0] in waits else 1]) for words in answers}


def indices(table, text):
    return {int(number) for number in re.findall(rf"\b{table}\[(\d+)\]", text)}


def test_every_file_is_loaded():
    folders = {folder.name for folder in LUA.iterdir()}
    used_folders = {folder for discipline in DISCIPLINES for folder in scripts.folders(discipline)}
    assert folders == {*used_folders, "broker", "prelude"}
    for discipline in DISCIPLINES:
        found = [op for folder in scripts.folders(discipline) for op in names(folder)]
        assert sorted(found) == sorted(scripts.load(discipline))
    used = {f"{prelude}.lua" for op in SCRIPTS for prelude in header(op, "uses").split()}
    own = {"own_incarnation.lua", "own_bound.lua"}
    beside = {"once.lua", *own, "contents_apart.lua", "forward.lua"}
    assert {*used, *beside} == {
        *PRELUDES,
        "storage.lua",
    }
    assert any(script.once for _, script in SCRIPTS.values())


def test_the_server_loads_every_script_under_the_digest_that_we_call_it_by(server):
    with server.client() as client:
        for discipline in DISCIPLINES:
            for script in scripts.load(discipline).values():
                assert client.script_load(script.source) == script.sha


@pytest.mark.parametrize("op", SCRIPTS)
def test_a_script_uses_exactly_the_keys_of_its_header(op):
    listed = header(op, "keys").split()
    folder, _, name = op.partition("/")
    known = {*keys.TASKS} if folder == "tasks" else {*keys.PROTOCOL, *keys.OWN, "item"}
    assert set(listed) <= known
    assert len(set(listed)) == len(listed)
    for discipline in DISCIPLINES:
        if folder in scripts.folders(discipline):
            kept, taken = scripts.storage(discipline).keys, scripts.load(discipline)[name].keys
            own, more = taken[: len(listed)], taken[len(listed) :]
            item = scripts.storage(discipline).item
            assert own == tuple(item if key == "item" else key for key in listed)
            assert list(more) == [key for key in kept if key in more]
            assert not more or "storage" in header(op, "uses").split()
    everything = set(range(1, len(listed) + len(header(op, "given").split()) + 1))
    named = indices("KEYS", body(op))
    assert named <= everything
    if "unpack(KEYS" not in body(op):
        assert named == everything


def test_a_script_takes_the_keys_of_the_storage_that_it_names():
    tasks = scripts.load("tasks")
    assert {"ready", "counts"} < set(tasks["put_one"].keys)
    assert "taken" not in tasks["put_one"].keys
    assert set(tasks["put_one"].keys) < set(tasks["put"].keys) <= set(scripts.storage("tasks").keys)


@pytest.mark.parametrize("op", SCRIPTS)
def test_a_script_uses_the_arguments_of_its_header(op):
    args = list(SCRIPTS[op][1].args)
    named = indices("ARGV", body(op))
    for first, last in re.findall(r"unpack\(ARGV, (\d+), (\d+)\)", body(op)):
        named |= set(range(int(first), int(last) + 1))
    variadic = [number for number, arg in enumerate(args) if arg.endswith("...")]
    if variadic:
        assert re.search(r"unpack\(ARGV|ARGV\[\d+ \+ ", body(op))
        args = args[: variadic[0]]
    count = len(args)
    assert named <= set(range(1, count + 1))
    if args[-len(TURN) :] == TURN:
        count -= len(TURN)
    assert set(range(1, count + 1)) <= named


@pytest.mark.parametrize(
    "file", [f"{folder.name}/{file.name}" for folder in LUA.iterdir() for file in folder.iterdir()]
)
def test_a_script_touches_only_the_keys_it_is_given(file):
    text = re.sub(r"--.*", "", (LUA / file).read_text(encoding="utf-8"))
    text = re.sub(r"unpack\(KEYS, [^()]*\)", "unpack(KEYS)", text)
    calls = re.findall(r"redis\.p?call\(\s*'(\w+)'\s*(?:,\s*([^,()]+(?:\(KEYS\))?))?", text)
    assert len(calls) == len(re.findall(r"redis\.p?call", text)), "a command that is not a literal"
    for command, key in calls:
        assert command not in {"KEYS", "SCAN", "FLUSHALL", "FLUSHDB", "EVAL", "SORT"}
        if command in KEYLESS:
            assert not key
        else:
            assert re.fullmatch(r"KEYS\[\d+\]|unpack\(KEYS\)|[a-z_]+", key.strip()), (command, key)
    if not file.endswith(PUT_TOGETHER):
        assert ".." not in text.replace("...", ""), "no name is put together in a script"


def is_waiting(connection, name):
    return connection["name"] == name and "b" in connection["flags"]


def test_every_answer_of_every_header_happens(server, name, monkeypatch):
    """Real operations on a real server, and one of them for each answer."""
    seen = note_answers(monkeypatch)
    theirs = StepwiseClient(server.port, name)
    try:
        with server.client() as client:
            play(server, name, theirs, client)
        play_reading_on(server, name)
        play_a_move(server, name)
    finally:
        theirs.abort()
    expected = {op: declared(op) for op in SCRIPTS if not op.startswith("tasks/")}
    assert {op: answers for op, answers in seen.items() if op in expected} == expected


def note_answers(monkeypatch):
    """Fills a table of the scripts with what each answers from now on."""
    seen: dict[str, set[str]] = {op: set() for op in SCRIPTS}
    understand, call_quickly = RedisSession._understand, BlockingSession._call_quickly
    call_with_a_chunk = redis_contents.call

    def note(binding, op, args, reply):
        script, folders = binding.scripts[op], scripts.folders(binding.discipline)
        (name,) = (f"{folder}/{op}" for folder in folders if op in names(folder))
        status = reply[0].decode()
        waits = status in LATER and binding.discipline != "tasks" and len(reply) > 1
        seen[name].add(f"{status} {reply[1].decode()}" if waits else status)
        if not any(arg.endswith("...") for arg in script.args):
            number = len(args) - script.given + script.wants_connection
            assert number == len(script.args)
        return reply

    async def noting(session, reply, wire, op, args, *more):
        understood = await understand(session, reply, wire, op, args, *more)
        return note(session.binding, op, args, understood)

    def noting_quickly(session, op, args, end):
        reply = call_quickly(session, op, args, end)
        return None if reply is None else note(session.binding, op, args, reply)

    async def noting_chunks(wire, binding, op, args, limit):
        reply = await call_with_a_chunk(wire, binding, op, args, limit)
        return note(binding, op, args, reply) if op in binding.scripts else reply

    async def noting_an_adoption(wire, binding, limit):
        await adopt(wire, binding, limit)
        seen["queue/adopt"].add("done")

    adopt = loading.adopt
    monkeypatch.setattr(loading, "adopt", noting_an_adoption)
    monkeypatch.setattr(redis_contents, "call", noting_chunks)
    monkeypatch.setattr(RedisSession, "_understand", noting)
    monkeypatch.setattr(BlockingSession, "_call_quickly", noting_quickly)
    return seen


def play_a_move(server, name):
    """What was in shared memory comes to the broker."""
    q = Queue.create(f"{name}-moved", url=server.url)

    def call(op, *args):
        session = inside.bind(q).session()
        try:
            return session.script(op, args)
        finally:
            session.end()

    def add(first, size, *items, front=0):
        return call("add_moved", first, size, 1, front, b"client", len(items), *items)

    def add_held(*held):
        return call("add_held", 1000, len(held), *(part for one in held for part in one))

    assert call("were_moved") == [b"done", 0]
    assert add(2, 10, b"a", b"b") == [b"done"]
    assert add(2, 10, b"a", b"b", b"c") == [b"done"]  # of which two are there
    assert add(2, 10, b"a") == [b"done"]
    assert call("were_moved") == [b"done", 1]
    held = (1, 2, 0, 7, "host/1/2", b"h"), (2, 0, 0, 7, "host/1/2", b"passed")
    assert add_held(*held) == add_held(*held) == [b"done"]
    stats = q.stats()
    assert (stats.in_flight, stats.unfinished) == (1, 4)
    assert (stats.length, stats.produced_messages, stats.produced_bytes) == (3, 5, 13)
    assert (stats.consumed_messages, stats.consumed_bytes) == (2, 10)
    assert add(0, 0, b"x", b"y", front=1) == [b"done"]
    stats = q.stats()
    assert (stats.length, stats.consumed_messages, stats.consumed_bytes) == (5, 0, 8)
    q.delete()
    assert add(5, 0, b"d") == [b"missing"]
    assert add_held() == [b"missing"]


def play_reading_on(server, name):
    """The calls that are done at once for the only consumer of a queue without a bound."""
    q = Queue(0, f"{name}-on", url=server.url)
    q.put("first")
    assert q.get() == "first"
    operations, session = inside.operations(q), inside.bind(q).session()
    q.put_many(["second", "third"])
    first, second = inside.run(q, operations.prefetch(alone("A:reader-1", 1, 0, 0, 9))).items
    here = (client_id(), process_prefix(), 5000)
    for call, told, handed, kept, size, reply in (
        (2, 1, 1, 0, len(first), [b"declined"]),
        (2, 0, 1, 0, len(first), [b"done", b"1"]),
        (2, 0, 1, 0, len(first), [b"declined"]),
        (3, 1, 2, 0, len(second), [b"done", b"0"]),
    ):
        args = ("A:reader-1", call, told, handed, kept, size, *here)
        assert session.script("reserve_unbounded", args) == reply
    session.end()
    q.delete()


def play(server, name, theirs, client):
    """Brings about every answer there is."""
    ours = PressureQueue(name, url=server.url)
    operations = DeliveryOperations(name, "fifo")

    def run(operation):
        binding = inside.bind(ours)
        return drive(operation, binding.session())

    def call(op, *args):
        """A script by itself."""
        session = inside.bind(ours).session()
        try:
            return session.script(op, args)
        finally:
            session.end()

    def refused(call, *args, **kwargs):
        with pytest.raises((PressureError, ValueError)):
            call(*args, **kwargs)

    def waits(call, *args):
        before = blocked(client)
        waiting = Background(call, *args)
        until(lambda: blocked(client) > before)
        return waiting

    # There is no queue.
    refused(Queue.attach, name, url=server.url)
    assert not ours.exists()
    run(operations.look_for_rival())
    for operation in (
        *(operations.length(), operations.closed(), operations.stats(), operations.users()),
        *(operations.unlock("producer"), operations.why_blocked()),
        *(operations.put(b"x", True, None), operations.get(True, None)),
        *(operations.put_many([b"x", b"x"], True, None), operations.get_many(2, True, None)),
        *(operations.close(True, None, once=True), operations.delete(True, None)),
        *(operations.set_bound(1), operations.task_done(), operations.join()),
        *(operations.reject(b"x"), operations.rejected(1)),
        *(operations.enlist("somebody"), operations.dismiss(["somebody"])),
        *(operations.take_many("A", 1, 0, 1, True, None), operations.acknowledge("A", 1)),
        *(operations.requeue("A"), operations.renew("A", True, True), operations.retire("A")),
        operations.take_back(TakeBack((Lane(), b"1"))),
        operations.put(contents.sample(), True, None),
        operations.put_batch([b"x"], True),
        *(operations.peek_items(1), operations.purge(True, None)),
        *(operations.requeue_rejected(b"x"), operations.drop_rejected(b"x")),
    ):
        refused(run, operation)
    assert run(operations.prefetch(alone("A:reader-1", 1, 0, 0, 9))) is Outcome.MISSING
    for limit in (9, 0):
        assert run(operations.prefetch(Prefetch("A#1", 1, 0, 0, limit))) is Outcome.MISSING
    assert run(ended(EndPrefetch("A#1", 1, 0))) == 0
    call("holders", 5000)

    # It is created; tasks; waiting for items, for space and for each other.
    q = Queue.create(name, 1, url=server.url, serializer="raw")
    refused(Queue.create, name, url=server.url)
    assert call("open", "open", 0, "other", "1", "", "", "")[0] == MISMATCH
    refused(run, operations.look_for_rival())
    # The long way, whether other calls wait or not.
    refused(run, operations.get(False, None, eof=True))
    getting = waits(q.get)
    in_line = waits(q.get)
    for item in (b"1", b"2"):
        q.put(item)
    assert {getting.result(), in_line.result()} == {b"1", b"2"}
    joining = waits(q.join)
    q.task_done()
    q.task_done()
    joining.result()
    refused(q.task_done)
    q.put(b"3")
    putting = waits(q.put, b"4")
    in_line = waits(q.put, b"5")
    q.maxsize = 3
    putting.result()
    in_line.result()
    named = f"{server.url}?client_name={name}"  # others may wait on this server too
    putting = waits(Queue(name=name, url=named, reconnect=0).put, b"6")
    (waiter,) = until(lambda: [one["id"] for one in client.client_list() if is_waiting(one, name)])
    client.client_kill_filter(_id=waiter)
    refused(putting.result)
    assert (q.qsize(), q.is_shutdown, q.stats().length) == (3, False, 3)
    run(operations.reject(inside.run(q, operations.get(False, None))))
    assert q.rejected() == [b"3"]
    # A put that has to wait and one that need not; a get by the fast path.
    q.maxsize = 0
    q.put(b"8")
    q.put(b"9")
    for handle in (q, Queue(name=name, url=server.url, serializer="raw")):
        handle.get_nowait()
    run(operations.put_many([b"8", b"9"], True, None))
    run(operations.get_many(2, True, None))
    q.maxsize = 3
    assert inside.run(q, inside.operations(q).unlock("producer")) is None
    assert q.why_blocked().length == 2

    # A large item, whose content is stored, read slowly, and removed; and one that comes too late.
    large = contents.sample()
    run(operations.put(large, True, None, overfill=True))
    call("renew_content", large.token, 5000)
    call("sweep", large.token)
    call("store", "0" * 24, 1, 5000, [[memoryview(b"x")]])
    late = contents.sample().manifest
    call("put", late, 1, b"", 1, "client", "ticket", b"now", "first", 5000)
    while q.qsize() > 2:
        run(operations.get(False, None))

    # A process dies that waits with a role.
    q.put(b"7")
    refused(run, operations.put_many([b"x", b"x"], False, None))
    before = blocked(client)
    doomed = multiprocessing.get_context("spawn").Process(
        target=dying_clients.wait, args=(q, "put")
    )
    doomed.start()
    until(lambda: blocked(client) > before)
    doomed.kill()
    doomed.join()
    refused(q.put, b"8", timeout=1.2)

    # Items in flight, producers, and the end of both.
    q.maxsize = 0
    q.get()
    deliveries = [run(operations.take_many("A", call, 0, 1, False, None))[0] for call in (1, 2)]
    refused(run, operations.take_many("A", 3, 0, 1, False, None))
    run(operations.acknowledge("B", None))
    run(operations.acknowledge("A", deliveries[0].seq))
    run(operations.acknowledge("B", deliveries[1].seq))
    run(operations.set_aside(b"x", "B", deliveries[1].seq))
    run(operations.take_back(TakeBack((Lane(), b"1"))))
    run(operations.requeue("A", seen=1))
    run(operations.renew("A", True, True))
    run(operations.retire("A", seen=1))
    run(operations.retire("A"))
    run(operations.requeue("A"))
    q.get()
    run(operations.put_many([b"1", b"2"], True, None))
    assert run(operations.prefetch(Prefetch("A#1", 1, 0, 0, 9))) == Taken([b"1", b"2"])
    assert run(operations.prefetch(Prefetch("A#1", 1, 1, 0, 0))) == Taken([])
    assert run(ended(EndPrefetch("A#1", 1, 1))) == 1
    for limit in (9, 0):
        assert run(operations.prefetch(Prefetch("A#1", 1, 2, 0, limit))) is Outcome.LATE
    q.get()
    run(operations.put(contents.sample(), True, None))
    assert run(operations.prefetch(Prefetch("A#1", 2, 1, 0, 9))) == NextIsLarge()
    q.get()
    run(operations.put_many([b"1", b"2"], True, None))
    q.maxsize = 0
    call("end_reservation", "A:reader-1", 1, 0, "dead", "A")
    call("end_reservation", "A:reader-1", 1, 0, "reader", "A")
    assert run(operations.prefetch(alone("A:reader-1", 1, 0, 0, 9))) is Outcome.LATE
    with server.client() as redis_client:
        redis_client.delete(f"__pressure__:{name}:consumer")
    assert run(operations.prefetch(alone("A:reader-1", 2, 0, 0, 9))).items == [b"1", b"2"]
    assert run(ended(end_alone("A:reader-1", 2, 0))) == 0
    assert run(operations.prefetch(alone("A:reader-1", 3, 0, 0, 9))).items == [b"1", b"2"]
    assert (run(operations.length()), run(operations.stats()).length) == (2, 2)
    assert run(operations.prefetch(alone("A:reader-1", 4, 1, 0, 9))) is Outcome.SHARED
    q.get()
    assert run(operations.prefetch(Prefetch("A#1", 3, 1, 0, 9))) == NoItem()
    for _ in range(q.unfinished_tasks):
        run(operations.acknowledge("A", None))
    refused(run, operations.acknowledge("A", None))
    q.maxsize = 9
    q.maxsize = 2
    run(operations.put_many([b"1", b"2"], False, None))
    assert run(operations.prefetch(alone("A:reader-2", 1, 0, 0, 9))).items == [b"1"]
    refused(run, operations.put(b"x", False, None))
    refused(run, operations.put_many([b"x", b"x"], False, None))
    run(ended(end_alone("A:reader-2", 1, 0)))
    assert q.get_many(2) == [b"1", b"2"]
    q.task_done()
    q.task_done()
    q.maxsize = 0
    refused(run, operations.get(False, None, eof=True))
    refused(run, operations.get_many(2, False, None))
    refused(run, operations.get_many(2, False, None, eof=True))
    refused(run, operations.take_many("A", 3, 0, 1, False, None, eof=True))
    assert run(operations.prefetch(Prefetch("A#1", 4, 1, 0, 9, True))) is Outcome.ENDED

    # Another client has a role.
    theirs.take("producer")
    refused(ours.put_nowait, b"x")
    refused(run, operations.put_many([b"x", b"x"], False, None))
    refused(ours.close_nowait)
    refused(ours.delete_nowait)
    theirs.give_back("producer")
    theirs.take("consumer")
    refused(ours.get_nowait)
    refused(run, operations.get_many(2, False, None))
    refused(run, operations.take_many("A", 4, 0, 1, False, None))
    assert run(operations.prefetch(Prefetch("A#1", 5, 1, 0, 9))) == InUse("consumer")
    refused(ours.delete_nowait)
    refused(run, operations.purge(False, None))
    shutting = waits(q.shutdown, True)
    theirs.give_back("consumer")
    shutting.result()

    # It is closed, and deleted.
    refused(ours.put, b"x")
    refused(run, operations.put(contents.sample(), True, None))
    refused(ours.get)
    refused(run, operations.put_many([b"x", b"x"], True, None))
    refused(run, operations.get_many(2, True, None))
    refused(run, operations.take_many("A", 5, 0, 1, True, None))
    assert run(operations.prefetch(Prefetch("A#1", 6, 1, 0, 9))) is Outcome.CLOSED
    refused(ours.close)
    refused(run, operations.requeue_rejected(b"x"))
    ours.delete()
    for kind in (Queue, LifoQueue, PriorityQueue, partial(FairQueue, bytes)):
        mend(kind(name=name, url=server.url, serializer="raw"))

    # Another has its name.
    theirs.create()
    assert q.unfinished_tasks == 0
    ours.delete()

    # An anonymous queue, whose users are counted.
    with Queue(url=server.url) as anonymous:
        inside.run(anonymous, ItemOperations(anonymous.name, "fifo").enlist("somebody"))
        assert len(inside.run(anonymous, ItemOperations(anonymous.name, "fifo").users())) == 2
        inside.run(anonymous, ItemOperations(anonymous.name, "fifo").dismiss(["somebody"]))

    # What was taken stays so, if the queue was shut down meanwhile.
    with Queue(url=server.url, buffering=0, prefetch=0) as left:
        left.put(1)
        session = inside.bind(left).session()
        item = drive_on(inside.operations(left).get(False, None), session)
        left.shutdown()
        taken = session.call(session.taken._replace(if_open=True))
        session.end()
        assert taken.items == [item]

    # Other disciplines.
    fair = FairQueue(operator.itemgetter(0), name=name, url=server.url)
    fair.open()
    refused(Queue(0, name, url=server.url).open)
    fair.put(("key", 1))
    assert (fair.snapshot().is_whole, fair.keys(), fair.qsize(key="key")) == (True, ["key"], 1)
    assert fair.get_many(2) == [("key", 1)]
    getting = waits(fair.get_many, 2)
    next_one = waits(fair.get_many, 2)
    fair.put(("key", 2))
    assert getting.result() == [("key", 2)]
    fair.put(("key", 3))
    assert next_one.result() == [("key", 3)]
    with FairQueue(operator.itemgetter(0), name=name, url=server.url, eof="producers") as ending:
        ending.put(("key", 1))
        assert ending.get_many(2) == [("key", 1)]
    with FairQueue(operator.itemgetter(0), name=name, url=server.url, eof="producers") as ending:
        refused(ending.get_many, 2)
    fair.shutdown()
    refused(fair.get_many, 2)
    fair.delete()
    for look in (fair.snapshot, fair.keys, lambda: fair.qsize(key="key"), lambda: fair.get_many(2)):
        refused(look)
    with PriorityQueue(url=server.url) as urgent:
        urgent.put(1)
        refused(urgent.put, "one")


def mend(queue):
    """What an administrator does with a queue, and with none."""
    queue.put(b"1")
    assert queue.peek() == [b"1"]
    operations = inside.operations(queue)
    inside.run(queue, operations.reject(queue.get()))
    if operations.discipline in ("fifo", "lifo"):
        assert queue.requeue_rejected() == 1
        inside.run(queue, operations.reject(queue.get()))
        assert not inside.run(queue, operations.requeue_rejected(b"2"))
    assert queue.drop_rejected() == 1
    assert not inside.run(queue, operations.drop_rejected(b"2"))
    queue.put(b"2")
    assert queue.purge() == 1
    queue.delete()
    with pytest.raises(QueueDoesNotExistError):
        queue.peek()


def test_every_answer_of_every_header_of_tasks_happens(server, name, monkeypatch):
    seen = note_answers(monkeypatch)
    replies.play(server.url, name)
    expected = {op: declared(op) for op in SCRIPTS if op.startswith("tasks/")}
    assert {op: answers for op, answers in seen.items() if op in expected} == expected


@pytest.mark.parametrize("kind", engines.kinds(Can.PROTOCOL))
def test_a_server_that_forgot_the_scripts_is_given_them_again(kind, name):
    server = Server(kind)
    try:
        server.start()
        q = Queue(1, name, url=server.url)
        with server.client() as client:
            q.put(1)
            client.script_flush()
            assert q.get() == 1
            client.script_flush()
            q.put(2)
            putting = Background(q.put, 3)
            until(lambda: blocked(client) == 1)
            client.script_flush()
            assert q.get() == 2
            putting.result()
            assert q.get() == 3
            getting = Background(q.get)
            until(lambda: blocked(client) == 1)
            client.script_flush()
            q.put(4)
            assert getting.result() == 4
    finally:
        server.stop()


def test_a_call_on_a_queue_that_is_gone_leaves_no_key(own_server, name):
    tasks = TaskQueue(name, url=own_server.url)
    tasks.delete()
    inside.engine(tasks).close()  # the next call is the first over its connection
    with pytest.raises(QueueDoesNotExistError):
        tasks.put(1)
    with own_server.client() as client:
        assert client.keys() == []
