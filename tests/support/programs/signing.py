"""What other processes do in the tests of signing, and a serializer that tells of its use."""

from __future__ import annotations

import pickle


class Watched:
    """Pickle that counts what it decodes."""

    def __init__(self):
        self.decoded = 0

    def dumps(self, item):
        return pickle.dumps(item)

    def loads(self, payload):
        self.decoded += 1
        return pickle.loads(payload)


def echo(inbox, outbox):
    outbox.put(inbox.get())


def use(queue):
    """In a process that the handle came to in another way: what it did, or the error's text."""
    try:
        queue.put_nowait("from the worker")
        queue.flush()  # what a pool's worker has not sent when it is terminated is lost
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"
