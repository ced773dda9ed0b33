"""A delivery of one queue that a put on another queue settles, in the same step."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..drivers import through
from ..effects import AnyOperation, Operation, T
from ..engines.contract.session import Binding, Neighbour, is_local
from ..exceptions import ArgumentError
from ..operations.settling import Settling


class Forwarding:
    """What ``forward()`` gives to the put of the other queue in place of a connection: the put then
    waits as it does without one."""

    def __init__(self, source: Any, settling: Settling) -> None:
        """``source`` is the attachment of the queue from which the delivery is."""
        self._source, self._settling = source, settling

    def settled_by(self, putting: AnyOperation[T], target: Any, binding: Binding) -> Operation[T]:
        """Return the operation that puts on ``target``, and settles the delivery in the same step.
        Raises ArgumentError if that is not possible."""
        from ..operations.forwarding import forward  # few programs need it

        self._check(target, binding)
        return through(putting, partial(forward, self._source.binding, self._settling))

    def _check(self, target: Any, binding: Binding) -> None:
        """Raise ArgumentError unless both queues can change in one step."""
        source = self._source
        here = source.binding
        if isinstance(binding, Neighbour) and binding.is_beside(here):
            return
        refused = (
            f"forward() from queue {source.name!r} to queue {target.name!r} is one step at a broker"
        )
        for queue, its in ((source, here), (target, binding)):
            if is_local(its):
                raise ArgumentError(
                    f"{refused}, and queue {queue.name!r}, which is anonymous, is in memory that "
                    "the processes of this host share: give it a name"
                )
        urls = source.address.url, target.address.url
        if urls[0] != urls[1]:
            raise ArgumentError(
                f"{refused}, and they are at {urls[0]} and {urls[1]}: have both at one server, "
                "database or file, which one URL names"
            )
        raise ArgumentError(
            f"{refused}, and at {urls[0]} they are in different hash slots: give both one prefix "
            "with a text in braces, such as prefix='{jobs}'"
        )
