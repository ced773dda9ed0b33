"""Hide secrets from tools that show a traceback's local variables: these tools show a repr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex, TypeVar, cast

Given = TypeVar("Given", bound=Mapping[str, object])

_SHOWN = "********"


class Hidden(str):
    """A str, such as a password, or a URL with a password. Its repr shows nothing of it, and
    neither does the repr of a part: some tools cut a long str before they show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _SHOWN

    def __getitem__(self, key: SupportsIndex | slice) -> Hidden:
        return Hidden(super().__getitem__(key))


class HiddenBytes(bytes):
    """Bytes whose repr shows as little as that of :class:`Hidden`."""

    def __repr__(self) -> str:
        return _SHOWN

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return HiddenBytes(found) if isinstance(found, bytes) else found


def hide(secret: Any) -> Any:
    """Return the same value, of a type that does not print. Lists and tuples are hidden one by one;
    a value of another type than str and bytes stays as it is."""
    if isinstance(secret, str):
        return Hidden(secret)
    if isinstance(secret, bytes):
        return HiddenBytes(secret)
    if type(secret) in (list, tuple):
        return type(secret)(map(hide, secret))
    return secret


def hide_in(options: Given) -> Given:
    """Hide the secret options of a handle or a connection, in place; return the same dict."""
    values = cast(dict[str, Any], options)
    for name, value in values.items():
        if name in ("url", "authkey") or "password" in name:
            values[name] = hide(value)
    return options


def without_frames(error: BaseException) -> BaseException:
    """Return the error without its traceback and the tracebacks of its causes: the frames of other
    packages have a password in other forms, such as a packed command."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += [one.__cause__, one.__context__]
    return error
