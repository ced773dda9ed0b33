"""What reaches a user: the wheel, the import, the public names."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pressure_mp

PACKAGE = Path(pressure_mp.__file__).parent
CHECKOUT = Path(__file__).parents[2]


@pytest.mark.timeout(600)  # it installs what builds a wheel
def test_the_wheel_carries_the_lua_and_the_type_marker(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(CHECKOUT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(path.relative_to(CHECKOUT))
        for pattern in ("*.lua", "*.py", "py.typed", "static/*")
        for path in (CHECKOUT / "pressure_mp").rglob(pattern)
    }
    assert "pressure_mp/engines/redis/lua/queue/put.lua" in expected
    assert "pressure_mp/py.typed" in expected
    assert expected <= names
    assert not any(name.startswith("tests") for name in names)


def fresh(code):
    """What a new interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_importing_the_package_imports_no_client_and_no_engine():
    loaded = fresh("import sys, pressure_mp; print(*sys.modules)").split()
    for module in ("redis", "hiredis", "psutil", "asyncio", "multiprocessing", "rich", "click"):
        assert module not in loaded
    assert "pressure_mp.engines.redis.engine" not in loaded


def test_a_public_name_loads_its_own_module_when_it_is_first_used():
    code = "import sys, pressure_mp as p; print(*sys.modules); p.Queue; print(*sys.modules)"
    before, after = (line.split() for line in fresh(code).splitlines())
    assert "pressure_mp.sync.queues" not in before
    assert "pressure_mp.sync.queues" in after
    assert "pressure_mp.sync.tasks.task_queue" not in after


#: Modules whose import takes longer than the queue's own, and which an unused queue does not need.
SLOW_IMPORTS = (
    *("asyncio", "dataclasses", "hashlib", "inspect", "json", "logging", "multiprocessing"),
    *("selectors", "socket", "ssl", "subprocess", "tempfile", "uuid"),
)


def test_importing_queue_loads_nothing_that_it_does_not_need_before_its_first_call():
    before = "import sys; before = {*sys.modules}"  # what the interpreter's own site loads
    loaded = fresh(f"{before}; from pressure_mp import Queue; print(*({{*sys.modules}} - before))")
    assert {*loaded.split()}.isdisjoint({*SLOW_IMPORTS, "redis", "hiredis", "psutil"})
    own = {name for name in loaded.split() if name.startswith("pressure_mp.")}
    assert "pressure_mp.sync.queues" in own
    assert not [name for name in own if "task" in name]
    assert not [name for name in own if name.startswith("pressure_mp.aio")]
    assert own.isdisjoint(
        {
            "pressure_mp.engines.contract.requests",
            "pressure_mp.engines.memory.engine",
            "pressure_mp.engines.redis.engine",
            "pressure_mp.operations.diagnosis",
        }
    )


def test_every_public_name_is_there_and_listed():
    assert set(pressure_mp.__all__) <= set(dir(pressure_mp))
    for name in pressure_mp.__all__:
        assert getattr(pressure_mp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Queu'"):
        pressure_mp.Queu  # noqa: B018


def test_every_public_name_has_a_docstring():
    for name in set(pressure_mp.__all__) - {"__version__"}:
        public = getattr(pressure_mp, name)
        assert public.__doc__, name
        for attribute, value in vars(public).items():
            if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{attribute}"


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert version("pressure_mp") == pressure_mp.__version__
