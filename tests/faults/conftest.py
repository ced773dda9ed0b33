"""The fault suite: how long it runs, its seed, and the figures that it prints in the end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines
import pytest
from brokers.broker import Broker
from engines import Can
from faults.nursery import Nursery

#: The fixtures of each kind of server: for the whole run; and that may be killed.
SERVERS = {"server": engines.able(Can.SERVER), "durable": engines.one_of_each(Can.SERVER)}
_figures: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--long", action="store_true", help="the long form of the fault suite")
    group.addoption("--fault-seed", type=int, help="make the faults of an earlier run")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.option.fault_seed = config.workerinput["fault_seed"]
    elif config.option.fault_seed is None:
        config.option.fault_seed = random.randrange(2**32)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """The workers of pytest-xdist have the seed of the run."""
    node.workerinput["fault_seed"] = node.config.option.fault_seed


def pytest_report_header(config: pytest.Config) -> str:
    return f"fault seed: {config.option.fault_seed}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the process that prints: also of the tests that others ran."""
    if report.when == "teardown":
        _figures.extend(found for name, found in report.user_properties if name == "figures")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.section(f"figures of the fault suite, seed {config.option.fault_seed}")
    for line in _figures:
        terminalreporter.write_line(line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The long form uses each kind of server; the short form one for each test, as the seed
    says."""
    option = metafunc.config.option
    chance = random.Random(f"{option.fault_seed} {metafunc.function.__name__}")
    for fixture in SERVERS.keys() & metafunc.fixturenames:
        kinds = [one for one in SERVERS[fixture] if engines.serves(one, metafunc.definition)]
        if kinds and not option.long:
            kinds = [chance.choice(kinds)]
        metafunc.parametrize(fixture, kinds, ids=str, indirect=True)


class Figures:
    """What a run found: printed with the test's name, also when the test fails."""

    def __init__(self, test: str) -> None:
        self.test = test
        self.found: dict[str, object] = {}

    def note(self, **figures: object) -> None:
        self.found.update(figures)

    def __str__(self) -> str:
        texts = (
            f"{name.replace('_', ' ')} {value:.2f}"
            if isinstance(value, float)
            else f"{name.replace('_', ' ')} {value}"
            for name, value in self.found.items()
        )
        return f"{self.test}: {', '.join(texts)}"


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[Figures]:
    found = Figures(request.node.name)
    yield found
    request.node.user_properties.append(("figures", str(found)))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Of this test in this run: another for each test."""
    return random.Random(f"{request.config.option.fault_seed} {request.node.name}").randrange(2**32)


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.option.long)


@pytest.fixture
def pace(server: Broker) -> float:
    """How much the clients do at this server, where they do 1 at others."""
    return server.pace


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    with Nursery(tmp_path) as made:
        yield made


@pytest.fixture
def server(request: pytest.FixtureRequest, running: engines.Running) -> Broker:
    """See pytest_generate_tests."""
    return running[request.param.name]


@pytest.fixture
def durable(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server of its own that has on disk what it acknowledged, so that it may be killed."""
    with request.param.make(durable=True).serving() as server:
        yield server
