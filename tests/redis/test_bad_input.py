"""What a hostile or broken client can put into a queue's keys: clear errors, no lasting harm."""

from __future__ import annotations

import os
import pickle

import inside
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import LIMIT, Background, until

import pressure_mp
from pressure_mp import JoinableQueue, PressureError, PressureQueue, Queue
from pressure_mp.engines.redis import keys

FUZZ = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

#: Seconds for which operations are told to wait.
PATIENCE = 0.01

TEXTS = st.one_of(
    st.sampled_from(
        [
            *(b"", b" ", b"0", b"-1", b"-0", b"+1", b" 1", b"1 ", b"01", b"1.5", b"1e3", b"0x10"),
            *(
                b"nan",
                b"inf",
                b"-inf",
                b"1e400",
                b"many",
                b"\x00",
                b"\xff\xfe",
                b"1\x00",
                b"9" * 40,
            ),
            *(b"%d" % (2**n + off) for n in (31, 32, 53, 63, 64) for off in (-1, 0, 1)),
            *(b"-%d" % (2**63 + off) for off in (-1, 0, 1)),
            *(b"[]", b"{}", b"null", b"x" * 100_000),
        ]
    ),
    st.binary(max_size=50),
    st.integers().map(lambda n: b"%d" % n),
    st.floats().map(lambda n: repr(n).encode()),
)
LISTS = st.lists(TEXTS, min_size=1, max_size=4)
FIELDS = st.sampled_from([b"ticket", b"client", b"conn", b"until", b"discipline", b"format", b"x"])
HASHES = st.dictionaries(st.one_of(FIELDS, TEXTS), TEXTS, min_size=1, max_size=5)
#: What a lane's last reply may be: some that no script answers, some that mean nothing.
REPLIES = st.one_of(
    st.sampled_from([b"", b"\x90", b"\x91\xa4done", b"\x91\xa4busy", b"\x92\xa4done\xc3", b"\xc1"]),
    st.binary(max_size=20),
)
KEPT = st.one_of(
    st.integers(0, 12).flatmap(
        lambda number: st.fixed_dictionaries(
            {
                b"number": st.just(b"%d" % number),
                b"replied": st.sampled_from([b"%d" % number, b"%d" % -number]),
                b"reply": REPLIES,
            }
        )
    ),
    st.dictionaries(st.sampled_from([b"number", b"replied", b"reply"]), TEXTS, min_size=1),
)
VALUES = {
    "string": TEXTS,
    "list": LISTS,
    "hash": HASHES,
    "set": LISTS,
    "zset": LISTS,
    "stream": HASHES,
}
PARTS = sorted([*keys.PROTOCOL, *keys.OWN, "kept"])


def values(part):
    """What may be at a key: of its type and wrong inside, of another type, or nothing."""
    right = keys.TYPES[part]
    content = KEPT if part == "kept" else VALUES[right]
    others = [st.tuples(st.just(kind), value) for kind, value in VALUES.items()]
    nothing = [] if part == "bound" else [st.just(("none", None))]
    return st.one_of(st.tuples(st.just(right), content), *nothing, st.one_of(others))


SPOILT = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3, unique=True).flatmap(
    lambda parts: st.fixed_dictionaries({part: values(part) for part in parts})
)

#: Operations after which the queue can be used as before.
HARMLESS = {
    "exists": lambda q, p: p.exists(),
    "length": lambda q, p: p.length(),
    "closed": lambda q, p: p.closed(),
    "put": lambda q, p: p.put(b"item", PATIENCE),
    "put_nowait": lambda q, p: p.put_nowait(b"item"),
    "overfill": lambda q, p: p.put_nowait(b"item", overfill=True),
    "get": lambda q, p: p.get(PATIENCE),
    "get_nowait": lambda q, p: p.get_nowait(),
    "unlock producer": lambda q, p: p.unlock("producer"),
    "unlock consumer": lambda q, p: p.unlock("consumer"),
    "create": lambda q, p: p.create(),
    "put an object": lambda q, p: q.put("object", timeout=PATIENCE),
    "get an object": lambda q, p: q.get(timeout=PATIENCE),
    "get an object at once": lambda q, p: q.get_nowait(),
    "attach": lambda q, p: Queue.attach(q.name, url=q.url),
    "attach with a bound": lambda q, p: Queue.attach(q.name, 3, url=q.url),
    "full": lambda q, p: q.full(),
    "stats": lambda q, p: q.stats(),
    "maxsize": lambda q, p: q.maxsize,
    "task_done": lambda q, p: q.task_done(),
    "join": lambda q, p: inside.run(q, inside.operations(q).join(PATIENCE)),
    "rejected": lambda q, p: q.rejected(),
}
#: Those that end it.
ENDS = {
    "shutdown": lambda q, p: inside.run(q, inside.operations(q).close(True, PATIENCE, once=False)),
    "shutdown at once": lambda q, p: inside.run(
        q, inside.operations(q).close(True, PATIENCE, once=False, immediate=True)
    ),
    "close": lambda q, p: p.close(PATIENCE),
    "close_nowait": lambda q, p: p.close_nowait(),
    "delete": lambda q, p: p.delete(PATIENCE),
    "delete_nowait": lambda q, p: p.delete_nowait(),
}


class Victim:
    """A queue with keys that hold what does not belong there."""

    def __init__(self, server, name: str) -> None:
        self.client: redis.Redis = server.client()
        self.queue = JoinableQueue(3, name, url=server.url)
        self.protocol = PressureQueue(name, url=server.url)
        self.queue.put("first")
        self._good: dict[bytes, bytes | None] = {}
        (self._kept,) = self.client.keys(f"*:{name}:mp:kept:*")

    def key(self, part: str) -> bytes:
        if part == "kept":  # of the connection that the next operation will use
            return self._kept
        return keys.key(self.queue.prefix, self.queue.name, part)

    def spoil(self, spoilt) -> None:
        """Put values where parts of the queue are."""
        for part, (kind, value) in spoilt.items():
            key = self.key(part)
            self._good[key] = self.client.dump(key)
            self.client.delete(key)
            if kind == "string":
                self.client.set(key, value)
            elif kind == "list":
                self.client.rpush(key, *value)
            elif kind == "hash":
                self.client.hset(key, mapping=value)
            elif kind == "set":
                self.client.sadd(key, *value)
            elif kind == "zset":
                self.client.zadd(key, dict.fromkeys(value, 1.0))
            elif kind == "stream":
                self.client.xadd(key, value)

    def attempt(self, operation) -> None:
        """Do it: it ends in time, with what it answers or with an error that names a thing."""
        error = None
        try:
            Background(operation, self.queue, self.protocol).result(LIMIT)
        except PressureError as raised:
            error = raised
        assert "script" not in str(error)

    def mend(self) -> None:
        """Have the keys as they were, unless the queue was deleted meanwhile."""
        exists = self.client.exists(self.key("bound"))
        for key, good in self._good.items():
            self.client.delete(key)
            if good is not None and exists:
                self.client.restore(key, 0, good)

    def remove(self) -> None:
        """Remove what there is, in whatever state."""
        for part in PARTS:
            self.client.delete(self.key(part))
        self.client.close()


@pytest.fixture
def make(server, name):
    number = 0
    made = []

    def make() -> Victim:
        nonlocal number
        number += 1
        made.append(Victim(server, f"{name}-{number}"))
        return made[-1]

    yield make
    for victim in made:
        victim.remove()


def test_no_value_of_any_key_does_harm(make):
    @FUZZ
    @given(SPOILT, st.lists(st.sampled_from(sorted(HARMLESS)), min_size=1, max_size=8))
    def check(spoilt, operations):
        victim = make()
        victim.spoil(spoilt)
        for operation in operations:
            victim.attempt(HARMLESS[operation])
        victim.mend()
        victim.queue.maxsize = 0
        victim.queue.put("last", timeout=LIMIT)
        until(lambda: victim.protocol.get(1) and not victim.queue.qsize(), LIMIT)
        victim.queue.delete(timeout=LIMIT)

    check()


def test_a_spoilt_queue_can_be_ended(make):
    @FUZZ
    @given(SPOILT, st.lists(st.sampled_from(sorted(ENDS)), min_size=1, max_size=3))
    def check(spoilt, operations):
        victim = make()
        victim.spoil(spoilt)
        for operation in operations:
            victim.attempt(ENDS[operation])
        victim.mend()
        if victim.protocol.exists():
            victim.protocol.delete(1)
        victim.protocol.create()
        victim.protocol.delete(1)

    check()


class Bomb:
    """It makes a directory when it is unpickled."""

    def __init__(self, directory) -> None:
        self.directory = directory

    def __reduce__(self):
        return os.mkdir, (str(self.directory),)


def test_nothing_that_others_wrote_is_unpickled(server, name, tmp_path):
    bomb = pickle.dumps(Bomb(tmp_path / "it went off"))
    queue = Queue(name=name, url=server.url, authkey=b"ours", serializer="raw")
    queue.open()
    other = Queue(name=f"{name}-other", url=server.url, authkey=b"ours", serializer="raw")
    other.open()
    foreign = Queue(name=f"{name}-foreign", url=server.url, authkey=b"theirs", serializer="raw")
    foreign.open()
    client = server.client()
    signed = []
    for signing in (queue, other, foreign):
        signing.put(bomb)
        signed.append(client.rpop(keys.key(signing.prefix, signing.name, "data")))
        signing.delete()
    ours, *replayed = signed
    victim = Queue(name=name, url=server.url, authkey=b"ours")
    victim.open()
    rejected = []

    @FUZZ
    @given(
        st.one_of(
            st.sampled_from([bomb, *replayed]),
            st.integers(0, len(ours) - 1).map(lambda length: ours[:length]),
            st.integers(1, len(ours) - 1).map(lambda start: ours[start:]),
            st.integers(0, len(ours) * 8 - 1).map(lambda bit: flipped(ours, bit)),
            st.binary(max_size=len(ours) - len(bomb) + 2).map(lambda head: head + bomb),
            st.binary(min_size=1, max_size=9).map(lambda tail: ours + tail),
        )
    )
    def check(item):
        client.lpush(keys.key(victim.prefix, name, "data"), item)
        with pytest.raises(pressure_mp.AuthenticationError):
            victim.get(timeout=1)
        rejected.append(item)
        victim.put("good")
        assert victim.get(timeout=LIMIT) == "good"

    check()
    assert list(tmp_path.iterdir()) == []
    assert victim.rejected(len(rejected)) == rejected
    victim.delete()
    client.close()


def flipped(item: bytes, bit: int) -> bytes:
    changed = bytearray(item)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
