"""A program closes descriptors that the package keeps, and its own files have their numbers."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import socket
import uuid

import pytest
from programs import closing
from waiting import LIMIT

from pressure_mp import BrokerError, Queue
from pressure_mp.engines.shared import layout, linux
from pressure_mp.engines.shared.locks import BUSY
from pressure_mp.engines.shared.reading import Ring
from pressure_mp.identity import hand_outs

pytestmark = [
    pytest.mark.skipif(not linux.EXISTS, reason="this system has no futex that is known"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
forking = multiprocessing.get_context("fork")


@pytest.fixture
def start(start):
    """Processes that are killed at the end."""

    def collect_and_start(program, *arguments):
        # A connection that an earlier test dropped would be collected in the child, and close a
        # file of the child's.
        gc.collect()
        return start(program, *arguments)

    return collect_and_start


@pytest.fixture
def ring(tmp_path):
    return Ring(str(tmp_path / uuid.uuid4().hex), 0)


def test_a_daemon_uses_a_queue_and_its_own_files_stay_as_they_are(server, start, tmp_path):
    with Queue(url=server.url) as queue:
        queue.put_many(range(20))
        assert queue.get() == 0
        daemon = start(closing.be_a_daemon, queue, str(tmp_path))
        daemon.join(LIMIT)
        assert json.loads((tmp_path / "faults").read_text()) == []
        assert daemon.exitcode == 0
        left = [*range(1, 20), "from the daemon", *range(100, 110)]
        assert queue.get_many(100) == left[4:]


@pytest.mark.parametrize("lock", ["putting", "taking"])
def test_a_daemon_and_its_parent_never_have_a_lock_together(server, start, tmp_path, lock):
    told, asked = str(tmp_path / "told"), str(tmp_path / "asked")
    os.mkfifo(told)
    os.mkfifo(asked)
    with Queue(url=server.url) as queue:
        queue.put(1)
        ours = getattr(queue._at.binding.items.ring, lock)
        start(closing.use_the_locks, queue, asked, told)
        with open(asked, "w", buffering=1) as words, open(told) as answers:

            def ask(word):
                words.write(f"{word}\n")
                return answers.readline().strip()

            assert ours.run(lambda: ask(lock)) == "busy"
            assert ask(lock) == "has it"
            assert ours.run(str, 0.0) is BUSY
            assert ask("done") == "had it"
            assert ours.run(str, 0.0) == ""


def _closed(number, ring, tmp_path):
    os.close(number)


def _take(number, opened):
    """Move the file of the descriptor ``opened`` to the descriptor ``number``."""
    os.dup2(opened, number)
    os.close(opened)


def _file(number, ring, tmp_path):
    _take(number, os.open(tmp_path / "own", os.O_RDWR | os.O_CREAT))


def _file_to_read(number, ring, tmp_path):
    (tmp_path / "own").touch()
    _take(number, os.open(tmp_path / "own", os.O_RDONLY))


def _file_far_behind_its_beginning(number, ring, tmp_path):
    _file(number, ring, tmp_path)
    os.lseek(number, 1 << 36, os.SEEK_SET)


def _pipe(number, ring, tmp_path):
    read, write = os.pipe()
    os.close(read)
    _take(number, write)


def _socket(number, ring, tmp_path):
    _take(number, socket.socket().detach())


def _device(number, ring, tmp_path):
    _take(number, os.open(os.devnull, os.O_RDWR))


def _the_same_file(number, ring, tmp_path):
    _take(number, os.open(ring.path, os.O_RDWR))


def _another_ring(number, ring, tmp_path):
    other = Ring(str(tmp_path / uuid.uuid4().hex), 0)
    os.dup2(other._file.number, number)


REUSES = [
    *(_closed, _file, _file_to_read, _file_far_behind_its_beginning, _pipe, _socket, _device),
    *(_the_same_file, _another_ring),
]


def _locked(path):
    """Which bytes of a file this process has locked, as another one sees it."""
    parent = os.getpid()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            seen = [lock[1:] for lock in closing.locks(str(path)) if lock[0] == parent]
            os.write(write, json.dumps(seen).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with open(read, "rb") as file:
        found = json.load(file)
    return [byte for begin, size in found for byte in range(begin, begin + size)]


@pytest.mark.parametrize("reuse", REUSES)
def test_a_lock_is_on_its_own_file_whatever_has_the_number_now(ring, tmp_path, reuse):
    number = ring._file.number
    reuse(number, ring, tmp_path)
    assert ring.taking.run(lambda: ring.putting.run(lambda: _locked(ring.path))) == [
        0,
        1,
        layout.USE,
    ]
    assert _locked(ring.path) == [layout.USE]
    if (tmp_path / "own").exists():
        assert _locked(tmp_path / "own") == []


@pytest.mark.parametrize("reuse", REUSES)
def test_a_lock_that_was_lost_while_a_process_had_it_is_released_on_no_other_file(
    ring, tmp_path, reuse
):
    number = ring._file.number
    ring.putting.run(lambda: reuse(number, ring, tmp_path))
    assert ring.putting.run(lambda: _locked(ring.path)) == [0, layout.USE]


@pytest.mark.parametrize("locks", [True, False], ids=["which was used", "which was not"])
@pytest.mark.parametrize("reuse", [reuse for reuse in REUSES if reuse is not _closed])
def test_the_end_of_a_queue_closes_nothing_that_has_the_number_now(ring, tmp_path, reuse, locks):
    number = ring._file.number
    reuse(number, ring, tmp_path)
    if locks or reuse is _the_same_file:
        ring.putting.run(str)
    before = os.fstat(number)
    del ring
    gc.collect()
    assert os.path.samestat(os.fstat(number), before)
    os.close(number)


def test_a_forked_child_of_a_daemon_uses_the_file_and_no_other(server, tmp_path):
    with Queue(url=server.url) as queue:
        ring = queue._at.binding.items.ring
        _file(ring._file.number, ring, tmp_path)
        with forking.Pool(1):
            assert _locked(tmp_path / "own") == []
            assert ring.putting.run(str) == ""


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_whose_file_is_gone_is_an_error_that_says_what_to_do(ring, replaced):
    os.close(ring._file.number)
    os.unlink(ring.path)
    with contextlib.ExitStack() as stack:
        if replaced:
            stack.enter_context(open(ring.path, "wb"))
        with pytest.raises(BrokerError, match=f"closed the descriptor of {ring.path}.*before"):
            ring.putting.run(str)


def test_a_mapped_file_keeps_no_descriptor():
    before = set(os.listdir("/proc/self/fd"))
    hands = hand_outs.HandOuts("a reader of a test")
    hands.cell[0] += 3
    assert hand_outs.read("a reader of a test") == 3
    assert set(os.listdir("/proc/self/fd")) == before
    hands.end()
