"""The states of a task, and every way from one to another.

The documents, their picture, the statistics, the memory engine and the tests all read this.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class TaskState(str, Enum):
    """The state of a task. It is a str, its letter: ``TaskState.READY == "R"``."""

    READY = "R"
    WAITING = "W"
    TAKEN = "T"
    BURIED = "B"
    ZOMBIE = "Z"
    DONE = "D"
    #: It is not in the queue: not yet, or no longer.
    VOID = "X"

    @property
    def word(self) -> str:
        """``"ready"``, ``"waiting"``, and so on."""
        return self.name.lower()

    def __str__(self) -> str:
        return str.__str__(self)

    def __format__(self, how: str) -> str:
        return str.__format__(self, how)


READY = TaskState.READY
WAITING = TaskState.WAITING
TAKEN = TaskState.TAKEN
BURIED = TaskState.BURIED
ZOMBIE = TaskState.ZOMBIE
DONE = TaskState.DONE
VOID = TaskState.VOID

#: The states that a task in a queue can be in: each one's word.
NAMES = {state: state.word for state in TaskState if state is not VOID}

#: The states of the tasks that a bound counts.
QUEUED = (READY, WAITING)

#: Stands in transitions, but is no state: the way from one tube to another.
SHIFT = "S"

#: The time of a queue's zombies that stay until they are removed.
FOR_GOOD = -1

_KNOWN = {name: state for state in TaskState for name in (state.value, state.word)}


class Transition(NamedTuple):
    """One way from a state to another; ``when`` says on what condition, if on any."""

    before: str
    after: str
    operation: str
    when: str = ""

    @property
    def name(self) -> str:
        """The name of the transition in statistics, such as ``R-T``."""
        return f"{self.before}-{self.after}"


#: Happens by itself, inside the next operation of any kind.
TIME = "time"
#: Returns the tasks of a taker that has ended.
REQUEUE = "requeue"

_TRANSITIONS = [
    Transition(VOID, READY, "put"),
    Transition(VOID, WAITING, "put", "with a delay"),
    *(
        Transition(before, after, "replace", "with a delay" if after == WAITING else "")
        for before in (READY, WAITING)
        for after in (READY, WAITING)
    ),
    Transition(WAITING, READY, TIME, "when the delay has passed"),
    Transition(READY, VOID, TIME, "when ttl has passed"),
    Transition(READY, TAKEN, "take"),
    Transition(TAKEN, READY, TIME, "when ttr has passed"),
    Transition(TAKEN, BURIED, TIME, "when ttr has passed, after max_deliveries"),
    Transition(TAKEN, READY, REQUEUE, "when the taker has died"),
    Transition(TAKEN, BURIED, REQUEUE, "when the taker has died, after max_deliveries"),
    Transition(TAKEN, READY, "release"),
    Transition(TAKEN, WAITING, "release", "with a delay"),
    Transition(TAKEN, BURIED, "release", "after max_deliveries"),
    Transition(TAKEN, BURIED, "bury"),
    Transition(TAKEN, VOID, "ack"),
    Transition(TAKEN, ZOMBIE, "ack", "in a queue with zombies, or as a zombie for a time"),
    Transition(TAKEN, DONE, "ack", "of a queue that keeps tasks"),
    Transition(ZOMBIE, VOID, TIME, "when the zombie time has passed"),
    Transition(BURIED, VOID, TIME, "when ttl has passed"),
    Transition(BURIED, READY, "kick"),
    Transition(BURIED, WAITING, "kick", "with a delay"),
    Transition(TAKEN, READY, "snatch"),
    Transition(TAKEN, WAITING, "snatch", "with a delay"),
    *(Transition(before, READY, "restart") for before in (WAITING, DONE, ZOMBIE)),
    *(Transition(before, WAITING, "restart", "with a delay") for before in (DONE, ZOMBIE)),
    *(
        Transition(before, after, "switch")
        for before in (READY, WAITING, BURIED, ZOMBIE, DONE)
        for after in (READY, WAITING, BURIED, ZOMBIE, DONE)
        if before != after
    ),
    *(Transition(before, VOID, "kill") for before in NAMES),
    *(Transition(before, VOID, "cancel") for before in (READY, WAITING, TAKEN)),
    *(Transition(before, VOID, "truncate") for before in NAMES),
]

#: Ways from one tube to another: counted in the tubes only, where a task leaves the one and comes
#: to the other. In total such a way counts as the change of state that it also is, if it is one.
_SHIFTS = [
    *(Transition(before, SHIFT, "move") for before in NAMES),
    *(Transition(SHIFT, after, "move") for after in NAMES if after != TAKEN),
    *(Transition(TAKEN, SHIFT, giving, "with a tube") for giving in ("release", "bury")),
    Transition(TAKEN, SHIFT, "ack", "with a tube, of a queue that keeps tasks"),
    Transition(SHIFT, READY, "release", "with a tube"),
    Transition(SHIFT, WAITING, "release", "with a tube and a delay"),
    Transition(SHIFT, BURIED, "release", "with a tube, after max_deliveries"),
    Transition(SHIFT, BURIED, "bury", "with a tube"),
    Transition(SHIFT, ZOMBIE, "ack", "with a tube, as a zombie"),
    Transition(SHIFT, DONE, "ack", "with a tube, of a queue that keeps tasks"),
]

#: Every way there is. No other transition ever happens.
TRANSITIONS = (*_TRANSITIONS, *_SHIFTS)


#: The transitions by which a task comes to be queued, and by which it is queued no longer, with the
#: change of the number of queued tasks.
QUEUED_WAYS = {
    row.name: 1 if row.after in QUEUED else -1
    for row in _TRANSITIONS
    if (row.before in QUEUED) != (row.after in QUEUED)
}


def named(state: str) -> TaskState:
    """Return the state of this letter or word. Raises KeyError."""
    return _KNOWN[state]


def word(state: str) -> str:
    """Return the word for a state, or for the lack of one, in a sentence."""
    return NAMES.get(named(state), "not there")


def sources(operation: str) -> frozenset[str]:
    """Return the states out of which an operation takes a task."""
    return frozenset(row.before for row in TRANSITIONS if row.operation == operation) - {SHIFT}
