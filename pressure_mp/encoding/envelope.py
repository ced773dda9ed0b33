"""Headers that go with an item: an envelope around the serializer's bytes.

An envelope is ``mark | size | headers | payload``: the size of the headers in four bytes, the
headers as a JSON object of strings. Of a signed item it is inside the signature. An item without
headers has no envelope, unless it begins like one; so nothing changes for a queue without
listeners.
"""

from __future__ import annotations

from collections.abc import Mapping

#: An envelope begins with this, and no UTF-8 text, pickle, signed item or manifest does. The 1 is
#: the format's version.
MARK = b"\xfbmp1"
_SIZE = 4
_HEAD = len(MARK) + _SIZE

#: The beginning of an envelope that has no headers.
EMPTY = MARK + bytes(_SIZE)


def beginning(headers: Mapping[str, str]) -> bytes:
    """Return all bytes before the payload; none when there are no headers."""
    if not headers:
        return b""
    import json  # only items with headers need it

    text = json.dumps(headers, ensure_ascii=False, separators=(",", ":")).encode()
    return b"".join((MARK, len(text).to_bytes(_SIZE, "big"), text))


def is_one(payload: bytes | memoryview) -> bool:
    return payload[: len(MARK)] == MARK


def payload_of(payload: bytes) -> bytes:
    """Return the payload of an envelope; anything else as it is."""
    return payload[_end(payload) :] if is_one(payload) else payload


def headers_of(payload: bytes) -> dict[str, str]:
    """Return the headers of an envelope; none of anything else, or when they cannot be read."""
    if not is_one(payload):
        return {}
    import json

    try:
        found = json.loads(payload[_HEAD : _end(payload)])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _end(payload: bytes) -> int:
    return _HEAD + int.from_bytes(payload[len(MARK) : _HEAD], "big")
