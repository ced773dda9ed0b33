"""The simulator does what FoundationDB does: with ``PRESSURE_TEST_FDB`` these run at a cluster."""

from __future__ import annotations

import struct
import threading
import time

import fdb
import pytest

STAMP = b"\0" * 10


def stamped(text, user=b""):
    """A key or value whose stamp follows ``text``."""
    return text + STAMP + user + struct.pack("<I", len(text))


def code(call, *arguments):
    """The number of the error that a call raises."""
    with pytest.raises(fdb.FDBError) as raised:
        call(*arguments)
    return raised.value.code


def commit(transaction):
    return transaction.commit().wait()


def number(value):
    return struct.pack("<q", value)


@pytest.fixture
def begin(database):
    return database.create_transaction


class TestReads:
    def test_are_of_one_version(self, database, begin, key):
        database[key(b"a")] = b"before"
        transaction = begin()
        assert transaction[key(b"b")] == None  # noqa: E711
        database[key(b"a")] = b"after"
        assert transaction[key(b"a")] == b"before"
        assert [one.value for one in transaction[key(b"a") : key(b"z")]] == [b"before"]
        assert database[key(b"a")] == b"after"

    def test_see_what_was_committed_before(self, database, begin, key):
        for turn in range(20):
            database[key(b"a")] = b"%d" % turn
            assert begin()[key(b"a")] == b"%d" % turn

    def test_see_what_their_transaction_wrote(self, database, begin, key):
        for end in (b"a", b"b", b"c", b"d"):
            database[key(end)] = b"old"
        transaction = begin()
        transaction[key(b"b")] = b"new"
        del transaction[key(b"c")]
        transaction[key(b"bb")] = b"more"
        transaction.clear_range(key(b"d"), key(b"e"))
        transaction[key(b"dd")] = b"again"
        expected = [
            (key(b"a"), b"old"),
            (key(b"b"), b"new"),
            (key(b"bb"), b"more"),
            (key(b"dd"), b"again"),
        ]
        for reads in (transaction, transaction.snapshot):
            assert [tuple(one) for one in reads.get_range(key(b""), key(b"\xff"))] == expected
            backwards = reads.get_range(key(b""), key(b"\xff"), reverse=True)
            assert [tuple(one) for one in backwards] == expected[::-1]
            assert [tuple(one) for one in reads.get_range(key(b"b"), key(b"\xff"), limit=2)] == (
                expected[1:3]
            )
            assert reads[key(b"c")] == None  # noqa: E711

    @pytest.mark.parametrize("reverse", [False, True])
    def test_of_a_long_range_give_all_of_it(self, database, begin, key, reverse):
        @fdb.transactional
        def fill(tr):
            for turn in range(500):
                tr[key(b"%04d" % turn)] = b"x" * 100

        fill(database)
        transaction = begin()
        for turn in range(0, 500, 3):
            del transaction[key(b"%04d" % turn)]
        left = [key(b"%04d" % turn) for turn in range(500) if turn % 3]
        found = [one.key for one in transaction.get_range(key(b""), key(b"\xff"), reverse=reverse)]
        assert found == (left[::-1] if reverse else left)

    def test_of_a_range_that_ends_before_it_begins_raise(self, begin, key):
        assert code(begin().get_range(key(b"b"), key(b"a")).to_list) == 2005

    def test_after_the_commit_raise(self, begin, key):
        transaction = begin()
        transaction[key(b"a")] = b"1"
        commit(transaction)
        assert code(transaction[key(b"a")].wait) == 2017


class TestConflicts:
    """Another transaction commits between a read and a commit."""

    @pytest.fixture
    def is_refused(self, database, begin, key):
        def is_refused(read, write):
            transaction = begin()
            transaction.get_read_version().wait()
            read(transaction)
            transaction[key(b"its own")] = b""
            write(database)
            committed = transaction.commit()
            committed.block_until_ready()
            error = committed.exception()
            assert error is None or error.code == 1020
            return error is not None

        return is_refused

    def test_come_of_a_key_that_was_read(self, is_refused, key):
        def write(db):
            db[key(b"a")] = b"2"

        assert is_refused(lambda tr: tr[key(b"a")].wait(), write)
        assert is_refused(lambda tr: tr.add_read_conflict_key(key(b"a")), write)
        assert not is_refused(lambda tr: tr[key(b"b")].wait(), write)
        assert not is_refused(lambda tr: tr.snapshot[key(b"a")].wait(), write)

    def test_come_of_a_key_that_was_read_and_added_to(self, is_refused, key):
        def add(db):
            db.add(key(b"a"), number(1))

        assert is_refused(lambda tr: tr[key(b"a")].wait(), add)
        assert not is_refused(lambda tr: tr.add(key(b"a"), number(1)), add)

    def test_come_of_a_key_that_was_cleared_although_it_had_no_value(self, is_refused, key):
        assert is_refused(
            lambda tr: tr[key(b"a")].wait(), lambda db: db.clear_range(key(b"a"), key(b"b"))
        )

    def test_come_of_a_key_that_another_only_claims_to_write(self, is_refused, begin, key):
        def claim(db):
            transaction = begin()
            transaction.add_write_conflict_key(key(b"a"))
            commit(transaction)

        assert is_refused(lambda tr: tr[key(b"a")].wait(), claim)

    def test_do_not_come_of_what_a_transaction_wrote_itself(self, is_refused, key):
        def own(tr):
            tr.add(key(b"a"), number(1))
            tr[key(b"a")] = b"1"
            tr.clear_range(key(b"c"), key(b"d"))
            tr[key(b"a")].wait()
            tr.get_range(key(b"c"), key(b"d")).to_list()

        def write(db):
            db[key(b"a")] = b"2"
            db[key(b"cc")] = b"2"

        assert not is_refused(own, write)

    def test_do_not_come_of_writes_alone(self, is_refused, key):
        def write(tr):
            tr[key(b"a")] = b"1"

        assert not is_refused(write, write)

    @pytest.mark.parametrize(
        ("reverse", "refused"),
        [(False, {b"a", b"b", b"bb", b"c"}), (True, {b"d", b"dd", b"e", b"f"})],
    )
    def test_come_of_a_range_up_to_the_last_key_of_a_limited_read(
        self, database, is_refused, key, reverse, refused
    ):
        # a and f are in the range, and b to e have values when it is read.
        for end in (b"a", b"b", b"bb", b"c", b"cc", b"d", b"dd", b"e", b"f"):
            database.clear_range(key(b""), key(b"\xff"))
            for one in (b"b", b"c", b"d", b"e"):
                database[key(one)] = b"1"

            def read(tr):
                return tr.get_range(key(b"a"), key(b"g"), limit=2, reverse=reverse).to_list()

            def write(db, end=end):
                db[key(end)] = b"2"

            assert is_refused(read, write) == (end in refused), end

    def test_come_of_an_empty_range_into_which_a_stamped_key_was_put(self, is_refused, key):
        @fdb.transactional
        def put(tr):
            tr.set_versionstamped_key(stamped(key(b"i")), b"1")

        def read(tr):
            assert not tr.get_range(key(b"i"), key(b"j"), limit=1).to_list()

        assert is_refused(read, put)
        assert not is_refused(
            lambda tr: tr.snapshot.get_range(key(b"i"), key(b"j"), limit=1).to_list(), put
        )

    def test_do_not_come_to_a_transaction_that_writes_nothing(self, database, begin, key):
        transaction = begin()
        transaction[key(b"a")].wait()
        database[key(b"a")] = b"2"
        commit(transaction)
        assert transaction.get_committed_version() == -1

    def test_come_of_a_watched_key(self, is_refused, key):
        def write(db):
            db[key(b"a")] = b"2"

        def watch(tr):
            tr.watch(key(b"a"))
            tr[key(b"b")].wait()  # the watch reads its key meanwhile

        assert is_refused(watch, write)

    def test_end_when_the_transaction_begins_again(self, database, begin, key):
        transaction = begin()
        transaction[key(b"a")].wait()
        database[key(b"a")] = b"2"
        transaction[key(b"b")] = b"1"
        with pytest.raises(fdb.FDBError) as raised:
            commit(transaction)
        transaction.on_error(raised.value).wait()
        assert transaction[key(b"a")] == b"2"
        assert transaction[key(b"b")] == None  # noqa: E711
        transaction[key(b"b")] = b"1"
        commit(transaction)


class TestMutations:
    @pytest.mark.parametrize(
        ("name", "old", "operand", "new"),
        [
            ("add", None, b"\x01\0", b"\x01\0"),
            ("add", b"\xff\0", b"\x02\0", b"\x01\x01"),
            ("add", b"\xff\xff", b"\x01\0", b"\0\0"),
            ("add", b"\x01", b"\x01\0", b"\x02\0"),
            ("add", b"\x01\x01\x01", b"\x01\0", b"\x02\x01"),
            ("bit_and", b"\x0f", b"\x3c", b"\x0c"),
            ("bit_and", None, b"\x3c", b"\x3c"),
            ("bit_or", b"\x0f", b"\x30", b"\x3f"),
            ("bit_or", b"\x01\x02\x03", b"\x10\0", b"\x11\x02"),
            ("max", b"\x01\x02\x03", b"\x02\x01", b"\x01\x02"),
            ("bit_xor", b"\x0f", b"\x3c", b"\x33"),
            ("max", b"\x01\x02", b"\x02\x01", b"\x01\x02"),
            ("min", b"\x01\x02", b"\x02\x01", b"\x02\x01"),
            ("min", None, b"\x02", b"\x02"),
            ("byte_max", b"b", b"abc", b"b"),
            ("byte_min", b"b", b"abc", b"abc"),
            ("append_if_fits", b"ab", b"c", b"abc"),
            ("compare_and_clear", b"ab", b"ab", None),
            ("compare_and_clear", b"ab", b"a", b"ab"),
        ],
    )
    def test_make_the_same_of_a_value_before_and_after_the_commit(
        self, database, begin, key, name, old, operand, new
    ):
        if old is not None:
            database[key(b"a")] = old
        transaction = begin()
        getattr(transaction, name)(key(b"a"), operand)
        assert transaction[key(b"a")] == new
        commit(transaction)
        assert database[key(b"a")] == new

    def test_are_done_in_their_order(self, database, begin, key):
        database[key(b"a")] = number(5)
        transaction = begin()
        transaction.add(key(b"a"), number(1))
        del transaction[key(b"a")]
        transaction.add(key(b"a"), number(2))
        transaction.add(key(b"a"), number(3))
        assert transaction[key(b"a")] == number(5)
        commit(transaction)
        assert database[key(b"a")] == number(5)

    def test_of_several_threads_are_all_done(self, database, key):
        def add():
            for _ in range(50):
                database.add(key(b"a"), number(1))

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert database[key(b"a")] == number(200)


class TestStamps:
    def test_are_in_the_order_of_commits(self, database, begin, key):
        stamps = []
        for turn in range(10):
            transaction = begin()
            for user in (b"1", b"2"):
                transaction.set_versionstamped_key(stamped(key(b"i"), user), b"%d" % turn)
            stamp = transaction.get_versionstamp()
            commit(transaction)
            stamps.append(stamp.wait().value)
            version = struct.unpack(">Q", stamps[-1][:8])[0]
            assert version == transaction.get_committed_version()
        assert [len(stamp) for stamp in stamps] == 10 * [10]
        assert stamps == sorted(set(stamps))
        found = [*database.get_range_startswith(key(b"i"))]
        assert [one.key for one in found] == [
            key(b"i") + stamp + user for stamp in stamps for user in (b"1", b"2")
        ]
        assert [one.value for one in found] == [b"%d" % (turn // 2) for turn in range(20)]

    def test_come_into_values(self, database, begin, key):
        transaction = begin()
        transaction.set_versionstamped_value(key(b"a"), stamped(b"before", b"behind"))
        stamp = transaction.get_versionstamp()
        commit(transaction)
        assert database[key(b"a")] == b"before" + stamp.wait().value + b"behind"

    def test_cannot_be_read_by_their_transaction(self, begin, key):
        transaction = begin()
        transaction.set_versionstamped_key(stamped(key(b"i")), b"1")
        transaction.set_versionstamped_value(key(b"a"), stamped(b""))
        for reads in (transaction, transaction.snapshot):
            assert code(reads.get_range(key(b"i"), key(b"j")).to_list) == 1036
            assert code(reads[key(b"a")].wait) == 1036
            assert not reads.get_range(key(b"j"), key(b"k")).to_list()

    def test_leave_readable_what_was_cleared_since(self, database, begin, key):
        transaction = begin()
        transaction.set_versionstamped_key(stamped(key(b"i")), b"1")
        transaction.clear_range(key(b"i"), key(b"j"))
        assert not transaction.get_range(key(b"i"), key(b"j")).to_list()
        commit(transaction)
        assert not database.get_range_startswith(key(b"i"))

    def test_cannot_come_below_what_was_read(self, database, begin, key):
        transaction = begin()
        transaction.set_versionstamped_key(stamped(key(b"i")), b"1")
        commit(transaction)
        transaction.reset()
        transaction.get_read_version().wait()
        transaction.set_versionstamped_key(stamped(key(b"i")), b"2")
        first = transaction.get_range(key(b"i"), key(b"j"), limit=1).to_list()
        assert [one.value for one in first] == [b"1"]
        commit(transaction)
        assert [one.value for one in database.get_range_startswith(key(b"i"))] == [b"1", b"2"]

    def test_of_a_transaction_that_wrote_nothing_are_an_error(self, begin, key):
        transaction = begin()
        stamp = transaction.get_versionstamp()
        transaction[key(b"a")].wait()
        commit(transaction)
        assert code(stamp.wait) == 2021

    def test_have_to_be_within_the_key(self, begin, key):
        transaction = begin()
        text = key(b"i") + STAMP
        transaction.set_versionstamped_key(text + struct.pack("<I", len(text) - 9), b"")
        assert code(commit, transaction) == 2000


class TestLimits:
    """An error of a write is told by the next call."""

    @pytest.mark.parametrize(
        ("size", "value", "error"),
        [(10_000, 0, None), (10_001, 0, 2102), (100, 100_000, None), (100, 100_001, 2103)],
    )
    def test_of_keys_and_values(self, begin, key, size, value, error):
        transaction = begin()
        transaction[key(b"").ljust(size, b"x")] = value * b"x"
        if error is None:
            commit(transaction)
        else:
            assert code(transaction[key(b"a")].wait) == error
            assert code(commit, transaction) == error

    def test_of_a_transaction(self, database, begin, key):
        transaction = begin()
        for turn in range(101):
            transaction[key(b"%d" % turn)] = 100_000 * b"x"
        assert transaction.get_approximate_size().wait() > 10_000_000
        assert code(commit, transaction) == 2101
        assert not database.get_range_startswith(key(b""), limit=1)

    def test_that_are_stated(self, begin, key):
        transaction = begin()
        transaction.options.set_size_limit(1000)
        transaction[key(b"a")] = 1000 * b"x"
        assert code(commit, transaction) == 2101

    def test_of_the_keys_of_users(self, begin):
        transaction = begin()
        transaction[b"\xff/a"] = b""
        assert code(commit, transaction) == 2004

    def test_of_time(self, begin, key):
        transaction = begin()
        transaction.options.set_timeout(1)
        time.sleep(0.05)  # the time limit is what passes
        assert code(transaction[key(b"a")].wait) == 1031
        assert code(transaction.on_error(1020).wait) == 1031

    def test_of_tries(self, begin):
        transaction = begin()
        transaction.options.set_retry_limit(1)
        transaction.on_error(1020).wait()
        assert code(transaction.on_error(1020).wait) == 1020


class TestErrors:
    @pytest.mark.parametrize("error", [1007, 1009, 1020, 1021, 1037, 1039])
    def test_after_which_a_new_try_helps(self, begin, error):
        begin().on_error(error).wait()
        assert fdb.predicates.is_retryable(fdb.FDBError(error))
        assert fdb.predicates.is_maybe_committed(fdb.FDBError(error)) == (error in (1021, 1039))

    @pytest.mark.parametrize("error", [1025, 1031, 1036, 2017, 2101])
    def test_after_which_none_does(self, begin, error):
        assert code(begin().on_error(error).wait) == error
        assert not fdb.predicates.is_retryable(fdb.FDBError(error))

    def test_of_a_transaction_that_was_cancelled(self, begin, key):
        transaction = begin()
        transaction.cancel()
        assert code(transaction[key(b"a")].wait) == 1025
        assert code(commit, transaction) == 1025
        transaction.reset()
        assert transaction[key(b"a")] == None  # noqa: E711


class TestWatches:
    @pytest.fixture
    def watch(self, begin, key):
        def watch(end=b"a"):
            transaction = begin()
            watch = transaction.watch(key(end))
            commit(transaction)
            return watch

        return watch

    def test_tell_another_thread_of_a_new_value(self, database, watch, key):
        told = threading.Event()
        threads = []

        def tell(future):
            threads.append(threading.current_thread())
            told.set()

        future = watch()
        future.on_ready(tell)
        database[key(b"b")] = b"1"
        assert not future.is_ready()
        database[key(b"a")] = b"1"
        assert told.wait(30)
        assert threads != [threading.current_thread()]
        assert future.wait() is None

    def test_tell_of_a_key_that_was_cleared_and_of_one_that_was_added_to(
        self, database, watch, key
    ):
        database[key(b"a")] = number(1)
        database[key(b"b")] = number(1)
        cleared, added = watch(b"a"), watch(b"b")
        del database[key(b"a")]
        database.add(key(b"b"), number(1))
        cleared.wait()
        added.wait()

    def test_compare_with_what_their_transaction_read(self, database, begin, key):
        transaction = begin()
        transaction[key(b"a")].wait()
        watch = transaction.watch(key(b"a"))
        transaction[key(b"b")].wait()
        database[key(b"a")] = b"1"
        commit(transaction)
        watch.wait()

    def test_that_were_not_committed_end_with_their_transaction(self, begin, key):
        transaction = begin()
        watch = transaction.watch(key(b"a"))
        transaction.reset()
        assert code(watch.wait) == 1025

    def test_can_be_cancelled(self, watch):
        future = watch()
        future.cancel()
        assert code(future.wait) == 1101

    def test_are_limited(self, cluster_file, begin, key, watch):
        database = fdb.impl.create_database(cluster_file)
        database.options.set_max_watches(2)
        transaction = database.create_transaction()
        two = [transaction.watch(key(b"a")), transaction.watch(key(b"b"))]
        assert code(transaction.watch(key(b"c")).wait) == 1032
        two[0].cancel()
        assert not transaction.watch(key(b"c")).is_ready()
