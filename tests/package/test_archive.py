"""The package in an archive: what it has beside its modules is found there, with sources and
without, as frozen programs have it."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pressure_mp

PACKAGE = Path(pressure_mp.__file__).parent

PROGRAM = """
import os, warnings
import pressure_mp
from pressure_mp import PressureQueue, PriorityQueue, Queue, TaskQueue
from pressure_mp.caller_warnings import warn_caller
from pressure_mp.dashboard.app import make_app
from pressure_mp.engines.postgres import schema
from starlette.testclient import TestClient

assert ".zip" in pressure_mp.__file__, pressure_mp.__file__
for made in (Queue(), Queue(name="one"), PriorityQueue(name="two")):
    made.put(1)
    assert made.get(timeout=20) == 1
tasks = TaskQueue(name="three")
tasks.put("work")
assert tasks.take(timeout=20).data == "work"
assert "CREATE TABLE" in schema.install_sql()
with TestClient(make_app("memory://"), base_url="http://127.0.0.1") as client:
    assert client.get("/static/dashboard.js").status_code == 200
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    four = Queue.create("four")
    PressureQueue(name="four").put(b"no pickle")
    four.put(4)
    assert four.get_many(2) == [4]  # it warns of the other item
print({os.path.basename(one.filename) for one in caught})
"""


def add(archive, path, made, has_sources):
    name = str(path.relative_to(PACKAGE.parent))
    if has_sources or path.suffix != ".py":
        archive.write(path, name)
    else:
        py_compile.compile(
            str(path),
            cfile=str(made),
            dfile=name,  # as PyInstaller does it
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        archive.write(made, name + "c")


@pytest.mark.parametrize("has_sources", [True, False], ids=["sources", "compiled"])
def test_a_program_runs_from_an_archive(tmp_path, has_sources):
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for path in sorted(PACKAGE.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                add(opened, path, tmp_path / "made.pyc", has_sources)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if "PRESSURE" not in name}
    ended = subprocess.run(
        [sys.executable, program],
        env={**environment, "PYTHONPATH": str(archive), "PRESSURE_URL": "embedded://"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "{'program.py'}\n"), ended.stderr
