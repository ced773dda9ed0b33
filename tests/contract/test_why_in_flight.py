"""why_blocked(), `why` and `workers` of a queue whose items are in flight."""

from __future__ import annotations

import json
import os
import re
import signal
import socket

import pytest
from click.testing import CliRunner
from engines import Can
from programs import deliveries
from started import quickly
from waiting import LIMIT, Background, until

from pressure_mp import JoinableQueue, Queue
from pressure_mp.cli.app import app
from pressure_mp.identity import processes

pytestmark = [pytest.mark.usefixtures("world")]
needs_processes = pytest.mark.needs(Can.PROCESSES)
HERE = socket.gethostname()


@pytest.fixture
def q(url, name):
    q = JoinableQueue(0, name, url=url, lease=30)
    yield q
    q.delete()


@pytest.fixture
def consumer(url, q):
    """Starts a process that gets so many items."""
    started = []

    def start(number):
        ours, theirs = quickly.Pipe()
        queue = JoinableQueue(0, q.name, url=url, lease=30)
        process = quickly.Process(target=deliveries.get_and_wait, args=(theirs, queue, number))
        process.start()
        started.append((process, ours))
        assert len(ours.recv()) == number
        return process

    yield start
    for process, _ in started:
        process.kill()
        process.join()


def kill(process):
    process.kill()
    process.join()


def test_the_only_item_is_at_a_consumer_that_is_alive(q):
    q.put("item")
    q.get()
    found = q.why_blocked()
    at = f"The queue is empty (1 item is in flight at pid {os.getpid()} on host {HERE})"
    assert found.sentence.startswith(at)
    assert found.in_flight.number == 1
    (owner,) = found.in_flight.owners
    assert (owner.peer.pid, owner.peer.alive) == (os.getpid(), True)
    assert (owner.stopped, owner.lost) == (False, False)
    assert 0 < owner.left <= 30
    assert re.search(
        rf"\n1 item is in flight: pid {os.getpid()} on {HERE} \(alive\), lease", str(found)
    )
    q.task_done()
    found = q.why_blocked()
    assert found.in_flight == (0, ())
    assert "in flight" not in str(found)


@needs_processes
def test_the_only_item_is_at_a_consumer_that_has_ended(q, consumer):
    q.put("item")
    process = consumer(1)
    kill(process)
    assert q.why_blocked().sentence == (
        f"The queue is empty, but 1 item is in flight: pid {process.pid} on host {HERE} has it, "
        "and has ended; it goes back when a consumer waits for an item: start one, or "
        "`pressure-mp doctor --fix`."
    )
    assert q.get(timeout=LIMIT) == "item", "it is as the sentence says"


@needs_processes
def test_an_item_is_in_flight_of_a_queue_that_is_shut_down(q, consumer):
    q.put("item")
    process = consumer(1)
    kill(process)
    q.shutdown()
    assert q.why_blocked().sentence == (
        f"The queue is shut down and empty, but 1 item is in flight: pid {process.pid} on host "
        f"{HERE} has it, and has ended; it goes back when a process waits in join(), or "
        "`pressure-mp doctor --fix`."
    )
    joining = Background(q.join)
    until(lambda: not q.empty())
    assert q.get() == "item"
    q.task_done()
    joining.result()


@needs_processes
def test_items_are_at_a_consumer_that_is_stopped(q, consumer):
    q.put_many([1, 2])
    process = consumer(2)
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: processes.state(q.why_blocked().in_flight.owners[0].peer.id) == "stopped")
    assert q.why_blocked().sentence == (
        f"The queue is empty, but 2 items are in flight: pid {process.pid} on host {HERE} has "
        "them, and is stopped: let it go on, or end it."
    )
    os.kill(process.pid, signal.SIGCONT)
    until(lambda: "(2 items are in flight at pid" in q.why_blocked().sentence)


@pytest.mark.usefixtures("no_looks")
@needs_processes
def test_one_of_several_consumers_has_ended(q, consumer):
    q.put_many([1, 2, 3])
    q.get()
    ended = consumer(2)
    kill(ended)
    found = q.why_blocked()
    assert found.sentence == (
        f"The queue is empty, but 3 items are in flight: pid {ended.pid} on host {HERE}, which may "
        "have some of them, has ended; these go back when a consumer waits for an item: start one, "
        "or `pressure-mp doctor --fix`."
    )
    assert [one.peer.pid for one in found.in_flight.owners] == [ended.pid, os.getpid()]


@pytest.mark.only_threads("the command is the same")
@needs_processes
def test_the_command_names_a_consumer_that_has_ended_and_what_it_has(url, q, consumer):
    def call(*arguments):
        result = CliRunner(env={"PRESSURE_URL": url}).invoke(app, arguments)
        assert result.exit_code == 0, result.output
        return result.output

    q.put_many([1, 2])
    process = consumer(2)
    kill(process)
    assert f"in flight: pid {process.pid} on host {HERE} has them" in call("why", q.name)
    seen = json.loads(call("why", q.name, "--json"))["in_flight"]
    assert (seen["number"], seen["owners"][0]["peer"]["alive"]) == (2, False)
    rows = [json.loads(line) for line in call("workers", q.name, "--json").splitlines()]
    (row,) = [one for one in rows if one["role"] == "consumer"]
    assert (row["pid"], row["alive"], row["in_flight"]) == (process.pid, False, 2)
    assert re.search(rf"consumer\t{HERE}\t{process.pid}\tended\t\t2\n", call("workers", q.name))


def test_a_queue_without_acknowledgements_has_nothing_in_flight(url, name):
    with Queue(0, name, url=url, buffering=0) as q:
        q.put("item")
        q.get()
        assert q.why_blocked().in_flight == (0, ())
        q.delete()
