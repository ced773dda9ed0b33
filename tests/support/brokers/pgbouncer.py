"""PgBouncer, if it is there, on a free port before a PostgreSQL server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port
from waiting import until

from brokers.postgres import ROLE, Postgres

_CONFIGURATION = """
[databases]
postgres = host=127.0.0.1 port={server} dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = {size}
ignore_startup_parameters = options
"""


@contextmanager
def pooling(server: Postgres, mode: str, size: int = 2) -> Iterator[str]:
    """The URL of a pooler that leads to the server, until the block ends. Its users are the
    limited role and "serial"."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    port, folder = free_port(), Path(tempfile.mkdtemp(dir=server.directory))
    folder.chmod(0o755)
    (folder / "users").write_text(f'"{ROLE}" ""\n"serial" ""\n')
    file = folder / "pgbouncer.ini"
    text = _CONFIGURATION.format(server=server.port, port=port, folder=folder, mode=mode, size=size)
    file.write_text(text)
    process = subprocess.Popen([program, "-q", str(file)], preexec_fn=server.begin)
    try:
        until(lambda: process.poll() is not None or _answers(port))
        yield f"postgresql://{ROLE}@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
