"""Items too large for one call: the content is kept beside the queue, in chunks.

The queued item is a manifest::

    mark | token | size | seal(mark | token | size | table | digest | headers)

The token is a random name and the number of chunks, the size counts the content's bytes; both are
hexadecimal digits, which scripts read. The table has the lengths of the content's segments: a
pickle, and the buffers that belong to it. In a signed queue the seal is the signature, and the
digest of the content is there too, so that no other process can exchange a chunk; in another queue
both are empty. The headers are an envelope without a payload, if there are any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from . import envelope
from .signing import take_apart

#: A manifest begins with this, and no UTF-8 text, pickle or signed item does. The 1 is the format's
#: version.
MARK = b"\xfamp1"
#: An item whose content has so many bytes is divided. Below, one call is faster.
THRESHOLD = 1 << 18
#: Bytes in a chunk: a server is busy with one for about half a millisecond.
CHUNK = 1 << 19

_NAME_SIZE = 16
_TOKEN_SIZE = _NAME_SIZE + 8
_SIZE_SIZE = 16
HEAD_SIZE = len(MARK) + _TOKEN_SIZE + _SIZE_SIZE
_COUNT_SIZE, _LENGTH_SIZE = 4, 8
_DIGEST_SIZE = 32


class Large:
    """An item to put: its manifest, and its content."""

    __slots__ = ("manifest", "segments", "size", "token")

    def __init__(
        self,
        segments: Sequence[memoryview],
        seal: Callable[[bytes], bytes],
        is_signed: bool,
        headers: bytes = b"",
    ) -> None:
        self.segments = segments
        self.size = sum(segment.nbytes for segment in segments)
        self.token = f"{os.urandom(_NAME_SIZE // 2).hex()}{-(-self.size // CHUNK):08x}"
        head = MARK + f"{self.token}{self.size:0{_SIZE_SIZE}x}".encode()
        table = [len(segments).to_bytes(_COUNT_SIZE, "big")]
        table += [segment.nbytes.to_bytes(_LENGTH_SIZE, "big") for segment in segments]
        self.manifest = head + seal(
            b"".join((head, *table, digest(segments) if is_signed else b"", headers))
        )


class Manifest:
    """The facts about an item that a consumer has before it reads the content."""

    __slots__ = ("digest", "headers", "lengths", "size", "token")

    def __init__(self, item: bytes, sealed: bytes, is_signed: bool) -> None:
        """Read a manifest. ``sealed`` is the text in the seal. Raises ValueError for another
        item."""
        head, rest = item[:HEAD_SIZE], sealed[HEAD_SIZE:]
        if sealed[:HEAD_SIZE] != head:
            raise ValueError("its seal is that of another item")
        self.token = head[len(MARK) : len(MARK) + _TOKEN_SIZE].decode("ascii")
        self.size = int(head[-_SIZE_SIZE:], 16)
        count = int.from_bytes(rest[:_COUNT_SIZE], "big")
        end = _COUNT_SIZE + count * _LENGTH_SIZE
        self.lengths = [
            int.from_bytes(rest[at : at + _LENGTH_SIZE], "big")
            for at in range(_COUNT_SIZE, min(end, len(rest)), _LENGTH_SIZE)
        ]
        end_of_digest = end + (_DIGEST_SIZE if is_signed else 0)
        self.digest, self.headers = rest[end:end_of_digest], rest[end_of_digest:]
        chunks = int(self.token[_NAME_SIZE:], 16)
        if (
            count == 0
            or len(rest) < end_of_digest
            or envelope.payload_of(self.headers)
            or sum(self.lengths) != self.size
            or chunks != -(-self.size // CHUNK)
        ):
            raise ValueError("its manifest contradicts itself")

    def allocate(self) -> list[bytearray]:
        """Allocate a piece of memory for each segment of the content."""
        return [bytearray(length) for length in self.lengths]


def is_manifest(item: bytes | bytearray | memoryview) -> bool:
    """Tell whether an item may be a manifest; another program may have queued anything."""
    return item[: len(MARK)] == MARK


def read_unchecked(item: bytes) -> Manifest:
    """Read a manifest without a check of its signature. Raises ValueError for another item."""
    key, sealed = take_apart(item[HEAD_SIZE:])
    return Manifest(item, sealed, key is not None)


def token_of(item: bytes) -> str:
    return item[len(MARK) : len(MARK) + _TOKEN_SIZE].decode("latin-1")


def weight(item: bytes) -> int:
    """Return how many bytes an item has together with its content."""
    if is_manifest(item):
        try:
            return int(item[HEAD_SIZE - _SIZE_SIZE : HEAD_SIZE], 16)
        except ValueError:
            pass
    return len(item)


def divide(segments: Sequence[memoryview]) -> Iterator[list[memoryview]]:
    """Split the content into chunks, each as views of pieces of the segments."""
    chunk: list[memoryview] = []
    room = CHUNK
    for segment in segments:
        at = 0
        while at < segment.nbytes:
            chunk.append(segment[at : at + room])
            at += chunk[-1].nbytes
            room -= chunk[-1].nbytes
            if not room:
                yield chunk
                chunk, room = [], CHUNK
    if chunk:
        yield chunk


def digest(segments: Sequence[memoryview | bytearray]) -> bytes:
    import hashlib  # as late as in signing.py

    found = hashlib.sha256()
    for segment in segments:
        found.update(segment)
    return found.digest()
