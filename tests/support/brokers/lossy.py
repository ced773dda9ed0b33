"""A TCP proxy that loses replies of a server on demand: the request is done without a reply."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator

from ports import free_port

_CALL = re.compile(b"EVALSHA|LRANGE")


class LossyProxy:
    """Forwards connections to a server on loopback. ``url`` is the proxy's."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        self._to_lose = 0
        self.lost = 0
        #: Seconds by which each reply comes later.
        self.delay = 0.0
        #: Not set: replies wait until it is.
        self.passing = threading.Event()
        self.passing.set()
        #: Of a script that is called behind another one, or behind a plain read: called when the
        #: server has the first.
        self.in_between: Callable[[], None] | None = None
        self._open: list[socket.socket] = []
        #: What clients sent since this was last set to an empty one; None: it is not kept.
        self.requests: bytearray | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Replies come when the block ends."""
        self.passing.clear()
        try:
            yield
        finally:
            self.passing.set()

    def lose(self, replies: int = 1) -> None:
        """From now on: cut the connection instead of passing on the next replies."""
        self._to_lose = replies

    def cut(self) -> None:
        """Cut every connection."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def trouble(self, done: threading.Event) -> None:
        """Lose a reply, or cut every connection, again and again until it is ``done``: ever more
        rarely, so that calls get through on a busy machine too."""
        draw, longer = random.Random(1), 1.0
        while not done.wait(draw.uniform(0.01, 0.1) * longer):
            longer *= 1.02
            if draw.random() < 0.5:
                self.lose()
            else:
                self.cut()

    def stop(self) -> None:
        self.passing.set()
        # To close the listener does not end an accept() that waits: it would take one more.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._port))
                except OSError:  # it is down
                    client.close()
                    continue
                self._open += [client, server]
                for source, target, is_reply in ((client, server, False), (server, client, True)):
                    threading.Thread(
                        target=self._pump, args=(source, target, is_reply), daemon=True
                    ).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_reply:
                    self.passing.wait()
                if is_reply and self.delay:
                    time.sleep(self.delay)
                if is_reply and self._to_lose:
                    self._to_lose -= 1
                    self.lost += 1
                    break
                if self.requests is not None and not is_reply:
                    self.requests += data
                begins = [found.start() for found in _CALL.finditer(data)]
                if self.in_between is not None and not is_reply and len(begins) > 1:
                    cut = begins[1]
                    target.sendall(data[:cut])
                    self.in_between()
                    data = data[cut:]
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()
