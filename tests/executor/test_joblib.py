"""joblib over an executor."""

from __future__ import annotations

import multiprocessing
from contextlib import ExitStack

import pytest
from executors import functions

joblib = pytest.importorskip("joblib")

import pressure_mp.joblib  # noqa: E402, F401  # it registers the backend
from pressure_mp import ArgumentError, Executor  # noqa: E402


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
        check_arrays()
        check_nested(executor)
        check_cross_validation()


def test_a_parallel_has_the_options_of_its_executor(options):
    calls = [joblib.delayed(functions.get_status)()] * 3
    begin = {"initializer": functions.begin, "initargs": ("of the Parallel",)}
    with joblib.parallel_config("pressure_mp", **options, initializer=functions.begin_well):
        assert joblib.Parallel(n_jobs=2)(calls) == ["well"] * 3
        assert joblib.Parallel(n_jobs=2, **begin)(calls) == ["of the Parallel"] * 3
        with pytest.raises(TypeError, match="colour"):
            joblib.Parallel(n_jobs=2, colour="red")(calls)


def test_options_beside_a_given_executor_are_refused(options):
    with Executor(1, **options) as executor:
        with joblib.parallel_config("pressure_mp", executor=executor):
            parallel = joblib.Parallel(n_jobs=2, initializer=functions.begin_well, initargs=())
            with pytest.raises(ArgumentError, match=r"give initargs, initializer to that Executor"):
                parallel([joblib.delayed(abs)(-1)])
        with (
            joblib.parallel_config("pressure_mp", executor=executor, per_key=2),
            pytest.raises(ArgumentError, match="give per_key to that Executor"),
        ):
            joblib.Parallel(n_jobs=2)([joblib.delayed(abs)(-1)])


@pytest.mark.parametrize("is_given", [False, True])
def test_the_batches_that_run_end_when_another_fails(options, tmp_path, is_given):
    paths = [str(tmp_path / f"runs {number}") for number in range(2)]
    with ExitStack() as stack:
        if is_given:
            options = {"executor": stack.enter_context(Executor(3, **options))}
        with (
            joblib.parallel_config("pressure_mp", **options),
            pytest.raises(ValueError, match="the last one"),
        ):
            joblib.Parallel(n_jobs=3)(
                joblib.delayed(functions.hold_or_fail)(paths, number) for number in range(3)
            )
        if is_given:
            assert options["executor"].submit(abs, -1).result(60) == 1
    assert [len(functions.runs(path)) for path in paths] == [1, 1]


def test_the_batches_that_run_end_when_the_time_is_up(options, tmp_path):
    with (
        joblib.parallel_config("pressure_mp", **options),
        pytest.raises(multiprocessing.TimeoutError),
    ):
        joblib.Parallel(n_jobs=2, timeout=0.1)(
            [joblib.delayed(functions.hold)(str(tmp_path / "runs"), "never")] * 3
        )


def check_arrays():
    """Arrays that go and come in chunks."""
    numpy = pytest.importorskip("numpy")
    arrays = [numpy.full(100_000, number, dtype=float) for number in range(3)]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(numpy.negative)(array) for array in arrays)
    assert [(array.size, array[-1]) for array in found] == [(100_000, -n) for n in range(3)]


def check_nested(executor):
    """A call that has calls of its own does them itself, or in threads: not in the same workers."""
    inner = [joblib.delayed(functions.run_in_parallel)(number) for number in range(3)]
    found = joblib.Parallel(n_jobs=2)(inner)
    assert [values for values, _ in found] == [[number] * 2 for number in range(3)]
    assert {pid for _, pids in found for pid in pids} == set(executor._processes)


def check_cross_validation():
    """As scikit-learn does it: each call fits a copy of an estimator on a part of the data, and
    returns it with its score; one that fails is told, and the next run goes on."""
    numpy = pytest.importorskip("numpy")
    data = numpy.arange(12.0).reshape(6, 2)
    folds = [(numpy.delete(data, row, 0), data[row]) for row in range(6)]
    run = joblib.Parallel(n_jobs=2, pre_dispatch="2*n_jobs", batch_size="auto")
    with run:
        fitted = run(joblib.delayed(functions.fit)(functions.Mean(), *fold) for fold in folds)
        serially = [functions.fit(functions.Mean(), *fold) for fold in folds]
        assert [score for _, score in fitted] == [score for _, score in serially]
        assert type(fitted[0][0]) is functions.Mean
        # Of one part: joblib keeps a batch that it has not dispatched when another one fails, and
        # does it in its next run, where it fails too.
        with pytest.raises(ValueError, match="nothing to fit"):
            run([joblib.delayed(functions.fit)(functions.Mean(), [], 0)])
        assert run([joblib.delayed(abs)(-1)]) == [1]
    with pytest.raises(ValueError, match="nothing to fit"):
        joblib.Parallel(n_jobs=2)(
            joblib.delayed(functions.fit)(functions.Mean(), part, 0) for part in [[], []]
        )
