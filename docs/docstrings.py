"""Docstrings for mkdocstrings: their roles of reStructuredText become links of Markdown. A method
of asyncio that is made of a method for threads becomes a function with the docstring of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import griffe

import pressure_mp

#: In the source: a method that is made, and a class whose methods are documented elsewhere.
MADE = re.compile(r"awaited(?:_open)?\(([\w.]+)(?:\[.*\])?\.(\w+)\)")
AS_IN = re.compile(r"as_in\(([\w.]+)\)")
ROLE = re.compile(r":(?:class|meth|func|mod|attr|data|exc):`~?\.*([^`]+)`")


class Docstrings(griffe.Extension):
    """Rewrites each docstring when it was read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """A part of a module was read."""
        if obj.docstring is not None:
            obj.docstring.value = in_markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """The package was read."""
        for module in modules(pkg["aio"]):
            for kind in module.classes.values():
                if not kind.is_alias:
                    complete(kind)


def modules(module: griffe.Module) -> Iterator[griffe.Module]:
    """A module, and those in it."""
    yield module
    for other in module.modules.values():
        yield from modules(other)


def complete(kind: griffe.Class) -> None:
    """Give a class of asyncio what its source says of methods for threads."""
    named = [AS_IN.fullmatch(str(one.value)) for one in kind.decorators]
    twin = next((method_in(kind, one[1]) for one in named if one), None)
    for name, member in list(kind.members.items()):
        if member.is_attribute and (made := MADE.fullmatch(str(member.value))):
            there = method_in(kind, made[1])(made[2])
            kind.set_member(name, as_coroutine(there, member))
        elif member.is_function and member.docstring is None and twin and name[0] != "_":
            member.docstring = twin(name).docstring
            if any(str(one.value).startswith("signed_as(") for one in member.decorators):
                member.parameters = twin(name).parameters


def method_in(kind: griffe.Class, name: str) -> Callable[[str], griffe.Function]:
    """Find the methods of a class, by its name in the module of ``kind``."""
    package = kind.package
    path = kind.module.resolve(name.partition(".")[0])
    found = package[path.partition(".")[2]]
    for part in name.split(".")[1:]:
        found = found[part]
    return lambda method: found.all_members[method]


def as_coroutine(there: griffe.Function, here: griffe.Object) -> griffe.Function:
    """A method for threads as a method of asyncio, in the place of what is here."""
    made = griffe.Function(
        there.name,
        lineno=here.lineno,
        endlineno=here.endlineno,
        parameters=there.parameters,
        returns=there.returns,
        docstring=there.docstring,
    )
    made.labels.add("async")
    return made


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
