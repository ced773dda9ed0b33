"""Serve the dashboard with a server of its own."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can connect to that address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def serve(app: ASGIApp, address: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. ``tell`` is called with the URL. With port 0 the port is a
    free one. Raises OSError where listening is not possible."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as listening:
        host = f"[{address}]" if ":" in address else address
        tell(f"http://{host}:{listening.getsockname()[1]}/")
        uvicorn.Server(config).run(sockets=[listening])
