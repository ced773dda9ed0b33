"""What a transaction wrote, which its own reads see."""

from __future__ import annotations

from bisect import bisect_left, insort

from simulated_fdb.cluster import Mutation
from simulated_fdb.errors import Failed
from simulated_fdb.mutations import MOST_VALUE, STAMP, Op, applied, offset, stamped
from simulated_fdb.ranges import Range, Ranges, point

MOST_KEY = 10_000


class Writes:
    """Mutations in their order, and what they make of each key."""

    def __init__(self) -> None:
        self.mutations: list[Mutation] = []
        #: The keys whose values are not known before the commit.
        self._unreadable = Ranges()
        #: By key what was done to it, after the range that it is in was cleared; and the keys in
        #: their order.
        self._done: dict[bytes, list[tuple[Op, bytes]]] = {}
        self._keys: list[bytes] = []
        self._cleared = Ranges()

    def mutate(self, op: Op, key: bytes, operand: bytes, version: int | None) -> Range | None:
        """Set a key, or change it in another way; return the range that is written, if that is
        known before the commit. Raises Failed."""
        if len(key) > MOST_KEY:
            raise Failed(2102)
        if len(operand) > MOST_VALUE:
            raise Failed(2103)
        if key >= b"\xff":
            raise Failed(2004)
        if op is Op.STAMPED_KEY:
            self._unreadable.add(*_possible(key, version))
            self.mutations.append((op, key, operand))
            return None
        if op is Op.STAMPED_VALUE:
            offset(operand)
            self._unreadable.add(*point(key))
        if key not in self._done:
            insort(self._keys, key)
        done = self._done.setdefault(key, [])
        if op is Op.SET:
            done.clear()
        done.append((op, operand))
        self.mutations.append((op, key, operand))
        return point(key)

    def clear(self, begin: bytes, end: bytes) -> Range | None:
        """Clear a range, and return it, if it is not empty. Raises Failed."""
        if begin > end:
            raise Failed(2005)
        if max(len(begin), len(end) - 1) > MOST_KEY:
            raise Failed(2102)
        if end > b"\xff":
            raise Failed(2004)
        if begin == end:
            return None
        removed = self.keys(begin, end)
        for key in removed:
            del self._done[key]
        first = bisect_left(self._keys, begin)
        del self._keys[first : first + len(removed)]
        self._cleared.add(begin, end)
        self._unreadable.remove(begin, end)
        self.mutations.append((Op.CLEAR_RANGE, begin, end))
        return begin, end

    def keys(self, begin: bytes, end: bytes) -> list[bytes]:
        """The keys of a range that were set, or changed in another way."""
        return self._keys[bisect_left(self._keys, begin) : bisect_left(self._keys, end)]

    def check(self, begin: bytes, end: bytes) -> None:
        """Raise Failed for a range that cannot be read."""
        if self._unreadable.within(begin, end):
            raise Failed(1036)

    def decide(self, key: bytes) -> bool:
        """Whether the value of a key depends on nothing but them."""
        done = self._done.get(key)
        return bool(done and done[0][0] is Op.SET) or key in self._cleared

    def applied(self, key: bytes, value: bytes | None) -> bytes | None:
        """What they make of the value that a key has in the cluster."""
        if key in self._cleared:
            value = None
        for op, operand in self._done.get(key, ()):
            value = applied(op, value, operand)
        return value

    def undecided(self, one: Range) -> list[Range]:
        """The parts of a range that depend on something else."""
        left = Ranges()
        left.add(*one)
        for key in self.keys(*one):
            if self._done[key][0][0] is Op.SET:
                left.remove(*point(key))
        for cleared in self._cleared.within(*one):
            left.remove(*cleared)
        return left.within(*one)


def _possible(key: bytes, version: int | None) -> Range:
    """From the lowest key to the highest that a key with a stamp can become: the version of the
    commit is after that of the reads."""
    lowest = (0 if version is None else version + 1).to_bytes(8, "big") + b"\0\0"
    return stamped(key, lowest), stamped(key, b"\xff" * STAMP) + b"\0"
