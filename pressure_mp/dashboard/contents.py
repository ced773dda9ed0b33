"""Show an item on a page: nothing is unpickled, and nothing is longer than a screen."""

from __future__ import annotations

import hashlib

from ..encoding.display import content_of, opcodes_of
from .markup import Markup, element

#: The most bytes of an item that is read, and the most characters and opcodes that are shown.
_LARGEST, _LONGEST, _MOST_OPCODES = 1 << 18, 2_000, 200


def mark_of(item: bytes) -> str:
    """Return a text that identifies an item that was set aside."""
    return hashlib.sha256(item).hexdigest()


def show(item: bytes, is_shown: bool) -> Markup:
    """Show an item; unless it ``is_shown``, only its size."""
    if not is_shown:
        return element("span", f"{len(item):,} bytes, hidden", class_="note")
    if len(item) > _LARGEST:
        return element("span", f"{len(item):,} bytes: too large for a page", class_="note")
    content = content_of(item)
    text = content.text
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    head = element("span", content.kind, class_="kind")
    opcodes = opcodes_of(item, _MOST_OPCODES)
    if not opcodes:
        return element("div", head, " ", element("code", text), class_="content")
    listed = element(
        "details",
        element("summary", "opcodes"),
        element("pre", "\n".join(opcodes)),
        id=f"opcodes-{mark_of(item)[:16]}",
    )
    return element("div", head, " ", element("code", text), listed, class_="content")
