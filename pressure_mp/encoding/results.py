"""Convert the result of a task, and its progress, to the bytes that are kept, and back.

They are ``mark | kind | id | 0 | payload``, signed as the queue's items are: so without a key no
process can pass off the result of one task as the result of another, or a task's data as a result.
A large value is a manifest, whose seal has that head, and a content; see :mod:`.large`.

The payload of a value, and of a progress, comes from the queue's serializer. The payload of an
error is the length of two texts in JSON (the error in a line, and its traceback), the two texts,
and the error from the serializer, or nothing if that failed.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ..exceptions import DecodingError, PressureError, RemoteTraceback
from ..interrupts import is_from_outside
from . import serializers, signing
from .codec import Codec
from .error_texts import RESULT
from .large import HEAD_SIZE, THRESHOLD, Large, Manifest, digest, is_manifest
from .user_exceptions import set_cause

#: A result begins with this, and no pickle, UTF-8 text, signed item or manifest does.
MARK = b"\xf8mp1"
VALUE, ERROR, PROGRESS = b"V", b"E", b"P"
_LENGTH = 4

Data = TypeVar("Data")


class Value(NamedTuple):
    """The value that a task returned."""

    value: Any


class Failure(NamedTuple):
    """The error of a task: the exception, if it can be loaded here, and its text in any case."""

    error: BaseException | None
    text: str


def progress_payload(data: bytes) -> bytes:
    """Return the serializer's bytes of an encoded progress, unchecked, to show them."""
    return signing.take_apart(data)[1].partition(b"\0")[2]


class ResultCodec(Generic[Data]):
    """Encodes and decodes the results of tasks, for one handle."""

    def __init__(self, codec: Codec[Data]) -> None:
        self._codec = codec

    def encode_value(self, id: bytes, value: Any) -> bytes | Large:
        """Encode a value. Raises EncodingError, AuthenticationError. None, which most handlers
        return, becomes no bytes at all."""
        if value is None:
            return b""
        codec, head = self._codec, MARK + VALUE + id + b"\0"
        sign = codec.prepare().sign
        if not codec.divides:
            return sign(head + serializers.encode(codec.serializer, value, codec.queue))
        payload, buffers = serializers.pickle_apart(value, codec.queue)
        if not buffers and len(payload) < THRESHOLD:
            return sign(head + payload)
        segments = [memoryview(payload), *(buffer.raw() for buffer in buffers)]
        return Large(segments, lambda sealed: sign(head + sealed), codec.is_signed)

    def encode_error(self, id: bytes, error: BaseException) -> bytes:
        """Encode an error. Raises AuthenticationError. An error that the serializer cannot encode
        and decode again is kept as text."""
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        texts = json.dumps([lines[-1].strip(), "".join(lines)]).encode()
        frame = len(texts).to_bytes(_LENGTH, "big") + texts + self._try(error)
        return self._codec.prepare().sign(MARK + ERROR + id + b"\0" + frame)

    def encode_progress(self, id: bytes, value: Any) -> bytes:
        """Encode a progress. Raises EncodingError, AuthenticationError."""
        codec = self._codec
        payload = serializers.encode(codec.serializer, value, codec.queue)
        return codec.prepare().sign(MARK + PROGRESS + id + b"\0" + payload)

    def decode_progress(self, id: bytes, data: bytes) -> Any:
        """Check and decode a progress. Raises as :meth:`decode` does."""
        _, payload = self._open(id, data, (PROGRESS,))
        return self._loads(payload, data)

    def _try(self, error: BaseException) -> bytes:
        serializer, queue = self._codec.serializer, self._codec.queue
        try:
            found = serializers.encode(serializer, error, queue)
            again = serializer.loads(found)
        except Exception as why:
            if is_from_outside(why):
                raise
            return b""
        return found if type(again) is type(error) else b""

    def read_manifest(self, id: bytes, data: bytes) -> Manifest | None:
        """Read the manifest of a large value; None of any other result. Raises AuthenticationError,
        DecodingError."""
        if not (self._codec.divides and is_manifest(data)):
            return None
        _, sealed = self._open(id, data[HEAD_SIZE:])
        try:
            return Manifest(data, sealed, self._codec.is_signed)
        except ValueError as error:
            raise self._undecodable(data, error) from error

    def decode(
        self,
        id: bytes,
        data: bytes,
        manifest: Manifest | None = None,
        content: Sequence[bytearray] = (),
    ) -> Value | Failure:
        """Check and decode the result of a task. Raises AuthenticationError, and then nothing was
        decoded; or DecodingError."""
        if not data:
            return Value(None)
        if manifest is not None:
            if manifest.digest and digest(content) != manifest.digest:
                raise signing.exchanged(data, self._codec.queue, RESULT)
            try:
                return Value(serializers.unpickle_apart(content, data, self._codec.queue))
            except DecodingError as error:
                raise self._undecodable(data, error.__cause__) from error.__cause__
        kind, payload = self._open(id, data)
        if kind == VALUE:
            return Value(self._loads(payload, data))
        return self._decode_error(payload, data)

    def _open(
        self, id: bytes, data: bytes, kinds: Sequence[bytes] = (VALUE, ERROR)
    ) -> tuple[bytes, bytes]:
        """Return the kind, one of these, and the payload. Raises DecodingError for the bytes of
        another task."""
        found = self._codec.prepare().check(data, RESULT)
        kind, head = found[len(MARK) : len(MARK) + 1], id + b"\0"
        rest = found[len(MARK) + 1 :]
        if found[: len(MARK)] != MARK or kind not in kinds or not rest.startswith(head):
            raise DecodingError(
                f"the kept result of a task of queue {self._codec.queue!r} ({len(data)} bytes) "
                "is not a result of that task",
                data,
            )
        return kind, rest[len(head) :]

    def _loads(self, payload: bytes, data: bytes) -> Any:
        try:
            return self._codec.serializer.loads(payload)
        except Exception as error:
            if is_from_outside(error):
                raise
            raise self._undecodable(data, error) from error

    def _undecodable(self, data: bytes, error: BaseException | None) -> DecodingError:
        return serializers.undecodable(self._codec.queue, error, data, RESULT)

    def _decode_error(self, payload: bytes, data: bytes) -> Failure:
        end = _LENGTH + int.from_bytes(payload[:_LENGTH], "big")
        try:
            text, lines = json.loads(payload[_LENGTH:end])
        except ValueError as error:
            raise self._undecodable(data, error) from error
        try:
            found = self._loads(payload[end:], data) if payload[end:] else None
        except PressureError:
            found = None  # its class is not known here: its text is enough
        if not isinstance(found, BaseException):
            return Failure(None, lines)
        set_cause(found, RemoteTraceback(lines))
        return Failure(found, text)
