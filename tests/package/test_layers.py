"""Imports point down: each room of the package, and the rooms below it that it may know."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

import pressure_mp

PACKAGE = Path(pressure_mp.__file__).parent

#: From the ground up. A room is a folder or a module; what it imports stands above it here.
ROOMS = {
    "_version": "",
    "caller_warnings": "",
    "states": "",
    "exceptions": "states",
    "authentication": "exceptions",
    "numeric": "exceptions",
    "exhaustive": "",
    "deadlines": "",
    "held_signals": "",
    "lifecycle": "held_signals",
    "interrupts": "lifecycle",
    "off_loop": "lifecycle",
    "greenlets": "lifecycle",
    "hidden": "",
    "polling": "",
    "in_flight": "",
    "urls": "exceptions hidden",
    "identity": "lifecycle",
    "encoding": "authentication exceptions hidden interrupts numeric",
    "engines.contract": "exceptions states",
    "engines.cancelled_calls": "engines.contract",
    "engines.bells": "",
    "engines.blocking_coroutines": "",
    "engines.closed_loops": "",
    "engines.host_sessions": "engines.blocking_coroutines engines.contract",
    "engines.retries": "engines.contract exceptions",
    "engines.silence": "",
    "engines.lines": "engines.contract",
    "engines.wake_sockets": "identity interrupts",
    "engines.own_connections": "exceptions",
    "engines.requests": "encoding engines.contract exceptions states",
    "engines.memory": (
        "engines.bells engines.blocking_coroutines engines.closed_loops engines.contract "
        "engines.requests identity urls"
    ),
    "engines.kv": (
        "engines.bells engines.blocking_coroutines engines.cancelled_calls engines.closed_loops "
        "engines.contract engines.lines engines.requests engines.wake_sockets exceptions identity "
        "off_loop"
    ),
    "engines.sqlite": (
        "caller_warnings engines.contract engines.kv engines.own_connections exceptions interrupts "
        "lifecycle urls"
    ),
    "engines.foundationdb": "engines.contract engines.kv exceptions lifecycle urls",
    "engines.shared": (
        "encoding engines.blocking_coroutines engines.cancelled_calls engines.closed_loops "
        "engines.contract engines.lines engines.wake_sockets exceptions identity interrupts "
        "lifecycle off_loop"
    ),
    "engines.redis": (
        "caller_warnings encoding engines.blocking_coroutines engines.cancelled_calls "
        "engines.closed_loops engines.contract engines.host_sessions engines.lines engines.retries "
        "engines.shared engines.silence exceptions hidden identity off_loop states urls"
    ),
    "engines.postgres": (
        "encoding engines.bells engines.blocking_coroutines engines.cancelled_calls "
        "engines.closed_loops engines.contract engines.host_sessions engines.lines "
        "engines.own_connections engines.retries engines.silence exceptions hidden identity "
        "off_loop polling urls"
    ),
    "engines.embedded": (
        "engines.contract engines.redis exceptions identity interrupts lifecycle polling urls"
    ),
    "engines": "engines.contract exceptions greenlets hidden lifecycle urls",
    "events": "encoding engines.contract",
    "telemetry.json_logs": "",
    "effects": "engines.contract",
    "drivers": "effects engines.contract exceptions lifecycle",
    "operations": (
        "caller_warnings deadlines effects encoding engines.contract exceptions exhaustive "
        "identity in_flight interrupts states events"
    ),
    "background": (
        "_version drivers effects encoding engines.contract exceptions identity in_flight "
        "interrupts lifecycle operations"
    ),
    "handles": (
        "background caller_warnings deadlines drivers effects encoding engines engines.contract "
        "events exceptions hidden identity in_flight interrupts lifecycle numeric operations states"
    ),
    "buffering": (
        "background caller_warnings deadlines drivers effects encoding engines engines.contract "
        "exceptions handles identity in_flight interrupts lifecycle operations states events"
    ),
    "sync": (
        "buffering caller_warnings deadlines drivers effects encoding engines engines.contract "
        "events exceptions handles hidden identity in_flight lifecycle numeric operations"
    ),
    "sync.tasks": (
        "background engines.blocking_coroutines "
        "authentication caller_warnings deadlines drivers effects encoding engines.contract "
        "exceptions exhaustive handles hidden identity in_flight interrupts numeric operations "
        "states sync events"
    ),
    "executor": (
        "authentication background drivers effects encoding engines.contract exceptions handles "
        "hidden identity lifecycle numeric operations polling states sync sync.tasks "
        "telemetry.json_logs"
    ),
    "worker": "executor",
    "freezing": "",
    "joblib": "exceptions executor",
    "aio": (
        "background buffering caller_warnings deadlines drivers effects encoding engines "
        "engines.cancelled_calls engines.contract exceptions executor handles hidden identity "
        "in_flight lifecycle numeric off_loop operations states sync sync.tasks events"
    ),
    "telemetry": "_version engines.contract states sync events",
    "administration": (
        "drivers effects encoding engines engines.contract exceptions identity operations states"
    ),
    "dashboard": ("administration encoding engines engines.contract exceptions operations states"),
    "testing": "drivers engines exceptions handles operations sync",
    "cli": (
        "_version administration authentication dashboard drivers effects encoding engines "
        "engines.contract engines.embedded engines.postgres exceptions executor handles identity "
        "operations states sync sync.tasks telemetry"
    ),
}


def modules():
    """Each module of the package by its dotted name below it; a package by its own."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix("__init__").removesuffix("."), path


KNOWN = dict(modules())


def imported(name):
    """The modules of the package that one imports, also in functions and for types only."""
    path = KNOWN[name]
    folder = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = folder[: len(folder) - node.level + 1]
            found = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                inside = f"{found}.{alias.name}".strip(".")
                yield inside if inside in KNOWN else found


def room_of(name):
    """The room that a module is in: of those that it may be in, the innermost."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if ".".join(parts[:end]) in ROOMS:
            return ".".join(parts[:end])
    return None


@pytest.mark.parametrize("name", [name for name in KNOWN if name])
def test_every_module_is_in_a_room_and_imports_only_from_rooms_below(name):
    room = room_of(name)
    assert room is not None, f"{name} is in none of the rooms"
    below = {room, *ROOMS[room].split()}
    strange = {one for one in imported(name) if one and room_of(one) not in below}
    assert not strange, f"{name} imports {strange}"


def test_no_room_knows_one_above_it():
    order = list(ROOMS)
    for room, below in ROOMS.items():
        for one in below.split():
            assert order.index(one) < order.index(room), f"{room} is below {one}"


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: set(imported(name)) - {name, ""} for name in KNOWN if name}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_operations_do_no_io():
    for path in (PACKAGE / "operations").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
                assert names <= {"typing", "dataclasses", "re"}, f"{path.name} imports {names}"
