"""Whether a process lives: the answers for real processes, and for unknown ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest
from views import View
from waiting import until

from pressure_mp.identity import client, processes
from pressure_mp.identity.client import is_gone
from pressure_mp.identity.processes import host, incarnation, state, user

#: Prints the ids of its process, and ends when it is told to.
ITSELF = """
from pressure_mp.identity.client import client_id, ticket
from pressure_mp.identity.processes import user
print(user(), client_id(), ticket(), flush=True)
input()
"""


def test_a_process_is_alive_then_stopped_then_dead(program):
    other = program(ITSELF)
    names = other.says().split(" ")
    seen = lambda: {state(names[0]), state(names[2])}  # noqa: E731
    assert seen() == {"alive"}
    os.kill(other.process.pid, signal.SIGSTOP)
    until(lambda: seen() == {"stopped"})
    assert [is_gone(name) for name in names[1:]] == [False, False]
    os.kill(other.process.pid, signal.SIGCONT)
    until(lambda: seen() == {"alive"})
    os.kill(other.process.pid, signal.SIGKILL)
    until(lambda: psutil.Process(other.process.pid).status() == psutil.STATUS_ZOMBIE)
    assert seen() == {"dead"}, "one that is not yet waited for"
    other.process.wait()
    assert seen() == {"dead"}
    assert [is_gone(name) for name in names[1:]] == [True, True]


def test_a_thread_has_one_id_also_when_it_is_asked_for_in_the_midst_of_that(monkeypatch):
    names, draw = [], os.urandom

    def draw_interrupted(size):
        monkeypatch.setattr(os, "urandom", draw)
        names.append(client.client_id())  # as a signal handler would
        return draw(size)

    def ask():
        monkeypatch.setattr(os, "urandom", draw_interrupted)
        names.extend([client.client_id(), client.client_id_bytes().decode()])

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(names) == 3
    assert len(set(names)) == 1


def test_a_later_process_with_the_same_pid_is_another_one(program):
    other = program(ITSELF)
    name, client, ticket = other.says().split(" ")
    where, pid, start = name.rsplit("/", 2)
    earlier = str(int(start) - 1)
    assert state(f"{where}/{pid}/{earlier}") == "dead"
    assert is_gone(client.replace(f"-{start}-", f"-{earlier}-")) is True
    assert is_gone(ticket.replace(f"/{start}/", f"/{earlier}/")) is True


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says a process's name with its start")
def test_the_name_of_a_program_can_be_any_text(program):
    rename = "open('/proc/self/comm', 'w').write('x) Z 1 ) R (')\n"
    other = program(rename + ITSELF)
    assert state(other.says().split(" ")[0]) == "alive"


def test_a_process_knows_that_it_lives():
    assert state(user()) == state(incarnation()) == "alive"


def test_the_state_of_a_process_that_is_not_of_this_host_is_unknown():
    where, pid, start = user().rsplit("/", 2)
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert state(f"{where}/{ended}/1") == "dead"
    others = (
        "",
        "stepwise",
        where,
        f"{where}/{pid}",
        f"{where}x/{ended}/1",
        f"x{where}/{ended}/1",
        f"{where}/{pid}/x",
        f"{where}/{'9' * 12}/{start}",
        f"{where}/-1/{start}",
    )
    assert [state(other) for other in others] == ["unknown"] * len(others)
    name, _, mark = host().rpartition("-")
    client = f"{name}:{ended}:1:{{}}-1-0123abcd"
    assert is_gone(client.format(mark)) is True
    assert is_gone(client.format("0" * 12)) is None, "another machine of the same name"


def test_a_start_that_was_never_known_says_nothing(program):
    other = program(ITSELF)
    where, pid, _ = other.says().split(" ")[0].rsplit("/", 2)
    assert state(f"{where}/{pid}/") == "unknown"
    other.kill()
    assert state(f"{where}/{pid}/") == "dead"


# What the kernel shows a program

#: Says its host and what it makes of itself, and then of each process that it reads of.
JUDGE = """
import sys
from pressure_mp.identity.processes import host, state, user
print(host(), state(user()), flush=True)
for line in sys.stdin:
    print(state(line.strip()), flush=True)
"""

NO_PROC = View("no /proc", ("mount -t tmpfs tmpfs /proc",))
NO_BOOT = View("no boot_id", ("mount -t tmpfs tmpfs /proc/sys/kernel/random",))
EMPTY_BOOT = View("an empty boot_id", ("mount --bind /dev/null /proc/sys/kernel/random/boot_id",))


def ask(judge, process):
    judge.process.stdin.write(f"{process}\n")
    judge.process.stdin.flush()
    return judge.says()


@pytest.mark.parametrize("view", [NO_PROC, NO_BOOT, EMPTY_BOOT], ids=str)
def test_where_the_boot_is_not_known_a_process_knows_only_itself(program, view):
    one, other = program(JUDGE, view=view), program(JUDGE, view=view)
    (here, itself), (there, _) = one.says().split(" "), other.says().split(" ")
    assert len({here, there, host()}) == 3, "two hosts would look like one"
    assert itself == "alive"
    assert ask(one, user()) == "unknown"


def test_in_another_pid_namespace_nothing_is_known_of_this_one(program):
    judge = program(JUDGE, view=View("pids of its own", pids=True))
    here, itself = judge.says().split(" ")
    assert (here != host(), itself) == (True, "alive")
    assert ask(judge, user()) == "unknown"


#: Has a child of its own, in its own pid namespace, and judges it by another namespace's /proc.
JUDGES_ITS_CHILD = """
import subprocess, sys
from pressure_mp.identity.processes import host, state, user
child_says = "from pressure_mp.identity.processes import user; print(user(), flush=True); input()"
child = subprocess.Popen(
    [sys.executable, "-c", child_says],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
)
name = child.stdout.readline().strip()
print(name.startswith(host()), state(name), flush=True)
child.communicate("\\n")
print(state(name), flush=True)
"""


def test_a_proc_of_another_pid_namespace_is_not_believed(program):
    judge = program(JUDGES_ITS_CHILD, view=View("another's /proc", pids=True))
    assert judge.says() == "True unknown"
    assert judge.says() == "dead"


def test_a_proc_of_this_pid_namespace_is_believed(program):
    own = View("its own /proc", ("mount -t proc proc /proc",), pids=True)
    judge = program(JUDGES_ITS_CHILD, view=own)
    assert judge.says() == "True alive"
    assert judge.says() == "dead"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_is_another_process():
    child = os.fork()
    if not child:
        os._exit(processes.user().split("/")[1] != str(os.getpid()))
    assert os.waitpid(child, 0)[1] == 0
