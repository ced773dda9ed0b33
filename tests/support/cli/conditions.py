"""Short runs of the command under chosen conditions, each forked from a process that has imported
it."""

from __future__ import annotations

import atexit
import fcntl
import os
import pty
import signal
import struct
import sys
import tempfile
import termios
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import IO, Any, NamedTuple

from started import quickly

#: Seconds after which a run is ended by a signal.
_LIMIT = 40
#: What ends the input of a terminal.
_END = b"\x04"


class Ended(NamedTuple):
    """How a run ended: its exit status, and what it wrote. In a terminal errors are output."""

    status: int
    output: str
    errors: str


class Runs:
    """A process that runs the command as it is told to."""

    def __init__(self) -> None:
        self._asking, asked = quickly.Pipe()
        self._process = quickly.Process(target=_serve, args=(asked,), daemon=True)
        self._process.start()
        asked.close()

    def run(self, where: str, environ: dict[str, str], *args: object) -> Ended:
        """One run in a ``terminal`` of 40 columns; ``nowhere``, which is without a terminal and
        without input; or ``unread``, where no process reads its output."""
        self._asking.send((where, environ, [*map(str, args)]))
        return Ended(*self._asking.recv())

    def end(self) -> None:
        """No more runs."""
        self._asking.close()
        self._process.join(_LIMIT)


def _serve(asked: Connection) -> None:
    import pressure_mp.cli.app  # noqa: F401  # for all runs

    while True:
        try:
            where, environ, args = asked.recv()
        except EOFError:
            return
        ways = {"terminal": _in_terminal, "nowhere": _nowhere, "unread": _unread}
        asked.send(tuple(ways[where](environ, args)))


def _in_terminal(environ: dict[str, str], args: Sequence[str]) -> Ended:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    child = _fork(environ, args, theirs, theirs, theirs)
    os.close(theirs)
    os.write(ours, _END)
    output = b""
    try:
        while read := os.read(ours, 1 << 16):
            output += read
    except OSError:  # a terminal that no process has open any more
        pass
    os.close(ours)
    text = output.decode().replace("\r\n", "\n").removeprefix("^D\b\b")
    return Ended(_status(child), text, "")


def _nowhere(environ: dict[str, str], args: Sequence[str]) -> Ended:
    with tempfile.TemporaryFile() as output:
        status, errors = _without_input(environ, args, output.fileno())
        return Ended(status, _text(output), errors)


def _unread(environ: dict[str, str], args: Sequence[str]) -> Ended:
    reader, writer = os.pipe()
    os.close(reader)
    status, errors = _without_input(environ, args, writer)
    os.close(writer)
    return Ended(status, "", errors)


def _without_input(environ: dict[str, str], args: Sequence[str], output: int) -> tuple[int, str]:
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as errors:
        child = _fork(environ, args, nothing.fileno(), output, errors.fileno())
        return _status(child), _text(errors)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _fork(environ: dict[str, str], args: Sequence[str], *files: int) -> int:
    """A process that runs the command with these as its standard files."""
    child = os.fork()
    if child:
        return child
    status: Any = 1
    try:
        signal.alarm(_LIMIT)
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(0),
            os.fdopen(1, "w"),
            os.fdopen(2, "w", buffering=1),
        )
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        os.environ.clear()
        os.environ.update(environ)
        from pressure_mp.cli.app import app

        app.main([*args], prog_name="pressure-mp")
    except SystemExit as error:
        status = error.code or 0
    except BaseException:
        traceback.print_exc()
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        os._exit(status)
