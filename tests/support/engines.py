"""The engines that tests run on: one line of ``TABLE`` for each kind of broker.

A test whose fixtures give it each engine in turn says with the marker ``levels`` which levels of
the contract it needs, if it does not need all, and with ``needs`` what else an engine must be able
to do; at an engine that cannot do it there is no such test. Other code asks ``can``. Nothing asks
for the name of an engine, or what its URL begins with.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from brokers.broker import Broker
from brokers.foundationdb import Foundation
from brokers.memory import Memory
from brokers.plain import Plain
from brokers.postgres import Postgres
from brokers.rights import LimitedServer
from brokers.servers import Server
from brokers.sqlite import Sqlite
from waiting import HOURS

from pressure_mp.engines.contract.levels import EVERY_LEVEL, Level


class Can(enum.Enum):
    """What some engines can do, and others cannot."""

    PROCESSES = "other processes use its queues"
    SERVER = "its broker is a process that listens on a port, and can be stopped and killed"
    PROTOCOL = "other implementations use its queues: it has the protocol's keys, roles and scripts"
    LINE = "a waiter keeps its place in line when it looks again, even if others wait"


@dataclass(frozen=True)
class Engine:
    """One kind of broker: its name in ``PRESSURE_TEST_SERVERS`` and in the ids of tests, how it is
    started, the levels of its engine, what this cannot do, and whether each run uses it, or only
    one that names it."""

    name: str
    broker: type[Broker]
    levels: frozenset[Level]
    lacks: frozenset[Can]
    always: bool = False
    only_named: bool = False

    def __str__(self) -> str:
        return self.name

    def can(self, *needed: Can) -> bool:
        return self.lacks.isdisjoint(needed)

    def make(self, durable: bool = False) -> Any:
        """A broker that is not yet started. A durable one may be killed and started again."""
        return self.broker.of(self.name, self.broker.durable if durable else ())


IN_PROCESS = frozenset({Can.PROCESSES, Can.SERVER, Can.PROTOCOL})
TABLE = (
    Engine("memory", Memory, EVERY_LEVEL, IN_PROCESS, always=True),
    Engine("valkey", Server, EVERY_LEVEL, frozenset({Can.LINE})),
    Engine("redis", LimitedServer, EVERY_LEVEL, frozenset({Can.LINE})),
    Engine("postgres", Postgres, EVERY_LEVEL, frozenset({Can.PROTOCOL})),
    Engine("sqlite", Sqlite, EVERY_LEVEL, frozenset({Can.SERVER, Can.PROTOCOL}), always=True),
    Engine("foundationdb", Foundation, EVERY_LEVEL, IN_PROCESS, only_named=True),
    Engine("plain", Plain, frozenset({Level.ITEMS}), IN_PROCESS | {Can.LINE}, always=True),
)
NAMES = {engine.name: engine for engine in TABLE}

_USUAL = ",".join(engine.name for engine in TABLE if not engine.only_named)
_ASKED = os.environ.get("PRESSURE_TEST_SERVERS", _USUAL).split(",")
if unknown := set(_ASKED) - set(NAMES):
    raise pytest.UsageError(f"PRESSURE_TEST_SERVERS names {unknown}, and not one of {set(NAMES)}")

#: The engines that this run uses.
CHOSEN = [
    engine
    for engine in TABLE
    if (engine.name in _ASKED or engine.always) and engine.broker.is_there()
]


def able(*needed: Can, among: Iterable[Engine] = CHOSEN) -> list[Engine]:
    """The engines that can do all of it."""
    return [engine for engine in among if engine.can(*needed)]


def unable(*lacking: Can) -> list[Engine]:
    """The engines that can do none of it."""
    return [engine for engine in CHOSEN if engine.lacks.issuperset(lacking)]


def repeats(engine: Engine) -> bool:
    """Whether another kind of broker of the same engine comes before it."""
    kinds = [one for one in CHOSEN if one.broker.scheme == engine.broker.scheme]
    return engine is not kinds[0]


def one_of_each(*needed: Can) -> list[Engine]:
    """One kind of broker of each engine that can do all of it."""
    return [engine for engine in able(*needed) if not repeats(engine)]


def kinds(*needed: Can) -> list[str]:
    """The names of all that can do it, also where the run is not to use them."""
    return [engine.name for engine in able(*needed, among=TABLE)]


def of(url: str) -> Engine:
    """The engine that a URL leads to."""
    return next(one for one in TABLE if one.broker.scheme == urlsplit(url).scheme)


def stop_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have waiting calls of this process look again by themselves only after hours."""
    for engine in TABLE:
        for look in engine.broker.looks if engine.broker.is_there() else ():
            monkeypatch.setattr(look, HOURS)


def serves(engine: Engine, test: pytest.Item | Any) -> bool:
    """Whether an engine can do all that the markers of a test ask for."""
    asked = [level for marker in test.iter_markers("levels") for level in marker.args]
    return engine.levels.issuperset(asked or EVERY_LEVEL) and all(
        engine.can(*marker.args) for marker in test.iter_markers("needs")
    )


class Running(dict[str, Any]):
    """The brokers that tests share, by the names of their kinds. Each is started when it is first
    asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._brokers = ExitStack()

    def __missing__(self, name: str) -> Any:
        broker = self._brokers.enter_context(NAMES[name].make().serving())
        self._brokers.callback(broker.check)
        self[name] = broker
        return broker

    def chosen(self, name: str) -> Any:
        """The broker of that kind. Where the run does not use it, the test is skipped."""
        if NAMES[name] not in CHOSEN:
            pytest.skip(f"{name} is not installed, or not asked for")
        return self[name]

    def stop(self) -> None:
        self._brokers.close()
