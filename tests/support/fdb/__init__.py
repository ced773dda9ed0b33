"""The binding ``fdb`` over the simulator's library, in each process that finds this folder first.
With the variable ``PRESSURE_TEST_FDB``, the binding over its own library."""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import warnings
from typing import Any
from unittest import mock

from simulated_fdb.library import Library, wait

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
        with warnings.catch_warnings():
            # From Python 3.14 on, ctypes deprecates a way in which the binding states structures.
            warnings.simplefilter("ignore", DeprecationWarning)
            if "PRESSURE_TEST_FDB" in os.environ:
                importlib.import_module("fdb.impl")
            else:
                with mock.patch.object(ctypes, "CDLL", return_value=Library()):
                    _let_others_go_on(importlib.import_module("fdb.impl").Future)
    except BaseException:
        del sys.modules["fdb"]
        raise


def _let_others_go_on(future: Any) -> None:
    """Have a thread that waits for a future tell the driver so, as event models do."""
    block = future.block_until_ready

    def block_until_ready(self: Any) -> None:
        wait(self.fpointer)
        block(self)

    future.block_until_ready = block_until_ready


_load()
