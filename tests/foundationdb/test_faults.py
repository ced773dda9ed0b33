"""The faults of the simulated cluster and its clients, and their times, come from a seed."""

from __future__ import annotations

import struct
import subprocess
import sys

import fdb
import pytest
import started
from simulated_fdb import scheduling
from simulated_fdb.cluster import JUMP, WATCH_ERRORS, WINDOW
from simulated_fdb.scheduling import Stuck

ONE = struct.pack("<q", 1)
#: A program that waits at a cluster until a key has a value, and shows that.
WAITS = """
import sys, fdb
fdb.api_version(710)
database, key = fdb.open(sys.argv[1]), sys.argv[2].encode()
transaction = database.create_transaction()
watch = transaction.watch(key)
transaction.commit().wait()
print("waits", flush=True)
watch.wait()
print(database[key])
"""


def added(database):
    """Add to a key; the number of the error that the commit ended with, or 0."""
    transaction = database.create_transaction()
    transaction.add(b"n", ONE)
    return outcome(transaction.commit())


def outcome(future):
    try:
        future.wait()
    except fdb.FDBError as error:
        return error.code
    return 0


def count(database):
    return int.from_bytes(database[b"n"] or b"", "little")


@pytest.mark.parametrize(("fault", "there"), [("never", 0), ("late", 1), ("done", 1)])
def test_a_commit_whose_outcome_is_unknown(simulate, fault, there):
    simulation = simulate(**{fault: 1.0})
    database = simulation.database()
    assert added(database) == 1021
    simulation.scheduler.settle()
    assert count(database) == there


def test_a_late_commit_conflicts_with_what_came_before_it(simulate):
    outcomes = set()
    for seed in range(40):
        simulation = simulate(seed, late=1.0)
        database = simulation.database()
        transaction = database.create_transaction()
        transaction[b"n"].wait()
        transaction.add(b"n", ONE)
        assert outcome(transaction.commit()) == 1021
        simulation.cluster.faults.late = 0.0
        assert added(database) == 0
        simulation.scheduler.settle()
        outcomes.add(count(database))
    assert outcomes == {1, 2}


def first_error(transaction):
    """Read many keys, and return the number of the first error; 0 without any."""
    return next((code for _ in range(20) if (code := outcome(transaction[b"n"]))), 0)


def test_each_kind_of_fault_comes_as_often_as_it_is_to(simulate):
    simulation = simulate(refused=0.1, never=0.1, late=0.1, done=0.1, too_old=0.1, lagging=0.1)
    database = simulation.database()
    commits = [added(database) for _ in range(1000)]
    reads = [first_error(database.create_transaction()) for _ in range(1000)]
    for errors, code, least, most in (
        (commits, 1020, 60, 140),
        (commits, 1021, 240, 360),
        (reads, 1007, 60, 140),
        (reads, 1009, 25, 75),
        (reads, 1037, 25, 75),
    ):
        assert least < errors.count(code) < most, code
    assert set(commits) == {0, 1020, 1021}


def test_a_transaction_is_too_old_after_five_seconds(simulate):
    simulation = simulate()
    database = simulation.database()
    transaction = database.create_transaction()
    transaction[b"m"].wait()
    transaction[b"n"] = ONE
    passed = []
    simulation.scheduler.after(WINDOW / 1_000_000 + 1, lambda: passed.append(1))
    simulation.scheduler.settle()
    assert passed
    assert transaction[b"n"] == ONE  # it is not asked of the cluster
    assert outcome(transaction[b"m"]) == 1007
    assert outcome(transaction.commit()) == 1007
    assert added(database) == 0


class TestRecovery:
    def test_leaves_unknown_what_was_in_flight(self, simulate):
        found = set()
        for seed in range(20):
            simulation = simulate(seed)
            database = simulation.database()
            transaction = database.create_transaction()
            transaction.add(b"n", ONE)
            committed = transaction.commit()
            simulation.cluster.recover()
            assert outcome(committed) == 1021
            simulation.scheduler.settle()
            found.add(count(database))
        assert found == {0, 1}

    def test_ends_all_watches_and_makes_every_transaction_too_old(self, simulate):
        simulation = simulate()
        database = simulation.database()
        transaction = database.create_transaction()
        before = transaction.get_read_version().wait()
        watching = database.create_transaction()
        watch = watching.watch(b"a")
        watching.commit().wait()
        simulation.cluster.recover()
        assert outcome(watch) in WATCH_ERRORS
        assert outcome(transaction[b"a"]) == 1007
        assert database.create_transaction().get_read_version().wait() >= before + JUMP


def test_an_unreachable_cluster_answers_later_or_the_time_is_over(simulate):
    simulation = simulate()
    database = simulation.database()
    simulation.cluster.stop()
    limited, other = database.create_transaction(), database.create_transaction()
    limited.options.set_timeout(1000)
    read, later = limited[b"m"], other[b"m"]
    assert outcome(read) == 1031
    other.add(b"n", ONE)
    commit = other.commit()
    assert not later.is_ready()
    assert not commit.is_ready()
    simulation.cluster.go_on()
    assert outcome(commit) == 0
    assert later == None  # noqa: E711


def test_a_commit_whose_time_was_over_is_done_when_the_cluster_goes_on(simulate):
    simulation = simulate()
    database = simulation.database()
    transaction = database.create_transaction()
    transaction.options.set_timeout(1000)
    transaction.add(b"n", ONE)
    simulation.cluster.stop()
    assert outcome(transaction.commit()) == 1031
    simulation.cluster.go_on()
    simulation.scheduler.settle()
    assert count(database) == 1


def test_watches_fail_as_often_as_they_are_to(simulate):
    simulation = simulate(watch=1.0)
    database = simulation.database()
    transaction = database.create_transaction()
    watch = transaction.watch(b"a")
    transaction.commit().wait()
    assert outcome(watch) in WATCH_ERRORS


def test_a_watch_may_miss_a_value_that_comes_and_goes(simulate):
    fired = set()
    for seed in range(40):
        simulation = simulate(seed)
        database = simulation.database()
        transaction = database.create_transaction()
        watch = transaction.watch(b"a")
        transaction.commit().wait()
        database[b"a"] = b"1"
        del database[b"a"]
        simulation.scheduler.settle()
        fired.add(watch.is_ready())
    assert fired == {False, True}


def test_a_cancelled_watch_is_not_kept(simulate):
    simulation = simulate()
    transaction = simulation.database().create_transaction()
    watch = transaction.watch(b"a")
    transaction.commit().wait()
    assert simulation.cluster.watching() == 1
    watch.cancel()
    assert simulation.cluster.watching() == 0


def test_a_read_of_the_last_commit_does_not_conflict_with_that_commit(simulate, monkeypatch):
    monkeypatch.setattr(scheduling, "_PACE", 1)  # time stands still: versions come from commits
    database = simulate().database()
    for _ in range(5):
        assert added(database) == 0
        transaction = database.create_transaction()
        before = transaction.get_read_version().wait()
        transaction[b"n"] = transaction[b"n"]
        assert outcome(transaction.commit()) == 0
        assert transaction.get_committed_version() == before + 1


def test_commits_of_one_version_have_stamps_in_their_order(simulate):
    simulation = simulate(joined=1.0)
    database = simulation.database()
    stamps = []
    transactions = [database.create_transaction() for _ in range(5)]
    for transaction in transactions:
        transaction.set_versionstamped_key(b"i" + bytes(10) + b"\1\0\0\0", b"")
        stamps.append(transaction.get_versionstamp())
        transaction.commit().wait()
    assert len({stamp.wait().value[:8] for stamp in stamps}) == 1
    assert sorted(stamp.value for stamp in stamps) == [stamp.value for stamp in stamps]
    assert len(database.get_range(b"i", b"j")) == 5
    assert added(database) == 0
    assert (
        transactions[0].get_committed_version()
        < database.create_transaction().get_read_version().wait()
    )


class TestClients:
    def test_go_on_as_the_seed_says(self, simulate):
        def history(seed):
            simulation = simulate(seed, never=0.1, done=0.1, lagging=0.1)
            done = []

            def client(name):
                database = simulation.database()
                for _ in range(20):
                    database.add(b"n", ONE)
                    done.append((name, count(database)))

            for name in "abc":
                simulation.scheduler.add(lambda name=name: client(name))
            simulation.scheduler.run()
            return done

        assert history(1) == history(1)
        assert len({tuple(history(seed)) for seed in range(5)}) == 5

    def test_die_at_each_step_and_their_commits_in_flight_may_be_done(self, simulate):
        found = []
        for step in range(1, 7):
            simulation = simulate(step)
            client = simulation.scheduler.add(lambda s=simulation: added(s.database()), step)
            simulation.scheduler.run()
            simulation.scheduler.settle()
            found.append((client.is_dead, count(simulation.database())))
        assert found[:2] == [(True, 0), (True, 1)]
        assert (False, 1) in found

    def test_that_wait_for_what_does_not_come_are_found(self, simulate):
        simulation = simulate()

        def wait():
            transaction = simulation.database().create_transaction()
            watch = transaction.watch(b"a")
            transaction.commit().wait()
            watch.wait()

        simulation.scheduler.add(wait)
        with pytest.raises(Stuck):
            simulation.scheduler.run()

    def test_that_wait_go_on_when_another_writes(self, simulate):
        for seed in range(20):
            simulation = simulate(seed)

            def wait(simulation=simulation):
                database = simulation.database()
                while True:
                    transaction = database.create_transaction()
                    watch = transaction.watch(b"a")
                    if transaction[b"a"].present():
                        return
                    transaction.commit().wait()
                    watch.wait()

            def write(simulation=simulation):
                simulation.database()[b"a"] = b"1"

            simulation.scheduler.add(wait)
            simulation.scheduler.add(write)
            simulation.scheduler.run()

    def test_raise_in_the_test_what_they_raise(self, simulate):
        simulation = simulate()

        def fail():
            simulation.database()[b"a"] = b"1"
            raise ZeroDivisionError

        simulation.scheduler.add(fail)
        with pytest.raises(ZeroDivisionError):
            simulation.scheduler.run()


def test_other_processes_use_the_same_cluster(cluster_file, database, key):
    with subprocess.Popen(
        [sys.executable, "-c", WAITS, cluster_file, key(b"a").decode()],
        env=started.environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        try:
            assert other.stdout.readline() == "waits\n"
            database[key(b"a")] = b"1"
            assert other.stdout.read() == "b'1'\n"
        finally:
            other.kill()
