"""Runs a history step by step: tells actors over pipes what to call, and hears what comes of it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faults.histories import BUSY, CLOSED, DONE, EMPTY, FENCED, FULL, Operation
from waiting import until

from pressure_mp.identity import shared_folder
from process_histories.actors import HANG, Actor, Actors, Broken, First, Process
from process_histories.model import Queue
from process_histories.steps import WAYS, Step, printed

#: Seconds within which an item that is there comes, also behind a killed or stopped process.
LIMIT = 30.0
#: Seconds for which a call waits for what may not come.
SHORT = 0.05
#: Seconds after a kill in which a refusal may be due to what the killed process had.
AFTERMATH = 2.0

#: Steps that may be done while a process is stopped in the midst of a call.
_IN_TURMOIL = ("go", "kill", "pause", "get", "poll", "put", "offer", "wait", "burst", "work")
#: Calls that go on while other actors act.
_IN_BACKGROUND = ("wait", "burst", "work")
_GETS = ("get", "fetch", "work")
#: Calls that these kinds of queues do not have.
_LACKS = {"TaskQueue": ("offer", "bound", "shutdown"), "SimpleQueue": ("bound", "shutdown", "done")}


class Conductor:
    """One history at one broker. ``server`` may be killed and started again, if it is given.

    The methods that are not private are the steps; each is given an actor, and the words of the
    step behind its verb.
    """

    def __init__(self, first: First, url: str, server: Any = None) -> None:
        self._first = first
        self._url = url
        self._server = server
        #: Which processes used a queue before the file of its memory was removed.
        self._seeing: dict[str, set[Process]] = {}
        self._counts: dict[str, int] = {}
        self._troubled_at = -AFTERMATH
        self.queues: dict[str, Queue] = {}
        self.done_steps: list[Step] = []
        self.actors: Actors

    def run(self, steps: list[Step]) -> None:
        """Raises Broken."""
        from process_histories.ending import end

        self.actors = Actors(self)
        try:
            self.actors.start(self._first, "p0")
            for step in steps:
                if self._can(step):
                    self.done_steps.append(step)
                    self._do(step)
            end(self)
            may_fail = any(queue.shut_down or queue.unlinked for queue in self.queues.values())
            if self.actors.errors and not may_fail:
                raise Broken("a process wrote an error")
        except Broken as error:
            texts = [str(error), self.actors.errors, "The steps:", printed(self.done_steps)]
            raise Broken("\n".join(text for text in texts if text)) from None
        finally:
            self.actors.close()

    # What actors tell.

    def note(self, actor: Actor, queue: str, told: list[tuple[str, str, int, int, str]]) -> None:
        for kind, item, begin, end, outcome in told:
            self._note(
                actor, self.queues[queue], Operation(actor.name, kind, begin, end, outcome, item)
            )

    def _note(self, actor: Actor, queue: Queue, done: Operation) -> None:
        if done.outcome in (EMPTY, FULL) and self._is_troubled():
            done = Operation(done.client, done.kind, done.begin, done.end, BUSY, done.item)
        if done.outcome == CLOSED and not queue.shut_down:
            raise Broken(f"{done.call} was told of a shutdown, and there was none")
        if done.outcome == FENCED and actor.name not in queue.losers:
            raise Broken(f"{done.call}: the item was given to another one")
        if done.kind == "get" and done.outcome == DONE:
            actor.last_got.append(done.item)
        queue.note(done)

    def forgives(self, actor: Actor, queue: str, error: str) -> bool:
        if error.startswith("ShutDown"):  # of what was put before, in the background
            return any(one.shut_down for one in self.queues.values())
        if "is not ready: LOADING" in error:  # the call's time was up before the broker was back
            return self._is_troubled()
        return "BrokerError" in error and self.may_be_blind(actor, queue)

    def may_be_blind(self, actor: Actor, name: str) -> bool:
        """Whether it may not see the queue's items in memory, because the file was removed."""
        queue = self.queues.get(name)
        return queue is not None and queue.unlinked and actor.process not in self._seeing[name]

    def _is_troubled(self) -> bool:
        """Whether a process that was killed or stopped may hold up calls of others."""
        return bool(self.actors.stopped) or time.monotonic() - self._troubled_at < AFTERMATH

    # Which steps are possible.

    def _can(self, step: Step) -> bool:
        self.actors.collect_all()
        name, verb, *given = step
        if self.actors.are_in_turmoil and verb not in _IN_TURMOIL:
            return False
        if name == "-":
            return verb != "restart" or (self._server is not None and not self.actors.stopped)
        actor = self.actors.of.get(name)
        if actor is None or not actor.is_alive:
            return False
        process = actor.process
        if verb in ("stop", "go"):
            can_stop = verb == "stop" and self._is_spared(process)
            return process.is_stopped if verb == "go" else not process.is_stopped and can_stop
        if verb == "kill":
            return self._is_spared(process)
        if not actor.is_idle:
            return False
        if verb == "end":
            return self._can_end(actor)
        if verb in WAYS:
            can_start = verb != "forkserver" or not process.has_foreign_forkserver
            return can_start and given[0] not in self.actors.of
        return verb in ("make", "flush") or self._can_use(actor, verb, *given)

    def _is_spared(self, without: Process | Actor) -> bool:
        """Whether another actor keeps each queue and can be asked."""
        return all(any(self._keepers(queue, without)) for queue in self.queues)

    def _keepers(self, queue: str, without: Process | Actor) -> Iterator[Actor]:
        for actor in self.actors.keepers(queue, without):
            if not self.may_be_blind(actor, queue):
                yield actor

    def _can_end(self, actor: Actor) -> bool:
        if not actor.is_main:
            return self._is_spared(actor)
        if self._may_wait_for_space():
            return False
        has_others = any(other.is_alive for other in actor.process.actors[1:])
        children = [one for one in self.actors.processes if one.parent is actor.process]
        has_children = any(one.is_alive for one in children)
        return not has_others and not has_children and self._is_spared(actor.process)

    def _can_use(self, actor: Actor, verb: str, name: str, *given: str) -> bool:
        queue = self.queues.get(name)
        if queue is None or not actor.handles.get(name) or verb in _LACKS.get(queue.kind, ()):
            return False
        if self.may_be_blind(actor, name) and verb not in ("get", "poll", "fetch"):
            return False
        if verb in _IN_BACKGROUND:
            return self._is_spared(actor)
        if verb == "adopt":
            other = self.actors.of.get(given[0])
            return other is not None and other.is_idle
        if verb == "close":  # threads of a process have the same handles
            is_alone = len(actor.process.actors) == 1 and not self._may_wait_for_space()
            others = self._keepers(name, actor.process)
            return is_alone and (actor.handles[name] > 1 or any(others))
        if verb == "done":
            return bool(queue.held[actor.name])
        return True

    # Steps.

    def _do(self, step: Step) -> None:
        name, verb, *given = step
        if verb in WAYS:
            self.start(self.actors.of[name], verb, *given)
        else:
            getattr(self, verb)(*([] if name == "-" else [self.actors.of[name]]), *given)

    def make(self, actor: Actor, name: str, kind: str, bound: str, lease: str) -> None:
        queue = self.queues[name] = Queue(name, kind, int(bound))
        options: dict[str, Any] = {"url": self._url, "lease": float(lease)}
        if queue.bound:
            options["maxsize"] = queue.bound
        if not queue.anonymous:
            options["name"] = f"h-{os.getpid()}-{time.monotonic_ns()}"
        place = self.actors.ask(actor, "make", name, kind.removeprefix("named-"), options)
        actor.handles[name] = 1
        with contextlib.suppress(OSError):
            found = Path(shared_folder.find()).glob(f"items,{place.strip('{}')}")
            queue.file = next(map(str, found), "")

    def start(self, parent: Actor, way: str, name: str) -> None:
        self._order_what_was_put(parent)
        self.actors.ask(parent, "start", way, name)
        parent.process.has_forkserver |= way == "forkserver"
        self.actors.accept(parent, way)

    def _order_what_was_put(self, actor: Actor) -> None:
        """What the process put comes before what a process puts that it starts, or gives a handle
        to, unless that waits for space."""
        for queue in self.queues.values():
            if queue.anonymous and not queue.bound and not queue.bound_changed:
                for one in actor.process.actors:
                    queue.come_before(one.name)

    def adopt(self, actor: Actor, name: str, other: str) -> None:
        self._order_what_was_put(actor)
        data = self.actors.ask(actor, "pickled", name)
        if data is not None:
            adopting = self.actors.of[other]
            self.actors.ask(adopting, "adopt", name, data)
            adopting.handles[name] = adopting.handles.get(name, 0) + 1

    def items(self, actor: Actor, name: str, number: int) -> list[str]:
        """Names of items that an actor is about to put."""
        first = self._counts.get(actor.name, 0)
        self._counts[actor.name] = first + number
        items = [f"{actor.name}.{name}.{first + n}" for n in range(number)]
        self.queues[name].intend(actor.name, items)
        return items

    def put(self, actor: Actor, name: str, number: str, size: str, verb: str = "put") -> None:
        queue = self.queues[name]
        has_room = queue.has_room(int(number)) and not self.actors.are_in_turmoil
        items = self.items(actor, name, int(number))
        self.actors.ask(actor, verb, name, items, size, LIMIT if has_room else SHORT)
        self._check_accepted(queue, items, has_room)
        if verb == "batch" or not queue.anonymous:
            queue.settle(actor.name)

    def batch(self, actor: Actor, name: str, number: str, size: str) -> None:
        self.put(actor, name, number, size, "batch")

    def burst(self, actor: Actor, name: str, number: str, size: str) -> None:
        self.actors.begin(actor, "put", name, self.items(actor, name, int(number)), size, LIMIT)

    def offer(self, actor: Actor, name: str, size: str) -> None:
        queue = self.queues[name]
        has_room = queue.has_room(1) and not self._is_troubled() and self.actors.are_quiet
        items = self.items(actor, name, 1)
        self.actors.ask(actor, "offer", name, items, size)
        self._check_accepted(queue, items, has_room)

    def _check_accepted(self, queue: Queue, items: list[str], has_room: bool) -> None:
        refused = [item for item in items if item not in queue.puts]
        if refused and has_room and not queue.shut_down and not queue.unlinked:
            raise Broken(f"{refused} were refused, with {queue.most()} items of {queue.bound}")

    def get(self, actor: Actor, name: str, number: str, verb: str = "get") -> None:
        queue = self.queues[name]
        certain = 0 if self.actors.are_in_turmoil else queue.certain(self.actors.working)
        for other in self.actors:
            if other.is_busy and other.call and other.call[0] in _GETS and other.call[1] == name:
                certain -= other.call[2]
        wanted = int(number) if verb == "fetch" else min(int(number), max(certain, 1))
        limit = LIMIT if certain > 0 else SHORT
        self.actors.ask(actor, verb, name, wanted, limit, number=wanted)
        is_excused = queue.shut_down or self.may_be_blind(actor, name)
        if certain > 0 and not actor.last_got and not is_excused:
            raise Broken(f"{actor.name} got nothing of {name} within {limit} s, of {certain} items")

    def fetch(self, actor: Actor, name: str, number: str) -> None:
        self.get(actor, name, number, "fetch")

    def poll(self, actor: Actor, name: str) -> None:
        self.actors.ask(actor, "get", name, 1, 0.0, number=1)

    def wait(self, actor: Actor, name: str, number: str) -> None:
        self.actors.begin(actor, "get", name, int(number), 10 * HANG, number=int(number))

    def work(self, actor: Actor, name: str, number: str) -> None:
        verb = "work" if self.queues[name].redelivers else "get"
        self.actors.begin(actor, verb, name, int(number), 0.5, number=int(number))

    def done(self, actor: Actor, name: str, number: str) -> None:
        self.actors.ask(actor, "done", name, int(number))

    def _may_wait_for_space(self) -> bool:
        """Whether a buffer may have more than its queue has space for, as that got a bound."""
        return any(queue.bound_changed and queue.bound for queue in self.queues.values())

    def flush(self, actor: Actor) -> None:
        if self._may_wait_for_space():
            return
        self.actors.ask(actor, "flush")
        for queue in self.queues.values():
            queue.settle(actor.name)

    def count(self, actor: Actor, name: str) -> None:
        queue = self.queues[name]
        is_calm = self.actors.are_quiet and not self._is_troubled()
        if not is_calm or queue.bound_changed or queue.unlinked:
            return
        for other in self.actors.idle():
            self.flush(other)
        found = self.actors.ask(actor, "count", name)
        problems = list(queue.wrong_counts(found))
        if problems:
            raise Broken(f"{actor.name} counts in {name}: {', '.join(problems)}")

    def bound(self, actor: Actor, name: str, bound: str) -> None:
        queue = self.queues[name]
        queue.bound_changed = True
        if self.actors.ask(actor, "bound", name, int(bound)) is None:
            return
        queue.bound = int(bound)
        for other in self.actors.idle(name):
            seen = self.actors.ask(other, "read_bound", name)
            if seen not in (queue.bound, None):
                raise Broken(f"{other.name} sees the bound {seen} of {name}, not {bound}")

    def shutdown(self, actor: Actor, name: str, how: str) -> None:
        queue = self.queues[name]
        if self.actors.stopped or any(one.bound_changed for one in self.queues.values()):
            return
        for other in self.actors.idle():
            self.flush(other)
        queue.shut_down = True
        self.actors.ask(actor, "shutdown", name, how == "immediate")
        if how == "immediate":
            queue.drop()

    def close(self, actor: Actor, name: str) -> None:
        self.actors.ask(actor, "close", name)
        actor.handles[name] -= 1

    def end(self, actor: Actor) -> None:
        if not actor.is_main:  # what it has stays with its process
            self.acknowledge(actor)
        self.actors.end(actor)
        if actor.is_main:
            for one in actor.process.actors:
                for queue in self.queues.values():
                    queue.settle(one.name)
                    queue.bury(one.name)

    def acknowledge(self, actor: Actor) -> None:
        """All that it has."""
        for name, queue in self.queues.items():
            if queue.redelivers and queue.held[actor.name]:
                self.actors.ask(actor, "done", name, 10**6)

    def kill(self, actor: Actor) -> None:
        killed = self.actors.kill(actor.process)
        self._troubled_at = time.monotonic()
        for one in killed:
            for queue in self.queues.values():
                queue.leave(one.name)
                queue.bury(one.name)
            if one.call is not None and one.call[0] in _GETS:
                verb, name, number = one.call
                self.queues[name].kill(one.name, number if verb == "fetch" else 1, verb == "work")

    def stop(self, actor: Actor) -> None:
        actor.process.seen.suspend()
        actor.process.is_stopped = True
        for queue in self.queues.values():
            queue.losers.update(one.name for one in actor.process.actors)

    def go(self, actor: Actor) -> None:
        actor.process.seen.resume()
        actor.process.is_stopped = False
        self._troubled_at = time.monotonic()

    def pause(self, seconds: str) -> None:
        time.sleep(float(seconds))

    def unlink(self, actor: Actor, name: str) -> None:
        """The file of the queue's memory is removed."""
        queue = self.queues[name]
        if queue.file:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(queue.file)
                queue.unlinked = True
                self._seeing[name] = {p for p in self.actors.processes if name in p.uses}

    def restart(self) -> None:
        """The broker is killed, and comes back."""
        for queue in self.queues.values():
            if queue.anonymous:
                for actor in self.actors:
                    queue.may_come_again.update(actor.last_got)
        self._server.kill()
        self._server.start()
        until(self._server.has_loaded)
        self._troubled_at = time.monotonic()
