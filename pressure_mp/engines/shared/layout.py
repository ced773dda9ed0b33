"""What is where in a file that several processes have mapped.

It begins with a page of numbers of eight bytes, a cache line for each that changes often; the ring
is behind it, behind that a table of the items that were taken and are not yet acknowledged, and
behind that a table of the event loops that wait.
"""

from __future__ import annotations

PAGE = 4096
_LINE = 8  # numbers in a cache line
(
    MAGIC,
    STATE,
    TAIL,
    HEAD,
    ITEMS,
    ITEMS_AWAITED,
    SPACE,
    SPACE_AWAITED,
    ALLOCATED,
    BYTES_IN,
    BYTES_OUT,
    READS,
    READ_FROM,
    READ_HANDED,
    READ_UNTIL,
    WANTED,
    BOUND,
    TAKER,
    SIGNED,
    NEXT_ENDED,
    FREED,
    TOP,
    DONE,
    SET_ASIDE,
    CLOSED,
    FIRST_BOUND,
    ENTRIES,
    PREPARED,
    RETURNED,
    JOIN,
    JOIN_AWAITED,
) = range(0, 31 * _LINE, _LINE)
#: The index of readers whose reservations another process ended: two numbers for each reader.
ENDED, MOST_ENDED = 31 * _LINE, 64
#: How many places of the table of waiting event loops were ever used, for each sign; and whether
#: threads were woken first the last time.
ITEMS_LOOPS, SPACE_LOOPS, JOIN_LOOPS, TURN = range(
    ENDED + 2 * MOST_ENDED, ENDED + 2 * MOST_ENDED + 4
)
#: The offsets of the names of the clients that put last and took last.
PUTTER, LAST_TAKER, NAME_SIZE = 3072, 3328, 256
#: The offset of the name of the reader that reserved items: its length, and then the name.
READER = 3584
LONGEST_NAME = PAGE - READER - 8
#: The bytes of the table of taken items, and of the table of waiting event loops behind it.
TABLE, LOOPS = 1 << 20, PAGE
MADE = 0x70726573737572E1

#: The values of the state.
HERE, MOVING, MOVED = range(3)

#: The end and the beginning of the ring are numbers of two parts: how many records ever came
#: before, and in the lower bits the position.
PLACE, COUNT = (1 << 28) - 1, (1 << 36) - 1

#: The bytes of the file that are locked: by the process that puts, by the process that takes, and
#: by all processes that use it.
PUT, TAKE, USE = range(3)
