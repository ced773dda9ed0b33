"""The Lua files: their headers say which keys and arguments they take and what they answer."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from importlib import resources

_HEADER = re.compile(r"^-- (keys|args|replies|uses|once|durable): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """One atomic operation."""

    name: str
    source: bytes
    sha: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    replies: tuple[str, ...]
    once: bool
    """Whether it takes one key and two arguments more, so that a repeated call does nothing."""

    durable: bool
    """Whether its effect is confirmed by replicas or the disk, where the handle asks for it."""

    @property
    def wants_connection(self) -> bool:
        """Whether the last argument is the id of the caller's connection."""
        return self.args[-1:] == ("conn",)


def parse(name: str, text: str, preludes: dict[str, str]) -> Script:
    """Read a file's header and put the preludes that it uses before it."""
    header = dict(_HEADER.findall(text))
    used = [preludes[prelude] for prelude in header.get("uses", "").split()]
    once = header.get("once") == "yes"
    if once:
        used.append(preludes["once"])
        text = f"local function operation()\n{text}\nend\nreturn once(operation)\n"
    source = "\n".join([*used, text]).encode()
    return Script(
        name=name,
        source=source,
        sha=hashlib.sha1(source, usedforsecurity=False).hexdigest(),
        keys=tuple(header["keys"].split()),
        args=tuple(header.get("args", "").split()),
        replies=tuple(reply.split()[0] for reply in header["replies"].split("|")),
        once=once,
        durable=header.get("durable") == "yes",
    )


@functools.cache
def load(discipline: str) -> dict[str, Script]:
    """Every script of a discipline, by the name of its operation."""
    root = resources.files(__package__) / "lua"
    preludes = _read(root / "prelude")
    return {name: parse(name, text, preludes) for name, text in _read(root / discipline).items()}


def _read(folder: resources.abc.Traversable) -> dict[str, str]:
    return {
        entry.name.removesuffix(".lua"): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".lua")
    }
