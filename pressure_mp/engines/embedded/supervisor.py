"""Runs one Valkey server for as long as somebody uses it, then stops it.

``launcher.py`` starts this file as a process of its own, ``python -I -S supervisor.py …``, so
it imports the standard library only. A server needs such a process because the one that wants
the server can be killed at any moment, and could then not stop it.

Arguments::

    private DIRECTORY BINARY OWNER_PID LOCK    serve until that process ends
    shared DIRECTORY BINARY                    serve until nobody locks the users file

``LOCK`` is an open file, locked as long as this process or the server has it.

Standard input is not for reading text. For a private server it is a pipe whose other end its owner
keeps open, for a shared one it is the locked start file.

Standard output gets dots while the server loads its data, then ``READY``. On a failure it ends
without ``READY``, with the reason as the last text.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    import subprocess

SOCKET_NAME = "server.sock"
LOG_NAME = "server.log"
USERS_LOCK_NAME = "users.lock"
START_LOCK_NAME = "start.lock"
SERVER_LOCK_NAME = "server.lock"

READY = b"ready\n"
SIGN_OF_LIFE = b"."
START_SECONDS = 10.0
LOADING = b"-LOADING"

_COMMON_OPTIONS = (
    *("--port", "0"),
    *("--unixsocketperm", "700"),
    *("--daemonize", "no"),
    *("--databases", "16"),
    *("--enable-debug-command", "no"),
    *("--save", ""),
    *("--loglevel", "notice"),
)
_PRIVATE_OPTIONS = ("--appendonly", "no")
_SHARED_OPTIONS = ("--appendonly", "yes", "--appendfsync", "everysec")

#: How long a server may take to end after SIGTERM. The shared one has a file to write out.
_PRIVATE_GRACE_SECONDS = 0.3
_SHARED_GRACE_SECONDS = 10.0

_LOG_TAIL_BYTES = 2000

#: What Linux says of a peer: pid, user, group.
_CREDENTIALS = struct.Struct("iII")
#: What macOS says begins with a version and the user.
_XUCRED = struct.Struct("II")
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1

_PR_SET_PDEATHSIG = 1

#: Waits at most so many seconds; true when nobody uses the server any more.
Unused = Callable[[float], bool]


class StrangerError(PermissionError):
    """A server is another user's, whose number is ``uid``."""

    def __init__(self, uid: int) -> None:
        super().__init__(f"the server there belongs to user {uid}")
        self.uid = uid


def peer(client: socket.socket) -> int | None:
    """The number of the user who listens at the other end of a Unix socket; None where the system
    does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = _CREDENTIALS.unpack(
            client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        return int(uid)
    if sys.platform == "darwin":
        _, uid = _XUCRED.unpack_from(client.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 128))
        return int(uid)
    return None


def ping(socket_path: str, seconds: float) -> bytes:
    """The first bytes that the server on ``socket_path`` answers; empty if nobody listens.

    Blocks for at most ``seconds``.

    Raises:
        TimeoutError: somebody listens, but does not answer.
        StrangerError: another user listens. Nothing was sent.
        OSError: the path cannot be used at all.
    """
    with socket.socket(socket.AF_UNIX) as client:
        deadline = time.monotonic() + seconds
        client.settimeout(seconds)
        try:
            _connect(client, socket_path, deadline)
            owner = peer(client)
            if owner not in (None, os.geteuid()):
                raise StrangerError(owner)
            client.settimeout(max(deadline - time.monotonic(), 0.01))
            client.sendall(b"PING\r\n")
            return client.recv(256)
        except (FileNotFoundError, ConnectionError):
            return b""


def _connect(client: socket.socket, socket_path: str, deadline: float) -> None:
    while True:
        try:
            return client.connect(socket_path)
        except BlockingIOError:  # Linux: the listener's queue of new connections is full
            if time.monotonic() > deadline:
                raise TimeoutError(f"{socket_path} accepts no connection") from None
            time.sleep(0.01)


def is_file(fd: int, path: str) -> bool:
    """Whether ``path`` still names the open file, and not another one or none."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def main() -> None:
    """Serve as the arguments say; returns when the server has ended."""
    _reset_signals()
    os.umask(0o077)
    mode, directory, binary, *numbers = sys.argv[1:]
    if mode == "private":
        _run_private(directory, binary, *map(int, numbers))
    else:
        _run_shared(directory, binary)


def _reset_signals() -> None:
    # All of these are inherited, and the server inherits them in turn: a blocked SIGTERM would
    # make it deaf to the order to stop, an ignored SIGCHLD would confuse it about its children.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)


def _end(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _run_private(directory: str, binary: str, owner_pid: int, lock: int) -> None:
    import shutil

    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN)

    def unused(seconds: float) -> bool:
        # The pipe tells at once. It fails if a process that was forked without Python's help
        # still has the other end; the parent's process id tells then.
        return bool(poller.poll(seconds * 1000)) or os.getppid() != owner_pid

    try:
        options, grace = _PRIVATE_OPTIONS, _PRIVATE_GRACE_SECONDS
        with _server(directory, binary, options, grace, lock) as server:
            _wait_until_ready(server, directory, unused)
            _report_ready()
            _wait_until_unused(server, unused, 0.1)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_shared(directory: str, binary: str) -> None:
    # The server outlives the process that asked for it, which must not be left with a child
    # that it does not know.
    if os.fork():
        os._exit(0)
    users_path = os.path.join(directory, USERS_LOCK_NAME)
    users_lock = os.open(users_path, os.O_RDWR)

    def unused(seconds: float) -> bool:
        # Once taken, this lock is kept to the end of this process, so that whoever comes during
        # the shutdown waits for its end.
        time.sleep(seconds)
        return _try_lock(users_lock)

    server_lock = _lock_server(directory)
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, SOCKET_NAME))
    options, grace = _SHARED_OPTIONS, _SHARED_GRACE_SECONDS
    with _server(directory, binary, options, grace, server_lock) as server:
        _wait_until_ready(server, directory, unused)
        _redirect_to_null(sys.stdin)  # gives the start lock back
        _report_ready()
        _wait_until_unused(server, unused, 0.2)
        if not is_file(users_lock, users_path):
            # The directory was removed. A clean end would also remove the socket of the server
            # that may have been started in its place.
            server.kill()


def _lock_server(directory: str) -> int:
    # Two servers would destroy each other's append-only file. The server itself holds this lock
    # too, so that it protects the file of a server whose supervisor was killed.
    lock = os.open(os.path.join(directory, SERVER_LOCK_NAME), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + START_SECONDS
    while not _try_lock(lock):
        if time.monotonic() > deadline:
            sys.exit("another server still runs on this directory, but not on its socket")
        time.sleep(0.01)
    return lock


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _server(
    directory: str, binary: str, options: tuple[str, ...], grace: float, *inherited_fds: int
) -> Iterator[subprocess.Popen[bytes]]:
    import subprocess

    paths = ("--dir", directory, "--unixsocket", os.path.join(directory, SOCKET_NAME))
    with open(os.path.join(directory, LOG_NAME), "ab") as log:
        try:
            server = subprocess.Popen(
                [binary, *_COMMON_OPTIONS, *options, *paths],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=inherited_fds,
                # Safe, since this process has one thread only.
                preexec_fn=_die_with_supervisor(),
            )
        except OSError as error:
            sys.exit(f"cannot run {binary}: {error}")
    try:
        yield server
    finally:
        _stop(server, grace)


def _die_with_supervisor() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    libc = ctypes.CDLL(None)
    supervisor = os.getpid()

    def in_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:  # it was killed before the call above
            os._exit(1)

    return in_child


def _stop(server: subprocess.Popen[bytes], grace: float) -> None:
    import subprocess

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    server.terminate()
    try:
        server.wait(grace)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], directory: str, unused: Unused) -> None:
    socket_path = os.path.join(directory, SOCKET_NAME)
    deadline = time.monotonic() + START_SECONDS
    pause = 0.005
    while not unused(pause):
        reply = _ping_or_nothing(socket_path)
        if reply.startswith(LOADING):
            # How long this takes depends on the amount of data, so it gets no time limit.
            _report(SIGN_OF_LIFE)
            deadline = time.monotonic() + START_SECONDS
            pause = 0.1
        elif reply:
            return
        elif server.poll() is not None:
            sys.exit(f"it ended with status {server.returncode}\n{_log_tail(directory)}")
        elif time.monotonic() > deadline:
            sys.exit(f"no answer within {START_SECONDS:.0f} s\n{_log_tail(directory)}")
    sys.exit("nobody waits for it any more")


def _ping_or_nothing(socket_path: str) -> bytes:
    try:
        return ping(socket_path, 1.0)
    except TimeoutError:
        return b""


def _log_tail(directory: str) -> str:
    with open(os.path.join(directory, LOG_NAME), "rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL_BYTES))
        return log.read().decode(errors="replace")


def _report(text: bytes) -> None:
    # Whoever asked for the server may be gone; others can wait for it all the same.
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), text)


def _report_ready() -> None:
    _report(READY)
    _redirect_to_null(sys.stdout)
    _redirect_to_null(sys.stderr)


def _redirect_to_null(stream: TextIO) -> None:
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), stream.fileno())


def _wait_until_unused(server: subprocess.Popen[bytes], unused: Unused, interval: float) -> None:
    while server.poll() is None and not unused(interval):
        pass


if __name__ == "__main__":
    main()
