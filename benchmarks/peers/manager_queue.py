from __future__ import annotations

import queue
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.managers import BaseManager
from multiprocessing.process import BaseProcess
from typing import Any

from ..context import CONTEXT
from ..server import Site
from .base import Ends, Peer

AUTHKEY = b"benchmarks"


class QueueManager(BaseManager):
    """What the clients know of the manager."""


QueueManager.register("get_queue")


def serve(site: Site, maxsize: int, report: Connection) -> None:
    site.begin_process()

    class Server(BaseManager):
        pass

    served: queue.Queue[Any] = queue.Queue(maxsize)
    Server.register("get_queue", callable=lambda: served)
    server = Server(("127.0.0.1", 0), AUTHKEY).get_server()
    report.send(server.address)
    server.serve_forever()


@dataclass
class Shared:
    address: tuple[str, int]
    process: BaseProcess | None = field(default=None)

    def connect(self) -> Ends:
        manager = QueueManager(self.address, AUTHKEY)
        manager.connect()
        proxy = manager.get_queue()  # type: ignore[attr-defined]
        proxy.qsize()  # each thread has a connection of its own, made at its first call
        return Ends(proxy.put, proxy.get)

    def remove(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.join()

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "process": None}


@dataclass(frozen=True)
class ManagerQueue(Peer):
    """`BaseManager` that serves a `queue.Queue` over TCP, as in "Using a remote manager"."""

    waits_at_server = False

    def create(self, site: Site, maxsize: int = 0, largest: int = 0) -> Shared:
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=serve, args=(site, maxsize, sender), daemon=True)
        process.start()
        sender.close()
        return Shared(receiver.recv(), process)
