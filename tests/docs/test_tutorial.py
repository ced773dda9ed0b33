"""The service of docs/tutorial.md, started, used and killed as the page says."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from brokers.servers import Server
from ports import free_port
from waiting import LIMIT, until

from pressure_mp import TaskQueue

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "examples" / "service"
PAGE = (ROOT / "docs" / "tutorial.md").read_text()


class Service:
    """The programs of the page, at a broker."""

    def __init__(self, url):
        self.environ = {**os.environ, "PRESSURE_URL": url}
        self.reports = TaskQueue("reports", url=url)
        self.processes = []
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/reports"
            self.start("-m", "uvicorn", "web:app", "--fd", f"{listening.fileno()}", of=[listening])

    def start(self, *arguments, of=()):
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=SERVICE,
            env=self.environ,
            pass_fds=[one.fileno() for one in of],
        )
        self.processes.append(process)
        return process

    def order(self, **report):
        answer = httpx.post(self.url, json=report, timeout=LIMIT)
        assert answer.status_code == 202
        return answer.json()["id"]

    def get(self, id):
        return httpx.get(f"{self.url}/{id}", timeout=LIMIT)

    def command(self, line):
        (found,) = (shown for shown in PAGE.splitlines() if shown.endswith(line))
        main = "import sys; from pressure_mp.cli import main; sys.argv[0] = 'pressure-mp'; main()"
        words = [sys.executable, "-c", main, *found.split()[1:]]
        return subprocess.run(
            words, env=self.environ, check=True, capture_output=True, text=True, timeout=LIMIT
        ).stdout

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def started(name, monkeypatch):
    monkeypatch.setenv("PRESSURE_PREFIX", name)
    services = []

    def start(url):
        services.append(Service(url))
        return services[-1]

    yield start
    for service in services:
        service.end()


@pytest.fixture(params=["sqlite", "valkey"])
def service(request, started, tmp_path):
    if request.param == "sqlite":
        return started(f"sqlite://{tmp_path}/queues")
    return started(request.getfixturevalue("valkey").url)


def test_the_page_shows_the_files_of_the_service():
    shown = dict(re.findall(r'^```\w+ title="(\S+)"\n(.*?)^```', PAGE, re.M | re.S))
    assert shown == {path.name: path.read_text() for path in SERVICE.iterdir() if path.is_file()}


def test_a_report_is_ordered_and_its_worker_may_be_killed(service):
    id = service.order(text="one two three", seconds=3)
    assert service.get(id).json() == {"state": "not ready"}
    first = service.start("jobs.py")
    until(lambda: service.reports.peek(id).deliveries == 1)
    first.send_signal(signal.SIGKILL)
    second = service.start("jobs.py")
    assert service.reports.result(id, timeout=LIMIT) == {"words": 3, "worker": second.pid}
    assert service.get(id).json()["words"] == 3
    assert service.get(1).status_code == 404
    second.terminate()
    assert second.wait(LIMIT) == 0
    service.reports.delete()


def test_a_report_that_cannot_be_made_is_tried_three_times_and_buried(service):
    service.start("jobs.py")
    id = service.order(text="")
    until(lambda: service.get(id).status_code == 422)
    assert service.get(id).json() == {"error": "the text has no words"}
    assert service.reports.peek(id).deliveries == 3
    assert "the text has no words" in service.command("tasks reports --state buried")
    service.command("requeue reports --all")
    until(lambda: service.reports.peek(id).state == "B")
    service.reports.delete()


def test_without_a_broker_the_application_starts_and_answers_503(started):
    server = Server("valkey", port=free_port())
    try:
        service = started(server.url)
        answers = until(lambda: _answer(service))
        assert (answers.status_code, answers.json()) == (
            503,
            {"error": "the broker does not answer"},
        )
        server.start()
        assert service.order(text="one")
    finally:
        server.stop()


def _answer(service):
    try:
        return httpx.post(service.url, json={"text": "one"}, timeout=LIMIT)
    except httpx.ConnectError:  # it begins
        return None


def test_the_tests_of_the_service_need_no_server(tmp_path):
    environ = {**os.environ, "PRESSURE_URL": "memory://"}
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", f"--rootdir={SERVICE}", SERVICE]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider"], env=environ, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout
    assert "4 passed" in run.stdout


def test_the_image_has_the_programs_that_its_services_start():
    copied = set(re.findall(r"\b(\w+)\.py\b", (SERVICE / "Dockerfile").read_text()))
    started = re.findall(r'"(\w+):(\w+)"', (SERVICE / "compose.yaml").read_text())
    assert {module for module, _ in started if module != "8000"} == copied
    assert ("web", "app") in started


def test_the_worker_command_runs_the_handlers(service):
    id = service.order(text="one two")
    (command,) = re.findall(r"command: \[pressure-mp, (worker, .*)\]", PAGE)
    worker = service.start("-m", "pressure_mp.worker", *re.findall(r"[\w:-]+", command)[1:])
    assert service.reports.result(id, timeout=LIMIT)["words"] == 2
    worker.terminate()
    assert worker.wait(LIMIT) == 0
    service.reports.delete()
