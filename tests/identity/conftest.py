"""Programs, each shown the processes of this machine as a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from views import AS_IT_IS, Program, View


@pytest.fixture
def program() -> Iterator[Callable[..., Program]]:
    """Starts a program; whatever is left of it at the end is killed."""
    programs = []

    def program(code: str, *arguments: Any, view: View = AS_IT_IS) -> Program:
        programs.append(Program(code, view, arguments))
        return programs[-1]

    yield program
    for one in programs:
        one.end()
