"""A delivery of one queue that a put on another queue settles, in the same step."""

from __future__ import annotations

from typing import Any

from ..engines.contract.session import AsyncSessionIn, Binding, Neighbour, SessionIn, is_local
from ..exceptions import ArgumentError
from ..operations.settling import Settling


class Forwarding:
    """What ``forward()`` gives to the put of the other queue in place of a connection: the put then
    waits as it does without one."""

    def __init__(self, source: Any, settling: Settling) -> None:
        """``source`` is the attachment of the queue from which the delivery is."""
        self._source, self._settling = source, settling

    def session(self, target: Any) -> SessionIn:
        """Begin to put, in a thread. Raises ArgumentError."""
        from .forward_sessions import Delivery, ForwardSession  # few programs need it

        binding = self._checked(target, target.attached())
        delivery = Delivery(self._source.binding, self._settling)
        return ForwardSession(delivery, binding.session())

    def asession(self, target: Any, binding: Binding) -> AsyncSessionIn:
        """Begin to put, in an asyncio task. Raises ArgumentError."""
        from .forward_sessions import AsyncForwardSession, Delivery

        binding = self._checked(target, binding)
        delivery = Delivery(self._source.binding, self._settling)
        return AsyncForwardSession(delivery, binding.asession())

    def _checked(self, target: Any, binding: Binding) -> Binding:
        """Return the binding of the other queue if both can change in one step. Else raises
        ArgumentError."""
        source = self._source
        here = source.binding
        if isinstance(binding, Neighbour) and binding.is_beside(here):
            return binding
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
