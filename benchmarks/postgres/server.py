"""The run's own PostgreSQL: on loopback, on a free port, gone when the run ends."""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ..server import _die_too

#: Where Debian has the programs of each version.
_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _program(name: str) -> str:
    folders = ":".join(map(str, _FOLDERS))
    found = shutil.which(name) or shutil.which(name, path=folders)
    if found is None:
        raise SystemExit(f"{name} is neither on PATH nor where Debian installs PostgreSQL")
    return found


def _beginning(folder: str) -> Callable[[], None]:
    """What its processes do first. PostgreSQL refuses to run as root."""
    user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)

    def begin() -> None:
        if user is not None:
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        os.chdir(folder)
        _die_too()

    return begin


@contextlib.contextmanager
def running(*settings: str) -> Iterator[str]:
    """The URL of a user that may do everything, at a server with these settings."""
    with tempfile.TemporaryDirectory(prefix="pressure-mp-bench-") as folder:
        begin = _beginning(folder)
        make = [_program("initdb"), "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, preexec_fn=begin)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [_program("postgres"), "-D", "data", "-p", str(port)]
        for setting in ("listen_addresses=127.0.0.1", "unix_socket_directories=.", *settings):
            command += ["-c", setting]
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=begin)
        try:
            asking = [_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "20"]
            while subprocess.run(asking, check=False).returncode:
                if process.poll() is not None:
                    raise SystemExit(Path(folder, "log").read_text())
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGINT)  # clients are not waited for
            process.wait()


def measure_each_setting(description: str, measure: Callable[[str, int], None]) -> None:
    """A program that measures at a server whose commits wait for the disk, and at one whose commits
    do not: ``measure`` is given its URL and the number of rounds."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for setting in ("synchronous_commit=on", "synchronous_commit=off"):
        with running(setting) as url:
            print(f"{setting}: load average {os.getloadavg()[0]:.1f}", flush=True)
            measure(url, options.rounds)
