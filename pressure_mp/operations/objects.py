"""The operations of queues of Python objects: a put encodes an object, a get decodes an item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

from .. import events
from ..effects import MORE, AnyOperation, Ask, Keep, Operation
from ..encoding.large import is_manifest
from ..encoding.unsigned_items import Private, Privates
from ..engines.contract.items import Acknowledge, AcknowledgeReply, Hold, Take, Taken, TakeReply
from ..engines.contract.replies import Done, Late, Outcome, Passed
from ..events import Message
from ..exceptions import LateTaskDoneWarning, PressureError, TaskDoneError
from ..identity.processes import incarnation
from ..in_flight import Asking, Claim, InFlight, ItemInFlight
from ..interrupts import is_from_outside
from .deliveries import DeliveryOperations
from .large import fetch, sweep
from .settling import Settling, ready_made
from .waiting import served_after

T = TypeVar("T")

_new = tuple.__new__

#: Objects that were got; and the first error, if some could not be used and are set aside.
Received = tuple[list[Any], "PressureError | None"]


class Consumer(AbstractContextManager[None], Protocol):
    """This process as a consumer with items in flight; a context to be in while it waits for items
    that other processes have in flight."""

    @property
    def in_flight(self) -> InFlight:
        """The items that this process has in flight."""

    def keep(self) -> None:
        """Have the lease of the items in flight renewed."""


class Producers(Protocol):
    """This process as a producer."""

    def is_producer(self, handle: object) -> bool:
        """Tell whether the broker knows that this process puts through a handle."""

    def add_producer(self, handle: object) -> None:
        """Note that the broker knows that this process puts through a handle."""


def _not_late(reply: AcknowledgeReply) -> bool:
    return False if reply is Outcome.DONE else MORE


class ObjectOperations(DeliveryOperations):
    """Sets aside each item that cannot be used, because it is forged, cannot be decoded, or its
    content is gone; raises the error of the first such item.

    If the operation ends early or with another error, the items that it got and did not set aside
    go back to the queue: the caller sees to that (``Session.taken``, or the ``claim``).
    """

    # Telling

    def tell_received(
        self,
        items: Sequence[bytes],
        since: int = 0,
        seqs: Sequence[int] = (),
        here: Consumer | None = None,
    ) -> None:
        """Tell listeners of items that were got and decoded. The items are in flight ``here`` under
        these numbers, or were got for good."""
        if events.listeners:
            messages = [Message(self.codec.headers_of(item)) for item in items]
            if here is not None:
                here.in_flight.note(seqs, [message.headers for message in messages])
            events.received(self.destination, messages, since)

    # Putting

    def put_object(
        self, item: Any, block: bool, timeout: float | None, order: bytes = b""
    ) -> AnyOperation[None]:
        """Encode and put an object, as ``put`` does. Raises EncodingError, AuthenticationError."""
        if events.listeners:
            return self._put_told(item, block, timeout, order)
        return self.put(self.codec.encode(item), block, timeout, order=order)

    def _put_told(
        self, item: Any, block: bool, timeout: float | None, order: bytes
    ) -> Operation[None]:
        with events.sending(self.destination, 1) as headers:
            yield from self.put(self.codec.encode(item, headers), block, timeout, order=order)

    def put_objects(
        self, items: Sequence[Any], block: bool, timeout: float | None, orders: Sequence[bytes] = ()
    ) -> Operation[None]:
        """Encode and put objects, as ``put_many`` does. Raises EncodingError, AuthenticationError,
        before the first is put."""
        if events.listeners:
            return self._put_many_told(items, block, timeout, orders)
        return self.put_many(self.codec.encode_many(items), block, timeout, orders)

    def _put_many_told(
        self, items: Sequence[Any], block: bool, timeout: float | None, orders: Sequence[bytes]
    ) -> Operation[None]:
        with events.sending(self.destination, len(items)) as headers:
            yield from self.put_many(self.codec.encode_many(items, headers), block, timeout, orders)

    def as_producer(
        self, here: Producers, handle: object, operation: AnyOperation[T]
    ) -> Operation[T]:
        """Run an operation once the broker knows that this process is a producer of the queue."""
        yield from self.register(here, handle)
        return (yield from operation)

    def register(self, here: Producers, handle: object) -> Operation[None]:
        """Tell the broker that this process puts through a handle, unless the broker knows that."""
        if not here.is_producer(handle):
            yield from self.renew(incarnation(), False, True)
            here.add_producer(handle)

    # Getting for good

    def get_object(
        self, block: bool, timeout: float | None, eof: bool = False
    ) -> AnyOperation[Any]:
        """Get and decode an item, as ``get`` does."""
        if events.listeners:
            return self._get_told(block, timeout, eof)
        if timeout is None and block and not eof:
            return self._usual_get
        return self._getting(block, timeout, eof, self._decode_first, self._get_object_on)

    def _get_told(self, block: bool, timeout: float | None, eof: bool) -> Operation[Any]:
        self.codec.prepare()
        since = events.now()
        item = yield from self.get(block, timeout, eof)
        return (yield from self.accept(item, since=since))

    @cached_property
    def _usual_get(self) -> Ask[Any]:
        """The operation of a get without limit, which most gets are; it never changes."""
        return self._getting(True, None, False, self._decode_first, self._get_object_on)

    @cached_property
    def _decode_first(self) -> Callable[[TakeReply], Any]:
        self.codec.prepare()  # without a key nothing is taken out
        decode, divides = self.codec.quick_decode, self.codec.divides
        loads = self.codec.loads

        def decode_first(reply: TakeReply) -> Any:
            if type(reply) is not Taken:
                return MORE
            item = reply.items[0]
            try:
                return loads(item) if divides and type(item) is Private else decode(item)
            except Exception as error:  # `rest` sets the item aside
                if is_from_outside(error):
                    raise
                return MORE

        return decode_first

    def _get_object_on(self, ask: Ask[Any], reply: TakeReply) -> Operation[Any]:
        reply = yield from served_after(reply, ask.request, ask.end)
        if type(reply) is not Taken:
            raise (yield from self._not_got(reply, *ask.how))
        found = ask.read(reply)
        return (yield from self.accept(reply.items[0])) if found is MORE else found

    def get_objects(
        self, limit: int, block: bool, timeout: float | None, eof: bool = False
    ) -> Operation[Received]:
        """Get and decode items, as ``get_many`` does."""
        self.codec.prepare()
        since = events.now()
        items = yield from self.get_many(limit, block, timeout, eof)
        return (yield from self._accept_all(items, [0] * len(items), None, since))

    # Taking, until it is acknowledged

    def hold(self, claim: Claim, limit: int) -> Hold:
        """Begin to take an item, which is in flight as with ``take_objects``."""
        self._decode_first  # noqa: B018  # without a key nothing is taken out
        return _new(Hold, (incarnation(), claim.begin(), limit, ""))

    def note_and_decode(self, here: Consumer, claim: Claim, reply: TakeReply) -> Any:
        """Note an item that was taken as in flight, and decode it; MORE if it was not taken, or
        cannot be decoded so."""
        if type(reply) is not Taken:
            return MORE
        claim.seqs = reply.numbers
        here.in_flight.add(reply.numbers[0], claim.mark)
        here.keep()
        return self._decode_first(reply)

    def take_object(self, here: Consumer, claim: Claim, limit: int) -> Ask[Any]:
        """Take and decode an item, which is in flight as with ``take_objects``; wait for one
        without limit."""
        request = _new(Take, (1, self.hold(claim, limit), False, True))
        read = partial(self.note_and_decode, here, claim)
        return Ask(request, None, read, self._take_object_on, here)

    def _take_object_on(self, ask: Ask[Any], reply: TakeReply) -> Operation[Any]:
        here: Consumer = ask.how
        if type(reply) is not Taken:
            with here:
                reply = yield from served_after(reply, ask.request, ask.end)
            if type(reply) is not Taken:
                raise (yield from self._not_got(reply, True, None))
            found = ask.read(reply)
            if found is not MORE:
                return found
        return (yield from self.accept(reply.items[0], reply.numbers[0], here))

    def take_objects(
        self,
        here: Consumer,
        claim: Claim,
        limit: int,
        number: int,
        block: bool,
        timeout: float | None,
        eof: bool = False,
    ) -> Operation[Received]:
        """Take up to ``number`` items, which are in flight ``here`` until they are acknowledged, or
        the caller gives up the ``claim``. The rest is as for ``take_many``."""
        since = events.now()
        self.codec.prepare()
        call = claim.begin()
        with here:
            deliveries = yield from self.take_many(
                incarnation(), call, limit, number, block, timeout, eof
            )
        claim.seqs = [delivery.seq for delivery in deliveries]
        for seq in claim.seqs:
            here.in_flight.add(seq, claim.mark)
        items = [delivery.item for delivery in deliveries]
        if type(items[0]) is Private:
            items = Privates(items)
        return (yield from self._accept_all(items, claim.seqs, here, since))

    def acknowledge_next(self, here: Consumer, asking: Asking) -> AnyOperation[bool]:
        """Acknowledge the caller's oldest item, else this process's, else the queue's.

        Returns whether it came too late: the item was taken away meanwhile, and nothing is counted.
        Raises TaskDoneError. ``asking`` then says which item it was. The caller marks the item as
        done in a step behind which nothing can be interrupted: if it is interrupted before, it
        repeats this with the same item.
        """
        if events.listeners:
            return self.acknowledging(here, asking)
        asked = here.in_flight.ask(asking)
        if asking.held is None or asking.held.was_taken_away:
            return self.acknowledging(here, asking, asked)
        request = _new(Acknowledge, (incarnation(), asking.held.seq))
        return Ask(request, None, _not_late, self._acknowledge_on, (here, asking, asked))

    def _acknowledge_on(self, ask: Ask[bool], reply: AcknowledgeReply) -> Operation[bool]:
        here, asking, asked = ask.how
        return self.acknowledging(here, asking, asked, reply)

    def acknowledging(
        self,
        here: Consumer,
        asking: Asking,
        asked: Sequence[bool] = (),
        reply: AcknowledgeReply | None = None,
    ) -> Operation[bool]:
        """Acknowledge until a reply is for the item of this call. It was ``asked`` about one, and
        may have had a first ``reply``."""
        since = events.now()
        while True:
            if not asked:
                asked = here.in_flight.ask(asking)
            (before, has_newer), asked, held = asked, (), asking.held
            if reply is None:
                reply = yield from self._acknowledge_held(held)
            else:
                reply = self._counted(reply)
            # When it is late, a call that was interrupted did it: the caller repeats that call,
            # unless it has got another item meanwhile. Or a transaction did it, and this call is
            # for another item.
            goes_on = has_newer or (held is not None and held.transaction is not None)
            if reply is not Outcome.PASSED and not (reply is Outcome.LATE and goes_on):
                if events.listeners and reply is Outcome.DONE:
                    one = Message({} if held is None else held.headers)
                    events.settled(self.destination, "task_done", [one], since)
                return reply is Outcome.LATE and not before
            reply = None
            if held is not None:
                held.is_done = True

    def acknowledge_at_commit(self, here: Consumer, asking: Asking) -> Operation[bool]:
        """Acknowledge an item in a transaction of the caller's. Until the commit the item, which
        ``asking`` has, is in flight. Raises TaskDoneError when this process has no item in
        flight."""
        while True:
            here.in_flight.ask(asking)
            held = asking.held
            if held is None:
                raise TaskDoneError(
                    f"task_done(connection=) on queue {self.name!r} is for an item that this "
                    "process got, and it has no such item in flight"
                )
            reply = yield from self._acknowledge_held(held)
            if reply is Outcome.DONE:
                return False
            held.is_done = True
            if reply is Outcome.LATE and held.transaction is None:
                return True
            # Another process acknowledged it, or a transaction that committed.

    def forwarding(self, here: Consumer, asking: Asking) -> Settling:
        """Acknowledge the caller's oldest item, else this process's, by a put on another queue.
        ``asking`` then has the item. Raises TaskDoneError when this process has no item in flight,
        and LateTaskDoneWarning when it was taken away."""
        here.in_flight.ask(asking)
        held, since = asking.held, events.now()
        if held is None:
            raise TaskDoneError(
                f"forward() on queue {self.name!r} is for an item that this process got, and it "
                "has no such item in flight"
            )
        if held.was_taken_away:
            held.is_done = True
            raise self._too_late()

        def request() -> Operation[Acknowledge]:
            return ready_made(Acknowledge(incarnation(), held.seq))

        def refusal(why: Any) -> PressureError:
            held.is_done = True
            if why is Outcome.MISSING:
                return self._missing()
            return self._excess() if why is Outcome.EXCESS else self._too_late()

        def done(settled: object) -> None:
            held.is_done = True
            if events.listeners:
                events.settled(self.destination, "task_done", [Message(held.headers)], since)

        return Settling(request, refusal, done)

    def _too_late(self) -> LateTaskDoneWarning:
        return LateTaskDoneWarning(
            f"forward() on queue {self.name!r} came too late: this process did not answer for "
            "longer than its lease, and the item was given to another consumer. Nothing was put"
        )

    def _acknowledge_held(self, held: ItemInFlight | None) -> Operation[Done | Late | Passed]:
        if held is not None and held.was_taken_away:
            return Outcome.LATE
        return (yield from self.acknowledge(incarnation(), None if held is None else held.seq))

    # What was got

    def accept(
        self, item: bytes, seq: int = 0, here: Consumer | None = None, since: int = 0
    ) -> Operation[Any]:
        """Decode an item that was got. It is in flight ``here`` under the number ``seq``, or was
        got for good."""
        if is_manifest(item):
            found = yield from self._accept_large(item, seq, here)
        else:
            try:
                found = self.codec.decode(item)
            except PressureError:
                yield from self._set_aside(item, seq, here)
                raise
        self.tell_received([item], since, [seq], here)
        return found

    def _accept_large(self, item: bytes, seq: int, here: Consumer | None) -> Operation[Any]:
        """Decode an item whose content may be beside the queue."""
        try:
            manifest = self.codec.read_manifest(item)
            if manifest is None:
                return self.codec.decode(item)
        except PressureError:
            yield from self._set_aside(item, seq, here)
            raise
        try:
            content = yield from fetch(manifest)
        except PressureError as error:
            error.took_nothing = False
            raise
        try:
            found = self.codec.decode_large(item, manifest, content)
        except PressureError:
            yield from self._set_aside(item, seq, here)
            raise
        if here is None:  # an item in flight keeps its content
            yield Keep([found])  # from here on its content may be gone
            yield from sweep(manifest.token)
        return found

    def _accept_all(
        self, items: Sequence[bytes], seqs: Sequence[int], here: Consumer | None, since: int
    ) -> Operation[Received]:
        try:
            found = self.codec.decode_many(items)
            self.tell_received(items, since, seqs, here)
            return found, None
        except Exception as error:  # one item cannot be used: they are decoded one by one
            if is_from_outside(error):
                raise
        accepted: list[Any] = []
        problem: PressureError | None = None
        for item, seq in zip(items, seqs, strict=True):
            try:
                accepted.append((yield from self.accept(item, seq, here, since)))
            except PressureError as error:
                problem = problem or error
        if problem is None or accepted:
            return accepted, problem
        try:
            raise problem
        finally:
            del problem  # no cycle

    def _set_aside(self, item: bytes, seq: int, here: Consumer | None) -> Operation[None]:
        if here is None:
            yield from self.reject(item)
        else:
            yield from self.set_aside(item, incarnation(), seq)
            here.in_flight.discard(seq)

    # Looking

    def peek(self, item: bytes) -> Operation[Any]:
        """Decode an item that stays queued. Raises AuthenticationError, DecodingError."""
        manifest = self.codec.read_manifest(item) if is_manifest(item) else None
        if manifest is None:
            return self.codec.decode(item)
        content = yield from fetch(manifest)
        return self.codec.decode_large(item, manifest, content)

    def peek_objects(self, limit: int) -> Operation[list[Any]]:
        """Decode the next items of the queue, which stay queued."""
        self.codec.prepare()
        items = yield from self.peek_items(limit)
        found = []
        for item in items:
            found.append((yield from self.peek(item)))
        return found

    def requeue_all_rejected(self) -> Operation[int]:
        """Put all items again that are set aside now; return how many."""
        return (yield from self._each_rejected(self.requeue_rejected))

    def drop_all_rejected(self) -> Operation[int]:
        """Remove all items that are set aside now; return how many."""
        return (yield from self._each_rejected(self.drop_rejected))

    def _each_rejected(self, settle: Callable[[bytes], Operation[bool]]) -> Operation[int]:
        there, number = (yield from self.stats()).rejected, 0
        if there:
            for item in (yield from self.rejected(there)):
                number += yield from settle(item)
        return number

    def rejected_with_content(self, limit: int) -> Operation[list[bytes]]:
        """Return the rejected items; of a large item the manifest with its content behind it."""
        found = []
        for item in (yield from self.rejected(limit)):
            found.append((yield from self._with_content(item)) if is_manifest(item) else item)
        return found

    def _with_content(self, item: bytes) -> Operation[bytes]:
        try:
            manifest = self.codec.read_manifest(item)
        except PressureError:
            return item  # its manifest cannot be trusted
        content = (yield from fetch(manifest)) if manifest else None
        return b"".join((item, *(content or ())))
