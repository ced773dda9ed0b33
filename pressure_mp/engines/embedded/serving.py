"""The embedded server in the foreground: this process becomes it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NoReturn

from ...exceptions import EmbeddedServerError
from . import private_directories
from .launcher import server_binary, temporary_directory


def become_server(
    directory: Path | None, port: int, address: str, password: str | None, told: str
) -> NoReturn:
    """Replace this process by a server that listens there. Before that, ``told`` is written to the
    standard error. The password is on no command line.

    Raises EmbeddedServerError when the server is not installed, the port is taken, or the directory
    cannot be used, or another server has its data there.
    """
    binary = server_binary()
    _check_port(address, port)
    keeps = directory is not None
    try:
        place = directory or Path(temporary_directory())
        if keeps:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            private_directories.check(str(place.resolve()))
            _hold(place.resolve())
    except OSError as error:
        raise EmbeddedServerError(f"cannot use {directory} for a server: {error}") from error
    settings = {
        "bind": address,
        "port": str(port),
        "dir": str(place.resolve()),
        "daemonize": "no",
        "loglevel": "warning",
        "save": "",
        "appendonly": "yes" if keeps else "no",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "enable-debug-command": "no",
    }
    if password:
        settings["requirepass"] = password
    text = "".join(f"{name} {_quoted(value)}\n" for name, value in settings.items())
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    os.dup2(read, 0)
    os.write(2, told.encode())
    os.execv(binary, [binary, "-"])


def _hold(place: Path) -> None:
    """Lock the directory until the server ends: two servers that write there destroy each other's
    data. The lock stays with this process when it becomes the server. The server of programs that
    use the directory by ``embedded://`` has the same lock."""
    lock = private_directories.lock(str(place))
    if lock is None:
        raise EmbeddedServerError(
            f"a server runs already that has its data in {place}: end it, or the programs that use "
            "it by embedded://, or use another directory"
        )
    os.set_inheritable(lock, True)


def _quoted(value: str) -> str:
    """Quote a value for the server's configuration."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _check_port(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((address, port))
        except OSError as error:
            raise EmbeddedServerError(f"cannot listen at {address}:{port}: {error}") from error
