"""joblib over an executor."""

from __future__ import annotations

import multiprocessing

import pytest
from executors import functions

joblib = pytest.importorskip("joblib")

import pressure_mp.joblib  # noqa: E402, F401  # it registers the backend
from pressure_mp import Executor  # noqa: E402


@pytest.fixture
def options(valkey):
    return {"url": valkey.url, "mp_context": multiprocessing.get_context("forkserver")}


def test_parallel_runs_over_an_executor_of_its_own_or_a_given_one(options):
    calls = [joblib.delayed(pow)(2, number) for number in range(20)]
    with joblib.parallel_config("pressure_mp", **options):
        assert joblib.Parallel(n_jobs=1)(calls) == [2**number for number in range(20)]
    with (
        Executor(1, **options) as executor,
        joblib.parallel_config("pressure_mp", executor=executor),
    ):
        found = joblib.Parallel(n_jobs=-1, return_as="generator")(calls)
        assert list(found) == [2**number for number in range(20)]
        with pytest.raises(ZeroDivisionError):
            joblib.Parallel(n_jobs=2)([joblib.delayed(divmod)(1, 0)] * 3)
        pids = joblib.Parallel(n_jobs=2)([joblib.delayed(functions.pid)()] * 3)
        assert set(pids) == set(executor._processes)
