"""While a session has an old snapshot, no removed row can be cleaned up: calls do not look at
removed rows again all the same."""

from __future__ import annotations

import secrets
import time

import pytest
from waiting import until

from pressure_mp import Empty, FairQueue, JoinableQueue, LifoQueue, PriorityQueue, Queue, TaskQueue
from pressure_mp.engines import registry
from pressure_mp.engines.postgres import installing, quick


class Watched:
    """A schema of its own, and how many blocks of its tables are looked at."""

    def __init__(self, postgres):
        self.name = f"own_{secrets.token_hex(4)}"
        self.url = f"{postgres.url}?schema={self.name}"
        self._postgres = postgres
        self.puts = 0
        installing.install(registry.parse(self.url))
        self._leave_to_the_test()

    def _leave_to_the_test(self):
        """No autovacuum: what it looks at would be counted too."""
        for (table,) in self._postgres.execute(
            f"SELECT relid::regclass FROM pg_stat_all_tables WHERE schemaname = '{self.name}'"
        ):
            self._postgres.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")

    def _ask(self, what, table):
        return self._postgres.execute(
            f"SELECT coalesce(sum({what}), 0) FROM {table} WHERE schemaname = '{self.name}'"
        )[0][0]

    def blocks(self):
        """So far: what each connection did is counted when it ended."""
        registry.engine(registry.parse(self.url)).close()
        until(
            lambda: (
                self._ask(
                    "CASE WHEN relname IN ('items', 'tasks') THEN n_tup_ins ELSE 0 END",
                    "pg_stat_all_tables",
                )
                == self.puts
            )
        )
        return self._ask("heap_blks_hit + heap_blks_read", "pg_statio_all_tables")

    def pairs(self, q, number):
        """How many blocks so many puts and gets look at."""
        before = self.blocks()
        for _ in range(number):
            q.put("x" * 1500)  # a few of them fill a block
            if isinstance(q, TaskQueue):
                q.take().ack()
                continue
            q.get()
            if isinstance(q, JoinableQueue):
                q.task_done()
        self.puts += number
        return self.blocks() - before

    def tasks(self, q, number, *options):
        """How many blocks so many tasks look at with each of these options of a put."""
        before = self.blocks()
        for _ in range(number):
            for option in options:
                q.put("x" * 1500, **option)
            for option in options:
                q.take(tube=option.get("tube")).ack()
        self.puts += number * len(options)
        return self.blocks() - before

    def waits(self, q, number):
        """How many blocks so many waits in vain look at."""
        before = self.blocks()
        for _ in range(number):
            with pytest.raises(Empty):
                q.get(timeout=0.001)
        q.put("x")  # when this was counted, what the same connection did before was
        q.get()
        self.puts += 1
        return self.blocks() - before


@pytest.fixture
def watched(postgres):
    found = Watched(postgres)
    yield found
    postgres.execute(f"DROP SCHEMA IF EXISTS {found.name} CASCADE")


@pytest.fixture
def old_snapshot(postgres):
    """Another session has an old snapshot from now on."""
    import psycopg

    with psycopg.connect(postgres.url) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1 FROM pg_class")
        yield
        connection.rollback()


@pytest.mark.usefixtures("no_looks", "old_snapshot")
@pytest.mark.parametrize("kind", [Queue, JoinableQueue, LifoQueue, PriorityQueue, TaskQueue])
def test_a_put_and_a_get_cost_what_they_cost_before(watched, name, kind):
    q = kind(name=name, url=watched.url)
    first = watched.pairs(q, 100)
    watched.pairs(q, 300)
    assert watched.pairs(q, 100) < 2 * first


@pytest.mark.usefixtures("no_looks", "old_snapshot")
def test_a_get_after_a_pause_costs_what_it_cost_before(watched, name, monkeypatch):
    monkeypatch.setattr(quick, "_FRESH", 0.0)  # as after a pause, a handle asks for its queue again
    q = LifoQueue(name=name, url=watched.url)
    first = watched.pairs(q, 100)
    watched.pairs(q, 400)
    assert 2 * watched.pairs(q, 100) < 3 * first


@pytest.mark.usefixtures("no_looks")
def test_of_the_calls_of_a_process_few_are_kept(postgres, watched, name):
    q = LifoQueue(name=name, url=watched.url)
    for _ in range(2):
        for number in range(150):  # one of the two is kept: the odd calls, and then the even ones
            q.put(number)
            assert q.get() == number
        q.put("one more")
    assert postgres.execute(f"SELECT count(*) FROM {watched.name}.calls")[0][0] < 110


@pytest.mark.usefixtures("no_looks", "old_snapshot")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param([{"tube": "a"}, {"tube": "b", "priority": 1}], id="tubes"),
        pytest.param([{"priority": 1}, {"priority": 2}, {"priority": 3}], id="priorities"),
    ],
)
def test_a_task_of_a_tube_or_of_a_priority_costs_what_it_cost_before(watched, name, options):
    q = TaskQueue(name, url=watched.url)
    first = watched.tasks(q, 50, *options)
    watched.tasks(q, 200, *options)
    assert 2 * watched.tasks(q, 50, *options) < 3 * first


@pytest.mark.usefixtures("no_looks", "old_snapshot")
def test_a_task_costs_what_it_cost_before_when_the_ttr_of_the_first_ones_would_be_over(
    watched, name
):
    q = TaskQueue(name, ttr=1, url=watched.url)
    first = watched.pairs(q, 50)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        watched.pairs(q, 200)
    assert watched.pairs(q, 100) < 10 * first  # some twenty entries are looked at by each call


@pytest.mark.usefixtures("no_looks", "old_snapshot")
def test_a_take_in_vain_costs_what_it_cost_before(watched, name):
    q = TaskQueue(name, ttr=60, url=watched.url)

    def in_vain():
        before = watched.blocks()
        for _ in range(40):
            with pytest.raises(Empty):
                q.take(timeout=0)
        q.put("x")  # when this was counted, what the same connection did before was
        q.take().ack()
        watched.puts += 1
        return watched.blocks() - before

    first = in_vain()
    watched.pairs(q, 400)
    in_vain()  # the first of these passes what there was meanwhile
    assert in_vain() < first + 40 * 40  # some forty taken ones are looked at again


@pytest.mark.usefixtures("no_looks")
def test_tasks_of_many_priorities_come_in_their_order(watched, name):
    q = TaskQueue(name, url=watched.url)
    for _ in range(2):
        priorities = [*range(40, 0, -1), *range(41, 81)]
        for priority in priorities:
            q.put(priority, priority=priority, tube="odd" if priority % 2 else "even")
        for priority in range(1, 41):
            assert q.take(tube="odd" if priority % 2 else "even").data == priority
        assert [q.take().data for _ in range(40)] == [*range(41, 81)]


@pytest.mark.usefixtures("no_looks", "old_snapshot")
def test_a_wait_costs_what_it_cost_before(watched, name):
    q = Queue(name=name, url=watched.url)
    first = watched.waits(q, 40)
    watched.waits(q, 200)
    assert watched.waits(q, 40) < 2 * first


def by_priority(watched, q, number):
    """How many blocks so many items of each of ten priorities look at, which are put in turn."""
    before = watched.blocks()
    for _ in range(number):
        for priority in range(10):
            q.put((priority, "x" * 1500))
        for priority in range(5):
            assert q.get()[0] == priority
        assert [priority for priority, _ in q.get_many(5)] == [5, 6, 7, 8, 9]
    watched.puts += 10 * number
    return watched.blocks() - before


@pytest.mark.usefixtures("no_looks", "old_snapshot")
def test_items_of_ten_priorities_cost_what_they_cost_before(watched, name):
    q = PriorityQueue(name=name, key=lambda item: item[0], url=watched.url)
    first = by_priority(watched, q, 10)
    by_priority(watched, q, 40)
    assert 2 * by_priority(watched, q, 10) < 3 * first


@pytest.mark.usefixtures("no_looks")
def test_items_of_many_priorities_come_in_their_order(watched, name):
    q = PriorityQueue(name=name, url=watched.url)
    for number in range(3):
        priorities = [*range(40, 0, -1), *range(41, 81)]
        for priority in priorities:
            q.put((priority, number))
        assert [q.get()[0] for _ in range(39)] == [*range(1, 40)]
        q.put((7, number))  # before those that are left
        assert [item[0] for item in q.get_many(2)] == [7, 40]
        assert [item[0] for item in q.get_many(40)] == [*range(41, 81)]


def by_key(watched, q, number):
    """How many blocks so many items of each of three keys look at, which are put in turn."""
    before = watched.blocks()
    for _ in range(number):
        for key in range(3):
            q.put((key, "x" * 1500))
        assert [q.get()[0] for _ in range(2)] == [0, 1]
        assert q.get_many(2)[0][0] == 2
    watched.puts += 3 * number
    return watched.blocks() - before


@pytest.mark.usefixtures("no_looks", "old_snapshot")
def test_items_of_three_keys_cost_what_they_cost_before(watched, name):
    q = FairQueue(lambda item: item[0], name=name, url=watched.url)
    first = by_key(watched, q, 30)
    by_key(watched, q, 120)
    assert 2 * by_key(watched, q, 30) < 3 * first


@pytest.mark.usefixtures("no_looks")
def test_keys_that_have_no_items_any_more_are_not_among_the_keys_and_not_kept_for_ever(
    postgres, watched, name
):
    q = FairQueue(lambda item: item, maxsize=1000, name=name, url=watched.url)
    for start in (0, 700):
        q.put_many(range(start, start + 700))
        assert sorted(q.get_many(700)) == [*range(start, start + 700)]
        assert q.keys() == []
    q.put_many([0, 1399])
    assert sorted(q.keys()) == [0, 1399]
    assert postgres.execute(f"SELECT count(*) FROM {watched.name}.tenants")[0][0] == 2
