"""The web service, with a server, workers and clients that are processes and sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from cli.examples import EXAMPLES, start
from waiting import LIMIT, lasting, until

from pressure_mp import JoinableQueue, Queue

#: A worker needs an hour or so for 10,000 of them.
SLOW = 9_999_999_999_971
#: More lines than a connection holds whose client does not read.
MANY = [number << 20 for number in range(1, 5001)]


class Service:
    """A uvicorn process, its workers, and its queue of jobs."""

    def __init__(self, valkey, name, folder, maxsize, graceful):
        self.valkey, self.name = valkey, name
        self.jobs = JoinableQueue(maxsize, "factor-jobs", url=valkey.url, serializer="json")
        self.workers = []
        self._log = folder / "log"
        with socket.create_server(("127.0.0.1", 0)) as listening, self._log.open("w") as log:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # of connections too
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            options = [
                "--fd",
                str(listening.fileno()),
                "--timeout-graceful-shutdown",
                str(graceful),
            ]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "examples.web_service:app", *options],
                cwd=EXAMPLES.parent,
                env={**os.environ, "PRESSURE_URL": valkey.url},
                pass_fds=[listening.fileno()],
                stdout=log,
                stderr=log,
            )

    def log(self):
        return self._log.read_text()

    def work(self):
        self.workers.append(start("web_service.py", "worker", url=self.valkey.url))
        return self.workers[-1]

    def stream(self, numbers):
        job = {"numbers": numbers}
        return httpx.stream("POST", f"{self.url}/factors/stream", json=job, timeout=LIMIT)

    def results_of(self, numbers):
        with self.stream(numbers) as answer:
            assert answer.status_code == 200
            return [json.loads(line) for line in answer.iter_lines()]

    def results_queues(self):
        """The names of the queues for results."""
        keys = lasting(self.valkey.client(), f"{self.name}*factor-jobs-*")
        return {re.search(rb"factor-jobs-\w+", key)[0].decode() for key in keys}

    def all_done(self):
        until(lambda: self.jobs.unfinished_tasks == 0)
        until(lambda: not self.results_queues())

    def end(self):
        for process in (*self.workers, self.process):
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def started(valkey, name, tmp_path, monkeypatch):
    """Starts a service under a prefix of its own."""
    monkeypatch.setenv("PRESSURE_PREFIX", name)
    services = []

    def start_service(maxsize=10, graceful=LIMIT):
        monkeypatch.setenv("SERVICE_MAXSIZE", str(maxsize))
        services.append(Service(valkey, name, tmp_path, maxsize, int(graceful)))
        return services[-1]

    yield start_service
    for service in services:
        service.end()
        service.jobs.delete()
    assert lasting(valkey.client(), f"{name}*") == []


@pytest.fixture
def service(started):
    return started()


def numbers_in(lines):
    return [json.loads(line).get("number") for line in lines]


def test_the_jobs_of_many_clients_are_done_by_the_workers(service):
    service.work()
    service.work()
    jobs = [list(range(first, first + 30)) for first in range(2, 10)]
    with ThreadPoolExecutor(len(jobs)) as clients:
        answers = list(clients.map(service.results_of, jobs))
    for numbers, lines in zip(jobs, answers, strict=True):
        assert [line["number"] for line in lines[:-1]] == numbers
        assert set(lines[-1]) == {"seconds"}
    assert answers[0][10] == {"number": 12, "factors": [2, 2, 3]}
    service.all_done()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"numbers": [0]}', b"1" * 300_000])
def test_a_body_that_is_no_job_is_refused(service, body):
    answer = httpx.post(f"{service.url}/factors/stream", content=body)
    assert answer.status_code == 400
    service.all_done()


def test_a_full_service_says_when_to_come_again(started):
    service = started(maxsize=2)
    with service.stream([6]), service.stream([7]) as second:  # and no worker runs
        with service.stream([8]) as refused:
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "2", "two jobs of about a second"
        assert len(service.results_queues()) == 2
        service.work()
        assert numbers_in(second.iter_lines()) == [7, None]
    assert service.results_of([8])[0]["factors"] == [2, 2, 2]
    service.all_done()


def test_lines_come_while_the_job_runs_and_a_client_that_goes_away_frees_the_worker(service):
    service.work()
    with service.stream([6] + [SLOW] * 10_000) as answer:
        assert next(answer.iter_lines()) == '{"number": 6, "factors": [2, 3]}'
        assert service.jobs.stats().in_flight == 1
    assert service.results_of([7])[0] == {"number": 7, "factors": [7]}
    service.all_done()


def test_a_job_whose_client_went_away_before_is_not_begun(service):
    with service.stream([SLOW] * 10_000):
        assert service.jobs.qsize() == 1
    until(lambda: not service.results_queues())
    service.work()
    service.all_done()


def test_a_client_that_does_not_read_stops_its_own_job_and_no_other(service):
    service.work()
    with service.stream(MANY) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        (queue,) = service.results_queues()
        results = Queue.attach(queue, url=service.valkey.url)
        stands_still(service, results)
        stats = results.stats()
        assert (stats.length, stats.maxsize) == (20, 20)
        assert stats.produced_messages < len(MANY)
        assert numbers_in([first, *lines]) == [*MANY, None]
    service.all_done()


def stands_still(service, results):
    """Wait until nothing is put into a queue while the only worker does another job."""

    def no_more():
        before = results.stats()
        assert len(service.results_of([6, 7])) == 3
        return before.produced_messages == results.stats().produced_messages

    until(no_more)


def test_the_job_of_a_killed_worker_goes_on_where_it_was(service):
    killed = service.work()
    with service.stream(MANY) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        until(lambda: is_stopped_at_work(killed, service.jobs))
        killed.kill()
        killed.wait()
        service.work()
        assert numbers_in([first, *lines]) == [*MANY, None]
    service.all_done()


def is_stopped_at_work(process, jobs):
    process.send_signal(signal.SIGSTOP)
    if jobs.stats().in_flight == 1:
        return True
    process.send_signal(signal.SIGCONT)
    time.sleep(0.01)
    return False


def test_sigterm_waits_for_the_streams_that_go_on(service):
    with service.stream([6, 7]) as answer:
        service.process.terminate()
        until(lambda: "Waiting for connections to close" in service.log())
        service.work()
        assert numbers_in(answer.iter_lines()) == [6, 7, None]
    assert service.process.wait(LIMIT) == -signal.SIGTERM
    assert "Application shutdown complete" in service.log()
    assert "ERROR" not in service.log()
    service.all_done()


def test_sigterm_ends_the_job_of_a_stream_that_stands_still(started):
    service = started(graceful=1)
    service.work()
    with service.stream(MANY) as answer:
        lines = answer.iter_lines()
        next(lines)
        service.process.terminate()
        assert service.process.wait(LIMIT) == -signal.SIGTERM
    assert "Application shutdown complete" in service.log()
    service.all_done()
