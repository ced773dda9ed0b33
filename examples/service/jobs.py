"""The reports of the service, and the handler that makes them. ``python jobs.py`` is a worker."""

import os
import time

from pressure_mp import TaskQueue

reports = TaskQueue("reports", max_deliveries=3, reconnect=0.5)


@reports.worker(concurrency=4, backoff=0.1)
def make_report(task):
    """Count the words of a text."""
    words = task.data["text"].split()
    if not words:
        raise ValueError("the text has no words")
    time.sleep(task.data.get("seconds", 0))
    return {"words": len(words), "worker": os.getpid()}


if __name__ == "__main__":
    reports.run()
