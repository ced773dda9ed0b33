"""Convert an object to the item that is queued, and back: serialize and sign, check and decode."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ..exceptions import DecodingError, PressureError
from ..interrupts import is_from_outside
from . import envelope, large, serializers, signing
from .error_texts import ITEM, Kind
from .large import HEAD_SIZE, THRESHOLD, Large, Manifest, digest, is_manifest, read_unchecked
from .serializers import LargeBuffers, PickleSerializer, Serializer
from .signing import Checked, Keys, Signatures
from .unsigned_items import Private, Privates

Item = TypeVar("Item")

#: The first bytes of each item that is signed, or whose manifest is signed.
_SIGNED = (*signing.MARKS, large.MARK)


class Codec(Generic[Item]):
    """Encodes and decodes the items of one handle, or its bytes of another ``kind``. Its pickle has
    keys only for a child being started."""

    def __init__(
        self,
        serializer: Serializer,
        keys: Keys,
        prefix: str,
        queue: str,
        anonymous: bool,
        kind: Kind = ITEM,
        *,
        is_bare: bool = False,
    ) -> None:
        """Make a codec. ``is_bare``: unless they are pickles or signed, items are only the
        serializer's bytes, since programs in other languages may put and get them."""
        self.serializer = serializer
        self._prefix = prefix
        self.queue = queue
        self.anonymous = anonymous
        self._kind = kind
        self._keys = keys
        self._key_ids = tuple(key.id for key in keys)
        self._signatures: Signatures | None = None
        #: Whether the content of large items is kept apart.
        self.divides = isinstance(serializer, PickleSerializer)
        self._has_envelopes = self.divides or bool(keys) or not is_bare
        self._signs_late = False

    @property
    def is_signed(self) -> bool:
        """Whether the queue's items are signed."""
        return bool(self._key_ids)

    def sign_late(self) -> None:
        """Leave pickles unsigned. Every binding of the handle signs them with :meth:`sign` when
        they leave shared memory, in which only processes of this user can write."""
        self._signs_late = self.divides

    def sign(self, item: bytes) -> bytes:
        """Sign an item that is not signed yet. Raises AuthenticationError when the handle has no
        keys here."""
        return item if item.startswith(_SIGNED) else self.prepare().sign(item)

    def prepare(self) -> Signatures:
        """Load the keys. Raises AuthenticationError when the handle has no keys here."""
        found = self._signatures
        if found is None:
            found = self._signatures = self._find_signatures()
        return found

    def _find_signatures(self) -> Signatures:
        if not self._key_ids:
            return signing.Unsigned(self.queue, self._kind)
        if not self._keys:
            self._keys = signing.recall(self._key_ids, self.anonymous, self.queue, os.environ)
        return signing.Signer(self._keys, self._prefix, self.queue, self._kind)

    def encode(self, obj: Item, headers: bytes = b"") -> bytes | Large:
        """Encode and sign an object. Raises EncodingError, and AuthenticationError without a key.

        A large item shares the memory of ``obj``: it is not copied. ``headers`` are the beginning
        of an envelope; bare items go without them.
        """
        if self.divides:
            payload, buffers = serializers.pickle_apart(obj, self.queue)
            if buffers or len(payload) >= THRESHOLD:
                return self._divide(payload, buffers, headers)
            if not headers:  # a pickle cannot begin like a signed item or an envelope
                signs = self._key_ids and not self._signs_late
                return self.prepare().sign(payload) if signs else payload
        else:
            payload = serializers.encode(self.serializer, obj, self.queue)
        return self._seal(payload, headers)

    def _divide(self, payload: bytes, buffers: LargeBuffers, headers: bytes) -> Large:
        segments = [memoryview(payload), *(buffer.raw() for buffer in buffers)]
        return Large(segments, self.prepare().sign, bool(self._key_ids), headers)

    def _seal(self, payload: bytes, headers: bytes) -> bytes:
        """Put a payload into its envelope, if it has one, and sign it, if it is to be signed."""
        sign = self.prepare().sign
        if not self._has_envelopes:
            return sign(payload)
        if not headers and envelope.is_one(payload):
            headers = envelope.EMPTY  # so that it is not taken for an envelope
        return sign(headers + payload) if self._key_ids else headers + sign(payload)

    def _payload(self, item: bytes) -> bytes:
        """Return the serializer's bytes in an item that was checked."""
        return envelope.payload_of(item) if self._has_envelopes else item

    def headers_of(self, item: bytes) -> dict[str, str]:
        """Return the headers of an item that was decoded."""
        if not self._has_envelopes:
            return {}
        if self.divides and is_manifest(item):
            return envelope.headers_of(read_unchecked(item).headers)
        return envelope.headers_of(signing.take_apart(item)[1] if self._key_ids else item)

    def decode(self, item: bytes) -> Item:
        """Check and decode an item. Raises AuthenticationError, and then nothing was decoded; or
        DecodingError."""
        is_checked = bool(self._key_ids) or not self.divides  # no pickle begins like a signed item
        if type(item) is Private and not item.startswith(signing.MARKS):
            is_checked = False
        payload = self.prepare().check(item) if is_checked else item
        try:
            if not self.divides:  # no pickle begins like an envelope: if this fails
                payload = self._payload(payload)
            found: Item = self.serializer.loads(payload)
            return found
        except Exception as error:
            if is_from_outside(error):
                raise
            if not is_checked and type(item) is not Private:
                self.prepare().check(item)
            if self.divides and envelope.is_one(payload):
                return self._decode_in_envelope(payload, item)
            raise serializers.undecodable(self.queue, error, item, self._kind) from error

    def _decode_in_envelope(self, payload: bytes, item: bytes) -> Item:
        try:
            found: Item = self.serializer.loads(envelope.payload_of(payload))
            return found
        except Exception as error:
            if is_from_outside(error):
                raise
            raise serializers.undecodable(self.queue, error, item, self._kind) from error

    @property
    def quick_decode(self) -> Callable[[bytes], Item]:
        """Decodes most items as :meth:`decode` does, in less time, but no large ones. It may raise
        anything: then call decode, or :meth:`decode_large`."""
        if self._key_ids or not self.divides:
            return self._decode_small
        return self.serializer.loads  # no pickle begins like a signed item or a manifest

    def _decode_small(self, item: bytes) -> Item:
        if is_manifest(item):
            raise ValueError("its content is elsewhere")
        return self.decode(item)

    def read_manifest(self, item: bytes) -> Manifest | None:
        """Read the manifest of a content that is beside the queue; None for an item of another
        kind.

        Raises AuthenticationError or DecodingError.
        """
        if not self.divides:
            return None
        signatures = self.prepare()
        try:
            sealed = signatures.check(item[HEAD_SIZE:])
        except PressureError as error:
            error.payload = item  # type: ignore[attr-defined]  # not only what was checked
            raise
        try:
            return Manifest(item, sealed, bool(self._key_ids))
        except ValueError as error:
            raise serializers.undecodable(self.queue, error, item) from error

    def decode_large(
        self, item: bytes, manifest: Manifest, content: Sequence[bytearray] | None
    ) -> Item:
        """Check and decode a large item. Raises AuthenticationError, and then nothing was decoded;
        or DecodingError, also for a content that is gone (None)."""
        if content is None:
            raise DecodingError(
                f"an item of {manifest.size} bytes from queue {self.queue!r} has no content any "
                "more: it was got for longer than its lease, and then taken away; its manifest "
                "was set aside, see rejected()",
                item,
            )
        if manifest.digest and digest(content) != manifest.digest:
            raise signing.exchanged(item, self.queue)
        found: Item = serializers.unpickle_apart(content, item, self.queue)
        return found

    @property
    def quick(self) -> Callable[[Item], bytes | Large]:
        """Encodes most objects as :meth:`encode` does, in less time. It may raise anything, or make
        one piece of THRESHOLD bytes or more: then call encode."""
        if not isinstance(self.serializer, PickleSerializer):
            return self.encode
        signatures = self.prepare()
        if not isinstance(signatures, signing.Signer) or self._signs_late:
            return serializers.pickle_small
        return signatures.signing(serializers.pickle_small, THRESHOLD)

    def encode_many(self, objects: Sequence[Item], headers: bytes = b"") -> list[bytes | Large]:
        if self.divides and objects:
            payloads, buffers = serializers.pickle_many_apart(objects)
            if buffers or not payloads or max(map(len, payloads)) >= THRESHOLD:
                return [self.encode(obj, headers) for obj in objects]
            if not self._key_ids:
                return [headers + payload for payload in payloads] if headers else [*payloads]
        else:
            payloads = serializers.encode_many(self.serializer, objects, self.queue)
        return [*self._seal_many(payloads, headers)]

    def _seal_many(self, payloads: list[bytes], headers: bytes) -> list[bytes]:
        if self.divides and not headers:  # no pickle begins like an envelope
            return payloads if self._signs_late else list(map(self.prepare().sign, payloads))
        return [self._seal(payload, headers) for payload in payloads]

    def encode_whole(self, obj: Item, headers: bytes = b"") -> bytes:
        """Encode an object, as :meth:`encode` does, for a queue that keeps nothing apart, however
        large it is."""
        return self._seal(serializers.encode(self.serializer, obj, self.queue), headers)

    def encode_many_whole(self, objects: Sequence[Item], headers: bytes = b"") -> list[bytes]:
        payloads = serializers.encode_many(self.serializer, objects, self.queue)
        return self._seal_many(payloads, headers)

    def check_many(self, items: Sequence[bytes]) -> Sequence[Checked]:
        """Check each item, and return the bytes that :attr:`loads` decodes. Both may raise anything
        for items that :meth:`decode` has to decode, or refuses; the error does not say for which
        item."""
        signatures = self.prepare()
        checked: Sequence[Checked] = items
        if not self.divides:
            checked = signatures.check_many(items)
        elif self._key_ids and type(items) is Privates:
            if any(item[0] == signing.MARK[0] for item in items):
                check, marks = signatures.check, signing.MARKS
                checked = [check(item) if item.startswith(marks) else item for item in items]
        elif self._key_ids:
            checked = signatures.check_many(items, memoryview)  # a view can be unpickled
        # A pickle that is signed or in an envelope fails to load: so the first item shows enough.
        if not self.divides or (checked and envelope.is_one(checked[0])):
            checked = [self._payload(bytes(one)) for one in checked]
        return checked

    @property
    def loads(self) -> Callable[[Any], Item]:
        """Decodes bytes that were checked."""
        return self.serializer.loads

    def decode_many(self, items: Sequence[bytes]) -> list[Item]:
        """Decode each item, as :meth:`decode` does. It may raise anything, which does not say for
        which item."""
        payloads = self.check_many(items)  # all, before anything is decoded
        return list(map(self.loads, payloads))

    def __getstate__(self) -> tuple[Any, ...]:
        keys: Keys = self._keys if signing.is_spawning() else ()
        where = self._prefix, self.queue, self.anonymous, self._kind
        return self.serializer, *where, self._key_ids, keys, self._has_envelopes

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (
            self.serializer,
            self._prefix,
            self.queue,
            self.anonymous,
            self._kind,
            self._key_ids,
            self._keys,
            self._has_envelopes,
        ) = state
        self._signatures = None
        self._signs_late = False
        self.divides = isinstance(self.serializer, PickleSerializer)
        signing.hold(self._keys)
