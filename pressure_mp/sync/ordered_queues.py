"""Queues that serve in another order than first in, first out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..effects import Operation
from ..encoding import sort_keys
from ..engines.contract.levels import Level
from ..engines.contract.queues import How
from ..handles.defaults import Default
from ..handles.item import Item
from ..handles.objects import ObjectAttachment
from ..handles.options import QueueOptions
from ..handles.orders import ByKey, ByPriority, encode_key
from ..hidden import hide_in
from ..numeric import integer
from ..operations.fair import FairOperations
from ..operations.objects import ObjectOperations
from .object_queue import in_all
from .queues import Queue

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

#: The bound of a FairQueue, unless another is given; its reference has the same.
DEFAULT_FAIR_MAXSIZE = 128

FAIR_MAXSIZE: Any = Default(DEFAULT_FAIR_MAXSIZE)
#: What ``qsize`` counts the items of, if no key is stated: None is a key like any other.
ALL_KEYS: Any = Default("all")


class LifoQueue(Queue[Item]):
    """A last-in, first-out queue that processes on any machine share (``queue.LifoQueue``).

    Get returns the item that was put last. A negative timeout raises ValueError. Everything else is
    as in :class:`Queue`. Clients of the pressure protocol in other languages cannot use it.
    """

    _make_operations = staticmethod(partial(ObjectOperations, discipline="lifo"))
    _levels: tuple[Level, ...] = (Level.ITEMS, Level.DELIVERIES)
    _refuses_negative_timeouts = True


class PriorityQueue(Queue[Item]):
    """A queue that serves the lowest priority first (``queue.PriorityQueue``).

    A priority is None, a bool, int, float, str, bytes, or a tuple or list of these; priorities are
    compared as Python compares them. Items of equal priority are served in the order in which they
    were put. Without ``key``, an item is its own priority: a number, or a tuple such as
    ``(number, text)``. In a tuple whose later members cannot be priorities, as in
    ``(number, job)``, only the members before those count.

    ``put`` also raises ArgumentTypeError, a TypeError, when the item has no priority, or one that
    Python cannot compare with a priority that is queued (a str and an int, for example); and
    ArgumentError for nan. Then nothing was queued. With ``connection``, the commit fails if an item
    whose priority cannot be compared with this one's is queued by then.

    A negative timeout raises ValueError. Everything else is as in :class:`Queue`. Clients of the
    pressure protocol in other languages cannot use it.
    """

    _make_operations = staticmethod(partial(ObjectOperations, discipline="priority"))
    _levels: tuple[Level, ...] = (Level.ITEMS, Level.DELIVERIES)
    _refuses_negative_timeouts = True

    def __init__(
        self,
        maxsize: int = 0,
        name: str | None = None,
        *,
        key: Callable[[Item], Any] | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """Attach to the queue or create it, as for :class:`Queue`.

        :param key: a callable that is given an item and returns its priority, for items that are
            not priorities themselves. ``put`` calls it, in the thread that puts. It is pickled with
            the handle; so, if the handle is pickled, it must be a function of a module, not a
            lambda.
        """
        self._order = ByPriority(key)
        super().__init__(maxsize, name, **hide_in(options))
        del self._order  # the attachment has it

    @classmethod
    def create(
        cls,
        name: str,
        maxsize: int = 0,
        *,
        key: Callable[[Item], Any] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        """Create a queue, as :meth:`Queue.create`; ``key`` is that of the class."""
        return cls._insist(How.CREATE, maxsize=maxsize, name=name, key=key, **hide_in(options))

    @classmethod
    def attach(
        cls,
        name: str,
        maxsize: int = 0,
        *,
        key: Callable[[Item], Any] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        """Attach to a queue, as :meth:`Queue.attach`; ``key`` is that of the class."""
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, key=key, **hide_in(options))


class Snapshot(NamedTuple):
    """The items of a fair queue at one moment: what :meth:`FairQueue.snapshot` returns.

    ``current`` has the items of the current round that are not yet got, in the order in which they
    will be. ``waiting`` has for each key the items of later rounds, the oldest first. ``is_whole``
    is False when items are missing because of the ``limit``.
    """

    current: list[Any]
    waiting: dict[Any, list[Any]]
    is_whole: bool


class FairQueue(Queue[Item]):
    """A queue that serves keys in turn, however many items one of them has queued.

    Each item has a key, such as a tenant. In each round, one item of every key that has items
    queued is served (or as many as the key's ``weight`` says), the oldest first; then the next
    round begins. So the next item of a key waits for less than two rounds: for at most two items of
    each other key (of weight 1). Items of one key are served in the order in which they were put.
    Nothing is stored for a key that has no items queued.

    When ``put`` raises Full, the error's ``item`` is the item, and ``current_size`` is how many
    items were queued. It also raises ArgumentTypeError, a TypeError, for a value that cannot be a
    key or a weight, and ArgumentError for nan as a key or a weight below 1. Then nothing was
    queued.

    Everything else is as in :class:`Queue`. Clients of the pressure protocol in other languages
    cannot use it.
    """

    _make_operations = FairOperations
    _levels = (Level.ITEMS, Level.DELIVERIES, Level.ADMINISTRATION)

    def __init__(
        self,
        key: Callable[[Item], Any],
        maxsize: int | None = FAIR_MAXSIZE,
        name: str | None = None,
        *,
        weight: Callable[[Any], int] | None = None,
        **options: Unpack[QueueOptions],
    ) -> None:
        """Attach to the queue or create it, as for :class:`Queue`; these arguments differ.

        :param key: a callable that is given an item and returns its key: None, a bool, int, float,
            str, bytes, or a tuple of these. None is a key like any other.
        :param maxsize: the bound: how many items the queue holds before a put waits; 128 if it is
            not stated. None or 0 means no bound. If it is stated, an existing queue must have this
            bound; None or 0 attaches to any.
        :param weight: a callable that is given a key and returns how many of its items are served
            in a round, 1 or more. Without it every key has the weight 1.

        ``put`` calls ``key`` and ``weight``, in the thread that puts. They are pickled with the
        handle; so, if the handle is pickled, they must be functions of a module, not lambdas.
        """
        self._order = ByKey(key, weight)
        super().__init__(0 if maxsize is None else maxsize, name, **hide_in(options))
        del self._order  # the attachment has it

    @classmethod
    def create(  # type: ignore[override]  # a FairQueue needs a key
        cls,
        name: str,
        maxsize: int | None = FAIR_MAXSIZE,
        *,
        key: Callable[[Item], Any],
        weight: Callable[[Any], int] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        """Create a queue, as :meth:`Queue.create`, with the other arguments of the class."""
        own = {"key": key, "weight": weight}
        return cls._insist(How.CREATE, maxsize=maxsize, name=name, **own, **hide_in(options))

    @classmethod
    def attach(  # type: ignore[override]
        cls,
        name: str,
        maxsize: int | None = FAIR_MAXSIZE,
        *,
        key: Callable[[Item], Any],
        weight: Callable[[Any], int] | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self:
        """Attach to a queue, as :meth:`Queue.attach`, with the other arguments of the class."""
        own = {"key": key, "weight": weight}
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, **own, **hide_in(options))

    def snapshot(self, limit: int = 1000) -> Snapshot:
        """The next items, at most ``limit`` of them, as they are queued at one moment.

        It is for monitoring: the items stay in the queue. Waits for no other client. Raises
        ArgumentError for a limit below 1; and what :meth:`get` raises for an item that cannot be
        decoded, which stays queued, or for a large item that was got meanwhile.
        """
        return self._run(_look(_fair(self._at), integer("limit", limit, 1)))

    def keys(self) -> list[Any]:
        """The keys that have items queued, at one moment, in no particular order.

        A key that is a whole number is returned as an int, also when it was put as a float or a
        bool. Waits for no other client.
        """
        return self._run(_keys(_fair(self._at)))

    def qsize(self, *, key: Any = ALL_KEYS) -> int:
        """How many items are queued, at one moment; with ``key=``, how many of that key.

        Waits for no other client. Raises ArgumentTypeError for what cannot be a key.
        """
        if key is ALL_KEYS:
            return self._count(self._at.operations.length(), in_all)
        return self._run(_fair(self._at).queued(encode_key(key)))


def _look(operations: FairOperations, limit: int) -> Operation[Snapshot]:
    picture, objects = yield from operations.snapshot_objects(limit)
    current = objects[: picture.current]
    waiting: dict[Any, list[Any]] = {}
    keys = [sort_keys.decode(key) for key, _ in picture.items]
    for key, one in list(zip(keys, objects, strict=True))[picture.current :]:
        waiting.setdefault(key, []).append(one)
    return Snapshot(current, waiting, picture.length <= limit)


def _keys(operations: FairOperations) -> Operation[list[Any]]:
    keys = yield from operations.keys()
    return [sort_keys.decode(key) for key in keys]


def _fair(queue: ObjectAttachment) -> FairOperations:
    assert isinstance(queue.operations, FairOperations)
    return queue.operations
