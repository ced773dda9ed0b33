"""The tests of CPython's own that do not pass over a broker, and why not. There is no other list.

Each of them runs all the same and has to fail: one that begins to pass does not belong here. But
one that is ``by_chance`` may pass: it depends on which of two replies of a broker comes first.
docs/differences.md tells users the same.
"""

from __future__ import annotations

from pickle import PicklingError
from typing import NamedTuple

from pressure_mp import EncodingError


class Difference(NamedTuple):
    """``since`` is the Python that brought the test; a later release of an older one may too."""

    reason: str
    raises: type[BaseException] | tuple[type[BaseException], ...]
    since: tuple[int, int] = (3, 10)
    cases: tuple[str, ...] = ()  # of our tests; empty for all
    by_chance: bool = False


PRIVATE = "it reads private attributes of asyncio.Queue"
UNPICKLABLE = "an object that cannot be pickled raises in the caller of put()"

DIFFERENCES = {
    "_TestQueue.test_queue_feeder_donot_stop_onexc": Difference(UNPICKLABLE, EncodingError),
    "_TestQueue.test_queue_feeder_on_queue_feeder_error": Difference(
        "there is no feeder thread, so no hook for its errors, and no argument ctx", TypeError
    ),
    "BaseQueueTestMixin.test_negative_timeout_raises_exception": Difference(
        "Queue and JoinableQueue take a negative timeout for a time that is over, as "
        "multiprocessing does",
        AssertionError,
        cases=("QueueOverBroker", "JoinableQueueOverBroker"),
    ),
    "BaseSimpleQueueTest.test_references": Difference(
        # The former before Python 3.14.
        "it puts objects that cannot be pickled",
        (AttributeError, PicklingError),
    ),
    "QueueBasicTests.test_repr": Difference(PRIVATE, AssertionError),
    "QueueBasicTests.test_str": Difference(PRIVATE, AssertionError),
    "QueueGetTests.test_get_with_putters": Difference(PRIVATE, AttributeError),
    "QueueGetTests.test_cancelled_getters_not_being_held_in_self_getters": Difference(
        PRIVATE, AttributeError
    ),
    "QueuePutTests.test_cancelled_puts_not_being_held_in_self_putters": Difference(
        PRIVATE, AttributeError
    ),
    "QueuePutTests.test_cancelled_put_silence_value_error_exception": Difference(
        "the put may have got the space that the get made before it is cancelled: then it is done, "
        "and returns",
        AssertionError,
        by_chance=True,
    ),
    "_QueueJoinTestMixin.test_format": Difference(PRIVATE, AttributeError),
    "_QueueShutdownTestMixin.test_format": Difference(PRIVATE, AttributeError, since=(3, 13)),
    "QueuePutTests.test_float_maxsize": Difference("a maxsize is an int", TypeError),
}
