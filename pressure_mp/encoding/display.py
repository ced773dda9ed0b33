"""Show an item to a human or a pipe, whatever serializer made it. Nothing is unpickled, and no
signature is checked."""

from __future__ import annotations

import json
import pickletools
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from . import envelope, large, pickles, signing

#: A pickle begins with this and its protocol.
PICKLE = b"\x80"

#: Characters of an opcode's argument.
_LONGEST_ARGUMENT = 80

Kind = Literal["text", "json", "pickle", "bytes", "large", "lost"]


@dataclass(frozen=True)
class Content:
    """The parts of an item that can be shown.

    ``value`` is the value in it: a str for text, a value of JSON, the value of a pickle, bytes, and
    None for the content of a large item, which is elsewhere. ``key`` is the id of the key that it
    claims to be signed with, None when it is not signed. ``size`` counts its bytes, also of a
    content that is elsewhere. An item that the server lost has none of these. ``is_plain``:
    ``value`` is all that it has.
    """

    kind: Kind
    value: Any
    size: int
    key: str | None = None
    is_plain: bool = True

    @property
    def text(self) -> str:
        """The content in one line of printable characters."""
        signed = "" if self.key is None else f" (signed with key {self.key}, not checked)"
        return f"{self.unsigned}{signed}"

    @property
    def unsigned(self) -> str:
        """The text without what is said of the signature."""
        if self.kind == "large":
            return f"<{self.size:,} bytes, kept apart>"
        if self.kind == "lost":
            return "<lost: the server or another program removed it>"
        if isinstance(self.value, str):
            return printable(self.value)
        if self.kind == "bytes":
            return f"<{self.size:,} bytes: {self.value[:64]!r}>"
        if self.kind == "json":
            return printable(_dump(self.value))
        try:
            return printable(repr(self.value))
        except (RecursionError, ValueError) as error:  # values in values, a number without end
            return f"<{self.size:,} bytes: a pickle that cannot be shown: {error}>"

    @property
    def line(self) -> bytes:
        """The content for a pipe: text as it is, other values in JSON. Raises ValueError when that
        would not be all of it."""
        if self.kind == "large":
            raise ValueError(f"its {self.size:,} bytes are kept apart")
        if isinstance(self.value, str):
            return self.value.encode()
        if isinstance(self.value, bytes):
            return self.value
        if not self.is_plain:
            raise ValueError("it is a pickle of an object, which is not unpickled here")
        try:
            return _dump(self.value).encode()
        except TypeError as error:
            raise ValueError(f"it is a pickle that cannot be written as JSON: {error}") from None

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "size": self.size}
        if self.key is not None:
            found["key"] = self.key
        if self.kind in ("text", "json"):
            found["value"] = self.value
        elif self.kind != "large":
            found["shown"] = self.text
        return found


def content_of(item: bytes | None) -> Content:
    """Read an item; None is an item that the server lost."""
    if item is None:
        return Content("lost", None, 0)
    if large.is_manifest(item):
        return Content("large", None, large.weight(item))
    key, payload = signing.take_apart(item)
    payload = envelope.payload_of(payload)
    if payload.startswith(PICKLE):
        try:
            value = pickles.read(payload)
            return Content("pickle", value, len(payload), key, pickles.is_plain(value))
        except (pickles.UnreadablePickle, RecursionError):
            pass
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return Content("bytes", payload, len(payload), key)
    if text[:1] in "{[":
        try:
            return Content("json", json.loads(text), len(payload), key)
        except (ValueError, RecursionError):
            pass
    return Content("text", text, len(payload), key)


def opcodes_of(item: bytes, limit: int) -> list[str]:
    """Return the first opcodes of a pickle, one in a line, as far as they can be read; none of
    another item."""
    _, payload = signing.take_apart(item)
    lines: list[str] = []
    if large.is_manifest(item) or not payload.startswith(PICKLE):
        return lines
    try:
        for opcode, argument, place in islice(pickletools.genops(payload), limit + 1):
            if len(lines) == limit:
                lines.append("…")
                break
            shown = "" if argument is None else f" {repr(argument)[:_LONGEST_ARGUMENT]}"
            lines.append(printable(f"{place:>6} {opcode.name}{shown}"))
    except Exception as error:  # a broken pickle can cause any error
        lines.append(printable(f"cannot be read any further: {error}"))
    return lines


def printable(text: str) -> str:
    """Replace all characters that a terminal would not show as themselves."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
