"""A queue is created while another implementation deletes it, command by command."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from brokers.servers import Server
from stepwise import Aborted, StepwiseClient, Stop
from waiting import Background, until

from pressure_mp import Empty, IncompleteQueueError, JoinableQueue, PressureQueue, Queue

#: The commands of the reference's Delete, with its first look; and of its Create.
DELETE, CREATE = 17, 4
#: After so many commands of a Delete, the queue is closed.
CLOSED = 4
#: After so many, the key with the producer's name is deleted, and its token is next. A put between
#: leaves a name of ours, as does a server that removes the token.
NAMED = 6
#: Seconds. Calls that wait put right, after one lease, what a deletion removed.
LEASE = 0.3


class Deletion:
    """Stands after so many of its commands, until :meth:`finish`."""

    def __init__(self, port: int, name: str, commands: int) -> None:
        self._stop = Stop(commands)
        self._client = StepwiseClient(port, name, before=self._stop)
        self._call = Background(self._client.delete)
        until(lambda: self._stop.reached.is_set() or not self._call.is_alive())

    def finish(self) -> None:
        self._stop.go_on()
        self._call.result()

    def kill(self) -> None:
        self._client.abort()
        self._stop.go_on()
        self._call.join()


def after_each_command(
    first: int, last: int, name: str, attempt: Callable[[str, int], None]
) -> None:
    """Call ``attempt`` with a queue of its own for each number of commands, all at once."""
    calls = {n: Background(attempt, f"{name}-{n}", n) for n in range(first, last + 1)}
    for commands, call in calls.items():
        try:
            call.result()
        except BaseException as error:
            raise AssertionError(f"after {commands} commands: {error!r}") from error


def fill(server: Server, name: str, bound: int, items: int) -> None:
    """A queue that was used, and has so many items."""
    q = PressureQueue(name, url=server.url)
    q.create(bound)
    q.put(b"first")
    q.get()
    for _ in range(items):
        q.put(b"before")


def exchange(q: Queue, other: StepwiseClient) -> None:
    """Ours uses the queue first, for both sides; then one item goes in each direction."""
    q.put(b"first")
    assert q.get() == b"first"
    q.put(b"ours")
    assert other.get() == b"ours"
    other.put(b"theirs")
    assert q.get() == b"theirs"


def exchange_with_waits(q: Queue, other: StepwiseClient) -> None:
    """The other implementation comes first to each side, and waits."""
    getting = Background(other.get)
    with redis.Redis.from_url(q.url) as observer:
        until(lambda: other.is_blocked(observer))
    q.put(b"ours")
    ours = Background(q.get)
    assert getting.result() == b"ours"
    putting = Background(other.put, b"theirs")
    assert ours.result() == b"theirs"
    putting.result()


def exchange_and_poll(q: Queue, other: StepwiseClient) -> None:
    """No call of ours waits as long as a lease."""
    putting = Background(other.put, b"theirs")
    found: list[bytes] = []

    def look() -> bool:
        try:
            found.append(q.get(timeout=LEASE / 3))
        except Empty:
            pass
        return bool(found)

    until(look)
    putting.result()
    assert found == [b"theirs"]


EXCHANGES = pytest.mark.parametrize(
    ("use", "bound"),
    [
        (exchange, 0),
        (exchange, 2),
        (exchange_with_waits, 0),
        (exchange_with_waits, 2),
        (exchange_and_poll, 0),
    ],
)


@pytest.mark.parametrize("bound", [0, 2])
@pytest.mark.parametrize("items", [0, 1])
@pytest.mark.parametrize("kind", [Queue, JoinableQueue])
def test_a_queue_that_is_created_during_a_deletion_can_be_used_at_once(
    server, name, client, bound, items, kind
):
    """Also if the deletion never goes on. If it has not closed the queue yet, the items stay."""

    def attempt(name: str, commands: int) -> None:
        fill(server, name, bound, items)
        Deletion(server.port, name, commands).kill()
        q = kind(bound, name, url=server.url, serializer="raw", lease=LEASE)
        if items and commands < CLOSED:
            assert q.get_nowait() == b"before"
        other = StepwiseClient(server.port, name)
        q.put_nowait(b"ours")
        assert other.get_nowait() == b"ours"
        other.put_nowait(b"theirs")
        assert q.get_nowait() == b"theirs"
        for role in ("producer", "consumer"):
            assert client.llen(f"__pressure__:{name}:{role}_free") == 1
        q.delete()

    after_each_command(1, DELETE, name, attempt)


@EXCHANGES
def test_a_queue_that_is_created_during_a_deletion_can_be_used_after_it(server, name, bound, use):
    """What the deletion removed is put back, by a call that waits for a lease."""

    def attempt(name: str, commands: int) -> None:
        fill(server, name, bound, 1)
        deletion = Deletion(server.port, name, commands)
        Queue(bound, name, url=server.url, serializer="raw").put_nowait(b"during")
        deletion.finish()
        q = Queue(bound, name, url=server.url, serializer="raw", lease=LEASE)
        q.open()
        if commands == DELETE:
            assert q.get_nowait() == b"during"
        if commands == NAMED:
            with pytest.raises(IncompleteQueueError, match=r"unlock\('producer'\)"):
                q.put(b"x")
            PressureQueue(name, url=server.url).unlock("producer")
        use(q, StepwiseClient(server.port, name))
        q.delete()

    after_each_command(1, DELETE, name, attempt)


@EXCHANGES
def test_a_queue_that_theirs_creates_during_a_deletion_can_be_used_after_it(
    server, name, bound, use
):
    def attempt(name: str, commands: int) -> None:
        fill(server, name, bound, 1)
        deletion = Deletion(server.port, name, commands)
        StepwiseClient(server.port, name).create(bound)
        deletion.finish()
        q = Queue(bound, name, url=server.url, serializer="raw", lease=LEASE)
        use(q, StepwiseClient(server.port, name))
        q.delete()

    after_each_command(2, DELETE, name, attempt)


@EXCHANGES
def test_a_creation_of_theirs_that_ended_half_way_is_finished(server, name, bound, use):
    def attempt(name: str, commands: int) -> None:
        stop = Stop(commands)
        creator = StepwiseClient(server.port, name, before=stop)
        creating = Background(creator.create, bound)
        until(stop.reached.is_set)
        creator.abort()
        stop.go_on()
        with pytest.raises(Aborted):
            creating.result()
        q = Queue(bound, name, url=server.url, serializer="raw", lease=LEASE)
        use(q, StepwiseClient(server.port, name))
        q.delete()

    after_each_command(1, CREATE - 1, name, attempt)


def test_a_token_is_put_back_once_however_many_wait_for_it(server, name, client):
    StepwiseClient(server.port, name).create(2)
    free = f"__pressure__:{name}:producer_free"
    client.delete(free)
    queues = [Queue(name=name, url=server.url, lease=LEASE) for _ in range(8)]
    putting = [Background(q.put, 1) for q in queues]
    got = [queues[0].get() for _ in queues]
    for call in putting:
        call.result()
    assert got == [1] * 8
    assert client.llen(free) == 1
