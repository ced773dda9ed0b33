"""The table of an engine: for each type of request, the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

#: The parameters of the function before the request, and behind it.
S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
Result = TypeVar("Result")


class Implementations(dict[type, Callable[..., Any]], Generic[S, P]):
    """The functions of an engine, by the types of the requests that they do.

    The decorator :meth:`does` stands at each function, and adds it when its module is imported.
    """

    def does(
        self, kind: type[R]
    ) -> Callable[[Callable[Concatenate[S, R, P], Result]], Callable[Concatenate[S, R, P], Result]]:
        """Note that the decorated function does requests of this type."""

        def note(
            function: Callable[Concatenate[S, R, P], Result],
        ) -> Callable[Concatenate[S, R, P], Result]:
            assert kind not in self, f"two functions do {kind.__name__}"
            self[kind] = function
            return function

        return note
