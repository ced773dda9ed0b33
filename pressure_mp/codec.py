"""From an object to the item that is queued, and back: serialize and sign, check and decode."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

from . import serializers, signing
from .serializers import PickleSerializer, Serializer
from .signing import Keys, Signatures


class Codec:
    """What one handle does to its items. Its pickle has keys only for a child being started."""

    def __init__(
        self,
        serializer: Serializer,
        keys: Keys,
        prefix: str,
        queue: str,
        anonymous: bool,
    ) -> None:
        self._serializer = serializer
        self._prefix = prefix
        self._queue = queue
        self._anonymous = anonymous
        self._keys = keys
        self._key_ids = tuple(key.id for key in keys)
        self._signatures: Signatures | None = None

    def prepare(self) -> Signatures:
        """Have the keys at hand. Raises AuthenticationError when they did not come along."""
        found = self._signatures
        if found is None:
            found = self._signatures = self._find_signatures()
        return found

    def _find_signatures(self) -> Signatures:
        if not self._key_ids:
            return signing.Unsigned(self._queue)
        if not self._keys:
            self._keys = signing.recall(self._key_ids, self._anonymous, self._queue, os.environ)
        return signing.Signer(self._keys, self._prefix, self._queue)

    def encode(self, obj: Any) -> bytes:
        """Raises EncodingError, and AuthenticationError when there is no key to sign with."""
        payload = serializers.encode(self._serializer, obj, self._queue)
        return self.prepare().sign(payload)

    def decode(self, item: bytes) -> Any:
        """Raises AuthenticationError, and then nothing was decoded; or DecodingError."""
        payload = self.prepare().check(item)
        return serializers.decode(self._serializer, payload, item, self._queue)

    @property
    def quick(self) -> Callable[[Any], bytes]:
        """What encodes most objects as :meth:`encode` does, in less time. It may raise anything:
        then encode says what is wrong."""
        if not self._key_ids and isinstance(self._serializer, PickleSerializer):
            return functools.partial(pickle.dumps, protocol=5)  # cannot begin as what is signed
        return self.encode

    def encode_many(self, objects: Sequence[Any]) -> list[bytes]:
        """As :meth:`encode`, for each."""
        payloads = serializers.encode_many(self._serializer, objects, self._queue)
        return list(map(self.prepare().sign, payloads))

    def decode_many(self, items: Sequence[bytes]) -> list[Any]:
        """As :meth:`decode`, for each. What is raised may be anything, and does not say for which
        item."""
        check, loads = self.prepare().check, self._serializer.loads
        if not self._key_ids and isinstance(self._serializer, PickleSerializer):
            return list(map(loads, items))  # it refuses what is signed
        return [loads(check(item)) for item in items]

    def __getstate__(self) -> tuple[Any, ...]:
        keys: Keys = self._keys if signing.is_spawning() else ()
        return self._serializer, self._prefix, self._queue, self._anonymous, self._key_ids, keys

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (
            self._serializer,
            self._prefix,
            self._queue,
            self._anonymous,
            self._key_ids,
            self._keys,
        ) = state
        self._signatures = None
        signing.hold(self._keys)
