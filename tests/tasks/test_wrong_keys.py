"""A key of a queue of tasks that holds what no client of ours writes there."""

from __future__ import annotations

import pytest

from pressure_mp import TaskError, TaskQueue, WrongKeyTypeError
from pressure_mp.engines.redis import keys

#: What can be done to a queue that has a ready, a buried and a taken task, and which keys it uses.
CALLS = {
    "put": lambda queue, task: queue.put(9, tube=task.tube),
    "take": lambda queue, task: queue.take(0),
    "ack": lambda queue, task: task.ack(),
    "release": lambda queue, task: task.release(),
    "kick": lambda queue, task: queue.kick(),
    "kill": lambda queue, task: queue.kill(task.id),
}
#: Keys that these do not all have, or that say by themselves whether there is a queue.
LEFT_OUT = {"bound", "users", "kept", "woken", "outcomes"}
#: Keys that only tasks with a tube have.
OF_TUBES = {"tubes", "waiting"}


@pytest.mark.parametrize(
    ("part", "tube"),
    [
        (part, tube)
        for part in sorted(keys.TASKS.keys() - LEFT_OUT)
        for tube in (None, "tube")
        if tube or part not in OF_TUBES
    ],
)
def test_a_key_of_another_type_is_named_and_nothing_is_half_done(part, tube, valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put_many([1, 2, 3], tube=tube)
    queue.take(0).bury()
    task = queue.take(0)
    with valkey.client() as client:
        wrong = f"__pressure__:mp:{{{name}}}:{part}"
        had = client.exists(wrong)
        if had:
            client.rename(wrong, wrong + "-right")
        client.set(wrong, "x")

        def everything():
            found = sorted(client.scan_iter(match=f"*{name}*"))
            return {key: client.dump(key) for key in found if b":kept:" not in key}

        before, named, kept = everything(), [], True
        for call in CALLS.values():
            try:
                call(queue, task)
            except WrongKeyTypeError as error:
                named.append(str(error))
                kept = kept and everything() == before
            except TaskError:
                pass  # a call before this one did its part
            before = everything()
        assert named
        assert kept
        assert all(f":{part}'" in error for error in named)
        client.delete(wrong)
        if had:
            client.rename(wrong + "-right", wrong)
        queue.delete()


def test_a_count_that_is_none_is_named_and_nothing_is_done(valkey, name):
    queue = TaskQueue(name, url=valkey.url)
    queue.put(1)
    with valkey.client() as client:
        counts = f"__pressure__:mp:{{{name}}}:counts"
        client.hset(counts, "R-T", "many")
        with pytest.raises(Exception, match="not an integer"):
            queue.take(0)
        client.hdel(counts, "R-T")
    assert queue.take(0).data == 1
    queue.delete()
