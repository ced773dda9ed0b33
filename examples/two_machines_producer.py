"""Puts numbered jobs into a queue that another machine empties.

Run this on one machine and ``two_machines_consumer.py`` on another, in either order, both with
the URL of the same server. The queue's name is what they share:

    PRESSURE_URL=redis://broker.example:6379 python examples/two_machines_producer.py [NAME]

It waits whenever 10 jobs lie in the queue, and in the end shuts the queue down, which tells the
consumer that no more will come.
"""

import socket
import sys

from pressure_mp import Queue

JOBS = 100
MAXSIZE = 10  # the program that starts first makes the queue, so both say how large


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "two-machines"
    with Queue(MAXSIZE, name) as jobs:
        for number in range(JOBS):
            jobs.put({"number": number, "from": socket.gethostname()})
        jobs.shutdown()
        print(f"{JOBS} jobs put into {jobs.name!r} at {jobs.url}")


if __name__ == "__main__":
    main()
