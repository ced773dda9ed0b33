"""The options of handles, each one's name, type and default in one place.

The signatures of the classes, and the checks of given options, are made of these. The docstrings of
:class:`pressure_mp.Queue` and :class:`pressure_mp.TaskQueue` say the meaning of each.
"""

# Without ``from __future__ import annotations``: these annotations are read at run time.

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, cast

from ..engines.contract.session import DEFAULTS
from ..hidden import hide_in

if TYPE_CHECKING:
    from inspect import Parameter, Signature

    from ..encoding.serializers import Serializer
    from ..encoding.signing import AuthKey

Kind = TypeVar("Kind", bound="ConnectionOptions")

#: How a new task gets its id.
IdKind = str | Callable[[], int | str]


class ConnectionOptions(TypedDict, total=False):
    """Where a queue's broker is, and how a handle deals with it."""

    url: Annotated[str | None, None]
    host: Annotated[str | None, None]
    port: Annotated[int | None, None]
    db: Annotated[int | None, None]
    prefix: Annotated[str | None, None]
    lease: Annotated[float, 5.0]
    reconnect: Annotated[float, DEFAULTS.reconnect]
    durability: Annotated[str | None, None]


class ObjectOptions(ConnectionOptions, total=False):
    """The options of a connection, and of the conversion of objects to bytes."""

    serializer: Annotated["str | Serializer", "pickle"]
    authkey: Annotated["AuthKey | None", None]


class QueueOptions(ObjectOptions, total=False):
    """The options of every queue of items."""

    eof: Annotated[Literal["producers"] | None, None]
    buffering: Annotated[int | None, None]
    prefetch: Annotated[int | None, None]


class JoinableOptions(QueueOptions, total=False):
    """The options of a queue whose items are in flight until they are done."""

    max_deliveries: Annotated[int | None, None]


class RecordedOptions(TypedDict, total=False):
    """The options that the broker stores with a queue of tasks."""

    ttr: Annotated[float | None, None]
    ttl: Annotated[float | None, None]
    zombie: Annotated[float | bool | None, None]
    keep: Annotated[bool, False]
    max_deliveries: Annotated[int | None, 20]
    id: Annotated[IdKind, "time64"]
    per_key: Annotated[int | None, None]
    maxsize: Annotated[int, 0]


class TaskQueueOptions(RecordedOptions, ObjectOptions, total=False):
    """The options of a queue of tasks."""

    strict: Annotated[bool, False]


class TaskPutOptions(TypedDict, total=False):
    """The options of each put of a task."""

    block: bool
    timeout: float | None
    delay: float | None
    ttl: float | None
    priority: float
    tube: str | None
    key: str | None
    id: int | str | None
    result_ttl: float | None


class UniqueTaskOptions(TaskPutOptions, total=False):
    """The options of a put of a task that is not waited for."""

    unique: str | None
    on_conflict: Literal["skip", "replace", "error"]
    for_: float | None


class ForwardOptions(UniqueTaskOptions, total=False):
    """The options of the put of a ``forward()``: on a queue of items these are the first two."""

    inbox: Any


def read(kind: type[Kind], given: Kind, handle: object) -> Kind:
    """Return all options of a kind: the given ones, and the defaults of the rest.

    Raises TypeError for an option that the kind does not have.
    """
    options: dict[str, Any] = kind.__annotations__
    for name in hide_in(given):
        if name not in options:
            owner = type(handle).__name__
            raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}")
    defaults = {name: option.__metadata__[0] for name, option in options.items()}
    return cast(Kind, {**defaults, **given})


class SignatureOf:
    """The ``__signature__`` of a class: that of its ``__init__``, with every option by name.

    It is made when it is asked for: the module that does it takes long to import.
    """

    def __init__(self, kind: type[Any]) -> None:
        self._kind = kind

    def __get__(self, handle: object, owner: type) -> "Signature":
        from inspect import signature

        own = signature(owner.__init__)  # type: ignore[misc]
        _, *parameters = own.parameters.values()
        if parameters and parameters[-1].annotation == f"Unpack[{self._kind.__name__}]":
            parameters[-1:] = self._parameters()
        return own.replace(parameters=parameters)

    def _parameters(self) -> "list[Parameter]":
        from inspect import Parameter

        return [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=option.__metadata__[0],
                annotation=getattr(option.__origin__, "__forward_arg__", option.__origin__),
            )
            for name, option in self._kind.__annotations__.items()
        ]
