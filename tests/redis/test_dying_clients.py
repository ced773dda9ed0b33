"""A client that is killed, stopped or cut off while it waits delays the others by little."""

from __future__ import annotations

import os

import pytest
from programs.dying_clients import Doomed
from stepwise import StepwiseClient
from waiting import HOURS, LIMIT, Background, blocked, lasting, until

from pressure_mp import (
    ConsumerInUseError,
    Full,
    JoinableQueue,
    PressureQueue,
    Queue,
    QueueDoesNotExistError,
)

#: A lease that no test has the time to wait for, and one that a test waits for.
LONG, SHORT = HOURS, 1.0

ROLES = {"get": "consumer", "put": "producer"}


class Scene:
    """A queue on which everything that can be put or got is waited for."""

    def __init__(self, server, name, observer):
        self.url, self.name, self.observer = server.url, name, observer
        self.doomed = []

    def queue(self, lease):
        return PressureQueue(self.name, url=self.url, lease=lease)

    def create(self, operation, lease, bound=1):
        q = self.queue(lease)
        q.create(bound)
        if operation == "put":
            for _ in range(bound):
                q.put(b"full")
        return q

    def doom(self, q, operation, **options):
        doomed = Doomed(self.observer, q, operation, **options)
        self.doomed.append(doomed)
        until(doomed.is_waiting)
        return doomed

    def waits(self, call, *args):
        before = blocked(self.observer)
        waiting = Background(call, *args)
        until(lambda: blocked(self.observer) > before)
        return waiting

    def begin(self, q, operation):
        """A call of this process that waits."""
        return self.waits(q.get) if operation == "get" else self.waits(q.put, b"ours")

    def serve(self, q, operation):
        """Make the item, or the space, that a waiting call waits for."""
        if operation == "get":
            q.put(b"an item")
        else:
            q.get()

    def is_granted(self, role):
        return self.observer.llen(self.key(f"mp:{role}_granted")) == 1

    def one_of_ours_is_in_line(self):
        entries = self.observer.hvals(self.key("mp:waiting"))
        return any(b":%d:" % os.getpid() in entry for entry in entries)

    def key(self, part):
        return f"__pressure__:{self.name}:{part}"

    def grant(self, q, operation, **options):
        """A stopped process in line is granted the role; one more call stands behind it."""
        first = self.begin(q, operation)
        doomed = self.doom(q, operation, **options)
        doomed.stop()
        last = self.begin(q, operation)
        self.serve(q, operation)
        first.result()
        until(lambda: self.is_granted(ROLES[operation]))
        assert getattr(q.why_blocked(), operation).holder.state == "granted"
        self.serve(q, operation)
        return doomed, last

    def grants_until(self, waiting, operation):
        """How long each had to come for the role that it was granted, until one came, in
        milliseconds."""
        key, grants = self.key(f"mp:{ROLES[operation]}_holder"), {}
        while waiting.is_alive():
            ticket, length, ends = self.observer.hmget(key, "ticket", "lease", "until")
            if ticket == b"granted":
                grants[ends] = int(length)
        waiting.result()
        return grants.values()

    def now(self):
        """The server's clock, in milliseconds."""
        seconds, microseconds = self.observer.time()
        return seconds * 1000 + microseconds // 1000

    def make_old(self):
        """As if clients in the registry that do not look again had not looked for a long time."""
        key = self.key("mp:waiting")
        for ticket, entry in self.observer.hgetall(key).items():
            role, since, _, kept, client = entry.split(b" ", 4)
            self.observer.hset(key, ticket, b" ".join([role, since, b"0", kept, client]))

    def end(self):
        for doomed in self.doomed:
            doomed.kill()
        try:
            self.queue(LONG).delete(timeout=LIMIT)
        except QueueDoesNotExistError:
            pass
        assert lasting(self.observer, f"*{self.name}*") == []


@pytest.fixture
def scene(valkey, name):
    with valkey.client() as observer:
        scene = Scene(valkey, name, observer)
        yield scene
        scene.end()


both = pytest.mark.parametrize("operation", ["get", "put"])


# With a role. What becomes of a holder that is killed or stopped: see test_connections.py.


@both
def test_one_with_a_role_whose_connection_is_cut(scene, operation):
    q = scene.create(operation, LONG)
    doomed = scene.doom(q, operation)
    last = scene.begin(q, operation)
    doomed.cut()
    for _ in range(2):  # the client that was cut off may connect again, and go first
        scene.serve(scene.queue(LONG), operation)
        if not last.is_alive():
            break
    last.result()


# With a role, and others pass it: there is an item, or space, for each.


def act(q, operation):
    """Without a time limit: when its time is up, a call passes others in any case."""
    (Background(q.get) if operation == "get" else Background(q.put, b"ours")).result()


@both
def test_others_pass_a_killed_one_with_the_role_and_have_what_was_left_for_it(scene, operation):
    q = scene.create(operation, LONG, bound=2)
    scene.doom(q, operation).kill()
    for _ in range(2):
        scene.serve(q, operation)
    act(q, operation)
    act(q, operation)  # waits until the role is taken from the killed one
    assert q.length() == (0 if operation == "get" else 2)


@both
def test_others_pass_a_stopped_one_with_the_role_and_leave_something_for_it(scene, operation):
    q = scene.create(operation, LONG, bound=2)
    doomed = scene.doom(q, operation)
    doomed.stop()
    for _ in range(2):
        scene.serve(q, operation)
    act(q, operation)
    doomed.go_on()
    doomed.process.join(LIMIT)
    assert doomed.process.exitcode == 0
    assert q.length() == (0 if operation == "get" else 2)


@both
def test_another_implementation_that_joins_has_its_turn_while_ours_pass_a_stopped_one(
    scene, operation, theirs
):
    q = scene.create(operation, SHORT, bound=4)
    scene.doom(q, operation).stop()
    for _ in range(4):
        scene.serve(q, operation)
    theirs_waits = wait_for_theirs(theirs, operation)
    until(lambda: theirs.is_blocked(scene.observer))
    while theirs_waits.is_alive():
        act(q, operation)
        scene.serve(q, operation)
    theirs_waits.result()


# In line, and the turn has not come.


@both
@pytest.mark.parametrize("fault", ["kill", "cut"])
def test_one_in_line_that_is_killed_or_cut_off(scene, operation, fault):
    q = scene.create(operation, LONG)
    first = scene.begin(q, operation)
    doomed = scene.doom(q, operation)
    last = scene.begin(q, operation)
    getattr(doomed, fault)()
    scene.serve(q, operation)
    first.result()
    scene.serve(q, operation)
    if fault == "cut":  # it connects again, and may be served before the last
        until(lambda: not (last.is_alive() and doomed.process.is_alive()))
        if last.is_alive():
            scene.serve(q, operation)
    last.result()


# In line, and the turn has come: between the server's grant and the next call.


@both
def test_a_client_killed_as_its_turn_comes_does_not_delay_the_next_for_its_lease(scene, operation):
    q = scene.create(operation, LONG)
    doomed, last = scene.grant(q, operation)
    doomed.kill()
    last.result()


@both
def test_the_next_in_line_is_served_when_a_client_is_stopped_as_its_turn_comes(scene, operation):
    q = scene.create(operation, SHORT)
    _, last = scene.grant(q, operation)
    last.result()


@both
def test_one_of_another_host_that_is_killed_as_its_turn_comes(scene, operation):
    """No process here can know that it is dead: the lease decides."""
    q = scene.create(operation, SHORT)
    doomed, last = scene.grant(q, operation, elsewhere=True)
    doomed.kill()
    last.result()


def test_the_next_in_line_is_served_when_a_stopped_client_is_cut_off_as_its_turn_comes(scene):
    q = scene.create("get", SHORT)
    connection = []
    first = scene.begin(q, "get")
    doomed = scene.doom(q, "get")
    connection.append(until(doomed.connection))
    doomed.stop()
    last = scene.begin(q, "get")
    scene.serve(q, "get")
    first.result()
    until(lambda: scene.is_granted("consumer"))
    scene.observer.client_kill_filter(_id=connection.pop())
    scene.serve(q, "get")
    last.result()


def test_a_stopped_client_that_goes_on_after_its_turn_was_taken_stands_in_line_again(scene):
    q = scene.create("get", SHORT)
    doomed, last = scene.grant(q, "get")
    assert last.result() == b"an item"
    doomed.go_on()
    until(doomed.is_waiting)
    q.put(b"for the one that was stopped")
    doomed.process.join(LIMIT)
    assert doomed.process.exitcode == 0
    assert q.length() == 0


def test_many_that_are_killed_in_line_delay_the_next_by_a_second(scene):
    q = scene.create("get", LONG)
    first = scene.begin(q, "get")
    doomed = [scene.doom(q, "get") for _ in range(3)]
    for one in doomed:
        one.stop()
    last = scene.begin(q, "get")
    scene.serve(q, "get")
    first.result()
    until(lambda: scene.is_granted("consumer"))
    scene.serve(q, "get")
    for one in doomed:
        one.kill()
    last.result()


# Many that are stopped. So many leases are longer than any test waits; one is not.

STOPPED_LEASE = 6.0
MANY = 8


def go_on(scene, q, operation, doomed):
    """The clients that were stopped stand in line again, and each is served once."""
    for one in doomed:
        one.go_on()
    for _ in doomed:
        scene.serve(q, operation)
    for one in doomed:
        one.process.join(LIMIT)
        assert one.process.exitcode == 0
    stats = q.stats()
    assert stats.length == (operation == "put")
    assert stats.produced_messages - stats.consumed_messages == stats.length


@both
@pytest.mark.parametrize("number", [3, MANY])
def test_many_that_are_stopped_in_line_delay_the_next_by_less_than_a_lease(
    scene, operation, number
):
    q = scene.create(operation, STOPPED_LEASE)
    first = scene.begin(q, operation)
    doomed = [scene.doom(q, operation) for _ in range(number)]
    for one in doomed:
        one.stop()
    last = scene.begin(q, operation)
    scene.serve(q, operation)
    first.result()
    serving = Background(scene.serve, q, operation)
    assert 1000 < sum(scene.grants_until(last, operation)) < STOPPED_LEASE * 1000
    serving.result()
    go_on(scene, q, operation, doomed)


@both
def test_many_that_are_stopped_with_the_role_and_in_line_delay_the_next_by_a_lease(
    scene, operation
):
    q = scene.create(operation, STOPPED_LEASE)
    doomed = [scene.doom(q, operation) for _ in range(MANY)]
    for one in doomed:
        one.stop()
    last = Background(q.get) if operation == "get" else Background(q.put, b"ours")
    serving = Background(scene.serve, q, operation)
    # The last client has waited for a lease already.
    assert 0 < sum(scene.grants_until(last, operation)) < 1000
    serving.result()
    go_on(scene, q, operation, doomed)


@both
def test_many_that_are_stopped_as_their_turn_comes_delay_the_next_by_less_than_a_lease(
    scene, operation
):
    q = scene.create(operation, STOPPED_LEASE)
    first = scene.begin(q, operation)
    for _ in range(MANY):
        scene.doom(q, operation, stops_when_granted=True)
    last = scene.begin(q, operation)
    scene.serve(q, operation)
    first.result()
    scene.serve(q, operation)
    last.result()


@both
def test_clients_that_come_long_after_have_the_whole_time_again(scene, operation):
    """Clients stopped in line left little time to the next client, for a lease and not for ever."""
    q = scene.create(operation, SHORT)
    role, lease = ROLES[operation], int(SHORT * 1000)
    _, last = scene.grant(q, operation)
    last.result()
    token = until(lambda: scene.observer.lindex(scene.key(f"{role}_free"), 0))
    word, length, valid = token.split()
    assert word == b"grant"
    assert int(length) < lease / 3
    assert int(valid) <= scene.now() + lease
    until(lambda: scene.now() > int(valid))
    scene.observer.rename(scene.key(f"{role}_free"), scene.key(f"mp:{role}_granted"))  # a grant
    scene.queue(SHORT).length()  # a look, the first that sees it
    assert int(scene.observer.hget(scene.key(f"mp:{role}_holder"), "lease")) == -(-lease // 3)


def test_many_consumers_of_a_joinable_queue_that_are_stopped(scene, valkey):
    q = JoinableQueue.create(scene.name, 1, url=valkey.url, lease=STOPPED_LEASE)
    doomed = [scene.doom(q, "get") for _ in range(MANY)]
    for one in doomed:
        one.stop()
    last = Background(q.get)
    q.put("an item")
    assert last.result() == "an item"
    q.task_done()


@both
def test_many_that_are_stopped_with_another_implementation_next_in_line(scene, operation, theirs):
    """A call of ours that waits in the other role looks after this role too."""
    q = scene.create(operation, STOPPED_LEASE)
    doomed = [scene.doom(q, operation) for _ in range(MANY)]
    for one in doomed:
        one.stop()
    theirs_waits = wait_for_theirs(theirs, operation)
    scene.serve(q, operation)
    ours = scene.begin(q, OTHER[operation])
    theirs_waits.result()
    ours.result()


# Another make is next in line, and ours only looks, or waits in the other role.

OTHER = {"get": "put", "put": "get"}


@pytest.fixture
def theirs(valkey, name):
    client = StepwiseClient(valkey.port, name)
    yield client
    client.abort()


def wait_for_theirs(theirs, operation):
    return Background(theirs.get) if operation == "get" else Background(theirs.put, b"theirs")


def kill_before_theirs(scene, theirs, operation, lease, **options):
    """A client of ours is killed with the role, and what it waited for comes; theirs waits."""
    q = scene.create(operation, lease)
    doomed = scene.doom(q, operation, **options)
    waiting = wait_for_theirs(theirs, operation)
    until(lambda: theirs.is_blocked(scene.observer))
    doomed.kill()
    scene.serve(q, operation)
    return q, waiting


@both
def test_a_waiting_call_in_the_other_role_frees_the_role_of_a_killed_client(
    scene, theirs, operation
):
    q, waiting = kill_before_theirs(scene, theirs, operation, LONG)
    ours = scene.begin(q, OTHER[operation])
    waiting.result()
    ours.result()


@both
def test_a_waiting_call_in_the_other_role_ends_the_lease_of_a_client_on_another_host(
    scene, theirs, operation
):
    """The killed client was on another host, so that no process here knows that it is dead."""
    q, waiting = kill_before_theirs(scene, theirs, operation, SHORT, elsewhere=True)
    ours = scene.begin(q, OTHER[operation])
    waiting.result()
    ours.result()


@both
@pytest.mark.parametrize("look", ["length", "stats", "why_blocked"])
def test_a_look_frees_the_role_of_a_killed_one(scene, theirs, operation, look):
    q, waiting = kill_before_theirs(scene, theirs, operation, LONG)
    getattr(q, look)()
    waiting.result()


def test_a_join_frees_the_role_of_a_killed_client(scene, valkey, theirs):
    _, waiting = kill_before_theirs(scene, theirs, "put", LONG)
    tasks = Queue.attach(scene.name, url=valkey.url, lease=LONG)
    joining = scene.waits(tasks.join)
    waiting.result()
    for _ in range(tasks.unfinished_tasks):
        tasks.task_done()
    joining.result()


def test_a_process_with_an_item_in_flight_frees_the_role_of_a_killed_client(scene, valkey, theirs):
    q = JoinableQueue.create(scene.name, 1, url=valkey.url, serializer="raw", lease=LONG)
    q.put(b"in work")
    q.get()
    q.put(b"full")
    doomed = scene.doom(q, "put")
    waiting = wait_for_theirs(theirs, "put")
    until(lambda: theirs.is_blocked(scene.observer))
    doomed.kill()
    scene.observer.rpop(scene.key("").removesuffix(":"))
    scene.observer.lpush(scene.key("not_full"), 1)
    waiting.result()
    for _ in range(2):
        q.task_done()


# Joining and deleting.


@pytest.mark.parametrize("fault", ["kill", "stop", "cut"])
def test_a_join_that_is_killed_stopped_or_cut_off_does_not_hinder_another_join(
    scene, valkey, fault
):
    q = Queue.create(scene.name, url=valkey.url, serializer="raw", lease=LONG)
    q.put(b"a task")
    q.get()
    doomed = scene.doom(q, "join")
    joining = scene.waits(q.join)
    getattr(doomed, fault)()
    q.task_done()
    joining.result()
    q.put(b"more")
    assert q.get() == b"more"


@pytest.mark.parametrize(
    ("granted", "fault", "lease"),
    [
        (False, "kill", LONG),
        (False, "stop", SHORT),
        (False, "cut", LONG),
        (True, "kill", LONG),
        (True, "stop", SHORT),
    ],
)
def test_a_delete_that_is_killed_stopped_or_cut_off_is_completed_by_the_next_delete(
    scene, valkey, granted, fault, lease
):
    """It waits for another implementation; the next delete ends its work."""
    q = scene.create("get", lease)
    theirs = StepwiseClient(valkey.port, scene.name)
    try:
        theirs.take("consumer")
        doomed = scene.doom(q, "delete")
        if granted:
            doomed.stop()
            theirs.give_back("consumer")
            until(lambda: scene.is_granted("consumer"))
            getattr(doomed, fault)()
            deleting = Background(q.delete)
        else:
            getattr(doomed, fault)()
            deleting = Background(q.delete)
            until(scene.one_of_ours_is_in_line)
            theirs.give_back("consumer")
        deleting.result()
        assert not q.exists()
    finally:
        theirs.abort()


# The registry of waiting clients.


def test_the_killed_are_dropped_from_the_registry(scene):
    q = scene.create("get", LONG)
    first = scene.begin(q, "get")
    for _ in range(2):
        scene.doom(q, "get").kill()
    last = scene.begin(q, "get")
    assert scene.observer.hlen(scene.key("mp:waiting")) == 3
    scene.make_old()
    until(lambda: scene.observer.hlen(scene.key("mp:waiting")) == 1)
    for waiting in (first, last):
        scene.serve(q, "get")
        waiting.result()
    assert not scene.observer.exists(scene.key("mp:waiting"))


def test_the_registry_is_bounded_also_when_calls_wait_only_briefly(scene):
    q = scene.create("get", LONG)
    key = scene.key("mp:waiting")
    old = {f"ticket-{number}": "consumer 0 0 10000 somebody" for number in range(200)}
    scene.observer.hset(key, mapping=old)
    assert q.why_blocked().get.line == ()
    holder = scene.begin(q, "get")
    for _ in range(4):
        waiting = Background(q.get, 0.02)
        with pytest.raises(ConsumerInUseError):
            waiting.result()
    assert scene.observer.hlen(key) < 64
    scene.serve(q, "get")
    holder.result()


def test_a_call_that_is_served_at_once_does_not_touch_the_registry(scene):
    q = scene.create("get", LONG)
    scene.observer.set(scene.key("mp:waiting"), "not a hash: to touch it is an error")
    for _ in range(2):
        q.put(b"x")
        q.get()
    q.put(b"x")
    with pytest.raises(Full):
        q.put_nowait(b"y")
    assert q.get_nowait() == b"x"
