"""A client of the pressure protocol of another implementation: plain steps, one command at a time.

It stands for a program in another language. It follows the specification's reference sequences,
with the key names of the specification's text, and it shares no code with the package.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NoReturn

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Refused(Exception):
    """The root of what an operation raises."""


class AlreadyExists(Refused):
    pass


class DoesNotExist(Refused):
    pass


class Closed(Refused):
    pass


class InUse(Refused):
    pass


class IsFull(Refused):
    pass


class IsEmpty(Refused):
    pass


class Aborted(Exception):
    """The client was ended by :meth:`StepwiseClient.abort`."""


class StepwiseClient:
    """One client, with a connection of its own. One thread at a time may use it.

    The reference has holes. By default this client behaves well: it gives its role back before it
    raises, leaves ``:closed`` as it found it, and marks a queue as not full only when it is not,
    as the text says. With ``faithful`` it does what the reference's pseudo-code does.

    ``before`` is called with the name of each step (``"BRPOP :producer_free"``, ``"LPUSH queue"``)
    before the step is done.
    """

    def __init__(
        self,
        port: int,
        name: str,
        *,
        faithful: bool = False,
        before: Callable[[str], None] | None = None,
        identity: str = "stepwise",
    ) -> None:
        self.name = name
        self.faithful = faithful
        self.identity = identity
        self._before = before
        self._port = port
        self._aborted = False
        self._redis = redis.Redis(
            port=port,
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            single_connection_client=True,
        )
        self.connection_id = int(self._redis.client_id())

    def key(self, suffix: str) -> bytes:
        """The name of a key; the suffix of the list of values is empty."""
        return f"__pressure__:{self.name}{suffix}".encode()

    def create(self, bound: int = 0) -> None:
        if not self._do("SETNX", ":bound", bound):
            raise AlreadyExists(self.name)
        self._do("LPUSH", ":producer_free", 1)
        self._do("LPUSH", ":consumer_free", 1)
        self._do("LPUSH", ":not_full", 1)

    def exists(self) -> bool:
        return bool(self._do("EXISTS", ":bound"))

    def length(self) -> int:
        self._must_exist()
        return int(self._do("LLEN", ""))

    def closed(self) -> bool:
        self._must_exist()
        return bool(self._do("EXISTS", ":closed"))

    def put(self, item: bytes) -> None:
        self._must_exist()
        self.take("producer")
        self._must_be_open()
        self._do("BRPOP", ":not_full", 0)
        self._push(item)

    def put_nowait(self, item: bytes) -> None:
        self._must_exist()
        self.take_nowait("producer")
        self._must_be_open()
        if self._do("RPOP", ":not_full") is None:
            self._refuse("producer", IsFull)
        self._push(item)

    def overfill(self, item: bytes) -> None:
        """A put that does not look at ``:not_full``, as the text allows a failing client."""
        self._must_exist()
        self.take("producer")
        self._must_be_open()
        self._push(item)

    def get(self) -> bytes:
        self._must_exist()
        self.take("consumer")
        if self._do("EXISTS", ":closed"):
            if self._do("LLEN", "") == 0:
                self._refuse("consumer", Closed)
            source, item = self._do("BRPOP", "", 0)
        else:
            source, item = self._do("BRPOP", "", self.key(":closed"), 0)
        if source == self.key(":closed"):
            if not self.faithful:
                self._do("LPUSH", ":closed", item)
            self._refuse("consumer", Closed)
        self._finish_get(item)
        return bytes(item)

    def get_nowait(self) -> bytes | None:
        """The oldest item. On an empty queue the reference answers nothing at all."""
        self._must_exist()
        self.take_nowait("consumer")
        if self._do("EXISTS", ":closed") and self._do("LLEN", "") == 0:
            self._refuse("consumer", Closed)
        item = self._do("RPOP", "")
        if item is None and not self.faithful:
            self._refuse("consumer", IsEmpty)
        self._finish_get(item)
        return item  # type: ignore[no-any-return]

    def close(self) -> None:
        self._must_exist()
        self.take("producer")
        self._must_be_open()
        self._do("LPUSH", ":closed", 0, 0)
        self.give_back("producer")

    def delete(self) -> None:
        self._must_exist()
        self._do("DEL", ":bound")
        self._do("LPUSH", ":not_full", 0)
        self._do("LPUSH", ":closed", 0, 0)
        for role in ("producer", "consumer"):
            self._do("BRPOP", f":{role}_free", 0)
            self._do("DEL", f":{role}")
            self._do("DEL", f":{role}_free")
        self._do("DEL", ":not_full")
        self._do("DEL", ":closed")
        for count in ("produced_messages", "produced_bytes", "consumed_messages", "consumed_bytes"):
            self._do("DEL", f":stats:{count}")
        self._do("DEL", "")

    def take(self, role: str) -> None:
        """Become the queue's producer or consumer; blocks until the role is free."""
        self._do("BRPOP", f":{role}_free", 0)
        self._do("SET", f":{role}", self.identity)

    def take_nowait(self, role: str) -> None:
        if self._do("RPOP", f":{role}_free") is None:
            raise InUse(role)
        self._do("SET", f":{role}", self.identity)

    def give_back(self, role: str) -> None:
        self._do("LPUSH", f":{role}_free", 0)

    def is_blocked(self, observer: redis.Redis) -> bool:
        """Whether the server has this client in a blocking command, as another client sees it."""
        (seen,) = observer.client_list(client_id=[str(self.connection_id)])
        return "b" in seen["flags"]

    def abort(self) -> None:
        """End the client wherever it is, as a crash would: a role that it has stays taken."""
        self._aborted = True
        with redis.Redis(port=self._port) as other:
            other.client_kill_filter(_id=str(self.connection_id))

    def _must_exist(self) -> None:
        if not self._do("EXISTS", ":bound"):
            raise DoesNotExist(self.name)

    def _must_be_open(self) -> None:
        if self._do("EXISTS", ":closed"):
            self._refuse("producer", Closed)

    def _refuse(self, role: str, error: type[Refused]) -> NoReturn:
        if not self.faithful:
            self.give_back(role)
        raise error(self.name)

    def _push(self, item: bytes) -> None:
        length = self._do("LPUSH", "", item)
        bound = self._do("GET", ":bound")
        if bound is not None and (int(bound) == 0 or length < int(bound)):
            self._mark_not_full()
        self._do("INCR", ":stats:produced_messages")
        self._do("INCRBY", ":stats:produced_bytes", len(item))
        self.give_back("producer")

    def _finish_get(self, item: bytes | None) -> None:
        if self.faithful or self._has_room():
            self._mark_not_full()
        if item is not None:
            self._do("INCR", ":stats:consumed_messages")
            self._do("INCRBY", ":stats:consumed_bytes", len(item))
        self.give_back("consumer")

    def _has_room(self) -> bool:
        bound = self._do("GET", ":bound")
        if bound is None:
            return False
        return int(bound) == 0 or int(self._do("LLEN", "")) < int(bound)

    def _mark_not_full(self) -> None:
        self._do("LPUSH", ":not_full", 0)
        self._do("LTRIM", ":not_full", 0, 0)

    def _do(self, command: str, suffix: str, *args: Any) -> Any:
        if self._before is not None:
            self._before(f"{command} {suffix or 'queue'}")
        try:
            if not self._aborted:
                return self._redis.execute_command(command, self.key(suffix), *args)
        except redis.ConnectionError:
            if not self._aborted:
                raise
        raise Aborted(self.name)


class Stop:
    """Stops a client before one of its steps, until :meth:`go_on`. Used as its ``before``.

    The step is named, or it is a number: 0 is the first.
    """

    def __init__(self, step: str | int) -> None:
        self.step = step
        self.reached = threading.Event()
        self._go = threading.Event()
        self._done = 0

    def __call__(self, step: str) -> None:
        number, self._done = self._done, self._done + 1
        if self.step in (step, number):
            self.reached.set()
            assert self._go.wait(30), f"stopped for good before {step}"

    def go_on(self) -> None:
        self._go.set()


def produce(client: StepwiseClient, producer: int, items: int) -> None:
    """Put numbered items."""
    for number in range(items):
        client.put(b"%d %d" % (producer, number))


def consume(client: StepwiseClient) -> list[bytes]:
    """Get items until the queue is closed and empty."""
    received = []
    while True:
        try:
            received.append(client.get())
        except Closed:
            return received


def run(what: str, port: int, name: str, *args: Any) -> Any:
    """:func:`produce` or :func:`consume` with a client of its own, as a process does."""
    return {"produce": produce, "consume": consume}[what](StepwiseClient(port, name), *args)
