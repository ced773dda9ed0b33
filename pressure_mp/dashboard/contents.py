"""Show an item on a page: nothing is unpickled, and nothing is longer than a screen."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from ..encoding.display import content_of, opcodes_of
from .markup import Markup, element

#: The most bytes of an item that is read, and the most characters and opcodes that are shown.
_LARGEST, _LONGEST, _MOST_OPCODES = 1 << 18, 2_000, 200


def mark_of(item: bytes) -> str:
    """Return a text that identifies an item that was set aside."""
    return hashlib.sha256(item).hexdigest()


def signatures(items: Iterable[bytes], are_shown: bool) -> Markup | None:
    """Say with which keys items claim to be signed, if any does and they ``are_shown``."""
    keys = Counter(content_of(one).key for one in items if are_shown and len(one) <= _LARGEST)
    signed = {key: number for key, number in keys.items() if key is not None}
    if not signed:
        return None
    parts = [f"{number:,} with key {key}" for key, number in signed.items()]
    if len(keys) == 1:
        parts = [f"all with key {key}" for key in signed]
    elif None in keys:
        parts.append(f"{keys[None]:,} not")
    return element(
        "p", f"Signed: {', '.join(parts)}. Signatures are not checked here.", class_="note"
    )


def show(item: bytes, is_shown: bool) -> Markup:
    """Show an item; unless it ``is_shown``, only its size."""
    if not is_shown:
        return element("span", f"{len(item):,} bytes, hidden", class_="note")
    if len(item) > _LARGEST:
        return element("span", f"{len(item):,} bytes: too large for a page", class_="note")
    content = content_of(item)
    text = content.unsigned
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
