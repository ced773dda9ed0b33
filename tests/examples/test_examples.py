"""Every example, run as its text says."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
import subprocess
import sys

import pytest
from cli.examples import EXAMPLES, finish, start
from waiting import LIMIT, lasting, until

from pressure_mp import PressureQueue, TaskQueue

TRIED = {
    "bounded_pipeline.py",
    "delayed_retries.py",
    "executor_from_pool_map.py",
    "executor_from_process_pool.py",
    "executor_from_two_queues.py",
    "executor_two_machines.py",
    "fair_service.py",
    "legacy_after.py",
    "legacy_before.py",
    "orders_in_postgres.py",
    "priority_crawler.py",
    "pump.py",
    "shell_pipeline.sh",
    "thumbnailer.py",
    "two_machines_consumer.py",
    "two_machines_producer.py",
    "web_service.py",  # test_web_service.py
}


@pytest.fixture(params=["valkey", "embedded"])
def broker(request):
    """A URL for examples that need no others to find their queues."""
    if request.param == "embedded":
        return "embedded://"
    return request.getfixturevalue("valkey").url


@pytest.fixture
def no_keys_left(valkey, name, monkeypatch):
    """The keys that the examples made on the server, under a prefix of their own, are gone."""
    monkeypatch.setenv("PRESSURE_PREFIX", name)
    yield
    assert lasting(valkey.client(), f"{name}*") == []


def test_each_example_is_tried_here():
    examples = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")}
    assert examples == TRIED


@pytest.mark.parametrize("example", sorted(TRIED))
def test_each_example_says_how_to_run_it(example):
    text = (EXAMPLES / example).read_text()
    if example.endswith(".py"):
        text = ast.get_docstring(ast.parse(text))
    assert re.search(rf"PRESSURE_URL=\S+ (python|sh) examples/{example}", text) or (
        example == "legacy_before.py" and "python examples/legacy_before.py" in text
    )


@pytest.mark.usefixtures("no_keys_left")
def test_the_bounded_pipeline_holds_its_producer_back(broker):
    output = finish(start("bounded_pipeline.py", url=broker))
    match = re.fullmatch(
        r"the producer waited ([\d.]+) s; most jobs in the queue: 4 of 4\n"
        r"60 results, their sum is 70210\n",
        output,
    )
    assert match, output
    assert float(match[1]) > 0.2, "60 jobs of 20 ms for three workers"


@pytest.mark.usefixtures("no_keys_left")
def test_the_fair_service_serves_the_small_tenants_long_before_the_hog(broker):
    output = finish(start("fair_service.py", url=broker))
    rows = re.findall(r"^(\w+) +(Queue|FairQueue) +#+ (\d+) ms$", output, re.MULTILINE)
    assert len(rows) == output.count("\n") == 8
    delays = {(tenant, kind): int(delay) for tenant, kind, delay in rows}
    for tenant in ("alice", "bob", "carol"):
        assert delays[tenant, "FairQueue"] < delays[tenant, "Queue"] / 2


@pytest.mark.usefixtures("no_keys_left")
@pytest.mark.parametrize(
    ("example", "output"),
    [
        (
            "executor_from_process_pool.py",
            "1000000007 is a prime\n1000000011 is no prime\n998244353 is a prime\n"
            "999999937 is a prime\n999999939 is no prime\n"
            "the roots are 31622, 31622, 31595, 31622, 31622\n",
        ),
        (
            "executor_from_pool_map.py",
            "map: 600 words\nstarmap: [8, 9, 100]\nimap: [0, 1, 2, 3, 4]\n"
            "imap_unordered: [1, 2, 3]\napply_async: 3\n",
        ),
        (
            "executor_from_two_queues.py",
            "resized: a.small.jpg b.small.jpg c.small.jpg\n"
            "failed: ValueError: broken.jpg is no picture\n",
        ),
    ],
)
def test_programs_that_had_another_pool_do_what_they_did(example, output, valkey):
    process = start(example, url=valkey.url)
    told, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, told) == (0, output), errors
    assert "Traceback" not in errors


@pytest.mark.usefixtures("no_keys_left")
def test_reports_are_written_by_workers_elsewhere_and_fetched_later(valkey):
    def run(*args):
        return finish(start("executor_two_machines.py", *args, url=valkey.url))

    ids = run("submit").split()
    worker = subprocess.Popen(
        [
            *(sys.executable, "-m", "pressure_mp.worker", "reports", "--url", valkey.url),
            *("--main", str(EXAMPLES / "executor_two_machines.py")),
        ]
    )
    months = ("April", "May", "June")
    assert run("fetch", *ids) == "".join(f"the report of {month}\n" for month in months)
    run("end")
    assert worker.wait(LIMIT) == 0
    TaskQueue.attach("reports", url=valkey.url).delete()


@pytest.mark.usefixtures("no_keys_left")
def test_the_priority_crawler_visits_every_page_by_its_distance(broker):
    lines = finish(start("priority_crawler.py", url=broker)).splitlines()
    for distance in range(5):
        pages = " ".join(map(str, range(2**distance, 2 ** (distance + 1))))
        assert lines[distance] == f"distance {distance}: pages {pages}"
    assert lines[6] == "40 pages visited"


@pytest.mark.usefixtures("no_keys_left")
def test_the_thumbnailer_tries_again_and_sets_aside(broker):
    process = start("thumbnailer.py", url=broker)
    output, errors = process.communicate(timeout=LIMIT)
    lines = output.splitlines()
    assert process.returncode == 0, errors
    assert re.fullmatch(r"03\.ppm was done at delivery \d, after FileNotFoundError: .+", lines[0])
    assert lines[1:] == [
        "07.ppm is set aside after 3 deliveries: ValueError: 07.ppm has 985 bytes of 57600",
        "11 thumbnails",
        "mended and kicked: 07.small.ppm",
        "the workers ended with [0, 0]",
    ]
    assert errors.count("Traceback") == errors.count("failed, delivery") >= 4, "they are logged"


@pytest.mark.usefixtures("no_keys_left")
def test_delayed_retries_come_when_their_time_has_come(broker):
    lines = finish(start("delayed_retries.py", url=broker)).splitlines()
    assert len(lines) == 3
    hello = re.fullmatch(r"'hello' was sent at delivery ([234]), after ([\d.]+) s", lines[0])
    assert hello, lines
    assert float(hello[2]) >= 0.6
    reminder = re.fullmatch(r"'a reminder' was sent at delivery 1, after ([\d.]+) s", lines[1])
    assert reminder, lines
    assert float(reminder[1]) >= 1
    assert lines[2] == (
        "'to nobody' was given up after 5 deliveries: LookupError: there is no such address"
    )


def test_every_order_in_postgres_is_shipped_once(postgres):
    output = finish(start("orders_in_postgres.py", url=postgres.url))
    assert output.splitlines() == [
        f"order {number} was shipped, at delivery {2 if number == 4 else 1} of its task"
        for number in (1, 2, 4, 5, 7, 8)
    ]


def test_two_machines_when_the_producer_starts_first(valkey, name):
    producer = start("two_machines_producer.py", name, url=valkey.url)
    jobs = PressureQueue(name, url=valkey.url)
    until(lambda: jobs.exists() and jobs.length() == 10)
    two_machines_agree(producer, start("two_machines_consumer.py", name, url=valkey.url), jobs)


def test_two_machines_when_the_consumer_starts_first(valkey, name):
    consumer = start("two_machines_consumer.py", name, url=valkey.url)
    jobs = PressureQueue(name, url=valkey.url)
    until(jobs.exists)
    two_machines_agree(start("two_machines_producer.py", name, url=valkey.url), consumer, jobs)


def two_machines_agree(producer, consumer, jobs):
    produced, consumed = finish(producer), finish(consumer)
    assert produced.startswith(f"100 jobs put into '{jobs.name}' at ")
    assert consumed.startswith("100 jobs done, from ")
    assert consumed.endswith("; their numbers add up to 4950\n")
    assert not jobs.exists(), "so that they can be run again"


def test_the_legacy_program_changes_in_an_import_and_in_nothing_else():
    before, after = ((EXAMPLES / f"legacy_{when}.py").read_text() for when in ("before", "after"))
    changes = difflib.ndiff(before.splitlines(), after.splitlines())
    assert [line for line in changes if line[0] in "-+"] == [
        "- from multiprocessing import JoinableQueue, Queue",
        "+ from pressure_mp import JoinableQueue, Queue",
    ]


@pytest.mark.usefixtures("no_keys_left")
def test_the_legacy_program_computes_the_same_before_and_after(broker, tmp_path):
    digests = []
    for number in range(25):
        path = tmp_path / f"{number % 3}" / f"{number:02}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes([number]) * 1000 * number)
    for path in sorted(tmp_path.rglob("??")):
        digests.append((hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(tmp_path)))
    overall = hashlib.sha256("".join(digest for digest, _ in digests).encode()).hexdigest()

    before = finish(start("legacy_before.py", tmp_path, url=broker))
    after = finish(start("legacy_after.py", tmp_path, url=broker))
    assert before == after
    assert after.splitlines() == [
        *(f"{digest} {path}" for digest, path in digests),
        f"{overall} all 25 files",
    ]


def test_lines_come_out_of_the_pump_as_they_went_in(valkey, name):
    text = "".join(f"line {number}: ä ¶ \t.\n" for number in range(500)) + "\nlast, without an end"
    pumping_in = start("pump.py", "in", name, url=valkey.url, stdin=subprocess.PIPE)
    pumping_out = start("pump.py", "out", name, url=valkey.url)
    assert finish(pumping_in, text) == ""
    assert finish(pumping_out) == text + "\n"
    assert not PressureQueue(name, url=valkey.url).exists()


def test_the_pump_waits_when_no_consumer_takes_its_lines(valkey, name):
    pumping_in = start("pump.py", "in", name, url=valkey.url, stdin=subprocess.PIPE)
    pumping_in.stdin.writelines(f"{number}\n" for number in range(150))
    pumping_in.stdin.flush()
    lines = PressureQueue(name, url=valkey.url)
    until(lambda: lines.exists() and lines.length() == 100)
    assert lines.get() == b"0", "plain text, for any language"
    until(lambda: lines.length() == 100)
    lines.delete()
    ends_without_a_reader(pumping_in, name)


def test_the_pump_ends_at_both_ends_when_its_output_is_not_wanted(valkey, name):
    pumping_in = start("pump.py", "in", name, url=valkey.url, stdin=subprocess.PIPE)
    pumping_out = start("pump.py", "out", name, url=valkey.url)
    pumping_in.stdin.writelines(f"{number}\n" for number in range(10))
    pumping_in.stdin.flush()
    with pumping_out:
        assert pumping_out.stdout.readline() == "0\n"
        pumping_out.stdout.close()
        pumping_in.stdin.writelines(f"{number}\n" for number in range(200))
        pumping_in.stdin.flush()
        assert pumping_out.stderr.read() == ""
    assert pumping_out.returncode == 0
    ends_without_a_reader(pumping_in, name)


def ends_without_a_reader(pumping_in, name):
    _, errors = pumping_in.communicate(timeout=LIMIT)
    assert (pumping_in.returncode, errors) == (1, f"pump.py: nobody reads from {name!r} any more\n")


def test_the_pump_says_how_it_is_used(valkey):
    process = start("pump.py", "sideways", "numbers", url=valkey.url)
    _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, errors) == (1, "usage: pump.py in|out NAME\n")


def test_the_pipeline_of_the_shell_computes_through_queues(valkey, name):
    assert finish(start("shell_pipeline.sh", name, url=valkey.url)) == "1000000\n"
    assert lasting(valkey.client(), f"*{name}*") == []
