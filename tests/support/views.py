"""Programs that are shown the processes of this machine otherwise than a test is."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

#: Becomes a user to which the kernel shows no processes of others. Modules that the program imports
#: may lie where that user cannot read, so they are used once before; and a new process finds out
#: all by itself.
_NOBODY = """
import os
prefix, os.environ["PRESSURE_PREFIX"] = os.environ["PRESSURE_PREFIX"], "warm-" + os.urandom(8).hex()
import pressure_mp
for kind in (pressure_mp.Queue, pressure_mp.JoinableQueue, pressure_mp.TaskQueue):
    with kind.create("warm") as queue:
        queue.put(1)
        if kind is pressure_mp.TaskQueue:
            queue.take(0).ack()
        else:
            queue.get()
            queue.task_done()
        queue.delete()
with pressure_mp.JoinableQueue() as queue:
    pass
os.environ["PRESSURE_PREFIX"] = prefix
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
child = os.fork()
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@dataclass(frozen=True)
class View:
    """What a program is shown: ``mounts`` are commands that are run in a mount namespace of its
    own, ``before`` is Python that it begins with, ``needs`` says what a machine may not have."""

    name: str
    mounts: tuple[str, ...] = ()
    before: str = ""
    pids: bool = False  # has a pid namespace of its own

    def __str__(self) -> str:
        return self.name

    @property
    def command(self) -> list[str]:
        if not self.mounts and not self.pids:
            return []
        options = ["--pid", "--fork", "--kill-child"] if self.pids else []
        script = "; ".join(("set -e", *self.mounts, 'exec "$@"'))
        unshare = ["unshare", "--mount", "--propagation", "private", *options]
        return [*unshare, "sh", "-c", script, "sh"]


AS_IT_IS = View("as it is")
HIDDEN = View("hidepid=2", ("mount -t proc -o hidepid=2 proc /proc",), _NOBODY)


def clock_step(seconds: int, directory: Path) -> View:
    """The kernel's moment of the boot is that much later, as after a step of the clock."""
    lines = Path("/proc/stat").read_text().splitlines(keepends=True)
    (before,) = (line for line in lines if line.startswith("btime "))
    after = f"btime {int(before.split()[1]) + seconds}\n"
    stat = directory / "stat"
    stat.write_text("".join(after if line is before else line for line in lines))
    return View(f"clock {seconds:+} s", (f"mount --bind {stat} /proc/stat",))


@functools.cache
def _refusal(view: View) -> str:
    """Why a program cannot be shown that here; empty if it can."""
    if not view.command:
        return ""
    if shutil.which("unshare") is None:
        return "unshare(1) is not here"
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    if release < (5, 8):
        return "before Linux 5.8 all mounts of /proc have the same options"
    if view.before and os.getuid():
        return "only root can start another user's process"
    run = subprocess.run([*view.command, "true"], capture_output=True, text=True)
    return run.stderr.strip() if run.returncode else ""


def require(view: View) -> None:
    """Skip the test where a program cannot be shown that."""
    if sys.platform != "linux":
        pytest.skip("mount namespaces are of Linux")
    if refusal := _refusal(view):
        pytest.skip(f"{view} cannot be had here: {refusal}")


@dataclass
class Program:
    """A program that says lines, and goes on when it is told to."""

    code: str
    view: View = AS_IT_IS
    arguments: tuple[Any, ...] = ()
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        require(self.view)
        command = [*self.view.command, sys.executable, "-W", "ignore", "-c"]
        self.process = subprocess.Popen(
            [*command, self.view.before + self.code, *map(str, self.arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        """Its next line; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Whatever is left of it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()
