"""Findings about a file of queues, its disk and the library of SQLite; and files and libraries that
are refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import pytest
import started
from disks import small_disk

import pressure_mp
from pressure_mp import BrokerFull, NotSupportedError, Queue
from pressure_mp.engines.sqlite import checks, files, findings

ITEM = b"x" * 5000


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setattr(findings, "_IN_MEMORY", ())  # wherever the tests run
    return f"sqlite://{tmp_path}/queues"


def found(url):
    return {one.subject: one for one in pressure_mp.examine_broker(url=url)}


def test_nothing_is_wrong_with_a_new_file(url):
    Queue(name="queue", url=url).put("item")
    assert found(url) == {}


def test_a_file_in_memory_loses_data(tmp_path):
    with small_disk(tmp_path / "disk", 16, "700", 0):
        url = f"sqlite://{tmp_path}/disk/queues"
        assert found(url)["file system"].loses
        assert found(url)["file system"].value == "tmpfs"


def test_a_full_disk_and_one_that_is_too_small_are_told(tmp_path, url):
    with small_disk(tmp_path / "small", 5, "700", 0):
        small = f"sqlite://{tmp_path}/small/queues"
        Queue(name="queue", url=small).put("item")
        assert [*found(small)] == ["ballast"]
    with small_disk(tmp_path / "full", 8, "700", 0):
        full = f"sqlite://{tmp_path}/full/queues"
        queue = Queue(name="queue", url=full)
        with suppress(BrokerFull):
            for _ in range(10_000):
                queue.put(ITEM)
        assert [*found(full)] == ["disk"]


def test_a_reader_that_keeps_the_log_from_being_moved_is_told(url, tmp_path):
    queue = Queue(name="queue", url=url)
    queue.put("item")
    with closing(sqlite3.connect(tmp_path / "queues")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM pressure_mp").fetchall()
        for _ in range(300):
            queue.put(ITEM)
        assert [*found(url)] == ["log"]


def test_a_file_that_is_mostly_empty_is_told(url, monkeypatch):
    monkeypatch.setattr(findings, "_MUCH", 1 << 20)
    queue = Queue(name="queue", url=url)
    queue.put_many([ITEM] * 1000)
    assert found(url) == {}
    queue.purge()
    for _ in range(300):
        queue.put(ITEM)
        queue.get()
    assert [*found(url)] == ["file"]


def test_tables_of_a_program_are_told_of_only_with_an_sqlite_that_has_the_fault(
    url, tmp_path, monkeypatch
):
    Queue(name="queue", url=url).put("item")
    with closing(sqlite3.connect(tmp_path / "queues")) as connection:
        connection.execute("CREATE TABLE own (number)")
    for version, faulty in (((3, 40, 1), ["SQLite"]), ((3, 51, 3), [])):
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
        assert [*found(url)] == faulty


@pytest.mark.parametrize("version", [(3, 44, 6), (3, 44, 7), (3, 50, 7), (3, 51, 3), (3, 52, 0)])
def test_versions_that_were_repaired(version):
    assert not findings.is_faulty(version)


@pytest.mark.parametrize("version", [(3, 7, 0), (3, 44, 5), (3, 45, 0), (3, 50, 6), (3, 51, 2)])
def test_versions_that_have_the_fault(version):
    assert findings.is_faulty(version)


# Libraries and files that are refused


def test_an_old_sqlite_is_refused_with_its_version(url, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 8, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.8.1")
    with pytest.raises(NotSupportedError, match=r"SQLite 3\.8\.1 .* 3\.8\.2 or later"):
        Queue(name="queue", url=url).put("item")


@pytest.mark.parametrize("option", ["THREADSAFE=0", "OMIT_WAL"])
def test_an_sqlite_without_what_queues_need_is_refused_with_its_version(option):
    with pytest.raises(NotSupportedError, match=rf"SQLite {sqlite3.sqlite_version} .*{option}"):
        checks.check_options({"MUTEX_PTHREADS", option})


def test_a_file_that_has_no_write_ahead_log_is_refused(url, monkeypatch):
    connect = sqlite3.connect

    def without(path, **options):  # a file system of SQLite without memory that processes share
        return connect(f"file:{path}?vfs=unix-dotfile", uri=True, **options)

    monkeypatch.setattr(files.sqlite3, "connect", without)
    with pytest.raises(NotSupportedError, match="write-ahead log"):
        Queue(name="queue", url=url).put("item")


TWO = """
import sys, warnings
import {module}
from pressure_mp import Queue
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    for name in "ab":
        Queue(name="queue", url=sys.argv[1] + name).put("item")
print(*(str(one.message) for one in found), sep="\\n")
"""


@pytest.mark.parametrize("module", ["apsw", "json"])
def test_a_second_library_of_sqlite_in_the_process_is_warned_of_once(url, module):
    pytest.importorskip(module)
    run = subprocess.run(
        [sys.executable, "-c", TWO.format(module=module), url],
        check=True,
        capture_output=True,
        text=True,
        env=started.environment(),
    )
    told = run.stdout.split("\n")
    assert [("several copies of SQLite" in one, module in one) for one in told if one] == (
        [] if module == "json" else [(True, True)]
    )
