"""Read pickles without unpickling: no code of theirs runs.

:func:`read` follows the opcodes, as :mod:`pickletools` names them, and builds values of the
language's own kinds. In the place of an object it has an :class:`Unmade`, which names the callable
that unpickling would call.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: A pickle with more opcodes, or with more values in it, is not read: it would take long to show. A
#: few opcodes can put a value, such as a long text, into others over and over.
_MOST_OPCODES = 20_000
_MOST_VALUES = 100_000
_MOST_CHARACTERS = 1 << 24


class UnreadablePickle(ValueError):
    """The bytes are no pickle, or a pickle that is too long or has opcodes that are not read
    here."""


@dataclass
class Unmade:
    """An object that unpickling would make: by a callable with that name, of these arguments."""

    name: str
    args: Any = None
    state: Any = None

    def __repr__(self) -> str:
        inside = "" if self.args is None else repr(self.args)
        if not inside.startswith("("):
            inside = f"({inside})"
        state = "" if self.state is None else f" with state {self.state!r}"
        return f"<{self.name}{inside.replace(',)', ')')}{state}>"

    __hash__ = object.__hash__


class _Mark:
    """Marks the beginning of a sequence on the stack."""


_MARK = _Mark()

_MAKE_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}
_OF_ARGUMENT = (
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_IGNORED = ("PROTO", "FRAME")


def read(pickled: bytes) -> Any:
    """Return the value in a pickle. Raises UnreadablePickle."""
    reader = _Reader()
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
            if number > _MOST_OPCODES:
                raise UnreadablePickle("it is too long")
            if opcode.name == "STOP":
                _check_size(reader.stack[-1])
                return reader.stack[-1]
            reader.do(opcode.name, argument)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, UnicodeError) as error:
        raise UnreadablePickle(str(error)) from error
    raise UnreadablePickle("it has no end")


def makes(pickled: bytes, name: str) -> bool:
    """Tell whether the pickle makes an object of the class with that name, as far as this module
    can read the pickle."""
    reader = _Reader()
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name in ("NEWOBJ", "NEWOBJ_EX", "REDUCE"):
                depth = 3 if opcode.name == "NEWOBJ_EX" else 2
                if reader.stack[-depth].name == name:
                    return True
            if opcode.name != "STOP":
                reader.do(opcode.name, argument)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, UnicodeError):
        pass  # no pickle, or one with opcodes that are not read here
    return False


def _check_size(value: Any) -> None:
    """Raise UnreadablePickle for a value of too many parts, such as a value that contains
    itself."""
    waiting, number, characters = [value], 0, 0
    while waiting:
        one = waiting.pop()
        number += 1
        characters += len(one) if isinstance(one, (str, bytes, bytearray)) else 0
        if number > _MOST_VALUES or characters > _MOST_CHARACTERS:
            raise UnreadablePickle("it is too long")
        if isinstance(one, dict):
            waiting += (*one, *one.values())
        elif isinstance(one, Unmade):
            waiting += (one.args, one.state)
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one


def is_plain(value: Any) -> bool:
    """Tell whether a value that was read has no Unmade in it."""
    if isinstance(value, Unmade):
        return False
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(of) for key, of in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(is_plain, value))
    return True


class _Reader:
    """The stack and the memo of the machine whose program a pickle is."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def do(self, name: str, argument: Any) -> None:
        """Do one opcode. Raises UnreadablePickle for an opcode that is not read here."""
        stack = self.stack
        if name in _IGNORED:
            return
        if name in _OF_ARGUMENT:
            stack.append(argument)
        elif name in _MAKE_EMPTY:
            stack.append(_MAKE_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif not (self._collect(name) or self._make(name, argument)):
            raise UnreadablePickle(f"it uses {name}")

    def _collect(self, name: str) -> bool:
        stack = self.stack
        match name:
            case "APPEND":
                item = stack.pop()
                self._contents(list).append(item)
            case "APPENDS":
                items = self._marked()
                self._contents(list).extend(items)
            case "ADDITEMS":
                items = self._marked()
                stack[-1].update(items)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                self._contents(dict)[key] = value
            case "SETITEMS":
                items = self._marked()
                self._contents(dict).update(zip(items[::2], items[1::2], strict=True))
            case "TUPLE":
                stack.append(tuple(self._marked()))
            case "LIST":
                stack.append(self._marked())
            case "DICT":
                items = self._marked()
                stack.append(dict(zip(items[::2], items[1::2], strict=True)))
            case "FROZENSET":
                stack.append(frozenset(self._marked()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                number = int(name[-1])
                stack[-number:] = [tuple(stack[-number:])]
            case "POP":
                stack.pop()
            case "POP_MARK":
                self._marked()
            case _:
                return False
        return True

    def _make(self, name: str, argument: Any) -> bool:
        stack = self.stack
        match name:
            case "GLOBAL":
                stack.append(Unmade(argument.replace(" ", ".")))
            case "STACK_GLOBAL":
                attribute, module = stack.pop(), stack.pop()
                stack.append(Unmade(f"{module}.{attribute}"))
            case "REDUCE" | "NEWOBJ":
                args, what = stack.pop(), stack.pop()
                stack.append(Unmade(what.name, args))
            case "NEWOBJ_EX":
                kwargs, args, what = stack.pop(), stack.pop(), stack.pop()
                stack.append(Unmade(what.name, (*args, kwargs) if kwargs else args))
            case "BUILD":
                state = stack.pop()
                stack[-1].state = state
            case "PERSID" | "BINPERSID":
                stack.append(Unmade("persistent", argument if name == "PERSID" else stack.pop()))
            case "NEXT_BUFFER":
                stack.append(Unmade("buffer"))
            case "READONLY_BUFFER":
                pass
            case _:
                return False
        return True

    def _contents(self, kind: Callable[[], Any]) -> Any:
        """Return the part of a value that items are added to: a collection, or an Unmade's."""
        one = self.stack[-1]
        if not isinstance(one, Unmade):
            return one
        if one.state is None:
            one.state = kind()
        return one.state

    def _marked(self) -> list[Any]:
        at = len(self.stack) - 1
        while not isinstance(self.stack[at], _Mark):
            at -= 1
            if at < 0:
                raise UnreadablePickle("a sequence has no beginning")
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items
