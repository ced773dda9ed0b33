"""A program that has an executor: what it does first is its first argument."""

from __future__ import annotations

import sys
import time

from executors import functions
from pressure_mp import Executor, TaskQueue


def here(path: str) -> int:
    """A function of the program itself."""
    functions.note(path)
    return functions.pid()


def main(what: str, *args: str) -> None:
    """Do that."""
    if what == "leaves":
        print(Executor(0, args[0]).submit(abs, -5).id)
    elif what == "deletes":
        with Executor(0, args[0]) as executor:
            assert executor.submit(abs, -5).cancel()
        TaskQueue.attach(args[0]).delete()
    elif what == "ends":
        executor = Executor(1)
        executor.submit(here, args[0])
        executor.shutdown(wait=False)
    else:
        executor = Executor(1)
        executor.submit(functions.hold, *args)
        executor.submit(here, args[0])
        print(executor.name, flush=True)
        time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
