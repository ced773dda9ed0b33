"""The list of all that happens in a fork and at the end of a process."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

import pressure_mp
from pressure_mp import lifecycle

PACKAGE = Path(pressure_mp.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}


def test_each_step_is_done_by_one_module():
    registered = Counter(
        name
        for source in SOURCES.values()
        for name in re.findall(r'lifecycle\.(?:register|take_over)\(\s*"([^"]+)"', source)
    )
    assert registered == dict.fromkeys((step.name for step in lifecycle.STEPS), 1)


def test_a_step_that_is_not_in_the_list_is_refused():
    with pytest.raises(KeyError):
        lifecycle.register("something else", print)


@pytest.mark.parametrize(
    "hook", [r"register_at_fork\(", r"\batexit\.", r"\bFinalize\(", "_register_atexit"]
)
def test_no_other_module_has_a_hook_of_its_own(hook):
    assert [name for name, source in SOURCES.items() if re.search(hook, source)] in (
        [],
        ["lifecycle.py"],
    )


def test_a_step_that_fails_keeps_no_other_from_its_turn(monkeypatch):
    done = []
    steps = [lifecycle.Step(lifecycle.Moment.LAST, name, "") for name in ("a", "b", "c")]
    functions = (partial(done.append, 1), partial(divmod, 1, 0), partial(done.append, 3))
    monkeypatch.setattr(lifecycle, "STEPS", steps)
    monkeypatch.setattr(lifecycle, "_registered", dict(zip(steps, functions, strict=True)))
    with pytest.raises(ZeroDivisionError):
        lifecycle._run(lifecycle.Moment.LAST)
    assert done == [1, 3]
