"""Convert an object to the bytes that are queued, and back."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Protocol

from ..exceptions import ArgumentError, ArgumentTypeError, DecodingError, EncodingError
from ..interrupts import is_from_outside
from .error_texts import ITEM, Kind
from .large import THRESHOLD
from .user_exceptions import in_words


class Serializer(Protocol):
    """Anything with these two methods, such as the modules ``pickle`` and ``marshal``."""

    def dumps(self, obj: Any, /) -> bytes:
        """Encode ``obj``; raises any exception when it cannot."""

    def loads(self, payload: bytes, /) -> Any:
        """Decode ``payload``; raises any exception when it cannot."""


#: The class of the ends of pipes, and the bytes that each pickle of one contains.
_PIPE_END = "multiprocessing.connection.Connection"
_PIPE_END_MARK = b"multiprocessing.connection"


def checked(pickled: bytes) -> bytes:
    """Return the pickle unchanged. Raises TypeError for a pickle that contains the end of a pipe:
    pickle reduces it to the bare number of a descriptor of this process."""
    if _PIPE_END_MARK not in pickled:
        return pickled
    from . import pickles  # most programs do not need it

    if pickles.makes(pickled, _PIPE_END):
        raise TypeError(
            f"it contains the end of a pipe, {_PIPE_END}, which is a descriptor of this process "
            "alone. Send a queue instead, which can be used in every process, or pass the end of "
            "the pipe to a multiprocessing.Process as an argument"
        )
    return pickled


class PickleSerializer:
    """Pickles any picklable object, with protocol 5. Unpickling runs code: trust the producers."""

    def dumps(self, obj: Any, /) -> bytes:
        return pickle.dumps(obj, 5)

    loads = staticmethod(pickle.loads)


def pickle_small(obj: Any) -> bytes:
    """Pickle an object without a large buffer. Raises any exception; for a large buffer
    ValueError."""
    return checked(pickle.dumps(obj, 5, buffer_callback=_keep_small))


def _keep_small(buffer: pickle.PickleBuffer) -> bool:
    """Let a pickle have a small buffer. Raises ValueError for a large one."""
    with buffer.raw() as view:
        if view.nbytes >= THRESHOLD:
            raise ValueError("the buffer is too large to be copied")
    return True


class LargeBuffers(list[pickle.PickleBuffer]):
    """The buffers that a pickle leaves out: they are so large that a copy in the pickle would be a
    waste."""

    def keep_apart(self, buffer: pickle.PickleBuffer) -> bool:
        """Tell whether the pickle itself is to have the buffer."""
        with buffer.raw() as view:
            if view.nbytes < THRESHOLD:
                return True
        self.append(buffer)
        return False


class JsonSerializer:
    """JSON in UTF-8: for queues that are shared with other languages."""

    def dumps(self, obj: Any, /) -> bytes:
        import json  # most programs do not need it

        return json.dumps(obj, ensure_ascii=False, separators=(",", ":")).encode()

    def loads(self, payload: bytes, /) -> Any:
        import json

        return json.loads(payload)


class TextSerializer:
    """``str``, in UTF-8."""

    def dumps(self, obj: Any, /) -> bytes:
        if not isinstance(obj, str):
            raise TypeError(f"the text serializer takes str, not {type(obj).__name__}")
        return obj.encode()

    def loads(self, payload: bytes, /) -> str:
        return payload.decode()


class RawSerializer:
    """``bytes`` (or ``bytearray``, ``memoryview``), as they are."""

    def dumps(self, obj: Any, /) -> bytes:
        if not isinstance(obj, (bytes, bytearray, memoryview)):
            raise TypeError(f"the raw serializer takes bytes, not {type(obj).__name__}")
        return bytes(obj)

    def loads(self, payload: bytes, /) -> bytes:
        return payload


_BY_NAME: dict[str, Serializer] = {
    "pickle": PickleSerializer(),
    "json": JsonSerializer(),
    "text": TextSerializer(),
    "raw": RawSerializer(),
}


#: They make no pickles.
_PLAIN = (JsonSerializer, TextSerializer, RawSerializer)


def find(serializer: str | Serializer) -> Serializer:
    """Return the serializer of that name, or the given object when it has ``dumps`` and
    ``loads``."""
    if isinstance(serializer, str):
        if serializer not in _BY_NAME:
            raise ArgumentError(f"serializer {serializer!r} is not one of {', '.join(_BY_NAME)}")
        return _BY_NAME[serializer]
    if not (callable(getattr(serializer, "dumps", None)) and hasattr(serializer, "loads")):
        raise ArgumentTypeError(f"serializer {serializer!r} lacks the methods dumps and loads")
    return serializer


def encode(serializer: Serializer, obj: Any, queue: str) -> bytes:
    """Encode ``obj``. Raises EncodingError, which names the object's type and the queue."""
    try:
        payload = serializer.dumps(obj)
        if isinstance(payload, bytes) and not isinstance(serializer, _PLAIN):
            checked(payload)
    except Exception as error:
        if is_from_outside(error):
            raise
        raise _refusal(obj, queue, error) from error
    if not isinstance(payload, bytes):
        raise EncodingError(
            f"the serializer of queue {queue!r} made {type(payload).__name__} of an object of "
            f"type {type(obj).__name__}, not bytes"
        )
    return payload


def _refusal(obj: Any, queue: str, error: Exception) -> EncodingError:
    return EncodingError(
        f"an object of type {type(obj).__name__} cannot be put on queue {queue!r}: {error}"
    )


def pickle_apart(obj: Any, queue: str) -> tuple[bytes, LargeBuffers]:
    """Pickle ``obj`` without its large buffers; return them beside the pickle. Raises
    EncodingError."""
    buffers = LargeBuffers()
    try:
        return checked(pickle.dumps(obj, 5, buffer_callback=buffers.keep_apart)), buffers
    except Exception as error:
        if is_from_outside(error):
            raise
        raise _refusal(obj, queue, error) from error


def pickle_many_apart(objects: Sequence[Any]) -> tuple[list[bytes], LargeBuffers]:
    """Pickle ``objects``; return with the pickles the large buffers that are in none of them.
    Returns no pickles if one of them cannot be made."""
    buffers = LargeBuffers()
    dumps, keep_apart = pickle.dumps, buffers.keep_apart
    try:
        return [checked(dumps(obj, 5, buffer_callback=keep_apart)) for obj in objects], buffers
    except Exception as error:
        if is_from_outside(error):
            raise
        return [], buffers  # to pickle them one by one shows which it is


def unpickle_apart(segments: Sequence[bytearray], item: bytes, queue: str) -> Any:
    """Unpickle an object with its buffers, which become the memory of its arrays.

    Raises DecodingError, which has the item and its whole content.
    """
    payload, *buffers = segments
    try:
        return pickle.loads(payload, buffers=buffers)
    except Exception as error:
        if is_from_outside(error):
            raise
        raise undecodable(queue, error, b"".join((item, *segments))) from error


def encode_many(serializer: Serializer, objects: Sequence[Any], queue: str) -> list[bytes]:
    try:
        payloads = list(map(serializer.dumps, objects))
        if not isinstance(serializer, _PLAIN):
            payloads = list(map(checked, payloads))
    except Exception as error:
        if is_from_outside(error):
            raise
        payloads = []
    if set(map(type, payloads)) == {bytes}:
        return payloads
    return [encode(serializer, obj, queue) for obj in objects]  # raises for the right one


def undecodable(
    queue: str, error: BaseException | None, item: bytes, kind: Kind = ITEM
) -> DecodingError:
    """Return the error for an item that could not be decoded because of ``error``."""
    return DecodingError(
        f"{kind.what} of {len(item)} bytes from queue {queue!r} cannot be decoded "
        f"({in_words(error)}); {kind.fate}",
        item,
    )
