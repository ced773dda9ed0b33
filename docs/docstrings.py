"""Docstrings for mkdocstrings: their roles of reStructuredText become links of Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

import pressure_mp

ROLE = re.compile(r":(?:class|meth|func|mod|attr|data|exc):`~?\.*([^`]+)`")


class Docstrings(griffe.Extension):
    """Rewrites each docstring when it was read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """A part of a module was read."""
        if obj.docstring is not None:
            obj.docstring.value = in_markdown(obj.docstring.value)


def in_markdown(text: str) -> str:
    """A docstring with the links of Markdown."""
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)  # before an example
    return ROLE.sub(link, text.replace("``", "`"))


def link(role: re.Match[str]) -> str:
    """What a role refers to, as a link if it has a place in the reference."""
    name = role[1]
    shown = name.rpartition(".")[2] if name.startswith("pressure_mp.") else name
    return f"[`{shown}`][{name}]" if is_documented(name) else f"`{shown}`"


def is_documented(name: str) -> bool:
    """Whether the reference has it: what is exported, and the members of that."""
    package, *parts = name.split(".")
    found: Any = pressure_mp
    if package != "pressure_mp" or not parts or parts[0] not in pressure_mp.__all__:
        return False
    return all((found := getattr(found, part, None)) is not None for part in parts)
