"""Which worker of a run takes, which acknowledges, and which works: in every order of events."""

from __future__ import annotations

import random
import threading

import pytest
from waiting import LIMIT, Background, until

from pressure_mp import TaskQueue
from pressure_mp.sync.tasks.dispatch import MOMENT, Acknowledge, Begin, Dispatch, Rest, Take


class Task(int):
    """A task, by its number."""

    @property
    def id_bytes(self):
        return b"%d" % self


class Simulation:
    """Workers that do their steps in a random order, at a queue of numbers that ends when they are
    all acknowledged."""

    def __init__(self, seed, workers, takes, tasks, prefetch):
        self.random, self.now = random.Random(seed), 0.0
        self.book, self.most = Dispatch(workers, takes, prefetch), workers + prefetch
        self.left, self.in_hand, self.acknowledged = list(map(Task, range(tasks))), set(), set()
        self.steps = dict.fromkeys(range(workers))  # of each worker, None if it asks for one
        self.wakes = {worker: self.waker(worker) for worker in self.steps}
        self.resting, self.waiting = set(), set()
        self.is_ending = False

    def waker(self, worker):
        return lambda: self.resting.discard(worker)

    def run(self):
        while self.steps:
            able = self.steps.keys() - self.resting
            if not self.left:
                able -= self.waiting
            if not able:
                assert not self.is_ending, "workers wait for each other"
                assert not self.in_hand, "no worker acknowledges"
                self.is_ending = True
                self.resting.clear()
                self.left.append(None)  # ends the wait of the worker that takes
                continue
            self.go_on(self.random.choice(sorted(able)))
            assert len(self.in_hand) <= self.most

    def go_on(self, worker):
        step = self.steps[worker]
        self.steps[worker] = None
        match step:
            case None:
                self.ask(worker)
            case Begin() if self.random.random() < 0.8:
                self.book.finished(step.task)
            case Begin():
                self.acknowledge([step.task])
                self.book.drop(step.task)
            case Take():
                self.take(worker, step)
            case Acknowledge():
                self.acknowledge(step.done)
                self.book.acknowledged(len(step.done))

    def ask(self, worker):
        self.now += self.random.uniform(0, MOMENT)
        step = self.book.next(self.wakes[worker], self.is_ending, self.now)
        if step is Rest.WAIT:
            self.resting.add(worker)
        elif step is Rest.END:
            del self.steps[worker]
        else:
            self.steps[worker] = step

    def take(self, worker, step):
        is_ready = self.left and (worker in self.waiting or self.random.random() < 0.5)
        if not is_ready and not step.waits:
            self.acknowledge(step.done)
            self.book.took(step, [], self.now)
            return
        if not is_ready and worker not in self.waiting:
            self.acknowledge(step.done)
            self.waiting.add(worker)
            self.book.waits(True)
        if not is_ready:
            self.steps[worker] = step
            return
        if worker in self.waiting:
            self.waiting.remove(worker)
            self.book.waits(False)
        else:
            self.acknowledge(step.done)
        number = self.random.randint(1, step.number)
        taken = [one for one in self.left[:number] if one is not None]
        del self.left[:number]
        self.in_hand |= set(taken)
        self.book.took(step, taken, self.now)

    def acknowledge(self, done):
        assert self.in_hand >= set(done)
        self.in_hand -= set(done)
        self.acknowledged |= set(done)


@pytest.mark.parametrize("prefetch", [0, 1, 5, 30])
@pytest.mark.parametrize("takes", [1, 2, 8])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_each_task_is_acknowledged_and_no_worker_has_two_or_waits_for_ever(
    workers, takes, prefetch
):
    for seed in range(200):
        simulation = Simulation(seed, workers, takes, 50, prefetch)
        simulation.run()
        assert simulation.acknowledged == set(range(50)), seed


@pytest.mark.parametrize("prefetch", [0, 5])
def test_a_task_that_comes_again_is_begun_when_its_handler_has_ended(prefetch):
    book, wakes = Dispatch(2, 1, prefetch), [lambda: None, lambda: print("another")]

    def next_of(worker, kind):
        step = book.next(wakes[worker], False, 0.0)
        assert isinstance(step, kind)
        return step

    first, again, other = Task(1), Task(1), Task(2)
    book.took(next_of(0, Take), [first], 0.0)
    assert next_of(0, Begin).task is first
    book.took(next_of(1, Take), [again, other], 0.0)
    assert next_of(1, Begin).task is other
    book.finished(other)
    next_of(1, Take)
    book.drop(first)
    assert next_of(0, Begin).task is again
    assert book.leave_ready() == []


def test_a_task_that_is_done_while_a_worker_that_fails_acknowledges_another_is_left_at_the_end():
    book, wakes = Dispatch(2, 1), [lambda: None, lambda: print("another")]
    tasks = [Task(1), Task(2)]
    book.took(book.next(wakes[0], False, 0.0), tasks, 0.0)
    for worker in (0, 1):
        assert book.next(wakes[worker], False, 0.0).task is tasks[worker]
    book.finished(tasks[0])
    acknowledge = book.next(wakes[0], True, 0.0)
    assert acknowledge.done == tasks[:1]
    book.finished(tasks[1])
    assert book.next(wakes[1], True, 0.0) is Rest.END
    assert book.leave_done() == tasks[1:]


class Counting(TaskQueue):
    """Notes how many tasks each call of a run took, and how many it acknowledged. A take that
    acknowledges begins when it may."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.took, self.acknowledged = [], []
        self.may_take = threading.Event()

    def _take_for_run(self, worker, number, done, *args, **options):
        if done:
            assert self.may_take.wait(LIMIT)
        delivery = super()._take_for_run(worker, number, done, *args, **options)
        self.took.append(len(delivery[0]))
        return delivery

    def _acknowledge_for_run(self, done):
        self.acknowledged.append(len(done))
        return super()._acknowledge_for_run(done)


def test_one_call_takes_for_all_workers_and_one_acknowledges_what_they_finish(
    url, name, monkeypatch
):
    finished = threading.Semaphore(0)
    finish = Dispatch.finished

    def finish_and_say_so(book, task):
        finish(book, task)
        finished.release()

    monkeypatch.setattr(Dispatch, "finished", finish_and_say_so)
    queue = Counting(name, url=url)
    queue.put_many(range(4))
    together, stop = threading.Barrier(4), threading.Event()
    running = Background(queue.run, lambda task: together.wait(LIMIT), concurrency=4, stop=stop)
    for _ in range(4):
        assert finished.acquire(timeout=LIMIT)
    assert queue.took == [4]
    queue.may_take.set()  # it acknowledges one of them, and waits
    until(lambda: queue.stats().transitions.get("T-X") == 4)
    # Where calls are cheap, each of the four may be acknowledged by a take.
    assert queue.acknowledged in ([3], [])
    stop.set()
    running.result()
    queue.delete()
