"""Run one Valkey server for as long as a process uses it, then stop it.

``launcher.py`` starts this file as a process of its own, ``python -I -S supervisor.py …``, so it
imports the standard library only. A program without a Python interpreter, such as a frozen one,
forks instead, and the child calls :func:`become`. A server needs such a process because its users
can be killed at any moment, and could then not stop it.

Arguments::

    private DIRECTORY BINARY OWNER_PID LOCK    serve until that process ends
    shared DIRECTORY BINARY                    serve until no process locks the users file

The supervisor and its server have the directory itself locked: a lock file could be removed, and
then a second server could write to the same files. ``LOCK`` is the open directory, locked. Of a
shared directory the supervisor takes the lock itself.

Standard input is, for a private server, a pipe whose other end its owner keeps open.

Standard output gets dots while the server loads its data, then ``READY``. On a failure it ends
without ``READY``, with the reason as the last text.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

SOCKET_NAME = "server.sock"
LOG_NAME = "server.log"
USERS_LOCK_NAME = "users.lock"

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

#: The seconds that a server may take to end after SIGTERM. A shared server has a file to write.
_PRIVATE_GRACE_SECONDS = 0.3
_SHARED_GRACE_SECONDS = 10.0

_LOG_TAIL_BYTES = 2000

#: The credentials of a peer in Linux: pid, user, group.
_CREDENTIALS = struct.Struct("iII")
#: The beginning of the credentials of a peer in macOS: a version and the user.
_XUCRED = struct.Struct("II")
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1

_PR_SET_PDEATHSIG = 1

_ENDING_SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGHUP

#: Waits at most so many seconds, and returns whether no process uses the server any more.
Unused = Callable[[float], bool]


class StrangerError(PermissionError):
    """A server belongs to another user, with the number ``uid``."""

    def __init__(self, uid: int) -> None:
        super().__init__(f"the server there belongs to user {uid}")
        self.uid = uid


def peer(client: socket.socket) -> int | None:
    """Return the number of the user that listens at the other end of a Unix socket; None where the
    system does not tell."""
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
    """Return the first bytes that the server on ``socket_path`` answers; empty if no process
    listens.

    Blocks for at most ``seconds``.

    Raises:
        TimeoutError: a process listens, but does not answer.
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
    """Tell whether ``path`` still names the open file, and not another one or none."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:  # the path, or the descriptor, does not exist any more
        return False


def try_lock(fd: int) -> bool:
    """Lock an open file or directory for this process and the processes that inherit it; false
    when another process has it locked. Raises OSError where the file system has no such locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def become(arguments: Sequence[str], kept: Collection[int]) -> NoReturn:
    """Run the supervisor in a child that was forked, without starting another program.

    Of the open files only the first three and ``kept`` stay.
    """
    try:
        _forget_the_program(kept)
        main(arguments)
    except SystemExit as end:
        if isinstance(end.code, str):
            os.write(2, end.code.encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)  # without what the program does at its exit


def _forget_the_program(kept: Collection[int]) -> None:
    # No code of the program may run here: no finalizers, no signal handlers, no tracing.
    gc.disable()
    sys.settrace(None)
    sys.setprofile(None)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as where Python starts
    for fd in map(int, os.listdir("/dev/fd")):
        if fd > 2 and fd not in kept:
            with suppress(OSError):  # the descriptor that the list came from
                os.close(fd)


def main(arguments: Sequence[str]) -> None:
    """Serve as the arguments say; return when the server has ended."""
    # A blocked SIGTERM would make the server deaf to the order to stop, an ignored SIGCHLD would
    # confuse it about its children: both are inherited.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.umask(0o077)
    mode, directory, binary, *numbers = arguments
    if mode == "private":
        _run_private(directory, binary, *map(int, numbers))
    else:
        _run_shared(directory, binary)


def _end(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _run_private(directory: str, binary: str, owner_pid: int, lock: int) -> None:
    poller = select.poll()
    poller.register(0, select.POLLIN)

    def unused(seconds: float) -> bool:
        # The pipe tells at once. It fails if a process that was forked without Python's help
        # still has the other end; the parent's process id tells then.
        return bool(poller.poll(seconds * 1000)) or os.getppid() != owner_pid

    try:
        options, grace = _PRIVATE_OPTIONS, _PRIVATE_GRACE_SECONDS
        with _server(directory, binary, options, grace, lock) as server:
            _wait_until_ready(server, directory, unused)
            _report_ready()
            while server.poll() is None and not unused(0.1):
                pass
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_shared(directory: str, binary: str) -> None:
    # The server outlives the process that asked for it, which must not be left with a child
    # that it does not know.
    if os.fork():
        os._exit(0)
    lock = _lock_or_find_server(directory)
    if lock is None:
        return _report_ready()
    users = _Users(os.path.join(directory, USERS_LOCK_NAME))
    while _serve_shared(directory, binary, lock, users):
        pass


def _serve_shared(directory: str, binary: str, lock: int, users: _Users) -> bool:
    """Run a server until it has ended; return whether its users need another one."""
    socket_path = os.path.join(directory, SOCKET_NAME)
    with suppress(FileNotFoundError):
        os.unlink(socket_path)
    options, grace = _SHARED_OPTIONS, _SHARED_GRACE_SECONDS
    with _server(directory, binary, options, grace, lock) as server:
        _wait_until_ready(server, directory, users.have_gone)
        _report_ready()
        while server.poll() is None and os.path.exists(socket_path):
            if not is_file(lock, directory) or users.have_gone(0.2):
                break
        if not is_file(lock, directory):
            # The directory was removed, and its data with it. A process that is connected to this
            # server must not go on beside the users of a server that is started in its place. A
            # clean end would remove the socket of that other server.
            server.kill()
            return False
        # A server whose socket was removed lives on, and no process can connect to it.
        return server.poll() is None and not os.path.exists(socket_path)


def _lock_or_find_server(directory: str) -> int | None:
    """Lock the directory, for as long as this process or the server lives. Returns None when
    another supervisor was faster, and its server answers."""
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + START_SECONDS
    while not _try_to_lock_directory(lock, directory):
        reply = _ping_or_nothing(os.path.join(directory, SOCKET_NAME))
        if reply.startswith(LOADING):
            _report(SIGN_OF_LIFE)
            deadline = time.monotonic() + START_SECONDS
        elif reply:
            return None
        elif time.monotonic() > deadline:
            sys.exit(
                f"another server has its data in {directory}, and does not answer at "
                f"{SOCKET_NAME} there: end that server, or use another directory"
            )
        time.sleep(0.01)
    if not is_file(lock, directory):
        sys.exit(f"{directory} was removed meanwhile")
    return lock


def _try_to_lock_directory(lock: int, directory: str) -> bool:
    try:
        return try_lock(lock)
    except OSError as error:  # such as NFS
        sys.exit(f"the file system of {directory} cannot lock a directory: {error}")


class _Users:
    """The processes that lock the users file, also a users file that was removed since."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = [self._open()]

    def have_gone(self, seconds: float) -> bool:
        """Wait, and return whether no process uses the server any more. Then the file stays locked
        until this process ends, so that a new user waits for the end of the shutdown."""
        time.sleep(seconds)
        while True:
            if not is_file(self._files[-1], self._path):
                try:
                    self._files.append(self._open())
                except FileNotFoundError:  # so the directory was removed
                    return False
            for fd in self._files[:-1]:
                if try_lock(fd):
                    self._files.remove(fd)
                    os.close(fd)
            if len(self._files) > 1 or not try_lock(self._files[-1]):
                return False
            if is_file(self._files[-1], self._path):
                return True

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)


@contextmanager
def _server(
    directory: str, binary: str, options: tuple[str, ...], grace: float, *inherited_fds: int
) -> Iterator[subprocess.Popen[bytes]]:
    for number in _ENDING_SIGNALS:
        signal.signal(number, _end)
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
    libc = ctypes.CDLL(None)
    supervisor = os.getpid()

    def in_child() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:  # it was killed before the call above
            os._exit(1)

    return in_child


def _stop(server: subprocess.Popen[bytes], grace: float) -> None:
    for number in _ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    end(server, grace)


def end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End a child process: ask it to, and kill it if it is still there after so many seconds."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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
    sys.exit("no process waits for it any more")


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
    # The process that asked for the server may have ended; other processes may wait for it.
    with suppress(BrokenPipeError):
        os.write(1, text)


def _report_ready() -> None:
    _report(READY)
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)


if __name__ == "__main__":
    main(sys.argv[1:])
