"""The table of an engine: for each type of request, the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

#: The parameters of the function before the request, and behind it.
S = TypeVar("S")
Other = TypeVar("Other")
P = ParamSpec("P")
R = TypeVar("R")
Result = TypeVar("Result")


class Implementations(dict[type, Callable[..., Any]], Generic[S, P]):
    """The functions of an engine, by the types of the requests that they do.

    The decorator :meth:`does` stands at each function, and adds it when its module is imported.
    """

    def does(
        self, kind: type[R], also: Implementations[Other, P] | None = None
    ) -> Callable[
        [Callable[Concatenate[S | Other, R, P], Result]],
        Callable[Concatenate[S | Other, R, P], Result],
    ]:
        """Note that the decorated function does requests of this type; in another table, too, if
        ``also`` is one."""

        def note(
            function: Callable[Concatenate[S | Other, R, P], Result],
        ) -> Callable[Concatenate[S | Other, R, P], Result]:
            for table in (self, also):
                if table is not None:
                    assert kind not in table, f"two functions do {kind.__name__}"
                    table[kind] = function
            return function

        return note
