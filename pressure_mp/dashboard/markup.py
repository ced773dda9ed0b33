"""Build HTML so that every text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import urlencode

#: Of HTML; in SVG every element is closed.
_EMPTY = {"br", "hr", "input", "link", "meta"}


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


#: The children of an element. A text is escaped; ``None`` and ``False`` are left out.
Child = str | int | None | Iterable["Child"]


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """Make an element. An attribute that is ``True`` has no value, and an attribute that is
    ``None`` or ``False`` is left out; ``class_`` is ``class``, and other underscores are
    hyphens."""
    shown = "".join(
        f" {_attribute(name)}" if value is True else f' {_attribute(name)}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{shown}>")
    return Markup(f"<{tag}{shown}>{join(children)}</{tag}>")


def join(children: Child) -> Markup:
    if children is None or children is False:
        return Markup()
    if isinstance(children, Markup):
        return children
    if isinstance(children, (str, int)):
        return Markup(escape(str(children)))
    return Markup("".join(map(join, children)))


def _attribute(name: str) -> str:
    return "viewBox" if name == "viewBox" else name.rstrip("_").replace("_", "-")


def link_to(page: str, /, **query: str | int | None) -> str:
    """Return the address of a page, relative to any other page: all are beside each other."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    # In a name that is no valid text, the invalid characters are replaced.
    return f"{page}?{urlencode(given, errors='replace')}" if given else page
