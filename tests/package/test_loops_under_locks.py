"""No exception of a signal handler leaves a lock held at the end of a loop's turn.

From Python 3.12 on, the jump to the next turn behind an ``if`` that was not so is outside of the
``with`` around the loop. So such a loop is in a function of its own, which is called in there.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pressure_mp

PACKAGE = Path(pressure_mp.__file__).parent
LOCKS = ("lock", "looking", "producing", "settling", "passing")


def takes_a_lock(statement):
    names = " ".join(ast.unparse(item.context_expr) for item in statement.items)
    return any(name in names.lower() for name in LOCKS) and "(" not in names


def in_this_function(statement):
    """The statement and all in it, but nothing of a function that is defined in it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return
    yield statement
    for child in ast.iter_child_nodes(statement):
        yield from in_this_function(child)


def lines_of_such_loops(source):
    for block in ast.walk(ast.parse(source)):
        if isinstance(block, ast.With) and takes_a_lock(block):
            for inner in in_this_function(block):
                if isinstance(inner, (ast.For, ast.While)) and isinstance(inner.body[-1], ast.If):
                    yield inner.lineno


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_loop_under_a_lock_ends_its_turn_with_an_if(path):
    assert [*lines_of_such_loops(path.read_text())] == []


def test_such_a_loop_is_found():
    source = "with self._lock:\n    for one in many:\n        if one:\n            one.end()\n"
    assert [*lines_of_such_loops(source)] == [2]
