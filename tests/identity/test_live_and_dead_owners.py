"""The items, tasks and roles of a process are its own while it lives, and go to other processes
when it has ended, whatever the kernel shows those of it.

A process whose kernel reports a moved moment of its boot sees the owner all the same. A process
whose kernel hides the owner knows only that its pid is there: then the owner's lease counts, and
nothing is deleted.
"""

from __future__ import annotations

import os
import pickle
import signal

import inside
import pytest
from views import AS_IT_IS, HIDDEN, clock_step
from waiting import HOURS, LIMIT, lasting, until

from pressure_mp import JoinableQueue, Queue, TaskQueue
from pressure_mp.identity import processes

#: Seconds for which another waits in vain. It looks at least every half second.
LONG_ENOUGH = 1.6


@pytest.fixture(params=["as it is", "clock -6 s", "clock +10 s", "hidepid=2"])
def view(request, tmp_path):
    """What the kernel shows other processes."""
    steps = {"clock -6 s": -6, "clock +10 s": 10}
    if request.param in steps:
        return clock_step(steps[request.param], tmp_path)
    return HIDDEN if request.param == "hidepid=2" else AS_IT_IS


@pytest.fixture
def broker(valkey, name, monkeypatch):
    """A prefix of the test's own, which programs use too; a client to look at it."""
    monkeypatch.setenv("PRESSURE_URL", valkey.url)
    monkeypatch.setenv("PRESSURE_AUTHKEY", name)
    monkeypatch.setenv("PRESSURE_PREFIX", name)
    with valkey.client() as client:
        yield client
        until(lambda: lasting(client, f"{name}*") == [])


class Kind:
    """A queue whose items have an owner until they are dealt with."""

    def __init__(self, make, get, deal, taken):
        self.make, self.get, self.deal, self.taken = make, get, deal, taken

    def owner(self, lease):
        """A program that takes an item, and deals with it when it is told to."""
        return f"""
import pressure_mp, warnings
q = pressure_mp.{self.make.__name__}(name="q", lease={lease})
item = {self.get.format(timeout=20)}
print("has it", flush=True)
input()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        {self.deal}
        print("dealt with", *[one.category.__name__ for one in caught], flush=True)
    except pressure_mp.PressureError as error:
        print(type(error).__name__, flush=True)
input()
"""

    def other(self, lease, timeout):
        """A program that wants an item, and says how long it took."""
        return f"""
import pressure_mp, time
q = pressure_mp.{self.make.__name__}(name="q", lease={lease})
print("looks", flush=True)
begin = time.monotonic()
try:
    item = {self.get.format(timeout=timeout)}
    print("got", time.monotonic() - begin, flush=True)
    {self.deal}
except pressure_mp.Empty:
    print("nothing", flush=True)
"""


KINDS = {
    "JoinableQueue": Kind(
        JoinableQueue, "q.get(timeout={timeout})", "q.task_done()", lambda q: q.stats().in_flight
    ),
    "TaskQueue": Kind(
        TaskQueue, "q.take({timeout})", "item.ack()", lambda q: q.stats().counts["T"]
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def queue(kind, broker):
    queue = kind.make(name="q", lease=60)
    queue.put("x")
    yield queue
    queue.delete()


def owner_of_all(program, kind, queue, lease):
    """A program that has taken the one item that there is."""
    owner = program(kind.owner(lease))
    assert owner.says() == "has it"
    assert kind.taken(queue) == 1
    return owner


def test_the_item_of_a_live_process_goes_to_no_other_process(program, view, kind, queue):
    owner = owner_of_all(program, kind, queue, lease=2)
    other = program(kind.other(2, LONG_ENOUGH), view=view)
    assert [other.says(), other.says()] == ["looks", "nothing"]
    owner.go_on()
    assert owner.says() == "dealt with"


def test_the_item_of_an_ended_process_goes_to_the_next_before_its_lease_is_over(
    program, view, kind, queue
):
    owner = owner_of_all(program, kind, queue, lease=HOURS)
    other = program(kind.other(HOURS, LIMIT), view=view)
    assert other.says() == "looks"
    owner.kill()
    assert other.says().startswith("got ")
    assert other.says() == ""


def test_the_item_of_a_hidden_process_goes_to_the_next_after_its_lease(program, kind, queue):
    owner = owner_of_all(program, kind, queue, lease=2)
    os.kill(owner.process.pid, signal.SIGSTOP)
    other = program(kind.other(60, 20), view=HIDDEN)
    assert other.says() == "looks"
    assert other.says().startswith("got ")
    assert other.says() == ""
    os.kill(owner.process.pid, signal.SIGCONT)
    owner.go_on()
    assert owner.says() in ("dealt with LateTaskDoneWarning", "TaskNotFound")


# Anonymous queues

USES_ONE = """
import pickle, pressure_mp
q = pressure_mp.Queue()
q.put(1)
q.flush()
print(pickle.dumps(q).hex(), flush=True)
input()
print(q.get(), flush=True)
"""

#: The first use of a broker clears up; so does a process that leaves the queue.
LOOKS = """
import pickle, sys, pressure_mp
pressure_mp.Queue().close()
q = pickle.loads(bytes.fromhex(sys.argv[1]))
q.put(2)
q.flush()
q.close()
"""


def test_the_anonymous_queue_of_a_live_process_stays(program, view, broker):
    owner = program(USES_ONE)
    handle = owner.says()
    assert program(LOOKS, handle, view=view).process.wait() == 0
    q = pickle.loads(bytes.fromhex(handle))
    assert q.qsize() == 2
    q.close()
    owner.go_on()
    assert owner.says() == "1"
    assert owner.process.wait() == 0


def test_the_anonymous_queue_of_a_killed_process_goes_with_the_next_program(program, view, broker):
    owner = program(USES_ONE)
    owner.says()
    owner.kill()
    assert program("import pressure_mp as p\np.Queue().close()", view=view).process.wait() == 0


def test_the_note_of_a_process_that_is_hidden_stays_until_one_comes_that_sees_it(program, broker):
    ended = program(USES_ONE)
    q = pickle.loads(bytes.fromhex(ended.says()))
    assert q.qsize() == 1
    hidden = program("print('is there', flush=True)\ninput()")  # not in the same tick
    assert hidden.says() == "is there"
    users = set(inside.run(q, inside.operations(q).users()))
    (note,) = users - {processes.user()}
    # In time the kernel gives a dead process's pid to another one.
    reused = note.replace(f"/{ended.process.pid}/", f"/{hidden.process.pid}/")
    inside.run(q, inside.operations(q).enlist(reused))
    assert inside.run(q, inside.operations(q).dismiss(sorted(users))) == 1
    sweeps = "import pressure_mp as p\np.Queue().close()"
    assert program(sweeps, view=HIDDEN).process.wait() == 0
    assert inside.run(q, inside.operations(q).users()) == [reused]
    assert program(sweeps).process.wait() == 0
    assert not q.exists()


# Roles, and the texts about their holders

WAITS = """
import pressure_mp
q = pressure_mp.Queue(name="roles", lease=2)
print("waits", flush=True)
print(q.get(), flush=True)
"""

STANDS_IN_LINE = f"""
import pressure_mp
q = pressure_mp.Queue(name="roles", lease=2)
print(str(q.why_blocked()).replace(chr(10), "; "), flush=True)
try:
    q.get(timeout={LONG_ENOUGH})
except pressure_mp.Empty:
    print("nothing", flush=True)
"""


def test_a_live_holder_of_a_role_keeps_it(program, view, broker, name):
    q = Queue(name="roles")
    holder = program(WAITS)
    assert holder.says() == "waits"
    has = until(lambda: broker.hget(f"{name}:roles:mp:consumer_holder", "ticket"))
    other = program(STANDS_IN_LINE, view=view)
    seen = "not known whether alive" if view is HIDDEN else "alive"
    assert f"the consumer role is with pid {holder.process.pid}, " in (told := other.says())
    assert f" ({seen}), which has waited for an item" in told
    assert other.says() == "nothing"
    assert broker.hget(f"{name}:roles:mp:consumer_holder", "ticket") == has
    q.put("for the first")
    assert holder.says() == "for the first"
    q.delete()
