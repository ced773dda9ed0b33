"""Takes the jobs that ``two_machines_producer.py`` puts into a queue on another machine.

Run them in either order, both with the URL of the same server:

    PRESSURE_URL=redis://broker.example:6379 python examples/two_machines_consumer.py [NAME]

It ends when the producer has shut the queue down and nothing is left in it. Then it removes the
queue, so that both can be run again.
"""

import sys

from pressure_mp import Queue

MAXSIZE = 10  # the program that starts first makes the queue, so both say how large


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "two-machines"
    with Queue(MAXSIZE, name) as jobs:
        done, total, hosts = 0, 0, set()
        for job in jobs:
            done += 1
            total += job["number"]
            hosts.add(job["from"])
        print(f"{done} jobs done, from {', '.join(sorted(hosts))}; their numbers add up to {total}")
        jobs.delete()


if __name__ == "__main__":
    main()
