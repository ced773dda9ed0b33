"""A queue of tasks on a real engine, and the same one in memory, which is the specification."""

from __future__ import annotations

import contextlib
import secrets

from pressure_mp import PressureError, TaskError, states
from pressure_mp.config import resolve
from pressure_mp.drivers import drive
from pressure_mp.effects import Call
from pressure_mp.engines import registry
from pressure_mp.operations.administration import ALL_STATES, TaskAdministrationOperations
from pressure_mp.operations.tasks import NO_EDIT, Changed
from pressure_mp.records import unpack


class Pair:
    """Each operation is done to both, and must come to the same."""

    def __init__(self, url):
        name = f"test-{secrets.token_hex(8)}"
        self.operations = TaskAdministrationOperations(name, 5000)
        addresses = [resolve(one, None, None, None, None) for one in (url, "memory://model")]
        engines = [registry.engine(registry.settle(address)) for address in addresses]
        self.bindings = [engine.bind(name, "tasks") for engine in engines]

    def run(self, make):
        """What the operation answers, or the error that it raises, without what may differ."""
        theirs, ours = (outcome(binding, make()) for binding in self.bindings)
        assert theirs == ours
        return ours

    def check(self):
        """The same tasks are in the same states, and the statistics count them."""
        stats = [drive(self.operations.stats(), one.session()) for one in self.bindings]
        assert stats[0].counts == stats[1].counts
        assert stats[0].transitions == stats[1].transitions
        assert stats[0].tubes == stats[1].tubes
        lists = [
            drive(self.operations.list(ALL_STATES, "", 1000), one.session())
            for one in self.bindings
        ]
        assert sorted(map(plain, lists[0])) == sorted(map(plain, lists[1]))
        ready = [[task.id for task in tasks if task.record[:1] == b"R"] for tasks in lists]
        assert ready[0] == ready[1]
        for stat, tasks in zip(stats, lists, strict=True):
            there = [unpack(task.record).state for task in tasks]
            assert stat.counts == {state: there.count(state) for state in states.NAMES}
        known = {transition.name for transition in states.TRANSITIONS}
        assert all(one.transitions.keys() <= known for one in (stats[0], *stats[0].tubes.values()))


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
        pair.run(pair.operations.delete)


def take_next(operations, id, fence, owner, call, limit=1, tube="", ttr=None):
    """Acknowledge a task and take the next, as a take of the queue does that is given one."""
    now, taken = 0, []
    if limit == 1 and not tube:
        reply = yield Call("next", operations.next_args(id, fence, owner, call, ttr))
        now, taken = yield from operations.following(reply, owner, call)
    if not now:
        yield from operations.ack(id, owner, fence, None, None, NO_EDIT, False)
    if not taken:
        taken = yield from operations.take(owner, call, limit, tube, ttr, False, None)
    return taken


def outcome(binding, operation):
    """What an operation answers or raises, without what may differ between two brokers."""
    try:
        answer = drive(operation, binding.session())
    except TaskError as error:
        return type(error), error.task_id, error.state
    except (PressureError, Changed) as error:
        return type(error)
    return plain(answer)


def plain(answer):
    """An answer without what differs between two brokers: moments, and numbers of arrivals."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    if isinstance(answer, tuple):
        if hasattr(answer, "record") and answer.record:
            record = unpack(answer.record)
            same = record.state, record.priority, record.deliveries, record.call, bool(record.due)
            return answer.id, answer.data, *same, record.tube, record.owner, record.error
        return tuple(plain(one) for one in answer)
    if isinstance(answer, TaskError):
        return type(answer).__name__, answer.task_id, answer.state
    return answer if isinstance(answer, (bytes, int, str, bool, type(None))) else type(answer)
