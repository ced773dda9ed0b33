"""What a handle remembers is true in each process that has it, or is not remembered there."""

from __future__ import annotations

import os
import pickle
import traceback
from typing import Any

import pytest
from memories import TABLE, Answer, parts_of
from waiting import LIMIT

from pressure_mp import Queue
from pressure_mp.engines.shared import linux

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


@pytest.fixture(params=[0, 8], ids=["unbounded", "bounded"])
def queue(request, server):
    with Queue(request.param, url=server.url) as queue:
        yield queue


def use(queue: Any) -> None:
    """Have all parts remember something."""
    for number in range(4):
        queue.put(number)
    for number in range(3):
        assert queue.get(timeout=LIMIT) == number
    queue._at.kept.append("got by a call that was interrupted")


def snapshot(queue: Any) -> dict[tuple[str, str], Any]:
    return {
        (name, attribute): value
        for name, part in parts_of(queue)
        for attribute, value in vars(part).items()
    }


def is_new(value: Any, used: Any, unused: Any) -> bool:
    """Whether a value is none that the parent used: as it was at first, or another object."""
    if value is unused or isinstance(value, (bool, int, float, str, list, tuple)):
        return bool(value == unused)
    return value is not used


def _copied(value: Any) -> Any:
    """A value as it is now, if it can change; another object as it is."""
    return value.copy() if isinstance(value, list) else value


def in_child(check: Any) -> None:
    """Run a check in a forked child; an assertion that fails there fails here."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            check()
            os.write(write, b"passed")
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read().decode()
    os.waitpid(pid, 0)
    assert told == "passed", told


def test_each_attribute_has_an_answer(queue):
    use(queue)
    seen = snapshot(queue)
    there = {name for name, _ in parts_of(queue)}
    assert set(seen) == {(name, one) for name in there for one in TABLE[name]}


def test_a_forked_child_has_what_the_table_says(queue):
    unused = {key: _copied(value) for key, value in snapshot(queue).items()}
    use(queue)
    used = snapshot(queue)
    changing = {Answer.OWN, Answer.REACHED}

    def check() -> None:
        assert queue._at.binding is None  # until the child says that it uses the queue
        assert queue._at.hold is None
        queue.qsize()
        for (name, attribute), value in used.items():
            answer = TABLE[name][attribute]
            if name in ("binding", "ring") or answer is Answer.REACHED:
                continue
            now = getattr(dict(parts_of(queue))[name], attribute)
            if answer in changing:
                assert is_new(now, value, unused[name, attribute]), (name, attribute, now)
            else:
                assert now is value, (name, attribute, now)

    in_child(check)
    assert queue._at.kept.pop()


def test_a_ring_knows_in_a_forked_child_whose_it_is(queue):
    use(queue)
    ring = queue._at.binding.items.ring
    assert ring.putting.run(lambda: _of_child(ring)) == (os.getpid(), None)
    queue._at.kept.clear()


def _of_child(ring: Any) -> tuple[int, None]:
    """Fork with a lock held, which the child has not."""

    def check() -> None:
        assert ring.process == os.getpid()
        assert not ring.putting._is_held
        assert ring.taking.run(lambda: "taken") == "taken"

    in_child(check)
    return ring.process, None


def test_a_handle_that_is_unpickled_has_what_the_program_said_and_nothing_else(queue):
    use(queue)
    copy = pickle.loads(pickle.dumps(queue))
    for attribute, value in vars(queue._at).items():
        now = getattr(copy._at, attribute)
        if TABLE["attachment"][attribute] is Answer.SAID:
            if attribute not in ("codec", "options", "order"):
                assert now == value, attribute
        else:
            assert now is not value or not value or attribute in ("how", "before_get"), attribute
    assert copy._at.options == queue._at.options._replace(shares_memory=False)
    assert not copy._at.codec._signs_late
    for attribute, answer in TABLE["codec"].items():
        if answer is Answer.SAID and attribute != "serializer":
            assert getattr(copy._at.codec, attribute) == getattr(queue._at.codec, attribute)
    copy.close()
    queue._at.kept.clear()
