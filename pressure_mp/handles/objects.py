"""An attachment to a queue of Python objects: how they are put and got without a buffer."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .. import events, interrupts
from ..caller_warnings import warn_caller
from ..deadlines import deadline, seconds_left
from ..drivers import drive_on, noting
from ..effects import MORE, AnyOperation, Operation, T
from ..encoding.codec import Codec
from ..encoding.large import Large
from ..engines import registry
from ..engines.contract.replies import Outcome
from ..engines.contract.session import Binding, Engine, Options, is_local
from ..exceptions import (
    LateTaskDoneWarning,
    PressureError,
    QueueDoesNotExistError,
    RejectedItemWarning,
    TaskDoneError,
)
from ..identity.processes import incarnation
from ..in_flight import Asking, Claim
from ..operations.objects import ObjectOperations
from . import unsent
from .attachment import Traits, inheritable
from .forwarding import Forwarding
from .items import ItemAttachment
from .orders import Order

#: A get calls it before it returns; it looks at the descriptor of the handle.
Look = Callable[[], None]


class Buffering(NamedTuple):
    """How many items a handle may keep in this process."""

    #: How many items may wait to be sent; and whether the program or the environment said so.
    puts: int = 0
    is_stated: bool = False
    #: How many items may be prefetched.
    gets: int = 0
    #: Whether the only consumer reads ahead, unseen by other processes.
    reserves: bool = False


class ObjectAttachment(ItemAttachment):
    """An attachment to a queue of Python objects, from which an item is taken for good."""

    operations: ObjectOperations
    codec: Codec[Any]
    #: Whether a get ends when all producers have.
    eof = False
    order: Order = Order()
    buffering = Buffering()

    of_one_process = (*ItemAttachment.of_one_process, "kept", "readable", "before_get")

    def begin(self, traits: Traits) -> None:
        super().begin(traits)
        self.was_put_to = False
        self.kept: deque[Any] = deque()  # items of interrupted calls, for the next get
        #: Waits, until a time on the monotonic clock, for the items in this handle's buffer.
        self.before_get: Callable[[float | None], object] = _has_no_buffer
        self.readable: Any = None  # the descriptor of this handle, once a program asked for it
        if (codec := self.__dict__.get("codec")) is not None:  # it was unpickled
            self.use(codec)

    def use(self, codec: Codec[Any]) -> None:
        """Encode and decode items with this codec."""
        self.codec = self.operations.codec = codec
        if self.options.shares_memory:
            codec.sign_late()

    def decide_where_items_are(self) -> None:
        """Note for a new queue whether its items are in shared memory. The note stays the same in
        this handle, and in each process that inherits it: so each of them signs where the
        binding does not, also when the items were moved meanwhile."""
        binding = self.binding
        if self.options.shares_memory and not (is_local(binding) and binding.are_here):
            self.options = self.options._replace(shares_memory=False)
            self.binding = self.bind(registry.engine(self.address))
        if self.options.shares_memory:
            self.codec.sign_late()

    def bind(self, engine: Engine, options: Options | None = None) -> Binding:
        binding = super().bind(engine, options)
        if self.codec.is_signed and is_local(binding):
            binding.sign_with(self.codec.sign)
        return binding

    # Putting

    def putting(self, item: Any, block: bool, end: float | None) -> AnyOperation[None]:
        """Put an object at the broker."""
        order = self.order.of(item, self.name)
        return self.operations.put_object(item, block, seconds_left(end), order)

    def putting_many(self, given: list[Any], block: bool, end: float | None) -> Operation[None]:
        """Put objects at the broker. An error has those that are not there as ``rest``."""
        try:
            orders = self.order.of_all(given, self.name)
            yield from self.operations.put_objects(given, block, seconds_left(end), orders)
        except PressureError as error:
            error.rest = given[error.accepted :]
            raise

    def run_put(self, operation: AnyOperation[T], connection: object | None = None) -> T:
        """Run an operation that puts through this handle; with a ``connection``, in its
        transaction, which waits for no space."""
        self.was_put_to = True
        if self.eof:
            operation = self.operations.as_producer(self.here, self.token, operation)
        if connection is not None:
            return self.run_in(connection, operation)
        return self.run_on(self.settled_session(), operation)

    def put_in_memory(self, item: bytes | Large) -> bool:
        """Add an item to a queue in shared memory; False when the queue has no space or has moved,
        or while an item that this process put before is unsent."""
        if unsent.senders or type(item) is not bytes:
            return False
        self.was_put_to = True
        binding = self.binding
        return is_local(binding) and binding.put_here(item)

    def settle(self, end: float | None = None) -> None:
        """Wait until the items that this process put into the queue can be got, as far as there is
        space; until ``end`` on the monotonic clock."""
        self.before_get(end)
        if unsent.senders:
            unsent.settle(registry.engine(self.address), self.name, end)

    # Getting

    def get(self, block: bool, timeout: float | None) -> Any:
        """Take the next item at the broker, whatever was read ahead."""
        if block and timeout is None:
            return self.hand_out(self._get_one)
        return self.hand_out(partial(self._get_one, block=block, timeout=timeout))

    def get_many(
        self, limit: int, block: bool, timeout: float | None, look: Look | None = None
    ) -> list[Any]:
        """Take the next items at the broker. ``look`` is called when they are there; the items of
        a call that is interrupted then go back all the same."""

        def receive(claim: Any) -> list[Any]:
            found, problem = self._get_some(limit, block, timeout, claim)
            if problem is not None:
                warn_caller(str(problem), RejectedItemWarning)
            return found

        return self.hand_out(receive if look is None else self._looking(receive, look))

    def take_kept(self) -> list[Any]:
        """Take the first item of an interrupted call, if there is one. Raises HandleClosedError."""
        self.check_open()
        try:
            for item in interrupts.pops(self.kept):
                return [item]
        except IndexError:
            pass
        return []

    def _looking(self, receive: Callable[[Any], list[Any]], look: Look) -> Any:
        goes_back = self._goes_back

        def receive_and_look(claim: Any) -> list[Any]:
            found = receive(claim)
            if not goes_back:
                claim.found = found
            look()
            return found

        return receive_and_look

    @property
    def _goes_back(self) -> bool:
        """Whether the engine can take back the items of an interrupted get."""
        return self.address.capabilities.persistent

    def _give_up(self, claim: Any) -> None:
        if claim.found is None:
            super()._give_up(claim)
            return
        claim.interrupted()
        claim.end()
        inheritable.add(self)
        # No call from here on: each is kept once, by whichever call and thread that comes first.
        found, claim.found = claim.found, []
        self.kept += found

    def forget_parent(self) -> None:
        super().forget_parent()
        self.kept.clear()

    def get_noted(self, block: bool, timeout: float | None, note: Callable[[bool], None]) -> Any:
        """Take the next item at the broker; tell ``note`` when this begins to wait, and when it
        stops."""
        getting = noting(self.operations.get_object(block, timeout, self.eof), note)
        return self.hand_out(partial(self._getting, getting))

    def _get_one(self, claim: Any, block: bool = True, timeout: float | None = None) -> Any:
        return self._getting(self.operations.get_object(block, timeout, self.eof), claim)

    def _get_some(
        self, limit: int, block: bool, timeout: float | None, claim: Any
    ) -> tuple[list[Any], PressureError | None]:
        """Return objects; and the first error, if some could not be used."""
        return self._getting(self.operations.get_objects(limit, block, timeout, self.eof), claim)

    def _getting(self, operation: AnyOperation[T], claim: Any) -> T:
        """Run an operation that gets something for good, on the session that is the claim."""
        if self.eof:
            with self.here:
                return drive_on(operation, claim, self.while_open)
        return drive_on(operation, claim, self.while_waiting)

    def while_waiting(self) -> contextlib.AbstractContextManager[None]:
        """Requeue a dead process's items while a get waits. Raises HandleClosedError once the
        handle is closed."""
        always = self.while_open()
        return self.here if self.is_fifo else always


#: The errors after which an item is no longer in flight.
_DONE = (TaskDoneError, QueueDoesNotExistError, LateTaskDoneWarning)


class UntilDone(ObjectAttachment):
    """An attachment to a queue whose items are in flight from a get until ``task_done()``."""

    #: How often an item is delivered at most; 0 for no limit.
    max_deliveries = 0

    @property
    def _goes_back(self) -> bool:
        return True

    claim = staticmethod(Claim)

    def _give_up(self, claim: Claim) -> None:
        self.here.lease._give_up(claim)

    def _get_one(self, claim: Claim, block: bool = True, timeout: float | None = None) -> Any:
        if not (self.eof or events.listeners):  # as most gets are
            found = self._take_in_memory(claim)
            if found is not MORE:
                return found
            if block and timeout is None:
                taking = self.operations.take_object(self.here, claim, self.max_deliveries)
                return self.run_at_once(taking, self.while_open)
        (found,), _ = self._get_some(1, block, timeout, claim)
        return found

    def _take_in_memory(self, claim: Claim) -> Any:
        """Take the next item of a queue in shared memory; MORE if there is none, or something else
        is to be done before."""
        binding = self.binding
        if not is_local(binding):
            return MORE
        operations = self.operations
        taken = binding.hold_here(operations.hold(claim, self.max_deliveries))
        if taken is None:
            return MORE
        found = operations.note_and_decode(self.here, claim, taken)
        if found is MORE:
            (item,), (number,) = taken
            return self.run_at_once(operations.accept(item, number, self.here))
        return found

    def acknowledge(self, asking: Asking) -> bool:
        """Acknowledge the caller's next item, as the operation ``acknowledge_next`` does."""
        self.flush_all(self.name)
        here, binding = self.here, self.binding
        if not is_local(binding) or events.listeners:
            return self.run_on(self.session(), self.operations.acknowledge_next(here, asking))
        asked = here.in_flight.ask(asking)
        held, reply = asking.held, None
        if held is not None and not held.was_taken_away:
            reply = binding.acknowledge_here(incarnation(), held.seq)
            if reply is Outcome.DONE:
                return False
        acknowledging = self.operations.acknowledging(here, asking, asked, reply)
        return self.run_on(self.session(), acknowledging)

    def _get_some(
        self, limit: int, block: bool, timeout: float | None, claim: Claim
    ) -> tuple[list[Any], PressureError | None]:
        return self.run_at_once(self.taking(claim, limit, block, timeout), self.while_open)

    def forwarding(self, asking: Asking) -> Forwarding:
        """Make the caller's next item, which ``asking`` has then, ready to be forwarded. Raises
        TaskDoneError, LateTaskDoneWarning."""
        return Forwarding(self, self.operations.forwarding(self.here, asking))

    def note_end(self, asking: Asking, error: BaseException) -> None:
        """Note that the call that acknowledges an item ended with this error."""
        if asking.held is not None and isinstance(error, _DONE):
            asking.held.is_done = True

    def taking(
        self, claim: Claim, limit: int, block: bool, timeout: float | None
    ) -> AnyOperation[tuple[list[Any], PressureError | None]]:
        """Take up to ``limit`` items, for this claim."""
        return self.operations.take_objects(
            self.here, claim, self.max_deliveries, limit, block, timeout, self.eof
        )


def _has_no_buffer(end: float | None) -> None:
    """Do nothing: no item waits to be sent."""


def time_left(queue: ObjectAttachment, block: bool, timeout: float | None) -> float | None:
    """Wait until the items that this process put can be got; return the rest of the ``timeout``."""
    end = deadline(block, timeout) if block else None
    queue.settle(end)
    return seconds_left(end)
