"""A file that several processes have mapped: its header, beside the items, and its locks."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from collections.abc import Callable
from contextlib import suppress

from ...exceptions import BrokerError
from ...identity.descriptors import map_file
from . import linux
from .layout import (
    ALLOCATED,
    BOUND,
    BYTES_IN,
    BYTES_OUT,
    CLOSED,
    COUNT,
    DONE,
    FIRST_BOUND,
    HEAD,
    LAST_TAKER,
    LOOPS,
    MADE,
    MAGIC,
    MOVED,
    NAME_SIZE,
    PAGE,
    PUT,
    PUTTER,
    SET_ASIDE,
    SIGNED,
    STATE,
    TABLE,
    TAIL,
    TAKE,
    USE,
)
from .locks import FileLock, LockFile
from .waking import ALL, Waking


class Header(Waking):
    """One file, mapped into this process. Raises OSError when that cannot be done."""

    def __init__(self, path: str, bound: int | None, size: int, begin: int) -> None:
        """``bound``: make the file, for a queue with that bound, and a ring of ``size`` bytes from
        ``begin`` on; None opens an existing file."""
        self.path = path
        self._size = size
        makes, whole = bound is not None, PAGE + size + TABLE + LOOPS
        self._file = file = LockFile(path, (os.O_CREAT | os.O_EXCL) * makes, USE)
        try:
            if makes:
                os.posix_fallocate(file.number, 0, PAGE)
                os.posix_fallocate(file.number, PAGE + begin, PAGE)
                os.ftruncate(file.number, whole)
            elif os.fstat(file.number).st_size < whole:  # its maker was interrupted
                raise FileNotFoundError(f"{path} was never made whole")
            self._map = map_file(file.number, whole)
        except BaseException:
            if makes:
                os.unlink(path)
            raise
        self._cells = memoryview(self._map)[:PAGE].cast("Q")
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        if bound is not None:
            self._cells[BOUND] = self._cells[FIRST_BOUND] = bound
            self._cells[ALLOCATED] = begin + PAGE
            self._cells[TAIL] = self._cells[HEAD] = begin >> 3
            self._cells[MAGIC] = MADE
        elif self._cells[MAGIC] != MADE:
            raise FileNotFoundError(f"{path} is not made yet, or not by this version")
        # Puts and takes go on at the same time where the processor keeps writes in order; otherwise
        # a take sees the writes of a put only after it had the same lock.
        self.putting = FileLock(file, PUT)
        self.taking = FileLock(file, TAKE) if linux.IS_ORDERED else self.putting
        self.process = os.getpid()
        self.use()
        #: The function that signs items before they go to the broker, if they are to be signed.
        self.sign: Callable[[bytes], bytes] | None = None

    def use(self) -> None:
        """Mark the file as used by this process, for :mod:`.ring_files`. Raises BrokerError."""
        self._file.use()

    def after_fork(self) -> None:
        """Mark the file as used in a forked child, too."""
        self.putting.reset()
        self.taking.reset()
        self.process = os.getpid()
        with suppress(BrokerError):  # the next put or take raises it
            self._file.after_fork()

    def __del__(self) -> None:
        file = getattr(self, "_file", None)  # __init__ may have failed before
        if file is not None:
            file.close()

    # Looking

    @property
    def state(self) -> int:
        """Whether the items are HERE, MOVING to the broker, or MOVED."""
        return self._cells[STATE]

    @property
    def bound(self) -> int:
        """The bound of the queue, 0 for none."""
        return self._cells[BOUND]

    def set_bound(self, bound: int) -> None:
        """Change the bound, and wake all that wait for space."""
        self._cells[BOUND] = bound
        self.tell_space(ALL)

    @property
    def has_new_bound(self) -> bool:
        """Whether the bound is another than at first."""
        return self._cells[BOUND] != self._cells[FIRST_BOUND]

    @property
    def is_closed(self) -> bool:
        """Whether the queue was shut down."""
        return self._cells[CLOSED] > 0

    @property
    def drops(self) -> bool:
        """Whether the queued items count as dropped, and items that are put in front too."""
        return self._cells[CLOSED] > 1

    def close(self) -> None:
        """Shut the queue down, with the lock for puts, and wake all that wait."""
        self._cells[CLOSED] = max(self._cells[CLOSED], 1)
        self.tell_all()

    def drop(self) -> None:
        """Shut the queue down, and drop all items, with both locks. They stay in the ring, where
        they no longer count: one step does it all."""
        self._cells[CLOSED] = self._cells[CLOSED] if self.drops else self.first + 2
        self.tell_all()

    @property
    def is_signed(self) -> bool:
        """Whether items must be signed before they go to the broker."""
        return self._cells[SIGNED] > 0

    def note_signed(self) -> None:
        """Note that items must be signed before they go to the broker."""
        self._cells[SIGNED] = 1

    @property
    def first(self) -> int:
        """The number of records that were ever taken."""
        return self._cells[HEAD] >> 28

    @property
    def last(self) -> int:
        """The number of records that were ever put."""
        return self._cells[TAIL] >> 28

    @property
    def bytes_in(self) -> int:
        """The size of all items that were put, in bytes."""
        return self._cells[BYTES_IN]

    @property
    def bytes_out(self) -> int:
        """The size of all items that were taken, in bytes."""
        return self._cells[BYTES_OUT]

    @property
    def done(self) -> int:
        """The number of items that are done, without items that were set aside or dropped."""
        return self._cells[DONE]

    @property
    def putter(self) -> str:
        """The client that put last."""
        return self._name_at(PUTTER)

    @property
    def last_taker(self) -> str:
        return self._name_at(LAST_TAKER)

    def _name_at(self, at: int) -> str:
        return self._map[at : at + NAME_SIZE].rstrip(b"\0").decode(errors="replace")

    def note_putter(self, name: bytes) -> None:
        """Note the client that puts, with the lock for puts."""
        self._map[PUTTER : PUTTER + NAME_SIZE] = fixed(name)

    def note_taker(self, name: bytes) -> None:
        """Note the client that takes, with the lock for takes."""
        self._map[LAST_TAKER : LAST_TAKER + NAME_SIZE] = fixed(name)

    @property
    def unfinished(self) -> int:
        """The number of items that were put and are not done."""
        cells = self._cells
        put = cells[CLOSED] - 2 if self.drops else cells[TAIL] >> 28
        return put - cells[DONE] - cells[SET_ASIDE]

    def count_done(self, number: int = 1, which: int = DONE) -> bool:
        """Count items as done, or as set aside, with the lock for takes; returns False if there are
        not so many."""
        cells = self._cells
        while True:
            counted, left = cells[which], self.unfinished
            if left < number and which == DONE:
                return False
            # From here on there is no call.
            if cells[which] != counted:
                continue
            cells[which] = counted + number
            return True

    @property
    def returned(self) -> int:
        """The number of items that were taken and are queued again."""
        return 0

    @property
    def length(self) -> int:
        """The number of queued items."""
        head = self._cells[HEAD] >> 28  # first, so that records taken meanwhile count
        queued = 0 if self.drops else (self._cells[TAIL] >> 28) - head & COUNT
        return queued + self.returned

    # Moving to the broker, with both locks

    def set_state(self, state: int) -> None:
        """Set the :attr:`state`, and wake all that wait. When the items were moved, free their
        memory."""
        self._cells[STATE] = state
        if state == MOVED:
            self.remove(0, self._size)
        self.tell_all()

    def remove(self, begin: int, end: int) -> None:
        """Give the memory of a part of the ring back to the system, as far as it is whole pages."""
        first = -(-(PAGE + begin) // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (PAGE + end - first) // mmap.PAGESIZE * mmap.PAGESIZE
        if size > 0:
            with suppress(OSError):  # some file systems cannot do so
                self._map.madvise(mmap.MADV_REMOVE, first, size)


@functools.lru_cache(256)
def fixed(name: bytes) -> bytes:
    """Return the name of a client as it is in the file."""
    return name[:NAME_SIZE].ljust(NAME_SIZE, b"\0")
