"""What reaches a user: the wheel, the import, the cut between the layers."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pressure_mp

PACKAGE = Path(pressure_mp.__file__).parent
CHECKOUT = Path(__file__).parents[2]


def test_the_wheel_carries_the_lua_and_the_type_marker(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(CHECKOUT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(path.relative_to(CHECKOUT))
        for pattern in ("*.lua", "*.py", "py.typed")
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
    assert "pressure_mp.queues" not in before
    assert "pressure_mp.queues" in after
    assert "pressure_mp.tasks" not in after


def test_every_public_name_is_there_and_listed():
    assert set(pressure_mp.__all__) <= set(dir(pressure_mp))
    for name in pressure_mp.__all__:
        assert getattr(pressure_mp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Queu'"):
        pressure_mp.Queu  # noqa: B018


def imports(path):
    """The modules of the package that a file imports, as dotted names below it."""
    module = [*path.relative_to(PACKAGE).with_suffix("").parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = module[: len(module) - node.level]
            found = [*base, *(node.module or "").split(".")] if node.module else base
            if node.module:
                yield ".".join(found)
            else:
                yield from (".".join([*found, alias.name]) for alias in node.names)


#: A layer, and what its modules may import of the package.
LAYERS = {
    "exceptions.py": ("authentication", "states"),
    "authentication.py": ("exceptions",),
    "exhaustive.py": (),
    "deadlines.py": (),
    "processes.py": (),
    "identity.py": ("processes",),
    "interrupts.py": (),
    "hidden.py": (),
    "large.py": (),
    "states.py": (),
    "flights.py": (),
    "config.py": ("exceptions", "hidden"),
    "ordering.py": ("exceptions",),
    "task_values.py": ("exceptions",),
    "serializers.py": ("exceptions", "interrupts", "large"),
    "signing.py": ("exceptions", "authentication", "hidden"),
    "options.py": ("engines.contract", "hidden", "serializers", "signing"),
    "codec.py": ("exceptions", "interrupts", "large", "serializers", "signing"),
    "engines/contract/*.py": ("config", "engines.contract", "states"),
    "engines/memory/*.py": (
        *("config", "engines.contract", "engines.memory", "exceptions", "exhaustive", "identity"),
        *("large", "states"),
    ),
    "engines/redis/**/*.py": (
        *("config", "engines.contract", "engines.redis", "exceptions", "exhaustive", "hidden"),
        *("identity", "states"),
    ),
    "effects.py": ("engines.contract",),
    "drivers.py": ("effects", "engines.contract", "exceptions"),
    "endings.py": ("engines.contract", "exceptions"),
    "operations/*.py": (
        *("codec", "deadlines", "effects", "engines.contract", "exceptions", "exhaustive"),
        *("flights", "identity", "interrupts", "large", "operations", "ordering", "processes"),
        *("states", "task_values"),
    ),
    "task_settings.py": ("engines.contract", "exceptions", "options", "states", "task_values"),
    "presence.py": (
        *("drivers", "effects", "endings", "engines.contract", "exceptions", "flights"),
        *("interrupts", "operations", "processes"),
    ),
    "takers.py": (
        *("effects", "engines.contract", "exceptions", "flights", "operations", "presence"),
        *("processes",),
    ),
    "lifetimes.py": (
        *("drivers", "effects", "endings", "engines.contract", "exceptions", "processes"),
    ),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_dependencies_point_one_way(layer):
    files = sorted(PACKAGE.glob(layer))
    assert files
    for path in files:
        for module in imports(path):
            allowed = any(module == one or module.startswith(one + ".") for one in LAYERS[layer])
            assert allowed, f"{path.relative_to(PACKAGE)} imports {module}"


def test_operations_do_no_io():
    for path in (PACKAGE / "operations").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
                assert names <= {"typing", "dataclasses", "re"}, f"{path.name} imports {names}"


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
