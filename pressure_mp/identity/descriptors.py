"""Keep descriptors that the program may close.

A program may close them without notice, as daemons close all descriptors that they inherited, and
then its own files get their numbers. So the file of a number is checked before it is closed.
"""

from __future__ import annotations

import mmap
import os
import sys

#: Makes mmap(2) map at the given address, in place of an earlier map.
_MAP_FIXED = 0x10


class Descriptor:
    """A descriptor that is kept open, and the file that it was opened for."""

    __slots__ = ("_file", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._file = _file(number)

    def is_same(self, other: Descriptor) -> bool:
        """Tell whether both were opened for one file."""
        return self._file == other._file

    @property
    def is_open(self) -> bool:
        """Tell whether the number still belongs to the file."""
        try:
            return _file(self.number) == self._file
        except OSError:
            return False

    def close(self) -> None:
        """Close it, if it is open."""
        if self.is_open:
            os.close(self.number)


def _file(number: int) -> tuple[int, int]:
    found = os.fstat(number)
    return found.st_dev, found.st_ino


if sys.version_info >= (3, 13):

    def map_file(number: int, size: int) -> mmap.mmap:
        """Map the first bytes of a file that is open; the map keeps no descriptor."""
        return mmap.mmap(number, size, trackfd=False)

else:

    def map_file(number: int, size: int) -> mmap.mmap:
        """Map the first bytes of a file that is open; the map keeps no descriptor."""
        import ctypes  # only programs that map a file need it

        # Of a file, mmap.mmap would keep a descriptor of its own, and close it without a look.
        made = mmap.mmap(-1, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(made))
        call = ctypes.CDLL(None, use_errno=True).mmap
        call.restype = ctypes.c_void_p
        call.argtypes = (
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
            ctypes.c_int64,
        )
        how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED
        if call(address, size, *how, number, 0) != address:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return made
