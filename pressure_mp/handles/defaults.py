"""Options that the program did not state."""

from __future__ import annotations

from typing import Any


class Default:
    """Stands for an option that was not stated: a queue is created with its ``value``, and an
    existing queue may have any other."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def chosen(option: Any) -> Any:
    """Return the value of an option, stated or not."""
    return option.value if isinstance(option, Default) else option


def is_stated(option: Any) -> bool:
    """Tell whether the program stated it."""
    return not isinstance(option, Default)
