"""Calls on one machine, workers on another, and results that are fetched later.

On the machines that are to do the work, which have this file too:

    export PRESSURE_URL=redis://broker.example:6379
    pressure-mp worker reports -p 8 --main examples/executor_two_machines.py

On another, from which the calls come; it ends at once, and prints their ids:

    PRESSURE_URL=redis://broker.example:6379 python examples/executor_two_machines.py submit

And there, or anywhere else, up to a day later, with these ids; ``end`` ends the workers:

    python examples/executor_two_machines.py fetch ID...

If a worker is killed, or its machine is lost, another worker does its calls.
"""

import sys

from pressure_mp import Executor, TaskQueue

NAME = "reports"
MONTHS = ["April", "May", "June"]


def write_report(month: str) -> str:
    return f"the report of {month}"


def main() -> None:
    what, *ids = sys.argv[1:]
    if what == "submit":
        executor = Executor(0, NAME)  # its workers are elsewhere
        print(*(executor.submit(write_report, month).id for month in MONTHS))
    elif what == "fetch":
        with Executor.attach(NAME) as executor:
            for id in ids:
                print(executor.future(id).result())
    else:
        TaskQueue.attach(NAME).shutdown()


if __name__ == "__main__":
    main()
