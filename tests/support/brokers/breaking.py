"""A TCP proxy before a server whose next connections end, or fall silent, at a chosen byte."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import NamedTuple

from ports import free_port

#: How a connection breaks.
END = "end"  #: one side is told that nothing more comes; the other way stays open
RESET = "reset"  #: both sides are reset
SILENT = "silent"  #: bytes that are sent that way are swallowed, and nothing is closed

REQUESTS, REPLIES = "requests", "replies"

_RESETTING = struct.pack("ii", 1, 0)
_SLOW_SIZE = 1 << 12
#: Seconds until a slow connection reads on.
_SLOW_PAUSE = 0.005


class Break(NamedTuple):
    """What happens to a connection after so many bytes of its requests, or of its replies."""

    way: str
    after: int
    how: str


class BreakingProxy:
    """Forwards connections to a server on loopback. ``url`` is the proxy's. A ``slow`` one forwards
    less than 1 MB a second of what each connection sends to the server."""

    def __init__(self, port: int, slow: bool = False) -> None:
        self._port = port
        self._is_slow = slow
        self._listener = socket.create_server(("127.0.0.1", free_port()), backlog=512)
        if slow:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SLOW_SIZE)
        self._lock = threading.Lock()
        self._breaks: list[Break] = []
        self.links: list[Link] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return self.url_at("redis")

    def url_at(self, scheme: str, rest: str = "") -> str:
        port: int = self._listener.getsockname()[1]
        return f"{scheme}://127.0.0.1:{port}{rest}"

    def break_next(self, *breaks: Break) -> None:
        """Break the next new connections, each by one of these in turn."""
        with self._lock:
            self._breaks = list(breaks)

    def cut(self) -> None:
        """Reset every connection."""
        with self._lock:
            links, self.links = self.links, []
        for link in links:
            link.cut(RESET)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                with self._lock:
                    link = Link(client, server, _SLOW_PAUSE if self._is_slow else 0.0)
                    if self._breaks:
                        link.breaks = self._breaks.pop(0)
                    self.links.append(link)
                link.begin()


class Link:
    """One connection through the proxy."""

    def __init__(self, client: socket.socket, server: socket.socket, pause: float) -> None:
        self._client, self._server, self._pause = client, server, pause
        self.breaks: Break | None = None
        #: The bytes that came from each side so far.
        self.carried = {REQUESTS: 0, REPLIES: 0}
        #: Up to which byte each of them came at once.
        self.ends: dict[str, list[int]] = {REQUESTS: [], REPLIES: []}
        #: The ways on which all is swallowed.
        self.silent: set[str] = set()

    def begin(self) -> None:
        for way in (REQUESTS, REPLIES):
            threading.Thread(target=self._pump, args=(way,), daemon=True).start()

    def cut(self, how: str) -> None:
        for one in (self._client, self._server):
            with contextlib.suppress(OSError):
                if how == RESET:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETTING)
                one.shutdown(socket.SHUT_RD)  # wakes the thread that reads from it
            one.close()

    def _pump(self, way: str) -> None:
        source, target = self._client, self._server
        if way == REPLIES:
            source, target = target, source
        with contextlib.suppress(OSError):
            while data := source.recv(_SLOW_SIZE if self._pause else 1 << 16):
                if way == REQUESTS:
                    time.sleep(self._pause)
                before = self.carried[way]
                self.carried[way] += len(data)
                self.ends[way].append(self.carried[way])
                breaks = self.breaks
                if way in self.silent:
                    continue
                if breaks is None or breaks.way != way or self.carried[way] < breaks.after:
                    target.sendall(data)
                    continue
                if breaks.how == END and hasattr(socket, "TCP_CORK"):  # with the last bytes
                    target.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                target.sendall(data[: breaks.after - before])
                if breaks.how == RESET:
                    self.cut(RESET)
                elif breaks.how == END:
                    target.shutdown(socket.SHUT_WR)
                self.silent.add(way)
        if way not in self.silent:
            self.cut(END)
