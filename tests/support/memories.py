"""What the parts of a handle remember, and what becomes of it in other processes.

Each attribute has one of four answers. An attribute that is not in the table, or whose answer is
not true, fails ``tests/package/test_what_a_handle_remembers.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any


class Answer(Enum):
    """What becomes of an attribute in a forked child, and where the handle is unpickled."""

    SAID = "said by the program, or true of the queue for ever: the same in each process"
    MADE = "made of the above: true in a forked child too; made anew where the handle is unpickled"
    OWN = "of one process: begins anew in a forked child, and where the handle is unpickled"
    REACHED = "the way to the queue: as MADE on a named queue, as OWN on an anonymous one"
    ENDED = "the handle was closed: so it is in a forked child; where it is unpickled, it is open"


SAID, MADE, OWN, REACHED, ENDED = Answer

HANDLE = {
    "_at": MADE,  # its parts have answers of their own
    "_gets": MADE,
    "_puts": MADE,
}

ATTACHMENT = {
    "address": SAID,
    "buffering": SAID,
    "codec": SAID,
    "eof": SAID,
    "is_anonymous": SAID,
    "name": SAID,
    # ``shares_memory`` among them is decided once, when the queue is made; where the handle is
    # pickled for an unknown place, it goes without. It says whether items are left unsigned, and
    # that each binding signs them: so it does not change when the items move.
    "options": SAID,
    "order": SAID,
    "_presence": MADE,  # found again by the name of the queue, and reset
    "before_get": MADE,  # of the buffer
    "how": MADE,  # of use only where the handle is made
    "opening": MADE,
    "_first_opening": MADE,
    "is_at_default": MADE,  # for tests of programs
    "is_of_asyncio": MADE,
    "operations": MADE,
    "readable": MADE,  # its pipe is OWN
    "token": MADE,  # tells handles of one process apart
    "traits": MADE,  # of the class
    "was_put_to": MADE,  # only the text of an error depends on it
    "binding": REACHED,
    "hold": REACHED,
    "kept": OWN,
    "is_closed": ENDED,
}

CODEC = {
    "anonymous": SAID,
    "divides": SAID,
    "_has_envelopes": SAID,
    "_key_ids": SAID,
    "_kind": SAID,
    "_prefix": SAID,
    "queue": SAID,
    "serializer": SAID,
    "_keys": MADE,  # they go along only to a process that is being started
    "_signatures": MADE,
    "_signs_late": MADE,  # says nothing that the handle's ``_options`` do not say
}

PUTS = {
    "_gets": MADE,
    "_home": MADE,  # reset by itself
    "_is_awaited": MADE,  # as the program said, by cancel_join_thread()
    "_is_stated": MADE,
    "_owner": MADE,
    "engine": MADE,
    "pending": MADE,  # with answers of its own
    "_asks": OWN,
    "_changed": OWN,
    "_encode": MADE,  # of the codec; looked up again before the first put
    "_lock": OWN,
}

PENDING = {
    "_size": MADE,
    "home": MADE,
    "queue": MADE,
    "outbox": MADE,  # the home, unless this process found the queue full
    "_bytes": OWN,
    "_failed": OWN,
    "_failure": OWN,
    "_room": OWN,
    "flow": OWN,
    "intake": OWN,
    "items": OWN,
    "limit": OWN,
    "number_sent": OWN,
}

READ_AHEAD = {
    "_eof": MADE,
    **dict.fromkeys(
        (
            *("_asked", "_due_thread", "_hand_outs", "_in_hand", "_in_flight", "_loads", "_lock"),
            *("_presence", "window"),  # the latter as a whole
        ),
        OWN,
    ),
}

BINDING = {
    "_lease": MADE,
    "_sign": MADE,  # the codec's, of whichever process: it goes with each binding of the handle
    "below": MADE,
    "items": MADE,  # their ring says whether they are here, to all processes at once
    "name": MADE,
    "problem": MADE,  # looked at again by each call
}

RING = {
    "_address": MADE,
    "_cells": MADE,
    "_table": MADE,
    "_numbers": MADE,
    "_next_entry": MADE,  # where to look first, as in the next
    "_indexes": MADE,
    "_adds_until": MADE,  # how seldom to look for a free one
    "_allocated": MADE,  # of the file
    "looked": MADE,
    "stopped": MADE,
    "_frees": MADE,  # of a thread: no in a child
    "_file": MADE,  # opened again where the program has closed it
    "_lengths": MADE,
    "_map": MADE,
    "_size": MADE,
    "path": MADE,
    "sign": MADE,
    "ended_calls": MADE,  # by the names of readers, which a child has not
    "readers": MADE,
    "process": OWN,
    "putting": MADE,  # their threads are OWN, and the kernel's locks are the process's
    "taking": MADE,
}

TABLE: dict[str, dict[str, Answer]] = {
    "handle": HANDLE,
    "attachment": ATTACHMENT,
    "codec": CODEC,
    "puts": PUTS,
    "pending": PENDING,
    "read ahead": READ_AHEAD,
    "binding": BINDING,
    "ring": RING,
}


def parts_of(queue: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a handle that has used its queue, each with its name in :data:`TABLE`."""
    yield "handle", queue
    yield "attachment", queue._at
    yield "codec", queue._at.codec
    if queue._at.buffering.puts:  # a queue with a bound has no buffers
        yield "puts", queue._puts
        yield "pending", queue._puts.pending
        yield "read ahead", queue._gets
    yield "binding", queue._at.binding
    yield "ring", queue._at.binding.items.ring
