"""Four processes log into a queue, and a listener of the first process handles the records, as the
cookbook of ``logging`` shows."""

from __future__ import annotations

import importlib
import logging
import logging.handlers
import multiprocessing
import sys
from typing import Any

PROCESSES = 4


class Counting(logging.Handler):
    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()
        self.number += 1


def work(queue: Any, count: int) -> None:
    log = logging.getLogger()
    log.handlers = [logging.handlers.QueueHandler(queue)]
    log.setLevel(logging.INFO)
    for number in range(count):
        log.info("message %d of %s", number, multiprocessing.current_process().name)


def main(module: str, count: int) -> None:
    queue = importlib.import_module(module).Queue(-1)
    handler = Counting()
    listener = logging.handlers.QueueListener(queue, handler)
    each = count // PROCESSES
    workers = [multiprocessing.Process(target=work, args=(queue, each)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    listener.start()
    for worker in workers:
        worker.join()
    listener.stop()
    print(f"all {handler.number} items")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
