"""``pressure-mp demo pipeline``, run as its users run it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections import Counter

import pytest
from cli.runs import (
    ENDLESS,
    IGNORES_INTERRUPTS,
    LINES,
    LOSSY,
    MAIN,
    PIPELINE,
    environment,
    finished,
    python,
    running,
    started_by,
    write_programs,
)
from waiting import LIMIT, lasting

from pressure_mp import Queue
from pressure_mp.cli import statuses
from pressure_mp.cli.demos.pipeline import differences, python_files
from pressure_mp.cli.demos.stages import Totals

METHODS = ["fork", "spawn", "forkserver"]

PROGRAMS = {
    "a.py": b"import os\nfor name in os.environ:\n    match = name\n",
    "deep/down/b.py": b"def name(os): return lambda a, b, c, d, e, f, g, h: os\n",
    "site-packages/c.py": "# -*- coding: latin-1 -*-\nname = 'é'\nprint(name)\n".encode("latin-1"),
    "empty.py": b"",
    "d.txt": b"name name name name",
    "bad_syntax.py": b"name = (\n",
    "bad_coding.py": b"# -*- coding: uft-8 -*-\nname\n",
    "bad_bytes.py": b"name = '\xff'\n",
}
COMMONEST = """\
         5  name
         4  os
         1  a
         1  b
         1  c
         1  d
         1  e
         1  environ
         1  f
         1  g
"""
IDENTIFIERS = 13

PROGRESS = re.compile(
    r"(\d+) files: (\d+) read, (\d+) tokenised, (\d+) counted; "
    r"sources (\d+)/16 ([\d,]+) items/s; counts (\d+)/16 ([\d,]+) items/s\n"
)
EVERYONE_WORKS = r"[1-9]\d* counted"


@pytest.fixture
def programs(tmp_path):
    for path, text in PROGRAMS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text)
    return tmp_path


@pytest.fixture(scope="session")
def much_work(tmp_path_factory):
    """Programs that take many seconds to count."""
    return write_programs(tmp_path_factory.mktemp("much"), 500)


@pytest.fixture
def no_keys_left(valkey, name):
    """The run left nothing in the broker."""
    yield
    assert lasting(valkey.client(), f"{name}*") == []


def all_the_output(programs):
    return re.compile(
        rf"""7 Python files below {re.escape(str(programs))}, 2 workers
pressure_mp\.Queue at \S+
(?:{PROGRESS.pattern})+The commonest identifiers:
{COMMONEST}The same pipeline on multiprocessing\.Queue
(?:multiprocessing\.Queue: [\d.]+ s
)+Equal: 7 files \(3 skipped\), \d+ tokens, {IDENTIFIERS} different identifiers
pressure_mp\.Queue [\d.]+ s, multiprocessing\.Queue [\d.]+ s
"""
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("no_keys_left")
def test_the_demo_counts_the_same_as_on_the_standard_librarys_queues(
    method, valkey, name, programs
):
    command = started_by(method, *PIPELINE, "--url", valkey.url, "--workers", 2, programs)
    run = finished(command, name)
    assert run.stderr == ""
    assert all_the_output(programs).fullmatch(run.stdout)
    assert run.returncode == 0


@pytest.mark.parametrize("method", METHODS)
def test_its_own_server_needs_no_setting_up(method, name, programs):
    run = finished(started_by(method, *PIPELINE, "--workers", 2, programs), name)
    assert run.stderr == ""
    assert all_the_output(programs).fullmatch(run.stdout)
    assert run.returncode == 0


def test_the_standard_library_is_read_without_what_was_installed_into_it(programs):
    found = {path.name for path in python_files(programs, skip=("site-packages",))}
    assert found == {path.rpartition("/")[2] for path in PROGRAMS} - {"c.py", "d.txt"}


@pytest.mark.usefixtures("no_keys_left")
def test_without_a_terminal_it_writes_a_line_about_every_second(valkey, name, much_work):
    command = python(MAIN, *PIPELINE, "--url", valkey.url, much_work)
    begin = time.monotonic()
    with running(command, name) as run:
        lines = [PROGRESS.fullmatch(run.line_with("read,")) for _ in range(4)]
        assert time.monotonic() - begin > 2.5
        ends_when_interrupted(run)
    depths = []
    for line in lines:
        files, read, tokenised, counted, sources, rate, counts, _ = line.groups()
        assert files == "500"
        assert int(read) >= int(tokenised) >= int(counted)
        depths.append(int(sources))
        assert int(counts) <= 16
    assert max(depths) > 0, "the reader is faster than the workers"
    assert int(read) > 16
    assert int(rate) > 0
    assert int(read) - int(tokenised) < 30, "the reader was held back"


@pytest.mark.usefixtures("no_keys_left")
def test_on_a_terminal_it_shows_the_depth_and_the_rate_of_each_queue(valkey, name, tmp_path):
    directory = write_programs(tmp_path, 60)
    ours, theirs = os.openpty()
    command = python(MAIN, *PIPELINE, "--url", valkey.url, directory)
    settings = {**environment(name), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    output = read_all(ours, process)
    frames = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", output)
    assert process.returncode == 0, frames
    depths = re.findall(r"sources .*? (\d+)/16 +[\d,]+ items/s", frames)
    assert max(map(int, depths)) > 0
    assert re.search(r"counts .*? \d+/16 +[1-9][\d,]* items/s", frames)
    assert re.search(r"tokenised .*? 60/60 +files", frames)
    assert f"{60 * LINES * 2:,}  total" in frames
    assert "Equal: 60 files" in frames
    assert "\x1b[1A" in output, "it draws over what it drew"


def read_all(terminal, process):
    """What the process writes to a terminal, until it ends."""
    output = b""
    try:
        while True:
            ready, _, _ = select.select([terminal], [], [], 40)
            assert ready, output
            output += os.read(terminal, 65536)
    except OSError:  # how Linux tells the end of a terminal
        pass
    finally:
        os.close(terminal)
        process.wait(LIMIT)
    return output.decode()


def test_counts_that_differ_are_told_and_the_exit_status_is_1(valkey, name, programs):
    (programs / "lost.py").write_text("lost_in_transit = name\n")
    lossy = python(LOSSY, *PIPELINE, "--url", valkey.url)
    run = finished([*lossy, str(programs)], name)
    assert run.returncode == 1
    difference = re.fullmatch(
        r"""DIFFERENT, pressure_mp\.Queue and multiprocessing\.Queue:
  files: 8 and 7
  tokens: (\d+) and (\d+)
  identifier lost_in_transit: 1 and 0
  identifier name: 6 and 5
""",
        run.stderr,
    )
    assert difference, run.stderr
    encoding_name_op_name_newline_end = 6
    assert int(difference[1]) - int(difference[2]) == encoding_name_op_name_newline_end
    assert "Equal" not in run.stdout


def test_every_count_is_compared():
    same = Totals(1, 2, 3, Counter(a=4))
    assert differences(same, Totals(1, 2, 3, Counter(a=4))) == []
    assert differences(same, Totals(9, 2, 3, Counter(a=4))) == ["files: 1 and 9"]
    assert differences(same, Totals(1, 9, 3, Counter(a=4))) == ["skipped: 2 and 9"]
    assert differences(same, Totals(1, 2, 9, Counter(a=4))) == ["tokens: 3 and 9"]
    assert differences(same, Totals(1, 2, 3, Counter(b=4))) == [
        "identifier a: 4 and 0",
        "identifier b: 0 and 4",
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("no_keys_left")
def test_an_interrupt_ends_it_quickly_and_quietly(method, valkey, name, much_work):
    with running(started_by(method, *PIPELINE, "--url", valkey.url, much_work), name) as run:
        run.line_with(EVERYONE_WORKS)
        ends_when_interrupted(run)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("no_keys_left")
def test_an_interrupt_ends_processes_that_only_just_start(method, valkey, name, much_work):
    with running(started_by(method, *PIPELINE, "--url", valkey.url, much_work), name) as run:
        run.children(1)
        ends_when_interrupted(run)


def test_an_interrupt_ends_the_standard_librarys_pipeline_too(name, tmp_path):
    directory = write_programs(tmp_path, 10)
    with running(python(ENDLESS, *PIPELINE, directory), name) as run:
        run.line_with("multiprocessing.Queue:")
        ends_when_interrupted(run)


@pytest.mark.usefixtures("no_keys_left")
def test_a_demo_that_was_started_without_interrupts_ignores_them(valkey, name, tmp_path):
    directory = write_programs(tmp_path, 30)
    arguments = (*PIPELINE, "--url", valkey.url, directory)
    command = python(MAIN, *arguments, first=IGNORES_INTERRUPTS)
    with running(command, name) as run:
        run.line_with("read,")
        run.interrupt()
        status, output, errors = run.outcome(50)
    assert (status, errors) == (0, "")
    assert "Equal: 30 files" in output


def ends_when_interrupted(run):
    run.interrupt()
    status, _, errors = run.outcome()
    assert (status, errors) == (130, "Interrupted.\n")
    run.nothing_is_left()


@pytest.mark.parametrize(("index", "job"), [(0, "reading"), (1, "tokenising"), (3, "counting")])
@pytest.mark.usefixtures("no_keys_left")
def test_a_process_that_is_killed_makes_it_fail(valkey, name, much_work, index, job):
    command = started_by("fork", *PIPELINE, "--url", valkey.url, "--workers", 2, much_work)
    with running(command, name) as run:
        fails_when_killed(run, index, job)


def test_a_process_that_is_killed_makes_the_standard_librarys_pipeline_fail(valkey, name, tmp_path):
    directory = write_programs(tmp_path, 10)
    command = started_by(
        "fork", *PIPELINE, "--url", valkey.url, "--workers", 2, directory, main=ENDLESS
    )
    with running(command, name) as run:
        run.line_with("multiprocessing.Queue:")
        fails_when_killed(run, 1, "tokenising")


def fails_when_killed(run, index, job):
    victim = run.children(4)[index]
    victim.send_signal(signal.SIGKILL)
    status, _, errors = run.outcome()
    assert status == 1
    assert errors == (
        f"Error: the {job} process (pid {victim.pid}) was killed by SIGKILL, "
        "so the demo cannot go on\n"
    )
    run.nothing_is_left()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("no_keys_left")
def test_when_the_demo_itself_is_killed_its_processes_end(method, valkey, name, much_work):
    command = started_by(method, *PIPELINE, "--url", valkey.url, "--workers", 2, much_work)
    with running(command, name) as run:
        run.line_with(EVERYONE_WORKS)
        run.note_descendants()
        run.process.kill()
        run.nothing_is_left()
    # No process was left to remove the queues: the next program on this host does.
    Queue(url=valkey.url, prefix=name).close()


def writes_to(output, arguments, name):
    return subprocess.run(
        python(MAIN, *arguments),
        env=environment(name),
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
@pytest.mark.parametrize("arguments", [[*PIPELINE], ["demo", "fair"], ["--help"], ["--version"]])
def test_a_full_disk_ends_the_command_with_one_line(tmp_path, name, arguments):
    directory = [str(write_programs(tmp_path, 2))] if "pipeline" in arguments else []
    with open("/dev/full", "w") as full:
        run = writes_to(full, [*arguments, *directory], name)
    assert re.fullmatch(r"Error: cannot write to the standard output: .+\n", run.stderr)
    assert run.returncode == 1


def test_a_demo_whose_output_has_no_reader_ends_and_writes_no_error(tmp_path, name):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as without_reader:
        arguments = [*PIPELINE, str(write_programs(tmp_path, 2))]
        run = writes_to(without_reader, arguments, name)
    assert (run.returncode, run.stderr) == (statuses.READER_GONE, "")
