"""Name the attributes of the standard library's queues that a queue at a broker does not have."""

from __future__ import annotations

from typing import NoReturn

from ..exceptions import ArgumentTypeError


class Absent:
    """An attribute that programs look for, and that is missing; ``instead`` names another way."""

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"a {owner.__name__} has no {self._name}: {self._instead}")

    def __set__(self, instance: object, value: object) -> NoReturn:
        self.__get__(instance, type(instance))


#: The methods that ``queue.Queue`` and ``asyncio.Queue`` call for each item, to be overridden.
_HOOKS = ("_init", "_qsize", "_put", "_get")


def refuse_hooks(kind: type) -> None:
    """Raise ArgumentTypeError for a class that overrides a method that is never called here."""
    found = [hook for hook in _HOOKS if hasattr(kind, hook)]
    if found:
        raise ArgumentTypeError(
            f"class {kind.__name__} defines {', '.join(found)}, which a queue at a broker does not "
            "call: override put() and get(), or use LifoQueue, PriorityQueue or FairQueue for "
            "another order"
        )
