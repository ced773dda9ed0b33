"""A file that several processes have mapped: what there is beside the items, and its locks.

It begins with a page of numbers of eight bytes, a cache line for each; the ring is behind it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic, monotonic_ns

from ...exceptions import BrokerError
from ...identity.descriptors import map_file
from . import linux
from .locks import BUSY, FileLock, LockFile

PAGE = 4096
_LINE = 8  # numbers in a cache line
(
    _MAGIC,
    STATE,
    TAIL,
    HEAD,
    _ITEMS,
    _ITEMS_AWAITED,
    _SPACE,
    _SPACE_AWAITED,
    ALLOCATED,
    BYTES_IN,
    BYTES_OUT,
    READS,
    READ_FROM,
    READ_HANDED,
    READ_UNTIL,
    WANTED,
    BOUND,
    TAKER,
    SIGNED,
    NEXT_ENDED,
) = range(0, 20 * _LINE, _LINE)
#: Where the numbers are of the readers whose reservations others ended, two for each.
ENDED, MOST_ENDED = 20 * _LINE, 64
#: Where the names are of who put and who took last.
_PUTTER, _LAST_TAKER, _NAME_SIZE = 2560, 2816, 256
#: Where the name of who reserved items is: its length, and then the name.
READER = 3072
LONGEST_NAME = PAGE - READER - 8
_MADE = 0x70726573737572E1

#: The values of the state.
HERE, MOVING, MOVED = range(3)

#: The end and the beginning of the ring are numbers of two parts: how many records ever came before
#: that, and in the lower bits where it is.
PLACE, COUNT = (1 << 28) - 1, (1 << 36) - 1

#: The bytes of the file that are locked: by who puts, by who takes, and by all who use it.
_PUT, _TAKE, USE = range(3)
_fence = threading.Lock()
#: Seconds for which others may have the lock when a process begins to wait, or tells of items.
_MOMENT = 0.05
#: More than there can be.
_ALL = 1 << 30


class Header:
    """One file, mapped into this process. Raises OSError when that cannot be done."""

    def __init__(self, path: str, bound: int | None, size: int, begin: int) -> None:
        """``bound``: make the file, for a queue with that bound, and a ring of so many bytes that
        begins there; else it is there."""
        self.path = path
        self._size = size
        makes = bound is not None
        self._file = file = LockFile(path, (os.O_CREAT | os.O_EXCL) * makes, USE)
        try:
            if makes:
                os.posix_fallocate(file.number, 0, PAGE)
                os.posix_fallocate(file.number, PAGE + begin, PAGE)
                os.ftruncate(file.number, PAGE + size)
            elif os.fstat(file.number).st_size < PAGE + size:  # its maker was killed, interrupted
                raise FileNotFoundError(f"{path} was never made whole")
            self._map = map_file(file.number, PAGE + size)
        except BaseException:
            if makes:
                os.unlink(path)
            raise
        self._cells = memoryview(self._map)[:PAGE].cast("Q")
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        if bound is not None:
            self._cells[BOUND], self._cells[ALLOCATED] = bound, begin + PAGE
            self._cells[TAIL] = self._cells[HEAD] = begin >> 3
            self._cells[_MAGIC] = _MADE
        elif self._cells[_MAGIC] != _MADE:
            raise FileNotFoundError(f"{path} is not made yet, or not by this version")
        # Puts and takes go on together where the processor keeps writes in order; else a take sees
        # what a put wrote only when it has had the same lock.
        self.putting = FileLock(file, _PUT)
        self.taking = FileLock(file, _TAKE) if linux.IS_ORDERED else self.putting
        #: How many items there may be, 0 for any number.
        self.bound = self._cells[BOUND]
        self.process = os.getpid()
        self.use()
        #: What signs items before they go to the broker, if they are to be signed.
        self.sign: Callable[[bytes], bytes] | None = None

    def use(self) -> None:
        """This process uses the file, as :mod:`.ring_files` sees it. Raises BrokerError."""
        self._file.use()

    def after_fork(self) -> None:
        """In a forked child, which uses it too."""
        self.putting.reset()
        self.taking.reset()
        self.process = os.getpid()
        with suppress(BrokerError):  # who puts or takes hears of it
            self._file.after_fork()

    def __del__(self) -> None:
        file = getattr(self, "_file", None)  # it may be that there is none
        if file is not None:
            file.close()

    # Looking

    @property
    def state(self) -> int:
        """Whether the items are HERE, MOVING to the broker, or MOVED."""
        return self._cells[STATE]

    @property
    def is_signed(self) -> bool:
        """Whether items are to be signed before they go to the broker."""
        return self._cells[SIGNED] > 0

    def note_signed(self) -> None:
        """They are."""
        self._cells[SIGNED] = 1

    @property
    def first(self) -> int:
        """How many records were ever taken."""
        return self._cells[HEAD] >> 28

    @property
    def last(self) -> int:
        """How many records ever came."""
        return self._cells[TAIL] >> 28

    @property
    def bytes_in(self) -> int:
        """The size of all items that came."""
        return self._cells[BYTES_IN]

    @property
    def bytes_out(self) -> int:
        """The size of all items that were taken."""
        return self._cells[BYTES_OUT]

    @property
    def putter(self) -> str:
        """Who put last."""
        return self._name_at(_PUTTER)

    @property
    def last_taker(self) -> str:
        """Who took last."""
        return self._name_at(_LAST_TAKER)

    def _name_at(self, at: int) -> str:
        return self._map[at : at + _NAME_SIZE].rstrip(b"\0").decode(errors="replace")

    def note_putter(self, name: bytes) -> None:
        """Who puts; with the lock of those who put."""
        self._map[_PUTTER : _PUTTER + _NAME_SIZE] = _fixed(name)

    def note_taker(self, name: bytes) -> None:
        """Who takes; with the lock of those who take."""
        self._map[_LAST_TAKER : _LAST_TAKER + _NAME_SIZE] = _fixed(name)

    @property
    def length(self) -> int:
        """How many records there are."""
        head = self._cells[HEAD] >> 28  # first: what is taken meanwhile came before
        return (self._cells[TAIL] >> 28) - head & COUNT

    # Moving to the broker, with both locks

    def set_state(self, state: int) -> None:
        """See :attr:`state`; everybody who waits looks again. What was moved takes no memory."""
        self._cells[STATE] = state
        if state == MOVED:
            begin = max(PAGE, mmap.PAGESIZE)
            with suppress(OSError):  # a file system may not be able to do so
                self._map.madvise(mmap.MADV_REMOVE, begin, PAGE + self._size - begin)
        self.tell_all()

    # Waiting

    def tell_items(self, number: int) -> None:
        """Wake so many who wait for items."""
        if self._cells[_ITEMS_AWAITED]:
            self._tell(_ITEMS, _ITEMS_AWAITED, number)

    def tell_space(self, number: int) -> None:
        """Wake so many who wait for space."""
        if self._cells[_SPACE_AWAITED]:
            self._tell(_SPACE, _SPACE_AWAITED, number)

    def tell_all(self) -> None:
        """Wake all who wait for either."""
        self.tell_items(_ALL)
        self.tell_space(_ALL)

    def wait_for_items(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Wait until somebody tells of items, unless it ``is_over`` by then; whether it may be."""
        return self._wait(_ITEMS, _ITEMS_AWAITED, is_over, seconds)

    def wait_for_space(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """The same for space."""
        return self._wait(_SPACE, _SPACE_AWAITED, is_over, seconds)

    def _tell(self, sign: int, awaited: int, number: int) -> None:
        if linux.IS_ORDERED:
            self._tell_now(sign, awaited, number)
        else:
            self.taking.run(partial(self._tell_now, sign, awaited, number), monotonic() + _MOMENT)

    def _tell_now(self, sign: int, awaited: int, number: int) -> None:
        cells = self._cells
        # In this order: who begins to wait now sees the new sign, or is seen.
        cells[awaited] = 0
        cells[sign] = monotonic_ns()
        if linux.wake(self._address + sign * 8, number):
            cells[awaited] = 1  # there may be more

    def _wait(self, sign: int, awaited: int, is_over: Callable[[], bool], seconds: float) -> bool:
        if linux.IS_ORDERED:
            seen = self._begin_to_wait(sign, awaited)
            with _fence:  # the processor has written that before it reads what came
                pass
        else:
            beginning = partial(self._begin_to_wait, sign, awaited)
            seen = self.taking.run(beginning, monotonic() + min(seconds, _MOMENT))
            if seen is BUSY:
                return True  # the call that is made again has the same time limit
        return is_over() or linux.wait(self._address + sign * 8, seen, seconds) or is_over()

    def _begin_to_wait(self, sign: int, awaited: int) -> int:
        seen = self._cells[sign]
        self._cells[awaited] = 1
        return seen


@functools.lru_cache(256)
def _fixed(name: bytes) -> bytes:
    return name[:_NAME_SIZE].ljust(_NAME_SIZE, b"\0")
