"""Lines of text into a queue, and out of it: pipes of the shell that cross machines.

    seq 1 1000 | PRESSURE_URL=... python examples/pump.py in numbers &
    PRESSURE_URL=... python examples/pump.py out numbers | sort -n | tail -1

``in NAME`` puts each line of its input into the queue, and at the end of the input shuts the
queue down. ``out NAME`` writes each line that it gets to its output. When the queue is shut down
and empty, or its output is closed, it removes the queue; an ``in`` that still has
lines then fails. The two may run on different machines and start in either order. A queue holds
100 lines at most, then ``in`` waits, and with it what feeds it.

The items are plain text, no pickles: a program in any language that speaks the protocol can
stand at either end.
"""

import os
import sys

from pressure_mp import Queue, QueueDoesNotExistError

MAXSIZE = 100


def pump_in(lines: Queue) -> None:
    try:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        lines.shutdown()
    except QueueDoesNotExistError:
        sys.exit(f"pump.py: nobody reads from {lines.name!r} any more")


def pump_out(lines: Queue) -> None:
    try:
        for line in lines:
            print(line, flush=True)
    except BrokenPipeError:  # as in `… | head`; the interpreter would fail to flush once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    lines.delete()


def main() -> None:
    directions = {"in": pump_in, "out": pump_out}
    if len(sys.argv) != 3 or sys.argv[1] not in directions:
        sys.exit("usage: pump.py in|out NAME")
    direction, name = sys.argv[1:]
    with Queue(MAXSIZE, name, serializer="text") as lines:
        directions[direction](lines)


if __name__ == "__main__":
    main()
