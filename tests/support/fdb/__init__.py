"""The binding ``fdb`` over the simulator's library, in each process that finds this folder first.
With the variable ``PRESSURE_TEST_FDB``, the binding over its own library."""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from unittest import mock

from simulated_fdb.library import Library

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _load() -> None:
    others = [one for one in sys.path if os.path.abspath(one or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("fdb", others)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("No module named 'fdb'", name="fdb")
    binding = importlib.util.module_from_spec(spec)
    sys.modules["fdb"] = binding
    try:
        spec.loader.exec_module(binding)
        if "PRESSURE_TEST_FDB" not in os.environ:
            with mock.patch.object(ctypes, "CDLL", return_value=Library()):
                importlib.import_module("fdb.impl")
    except BaseException:
        del sys.modules["fdb"]
        raise


_load()
