"""A codec that leaves items as they are queued, to move or show them."""

from __future__ import annotations

from collections.abc import Sequence

from .codec import Codec
from .serializers import find


class AsQueued(Codec[bytes]):
    """Encodes, decodes, signs and checks nothing."""

    def __init__(self, prefix: str, queue: str) -> None:
        super().__init__(find("raw"), (), prefix, queue, False)

    def encode(self, obj: bytes, headers: bytes = b"") -> bytes:
        return obj

    def encode_many(  # type: ignore[override]
        self, objects: Sequence[bytes], headers: bytes = b""
    ) -> list[bytes]:
        return list(objects)

    def encode_whole(self, obj: bytes, headers: bytes = b"") -> bytes:
        return obj

    def encode_many_whole(self, objects: Sequence[bytes], headers: bytes = b"") -> list[bytes]:
        return list(objects)

    def decode(self, item: bytes) -> bytes:
        return item

    def decode_many(self, items: Sequence[bytes]) -> list[bytes]:
        return list(items)
