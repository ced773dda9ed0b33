"""Queues that serve in another order than first in, first out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..effects import Operation
from ..encoding import sort_keys
from ..engines.contract.levels import Level
from ..engines.contract.queues import How
from ..exceptions import ArgumentError, ArgumentTypeError
from ..hidden import hide_in
from ..numeric import integer
from ..operations.fair import FairOperations
from ..operations.objects import ObjectOperations
from .arguments import ask_for_name
from .defaults import Default
from .item import Item
from .options import QueueOptions
from .queues import Queue

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

#: The bound of a FairQueue, unless another is given; its reference has the same.
DEFAULT_FAIR_MAXSIZE = 128

FAIR_MAXSIZE: Any = Default(DEFAULT_FAIR_MAXSIZE)
#: What ``qsize`` counts the items of, if no key is stated: None is a key like any other.
ALL_KEYS: Any = Default("all")


class _OrderedQueue(Queue[Item]):
    """What the queues of other orders share."""

    _levels: tuple[Level, ...] = (Level.ITEMS, Level.DELIVERIES)

    def _orders(self, items: Sequence[Item]) -> list[bytes]:
        return [self._order(item) for item in items]


class LifoQueue(_OrderedQueue[Item]):
    """A last-in, first-out queue that processes on any machine share (``queue.LifoQueue``).

    Get returns the item that was put last. A negative timeout raises ValueError. Everything else is
    as in :class:`Queue`. Clients of the pressure protocol in other languages cannot use it.
    """

    _refuses_negative_timeouts = True

    def _make_operations(self) -> ObjectOperations:
        return ObjectOperations(self._name, "lifo")


class PriorityQueue(_OrderedQueue[Item]):
    """A queue that serves the lowest priority first (``queue.PriorityQueue``).

    A priority is None, a bool, int, float, str, bytes, or a tuple or list of these; priorities are
    compared as Python compares them. Items of equal priority are served in the order in which they
    were put. Without ``key``, an item is its own priority: a number, or a tuple such as
    ``(number, text)``. In a tuple whose later members cannot be priorities, as in
    ``(number, job)``, only the members before those count.

    A negative timeout raises ValueError. Everything else is as in :class:`Queue`. Clients of the
    pressure protocol in other languages cannot use it.
    """

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
        self._key = _check_callable("key", key)
        super().__init__(maxsize, name, **hide_in(options))

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

    def put(
        self,
        item: Item,
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put ``item`` into the queue by its priority; the rest is as in :meth:`Queue.put`.

        Also raises ArgumentTypeError, a TypeError, when the item has no priority, or one that
        Python cannot compare with a priority that is queued (a str and an int, for example); and
        ArgumentError for nan. Then nothing was queued. With ``connection``, the commit fails if an
        item whose priority cannot be compared with this one's is queued by then.
        """
        super().put(item, block, timeout, connection=connection)

    def _order(self, item: Item) -> bytes:
        if self._key is not None:
            return sort_keys.encode(self._key(item))
        try:
            return sort_keys.encode_item(item)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(
                f"an item for queue {self._name!r} has no priority: {error}; "
                "PriorityQueue(key=...) tells it"
            ) from None

    def _make_operations(self) -> ObjectOperations:
        return ObjectOperations(self._name, "priority")


class Snapshot(NamedTuple):
    """The items of a fair queue at one moment: what :meth:`FairQueue.snapshot` returns.

    ``current`` has the items of the current round that are not yet got, in the order in which they
    will be. ``waiting`` has for each key the items of later rounds, the oldest first. ``is_whole``
    is False when items are missing because of the ``limit``.
    """

    current: list[Any]
    waiting: dict[Any, list[Any]]
    is_whole: bool


class FairQueue(_OrderedQueue[Item]):
    """A queue that serves keys in turn, however many items one of them has queued.

    Each item has a key, such as a tenant. In each round, one item of every key that has items
    queued is served (or as many as the key's ``weight`` says), the oldest first; then the next
    round begins. So the next item of a key waits for less than two rounds: for at most two items of
    each other key (of weight 1). Items of one key are served in the order in which they were put.
    Nothing is stored for a key that has no items queued.

    Everything else is as in :class:`Queue`. Clients of the pressure protocol in other languages
    cannot use it.
    """

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
        if key is None:
            raise ArgumentTypeError(
                "a FairQueue needs a key: a callable that returns the key of an item"
            )
        self._key = _check_callable("key", key)
        self._weight = _check_callable("weight", weight)
        super().__init__(0 if maxsize is None else maxsize, name, **hide_in(options))

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
        """Create a queue, as :meth:`Queue.create`; the other arguments are those of the class."""
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
        """Attach to a queue, as :meth:`Queue.attach`; other arguments are those of the class."""
        own = {"key": key, "weight": weight}
        return cls._insist(How.ATTACH, maxsize=maxsize, name=name, **own, **hide_in(options))

    def put(
        self,
        item: Item,
        block: bool = True,
        timeout: float | None = None,
        *,
        connection: object | None = None,
    ) -> None:
        """Put ``item`` into the queue, behind those of its key; the rest is as in
        :meth:`Queue.put`.

        When it raises Full, the error's ``item`` is the item, and ``current_size`` is how many
        items were queued. Also raises ArgumentTypeError, a TypeError, for a value that cannot be a
        key or a weight, and ArgumentError for nan as a key or a weight below 1. Then nothing was
        queued.
        """
        super().put(item, block, timeout, connection=connection)

    def snapshot(self, limit: int = 1000) -> Snapshot:
        """The next items, at most ``limit`` of them, as they are queued at one moment.

        It is for monitoring: the items stay in the queue. Waits for no other client. Raises
        ArgumentError for a limit below 1; and what :meth:`get` raises for an item that cannot be
        decoded, which stays queued, or for a large item that was got meanwhile.
        """
        return self._run(self._snapshot(limit))

    def _snapshot(self, limit: int) -> Operation[Snapshot]:
        limit = integer("limit", limit, 1)
        picture, objects = yield from self._fair.snapshot_objects(limit)
        current = objects[: picture.current]
        waiting: dict[Any, list[Any]] = {}
        keys = [sort_keys.decode(key) for key, _ in picture.items]
        for key, one in list(zip(keys, objects, strict=True))[picture.current :]:
            waiting.setdefault(key, []).append(one)
        return Snapshot(current, waiting, picture.length <= limit)

    def keys(self) -> list[Any]:
        """The keys that have items queued, at one moment, in no particular order.

        A key that is a whole number is returned as an int, also when it was put as a float or a
        bool. Waits for no other client.
        """
        return self._run(self._keys())

    def _keys(self) -> Operation[list[Any]]:
        keys = yield from self._fair.keys()
        return [sort_keys.decode(key) for key in keys]

    def qsize(self, *, key: Any = ALL_KEYS) -> int:
        """How many items are queued, at one moment; with ``key=``, how many of that key.

        Waits for no other client. Raises ArgumentTypeError for what cannot be a key.
        """
        if key is ALL_KEYS:
            return super().qsize()
        return self._run(self._queued(key))

    def _queued(self, key: Any) -> Operation[int]:
        return self._fair.queued(_encode_key(key))

    def _order(self, item: Item) -> bytes:
        assert self._key is not None
        key = self._key(item)
        what = f"the weight of key {key!r}"
        weight = 1 if self._weight is None else integer(what, self._weight(key), 1)
        if weight >= 2**31:
            raise ArgumentError(f"{what} is {weight}; it must be less than 2**31")
        return b"%d %b" % (weight, _encode_key(key))

    @property
    def _fair(self) -> FairOperations:
        assert isinstance(self._operations, FairOperations)
        return self._operations

    def _make_operations(self) -> ObjectOperations:
        return FairOperations(self._name)


def _encode_key(key: Any) -> bytes:
    try:
        hash(key)
    except TypeError:
        raise ArgumentTypeError(
            f"a {type(key).__name__} cannot be the key of an item: {key!r}; it can be None, a "
            "bool, int, float, str, bytes, or a tuple of these"
        ) from None
    return sort_keys.encode(key)


def _check_callable(name: str, given: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if given is not None and not callable(given):
        raise ArgumentTypeError(
            f"{name} is a callable, not {type(given).__name__}{ask_for_name(given)}"
        )
    return given
