"""Names of queues are completed, in real shells."""

from __future__ import annotations

import os
import shutil
import socket
import sys

import pexpect
import pytest
from cli.runs import environment
from opened import opened
from waiting import LIMIT, until

from pressure_mp import Queue

SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], ""),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -D -u; "),
}


@pytest.fixture(params=SHELLS)
def shell(request, valkey, name, tmp_path):
    """One in a terminal that has the command, and its completion."""
    program = request.param
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    command = tmp_path / "pressure-mp"
    code = "import sys; sys.argv[0] = 'pressure-mp'; from pressure_mp.cli import main; main()"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -W error -c "{code}" "$@"\n')
    command.chmod(0o755)
    environ = {
        **environment(name),
        "PRESSURE_URL": valkey.url,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TERM": "dumb",
    }
    arguments, before = SHELLS[program]
    terminal = pexpect.spawn(
        program, arguments, env=environ, dimensions=(24, 200), timeout=LIMIT, encoding="utf-8"
    )
    source = f'eval "$(_PRESSURE_MP_COMPLETE={program}_source pressure-mp)"'
    terminal.sendline(f"{before}{source}; PS1='read''y> '")
    terminal.expect("ready> ")
    yield terminal
    terminal.close(force=True)


def complete(shell, typed, rest):
    """Type it, and press Tab until the rest is there: a busy machine may not answer in time."""
    shell.send(typed)
    until(lambda: shell.send("\t") and not shell.expect([rest, pexpect.TIMEOUT], timeout=3))


def test_the_name_of_a_queue_is_completed(shell, valkey, name):
    for one in ("jobs-first", "jobs-second", "other", "jobs:first", "jobs-s not one word"):
        opened(Queue(0, one, url=valkey.url, prefix=name))
    complete(shell, "pressure-mp why jobs-s", "econd ")
    shell.sendline()
    shell.expect("queue 'jobs-second': holds 0 items")
    shell.expect("ready> ")
    complete(shell, f"PRESSURE_URL= pressure-mp copy --to-url {valkey.url} source oth", "er ")
    complete(shell, f"\x15PRESSURE_URL= pressure-mp why --url={valkey.url} oth", "er ")
    complete(shell, "\x15pressure-mp why jobs:fi", "rst ")


def test_a_shell_is_told_of_no_error_and_not_kept_waiting(shell):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for url in (f"redis://127.0.0.1:{port}", "nonsense"):
            shell.send(f"pressure-mp why --url {url} jobs\t")
            shell.send("-42 --help\r")
            shell.expect("jobs")
            shell.expect(r"Usage: pressure-mp why \[OPTIONS\] NAME")
            assert "rror" not in shell.before
            assert "-42 --help" in shell.before
            shell.expect("ready> ")
