"""Processes that wait on a queue, and die there."""

from __future__ import annotations

import os
import signal
from typing import Any

import psutil
import redis
import waiting
from started import quickly

from pressure_mp.engines.redis.session import RedisSession
from pressure_mp.identity import client as identity


def wait(
    queue: Any, operation: str, elsewhere: bool = False, stops_when_granted: bool = False
) -> None:
    """What the process does; as if on another host, if so said, or stopping when its turn comes."""
    if stops_when_granted:
        park = RedisSession.park

        async def park_and_stop(session: Any, awaited: str, *more: Any) -> bool:
            came = await park(session, awaited, *more)
            if came and awaited in ("producer", "consumer"):
                os.kill(os.getpid(), signal.SIGSTOP)
            return came

        RedisSession.park = park_and_stop  # type: ignore[method-assign]
    if elsewhere:
        identity.incarnation = lambda: f"another-host/{os.getpid()}/1/00000000"
    if operation == "put":
        queue.put(b"from the dead")
    else:
        getattr(queue, operation)()


class Doomed:
    """A process in a blocking operation, and what can happen to it there."""

    def __init__(self, observer: redis.Redis, queue: Any, operation: str, **options: Any) -> None:
        self._observer = observer
        self.process = quickly.Process(target=wait, args=(queue, operation), kwargs=options)
        self.process.start()

    def connection(self) -> str | None:
        """The server's id of the connection that it waits with."""
        ports = {
            connection.laddr.port
            for connection in psutil.Process(self.process.pid).net_connections("tcp")
        }
        for client in self._observer.client_list():
            if int(client["addr"].rpartition(":")[2]) in ports and "b" in client["flags"]:
                return str(client["id"])
        return None

    def is_waiting(self) -> bool:
        return self.connection() is not None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        waiting.until(lambda: psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def cut(self) -> None:
        """Its connection ends; the process lives, and may connect again."""
        # Between two looks it does not wait for a moment.
        self._observer.client_kill_filter(_id=waiting.until(self.connection))
