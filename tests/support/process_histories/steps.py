"""The steps of a history, as text: ``p0 put q0 2 small``.

A step names the actor that it is about, and makes sense in any history: one that is not possible
when its turn comes, as its actor has ended or was never started, is left out. So every part of a
history is a history.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

Step = tuple[str, ...]

#: How a process is started, and how often in ten.
WAYS = {"fork": 7, "spawn": 1, "forkserver": 1, "thread": 1}
#: What the queues of a history are, and how often in twenty.
KINDS = {
    "Queue": 12,
    "JoinableQueue": 4,
    "named-Queue": 1,
    "named-JoinableQueue": 1,
    "TaskQueue": 1,
    "SimpleQueue": 1,
}
BOUNDS = (0, 0, 0, 1, 2, 3, 4, 8)
LENGTH = 40

#: Where nothing else is said: which verbs there are, and how often each is drawn.
VERBS = {
    "put": 20,
    "get": 14,
    "burst": 4,
    "wait": 4,
    "work": 3,
    "batch": 3,
    "fetch": 3,
    "offer": 2,
    "poll": 2,
    "done": 5,
    "flush": 3,
    "count": 5,
    "start": 12,
    "adopt": 2,
    "bound": 1,
    "close": 2,
    "end": 2,
    "kill": 3,
    "stop": 2,
    "go": 3,
    "pause": 2,
    "unlink": 0.7,
    "restart": 0.7,
    "shutdown": 0.3,
}


class Drawing:
    """A history that a seed stands for."""

    def __init__(
        self,
        seed: object,
        ways: Iterable[str] = WAYS,
        kinds: Iterable[str] = KINDS,
    ) -> None:
        self._chance = random.Random(str(seed))
        self._ways = {way: WAYS[way] for way in ways}
        self._kinds = {kind: KINDS[kind] for kind in kinds}
        self._length = self._chance.randrange(8, LENGTH)
        self._actors = ["p0"]
        self._made = 1
        self._queues: list[str] = []
        self._stopped: list[str] = []

    def steps(self) -> list[Step]:
        found = [self._make() for _ in range(self._chance.choice((1, 1, 1, 2)))]
        # Each history has some verbs often, and lacks others: so it goes far in one direction.
        weights = {
            verb: weight * self._chance.choice((0, 0.5, 1, 1, 2)) for verb, weight in VERBS.items()
        }
        weights |= {"put": VERBS["put"], "get": VERBS["get"]}
        for _ in range(self._length):
            verb = self._pick(weights)
            drawn: Callable[[str], Step] = getattr(self, f"_{verb}", self._plain)
            found.append(drawn(verb))
        return found

    def _pick(self, weights: dict[str, float]) -> str:
        return self._chance.choices(list(weights), list(weights.values()))[0]

    def _actor(self) -> str:
        """The latest are drawn more often: of the others, some have ended."""
        return self._chance.choice(self._actors[-3:] + self._actors)

    def _queue(self) -> str:
        return self._chance.choice(self._queues)

    def _size(self) -> str:
        return self._chance.choice(("small",) * 12 + ("medium",) * 2 + ("large",))

    def _make(self) -> Step:
        kind = self._pick(self._kinds)
        bound = 0 if kind in ("TaskQueue", "SimpleQueue") else self._chance.choice(BOUNDS)
        self._queues.append(f"q{len(self._queues)}")
        lease = self._chance.choice(("5", "1"))
        return ("p0", "make", self._queues[-1], kind, str(bound), lease)

    def _plain(self, verb: str) -> Step:
        return (self._actor(), verb, self._queue())

    def _start(self, verb: str) -> Step:
        parent = self._actor()
        self._actors.append(f"p{self._made}")
        self._made += 1
        return (parent, self._pick(dict(self._ways)), self._actors[-1])

    def _several(self, verb: str) -> Step:
        return (*self._plain(verb), str(self._chance.choice((1, 1, 1, 2, 3, 7))))

    _get = _wait = _work = _fetch = _done = _several

    def _put(self, verb: str) -> Step:
        return (*self._several(verb), self._size())

    _batch = _put

    def _burst(self, verb: str) -> Step:
        return (*self._plain(verb), str(self._chance.choice((5, 20, 100))), "small")

    def _offer(self, verb: str) -> Step:
        return (*self._plain(verb), self._size())

    def _adopt(self, verb: str) -> Step:
        return (*self._plain(verb), self._actor())

    def _bound(self, verb: str) -> Step:
        return (*self._plain(verb), str(self._chance.choice(BOUNDS)))

    def _alone(self, verb: str) -> Step:
        return (self._actor(), verb)

    _flush = _end = _kill = _alone

    def _stop(self, verb: str) -> Step:
        self._stopped.append(self._actor())
        return (self._stopped[-1], verb)

    def _go(self, verb: str) -> Step:
        return (self._stopped.pop(0) if self._stopped else self._actor(), verb)

    def _pause(self, verb: str) -> Step:
        return ("-", verb, self._chance.choice(("0.01", "0.05", "0.05", "0.3", "1.2")))

    def _restart(self, verb: str) -> Step:
        return ("-", verb)

    def _shutdown(self, verb: str) -> Step:
        return (*self._plain(verb), self._chance.choice(("later", "later", "immediate")))


def printed(steps: Iterable[Step]) -> str:
    return "\n".join(" ".join(step) for step in steps)


def parsed(text: str) -> list[Step]:
    return [tuple(line.split()) for line in text.splitlines() if line.split()]


def shrunk(steps: list[Step], fails: Callable[[list[Step]], bool], tries: int) -> list[Step]:
    """The fewest steps that still fail, as far as leaving parts out finds them in so many tries."""
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            if not tries:
                return steps
            tries -= 1
            fewer = steps[:at] + steps[at + size :]
            if fails(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps
